"""``graphattn predict``: every row in order, its own cells first and unchanged, then what the model says."""

import csv
import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import run, write_table
from tiny_models import MOLECULES, tiny_predictor

from graphattn.data.scaling import TargetScaler
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


def test_a_target_far_from_0_is_written_with_six_digits_of_its_spread(tmp_path):
    scaler = TargetScaler(mean=(1e6, -2e-3), std=(0.01, 1e-9))
    predictor = replace(tiny_predictor(), scaler=scaler)
    save_model(predictor, tmp_path / "model")
    table = write_table(tmp_path / "new.csv", [("smiles",), *[(smiles,) for smiles in MOLECULES]])
    assert run("predict", tmp_path / "model", table, "-o", tmp_path / "out.csv").code == 0
    _, *rows = read(tmp_path / "out.csv")
    values = predictor.predict(MOLECULES).values
    written = np.array([row[1:3] for row in rows], dtype=float)
    assert (np.abs(written - values) <= 1e-5 * np.array(scaler.std)).all()
    assert max(len(cell) for row in rows for cell in row[1:3]) <= len("-0.00200000012345")


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


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [
        ("out.tsv", "\t"),
        ("out.csv.gz", ","),
        ("out.tab.gz", "\t"),
        ("OUT.TSV.GZ", "\t"),
        ("out.tsv.csv", ","),
        ("out.csv.tsv", "\t"),
        ("out.tsv.CSV.gz", ","),
        ("out.gz", ","),
        ("out.txt", ","),
        ("out", ","),
    ],
)
def test_the_ending_of_the_output_decides_its_form(model, tmp_path, name, delimiter):
    table = write_table(tmp_path / "new.csv", [("smiles",), ("CCO",)])
    assert run("predict", model, table, "-o", tmp_path / name).code == 0
    raw = (tmp_path / name).read_bytes()
    text = gzip.decompress(raw) if name.casefold().endswith(".gz") else raw
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
    assert run("predict", model, table).code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "new.csv"]


def test_a_place_where_predictions_cannot_be_is_refused_before_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # short paths, which messages do not break
    save_model(tiny_predictor(), "model")
    table = write_table(tmp_path / "new.csv", [("smiles",), ("CCO",)])
    Path("link").symlink_to("model")
    Path("inside.csv").symlink_to("model/inside.csv")
    Path("lost.csv").symlink_to("nowhere/lost.csv")
    Path("folder").mkdir()
    files = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    monkeypatch.setattr("graphattn.model_folder.load_model", None)  # work begins with it
    for output, message in {
        "new.csv": "--output new.csv is the input itself; name another file",
        "model/model.json": "--output model/model.json is in the model folder model; name a file outside of it",
        "model/new.csv": "--output model/new.csv is in the model folder model; name a file outside of it",
        "link/new.csv": "--output link/new.csv is in the model folder model; name a file outside of it",
        "folder/../model/x.csv": "--output folder/../model/x.csv is in the model folder model",
        "model": "--output model is a folder; name a file to write",
        "folder": "--output folder is a folder; name a file to write",
        "/dev/null": "--output /dev/null is no ordinary file; name a file to write",
        "out.parquet": "--output out.parquet: tables are written as .csv, .tsv, .tab, .txt, each also with .gz",
        "out.csv.XLSX": "not as .xlsx; name such a file",
        "out.sdf.gz": "not as .sdf; name such a file",
        "inside.csv": "--output inside.csv is in the model folder model; name a file outside of it",
        "lost.csv": "--output lost.csv cannot be written: No such file or directory; name another file",
        "x" * 250 + ".csv": "cannot be written: File name too long; name another file",
        "none/out.csv": "--output none/out.csv: there is no folder none; make it, or name another file",
        "new.csv/out.csv": "--output new.csv/out.csv: there is no folder new.csv; make it, or name another file",
    }.items():
        done = run("predict", "model", table, "-o", output)
        assert (done.code, message in done.words) == (2, True), done.err
    assert files == {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_the_file_behind_it_is_written(model, tmp_path, there):
    table = write_table(tmp_path / "new.csv", [("smiles",), ("CCO",)])
    (tmp_path / "shared").mkdir()
    target = tmp_path / "shared" / "all.csv"
    if there:
        target.write_text("old")
    link = tmp_path / "out.tsv"
    link.symlink_to(target)
    assert run("predict", model, table, "-o", link).code == 0
    assert link.is_symlink()
    assert read(target, delimiter="\t")[0] == ["smiles", "length", "odd", "status", "reason"]
    assert list(target.parent.iterdir()) == [target]


def test_a_file_that_cannot_be_finished_leaves_the_old_one(model, tmp_path, monkeypatch):
    table = write_table(tmp_path / "new.csv", [("smiles",), ("CCO",)])
    (tmp_path / "out.csv").write_text("old")
    write = Path.write_bytes

    def full(self, content):
        write(self, content[:3])
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    done = run("predict", model, table, "-o", tmp_path / "out.csv")
    assert done.code == 1
    assert done.err == f"error: {tmp_path / 'out.csv'}: No space left on device\n"
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
