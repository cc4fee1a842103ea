"""``graphattn predict``: every row in order, its own cells first and unchanged, then what the model says."""

import csv
import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import run, write_table
from tiny_models import tiny_predictor

from graphattn.model_folder import save_model

DIRTY = (
    "id,smiles,note\n"
    '001,CCO,"with, comma"\n'
    "002,C1CC,kept\n"
    "003,,NA\n"
    "004,CCO>>CC=O, blanks \n"
    '1e5,[Al].[OH2+]c1ccccc1,"two\nlines"\n'
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    save_model(tiny_predictor(), folder)
    return folder


def read(path, delimiter=","):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_every_row_is_there_with_its_own_cells_as_they_came(model, tmp_path):
    table = tmp_path / "new.csv"
    table.write_text(DIRTY)
    done = run("predict", model, table, "--output", tmp_path / "out.csv")
    assert done.code == 0
    header, *rows = read(tmp_path / "out.csv")
    assert header == ["id", "smiles", "note", "length", "odd", "status", "reason"]
    assert [header[:3], *(row[:3] for row in rows)] == read(table)
    assert [row[5] for row in rows] == ["ok", "unreadable", "empty", "reaction", "ok"]
    assert [bool(row[3]) and bool(row[4]) for row in rows] == [True, False, False, False, True]
    assert rows[0][6] == ""
    assert all(row[6] for row in rows[1:])
    expected = tiny_predictor().predict(["CCO", "[Al].[OH2+]c1ccccc1"]).values
    np.testing.assert_allclose(np.array([rows[0][3:5], rows[4][3:5]], dtype=float), expected, rtol=2e-5)
    assert f"warning: {table}, row 2 (line 3): no prediction: " in done.err
    assert f"{tmp_path / 'out.csv'}: 2 of 5 rows predicted (see status and reason in" in done.err
    assert done.out == ""


def test_numbers_have_six_digits(model, tmp_path):
    table = write_table(tmp_path / "new.csv", [("smiles",), ("CCO",)])
    run("predict", model, table, "-o", tmp_path / "out.csv")
    value = read(tmp_path / "out.csv")[1][1]
    assert value == f"{tiny_predictor().predict(['CCO']).values[0, 0]:.6g}"


def test_names_that_the_table_has_already_get_an_ending(model, tmp_path):
    table = write_table(tmp_path / "new.csv", [("smiles", "length", "length_predicted", "status"), ("C", 9, 8, "old")])
    assert run("predict", model, table, "-o", tmp_path / "out.csv", "--quiet").code == 0
    header, row = read(tmp_path / "out.csv")
    assert header == [
        *("smiles", "length", "length_predicted", "status"),
        *("length_predicted_predicted", "odd", "status_predicted", "reason"),
    ]
    assert row[:4] == ["C", "9", "8", "old"]
    assert row[6] == "ok"


@pytest.mark.parametrize(("name", "delimiter"), [("out.tsv", "\t"), ("out.csv.gz", ","), ("out.tab.gz", "\t")])
def test_the_ending_of_the_output_decides_its_form(model, tmp_path, name, delimiter):
    table = write_table(tmp_path / "new.csv", [("smiles",), ("CCO",)])
    assert run("predict", model, table, "-o", tmp_path / "deep" / name).code == 0
    raw = (tmp_path / "deep" / name).read_bytes()
    text = gzip.decompress(raw) if name.endswith(".gz") else raw
    assert text.decode().splitlines()[0] == delimiter.join(["smiles", "length", "odd", "status", "reason"])


def test_strict_fails_before_work_and_writes_nothing(model, tmp_path):
    table = tmp_path / "new.csv"
    table.write_text(DIRTY)
    done = run("predict", model, table, "--output", tmp_path / "out.csv", "--strict")
    assert done.code == 1
    assert f"error: {table}, row 2 (line 3): 'C1CC' is unreadable" in done.err
    assert not (tmp_path / "out.csv").exists()


def test_quiet_says_nothing_and_predicts_all_the_same(model, tmp_path):
    table = tmp_path / "new.csv"
    table.write_text(DIRTY)
    done = run("predict", model, table, "--output", tmp_path / "out.csv", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(read(tmp_path / "out.csv")) == 6


def test_the_smiles_column_can_be_named_and_is_else_found_in_any_case(model, tmp_path):
    table = write_table(tmp_path / "new.csv", [("Drug", "Y"), ("CCO", "1")])
    done = run("predict", model, table, "-o", tmp_path / "out.csv")
    assert done.code == 1
    assert "Its columns are 'Drug', 'Y'." in done.err
    assert run("predict", model, table, "-o", tmp_path / "out.csv", "--smiles-column", "Drug").code == 0
    table = write_table(tmp_path / "other.csv", [("Smiles",), ("CCO",)])
    assert run("predict", model, table, "-o", tmp_path / "out.csv").code == 0


def test_what_cannot_be_done_is_said_without_a_traceback(model, tmp_path):
    table = write_table(tmp_path / "new.csv", [("smiles",), ("CCO",)])
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "model.json").write_text("{")
    for folder, message in ((tmp_path / "none", "there is no folder"), (damaged, "truncated or damaged")):
        done = run("predict", folder, table, "-o", tmp_path / "out.csv")
        assert done.code == 1
        assert message in done.err
    done = run("predict", model, table, "-o", table)
    assert done.code == 2
    assert "is the input itself; name another file" in re.sub(r"[\s│]+", " ", done.err)
    assert table.read_text() == "smiles\nCCO\n"
    assert run("predict", model, table).code == 2
    (tmp_path / "folder").mkdir()
    done = run("predict", model, table, "-o", tmp_path / "folder")
    assert done.code == 1
    assert "Is a directory" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "folder", "new.csv"]


def test_a_file_that_cannot_be_finished_leaves_the_old_one(model, tmp_path, monkeypatch):
    table = write_table(tmp_path / "new.csv", [("smiles",), ("CCO",)])
    (tmp_path / "out.csv").write_text("old")
    write = Path.write_bytes

    def full(self, content):
        write(self, content[:3])
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert run("predict", model, table, "-o", tmp_path / "out.csv").code == 1
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "out.csv"]


def test_a_binary_model_writes_the_probability_of_class_1(tmp_path):
    save_model(tiny_predictor("binary"), tmp_path / "model")
    table = write_table(tmp_path / "new.csv", [("smiles",), ("CCO",)])
    run("predict", tmp_path / "model", table, "-o", tmp_path / "out.csv")
    value = float(read(tmp_path / "out.csv")[1][1])
    assert value == pytest.approx(tiny_predictor("binary").predict(["CCO"]).values[0, 0], rel=1e-5)


def test_the_options_that_a_model_was_trained_with_win(tmp_path):
    save_model(tiny_predictor(stereo=False), tmp_path / "model")
    table = write_table(tmp_path / "new.csv", [("smiles",), ("C[C@H](N)C(=O)O",), ("C[C@@H](N)C(=O)O",)])
    run("predict", tmp_path / "model", table, "-o", tmp_path / "out.csv")
    _, one, other = read(tmp_path / "out.csv")
    assert one[1:] == other[1:]
