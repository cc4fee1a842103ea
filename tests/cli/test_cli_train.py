"""``graphattn train``: what it reads, says, writes and refuses."""

import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import SMALL, length_table, run, write_table
from tiny_models import MOLECULES

from graphattn import fit
from graphattn.model_folder import load_model


@pytest.fixture
def table(tmp_path):
    return length_table(tmp_path / "lengths.csv")


def test_a_table_becomes_a_model_that_python_reads(table, tmp_path):
    done = run("train", table, "--target-column", "length", "--output", tmp_path / "model", *SMALL)
    assert done.code == 0
    assert re.search(r"^test   length  rmse \d+\.\d+  mae .* \(2 rows\)$", done.out, re.MULTILINE)
    assert "20 of 20 rows used; molecules in 'smiles'" in done.err
    assert "regression of length (labels other than 0 and 1)" in done.err
    assert "split: random, seed 0: 16 train, 2 valid, 2 test" in done.err
    assert "epoch 2/2" in done.err
    assert f"model written to {tmp_path / 'model'}; predict with: graphattn predict" in done.err
    predictor = load_model(tmp_path / "model")
    assert predictor.network_config.channels == 8
    assert [target.name for target in predictor.targets] == ["length"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lengths.csv", "model"]


def test_elements_without_a_code_of_their_own_are_reported(table, tmp_path):
    table.write_text(table.read_text() + "a,[Al]CC,7,0\nb,[Al]CCC,8,0\nc,CC[Pt],7,0\n")
    done = run("train", table, "--target-column", "length", "--output", tmp_path / "model", *SMALL)
    assert done.code == 0, done.err
    assert "23 of 23 rows used" in done.err
    assert "\n2 rows: elements outside the table: Al\n1 rows: elements outside the table: Pt\n" in done.err
    assert load_model(tmp_path / "model").summary.remarks == {
        "elements outside the table: Al": 2,
        "elements outside the table: Pt": 1,
    }


def test_quiet_says_nothing(table, tmp_path):
    table.write_text(table.read_text() + "bad,C1CC,4,0\n")
    done = run("train", table, "--target-column", "length", "--output", tmp_path / "model", *SMALL, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_several_targets_and_every_setting_reach_the_model(table, tmp_path):
    done = run(
        *("train", table, "--target-column", "length", "--target-column", "long", "--smiles-column", "smiles"),
        *("--output", tmp_path / "model", *SMALL, "--readout", "sum", "--no-self-loops", "--batch-size", 4),
        *(
            "--hydrogens",
            "add",
            "--no-stereo",
            "--ensemble",
            2,
            "--seed",
            5,
            "--split",
            "scaffold",
            "--acyclic",
            "apart",
            "--loss",
            "mae",
        ),
    )
    assert done.code == 0, done.err
    assert "network 2 of 2: epoch 2/2" in done.err
    predictor = load_model(tmp_path / "model")
    assert [target.name for target in predictor.targets] == ["length", "long"]
    assert (predictor.network_config.readout, predictor.network_config.self_loops) == ("sum", False)
    assert (predictor.featurizer.hydrogens, predictor.featurizer.stereo) == ("add", False)
    assert len(predictor.networks) == 2
    training = predictor.summary.training
    assert (training["seed"], training["loss"], training["batch_size"]) == (5, "mae", 4)
    assert predictor.summary.split == "Bemis-Murcko scaffolds, molecules without rings apart"


def test_the_largest_seed_trains_and_that_of_the_next_network_is_0(table, tmp_path):
    common = ("train", table, "--target-column", "length", *SMALL, "--split-column", "part")
    parts = ["part", *["train"] * 16, *["val"] * 4]
    lines = [f"{line},{part}" for line, part in zip(table.read_text().splitlines(), parts, strict=True)]
    table.write_text("\n".join(lines))
    assert run(*common, "--seed", 2**32 - 1, "--ensemble", 2, "-o", tmp_path / "two").code == 0
    assert run(*common, "--seed", 0, "-o", tmp_path / "one").code == 0
    weights = [tmp_path / "two" / "weights-1.safetensors", tmp_path / "one" / "weights-0.safetensors"]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_classification_is_told_from_the_labels_or_asked_for(table, tmp_path):
    done = run("train", table, "--target-column", "long", "--output", tmp_path / "model", *SMALL)
    assert done.code == 0, done.err
    assert "classification of long (every label is 0 or 1)" in done.err
    assert load_model(tmp_path / "model").targets[0].classes == (0, 1)
    done = run(
        *("train", table, "--target-column", "length", "--task", "classification", "--output", tmp_path / "x", *SMALL)
    )
    assert done.code == 1
    assert f"error: {table}, row 1 (line 2): target 'length' is 1; wanted 0 or 1" not in done.err
    assert f"error: {table}, row 2 (line 3): target 'length' is 2; wanted 0 or 1" in done.err


def test_a_split_column_decides_the_parts(tmp_path):
    parts = ["train"] * 14 + ["val"] * 3 + ["test"] * 3
    rows = [(smiles, len(smiles), part) for smiles, part in zip(MOLECULES, parts, strict=True)]
    table = write_table(tmp_path / "marked.csv", [("SMILES", "y", "set"), *rows])
    done = run("train", table, "--target-column", "y", "--split-column", "set", "-o", tmp_path / "model", *SMALL)
    assert done.code == 0, done.err
    assert "split: marks in the table: 14 train, 3 valid, 3 test" in done.err


def test_a_wrong_mark_is_named_by_file_row_and_line_also_below_rows_that_are_left_out(tmp_path):
    rows = [("C1", 1, "train"), ('"C\n"', 2, "train"), ("CC", 3, "oops"), ("", 4, ""), ("CCC", "", "what")]
    table = write_table(tmp_path / "marked.csv", [("smiles", "y", "set"), *rows])
    done = run("train", table, "--target-column", "y", "--split-column", "set", "-o", tmp_path / "model", *SMALL)
    assert done.code == 1
    assert (
        f"error: {table}, row 3 (line 5) is marked 'oops' in the split column; mark every row with one of" in done.err
    )


def test_a_column_of_zeros_alone_is_told_how_to_be_a_regression(tmp_path):
    table = write_table(tmp_path / "zeros.csv", [("smiles", "amount"), *[(smiles, 0) for smiles in MOLECULES]])
    common = ("train", table, "--target-column", "amount", "-o", tmp_path / "model", *SMALL)
    done = run(*common)
    assert done.code == 1
    assert "target 'amount' is 0 in all 16 labeled training rows; a binary target needs both classes there" in done.err
    assert "or ask for task regression, if its values are amounts and not classes" in done.err
    done = run(*common, "--task", "regression")
    assert done.code == 0
    assert "warning: target 'amount' has the same value, 0, in all 16 training rows" in done.err
    assert run("predict", tmp_path / "model", table, "-o", tmp_path / "out.csv").code == 0
    assert all(line.split(",")[2] == "0" for line in (tmp_path / "out.csv").read_text().splitlines()[1:])


def test_the_bundled_set_brings_its_columns_and_its_published_split(tmp_path):
    done = run("train", "--dataset", "solubility", "-o", tmp_path / "model", *SMALL, "--epochs", 1, "--batch-size", 256)
    assert done.code == 0, done.err
    predictor = load_model(tmp_path / "model")
    assert predictor.summary.rows == 1282
    assert predictor.summary.parts["test"] == 257
    assert predictor.targets[0].unit


def test_semicolons_blank_headers_and_compression_are_read(tmp_path):
    lines = ["\ufeffsmiles; y ;note", *(f"{smiles};{len(smiles)};x" for smiles in MOLECULES)]
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    done = run("train", path, "--target-column", "y", "-o", tmp_path / "model", *SMALL)
    assert done.code == 0, done.err


def test_bad_rows_are_left_out_and_said_or_fail_before_work_starts(table, tmp_path):
    table.write_text(table.read_text() + "bad,C1CC,4,0\nempty,,3,0\n")
    common = ("train", table, "--target-column", "length", "-o", tmp_path / "model", *SMALL)
    done = run(*common)
    assert done.code == 0
    assert "warning: 2 of 22 rows left out (1 unreadable, 1 empty): row 21 'C1CC', row 22 ''" in done.err
    assert "20 of 22 rows used" in done.err
    done = run(*common, "--strict")
    assert done.code == 1
    assert f"error: {table}, row 21 (line 22): 'C1CC' is unreadable" in done.err
    assert "epoch" not in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--target-column", "lenght"], 1, "has no column 'lenght'; did you mean 'length'? Its columns are 'name'"),
        (["--target-column", "name"], 1, "row 1 (line 2), column 'name': 'm0' is not a finite number"),
        (["--target-column", "length", "--smiles-column", "SMI"], 1, "has no column 'SMI'"),
        ([], 2, "say what to learn with --target-column"),
        (["--target-column", "length", "--dataset", "solubility"], 2, "DATA and --dataset exclude each other"),
        (["--target-column", "length", "--heads", "3"], 2, "multiple of heads"),
        (["--target-column", "length", "--epochs", "0"], 2, "epochs must be at least 1, got 0"),
        (["--target-column", "length", "--batch-size", "9" * 20], 2, "--batch-size must be between 1 and 2147483647"),
        (["--target-column", "length", "--channels", "9" * 12], 2, "--channels must be between 1 and 16384"),
        (["--target-column", "length", "--seed", "-1"], 2, "seed must be at least 0, got -1"),
        (["--target-column", "length", "--seed", str(2**32)], 2, "seed must be between 0 and 4294967295"),
        (["--target-column", "length", "--learning-rate", "nan"], 2, "--learning-rate must be at least 0 and finite"),
        (["--target-column", "length", "--split", "random", "--split-column", "name"], 2, "exclude each other"),
        (
            ["--target-column", "length", "--split-column", "name"],
            1,
            "row 1 (line 2) is marked 'm0' in the split column",
        ),
        (["--target-column", "length", "--split", "stratified"], 2, "'stratified' is not one of 'random', 'scaffold'"),
        (["--target-column", "length", "--preset", "best"], 2, "'best' is not one of 'fast'"),
        (
            ["--target-column", "length", "--acyclic", "apart"],
            2,
            "--acyclic apart is for --split scaffold; leave one out",
        ),
        (
            ["--target-column", "length", "--target-column", " length"],
            2,
            "--target-column length is a target already; give each column one use",
        ),
        (["--target-column", "smiles"], 2, "--target-column smiles is the column with the molecules already"),
        (
            ["--target-column", "long", "--split-column", "long"],
            2,
            "--target-column long is the split column already; give each column one use",
        ),
        (
            ["--target-column", "long", "--split-column", "smiles"],
            2,
            "--split-column smiles is the column with the molecules already",
        ),
        (
            ["--target-column", "long", "--task", "classification", "--loss", "huber"],
            2,
            "--loss huber is for regression; leave it out, or ask for --task regression",
        ),
        (
            ["--target-column", "long", "--loss", "mse"],
            2,
            "error: loss mse is for regression, but these are classes, which take the log loss: leave loss out",
        ),
        (["--target-column", "length", "--wings", "2"], 2, "--wings"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_columns_fail_and_wrong_usage_is_told_apart(table, tmp_path, arguments, code, message):
    done = run("train", table, *SMALL, "-o", tmp_path / "model", *arguments)
    assert done.code == code
    assert message in done.words
    assert "epoch 1" not in done.err
    assert not (tmp_path / "model").exists()


def test_a_missing_table_or_no_table_is_said(tmp_path):
    done = run("train", tmp_path / "no.csv", "--target-column", "y", "-o", tmp_path / "model")
    assert (done.code, "no.csv does not exist" in done.err) == (1, True)
    done = run("train", "-o", tmp_path / "model")
    assert (done.code, "give a table, DATA, or --dataset NAME" in done.err) == (2, True)


def test_an_output_that_is_no_model_folder_is_refused_before_training(table, tmp_path):
    done = run("train", table, "--target-column", "length", "-o", tmp_path, *SMALL)
    assert done.code == 1
    assert "holds 'lengths.csv', which no model folder does" in done.err
    assert "epoch" not in done.err


def test_a_name_too_long_for_a_model_is_refused_before_training(table, tmp_path):
    done = run("train", table, "--target-column", "length", "-o", tmp_path / ("x" * 249), *SMALL)
    assert done.code == 1
    assert "cannot be written: File name too long; name another place" in done.err
    assert "rows used" not in done.err
    assert list(tmp_path.iterdir()) == [table]


@pytest.mark.parametrize("content", ["nothing", "a model"])
def test_the_folder_one_stands_in_becomes_the_model_and_checkpoints_stay_beside_it(
    table, tmp_path, monkeypatch, content
):
    here = tmp_path / "here"
    here.mkdir()
    common = ("train", table, "--target-column", "length", *SMALL)
    if content == "a model":
        assert run(*common, "--ensemble", 2, "-o", here).code == 0
    monkeypatch.chdir(here)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fit, "_scores", interrupted)
        done = run(*common, "-o", ".")
    assert done.code == 130
    assert f"the same command with --resume goes on from {here}.partial" in done.err
    assert [path.name for path in Path(f"{here}.partial").iterdir()] == ["checkpoint-0.safetensors"]
    assert len(list(here.iterdir())) == (3 if content == "a model" else 0)
    assert run(*common, "-o", ".", "--resume").code == 0
    assert sorted(path.name for path in here.iterdir()) == ["model.json", "weights-0.safetensors"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "lengths.csv"]


def test_the_folder_one_stands_in_is_left_alone_where_it_holds_other_files(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("train", table, "--target-column", "length", "-o", ".", *SMALL)
    assert done.code == 1
    assert ". holds 'lengths.csv', which no model folder does, so it is left alone; name another place" in done.err
    assert list(tmp_path.iterdir()) == [table]
    assert not Path(f"{tmp_path}.partial").exists()


def test_a_table_without_a_smiles_column_lists_its_columns(tmp_path):
    table = write_table(tmp_path / "t.csv", [("Drug", "Y"), ("C", 1)])
    done = run("train", table, "--target-column", "Y", "-o", tmp_path / "model")
    assert done.code == 1
    assert "has no column named smiles; say which one holds the molecules with --smiles-column" in done.err
    assert "Its columns are 'Drug', 'Y'." in done.err
    both = write_table(tmp_path / "both.csv", [("smiles", "SMILES", "Y"), ("C", "C", 1)])
    assert "has 2 columns named smiles" in run("train", both, "--target-column", "Y", "-o", tmp_path / "m").err


def test_interrupted_it_says_how_to_go_on_and_resumes_to_the_same_bits(table, tmp_path, monkeypatch):
    common = ("train", table, "--target-column", "length", *SMALL, "--epochs", 4, "--ensemble", 2)
    assert run(*common, "-o", tmp_path / "straight").code == 0
    save, saves = os.replace, []

    def interrupt_the_sixth(*paths):
        save(*paths)
        saves.append(paths)
        if len(saves) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt_the_sixth)
    done = run(*common, "-o", tmp_path / "model")
    monkeypatch.undo()
    assert done.code == 130
    assert f"interrupted; the same command with --resume goes on from {tmp_path / 'model'}.partial" in done.err
    assert not (tmp_path / "model").exists()
    done = run(*common, "-o", tmp_path / "model", "--resume")
    assert done.code == 0
    assert "resumed after epoch 2 of 4" in done.err
    assert "nothing to resume" not in done.err
    for member in (0, 1):
        name = f"weights-{member}.safetensors"
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
    assert not (tmp_path / "model.partial").exists()


def test_resuming_with_other_settings_is_refused_and_starting_over_is_not(table, tmp_path, monkeypatch):
    common = ("train", table, "--target-column", "length", *SMALL, "-o", tmp_path / "model")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fit, "_scores", interrupted)
        assert run(*common).code == 130
    done = run(*common, "--resume", "--learning-rate", "0.01")
    assert done.code == 1
    assert "settings.learning_rate was 0.001 and is now 0.01" in done.err
    table.write_text(table.read_text().replace(",7,", ",8,"))
    done = run(*common, "--resume")
    assert done.code == 1
    assert "another run: the data are not the same (targets of the training set" in done.err
    assert run(*common, "--learning-rate", "0.01").code == 0
    assert json.loads((tmp_path / "model" / "model.json").read_text())["training"]["training"]["learning_rate"] == 0.01


def test_resume_with_nothing_to_resume_begins_at_the_beginning(table, tmp_path):
    done = run("train", table, "--target-column", "length", *SMALL, "-o", tmp_path / "model", "--resume")
    assert done.code == 0
    assert f"nothing to resume in {tmp_path / 'model'}.partial; training starts anew\n" in done.err
    assert "epoch 1/2" in done.err


def test_a_full_disk_is_one_message(table, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", str(tmp_path / "model.json"))

    monkeypatch.setattr("graphattn.model_folder._content", full)
    done = run("train", table, "--target-column", "length", *SMALL, "-o", tmp_path / "model")
    assert done.code == 1
    assert f"error: {tmp_path / 'model.json'}: No space left on device" in done.err


def test_missing_values_are_masked_and_an_empty_target_is_refused_by_name(tmp_path):
    rows = [(smiles, "" if row % 3 else len(smiles), "") for row, smiles in enumerate(MOLECULES)]
    table = write_table(tmp_path / "t.csv", [("smiles", "some", "none"), *rows])
    done = run("train", table, "--target-column", "some", "-o", tmp_path / "model", *SMALL)
    assert done.code == 0, done.err
    assert "rows left out (13 unlabeled)" in done.err
    done = run("train", table, "--target-column", "some", "--target-column", "none", "-o", tmp_path / "x", *SMALL)
    assert done.code == 1
    assert "has a value for 'none'" in done.err
    assert np.isfinite(load_model(tmp_path / "model").predict(["C"]).values).all()
