"""The accuracy benchmark: its split is the stated one, its runs go on where they stopped, its verdict is arithmetic."""

import json
import sys

import accuracy
import numpy as np
import pytest
from tiny_models import MOLECULES

from graphattn.errors import SettingError
from graphattn.model.config import NetworkConfig
from graphattn.predict import Target

TINY = ("channels=8", "layers=1", "heads=2", "epochs=1", "accelerator=cpu", "self_loops=False", "ensemble=2")


@pytest.fixture
def tiny_problem(tmp_path, monkeypatch):
    rows = "".join(f"{smiles},{len(smiles)}\n" for smiles in (*MOLECULES, "C1CC"))
    (tmp_path / "tiny.csv").write_text(f"smiles,length\n{rows}")
    monkeypatch.setenv("GRAPHATTN_SHARED_DATA", str(tmp_path))
    problem = accuracy.Problem("tiny", "tiny.csv", Target("length"), bound=1e9)
    monkeypatch.setattr(accuracy, "PROBLEMS", (problem,))
    return problem


def test_the_split_is_the_stated_cut_of_a_seeded_permutation():
    split = accuracy.random_80_10_10(1128, seed=2)
    order = np.random.default_rng(2).permutation(1128)
    assert set(split.train) == set(order[:902].tolist())
    assert set(split.valid) == set(order[902:1015].tolist())
    assert set(split.test) == set(order[1015:].tolist())


def test_settings_are_the_defaults_but_for_what_was_changed():
    settings = accuracy.Settings.changed(TINY, seed=7)
    assert settings.network == NetworkConfig(channels=8, layers=1, heads=2, self_loops=False)
    assert (settings.training.epochs, settings.training.seed, settings.ensemble) == (1, 7, 2)
    with pytest.raises(SettingError, match="there is no setting wings"):
        accuracy.Settings.changed(["wings=2"], seed=0)


def test_runs_are_appended_once_and_found_again(tiny_problem, tmp_path, monkeypatch, capsys):
    assert len(tiny_problem.load()[0]) == len(MOLECULES)
    results = tmp_path / "deep" / "results.jsonl"
    command = ["accuracy.py", "--sets", "tiny", "--results", str(results)]
    command += [word for change in TINY for word in ("--setting", change)]
    monkeypatch.setattr(sys, "argv", [*command, "--seeds", "0"])
    accuracy.main()
    first = results.read_text()
    row = json.loads(first)
    assert (row["set"], row["protocol"], row["seed"], row["rows"], row["test_rows"]) == ("tiny", "random", 0, 20, 2)
    assert row["settings"]["network"]["channels"] == 8
    assert row["machine"]["torch"]
    monkeypatch.setattr(sys, "argv", [*command, "--seeds", "0", "1"])
    accuracy.main()
    assert results.read_text().startswith(first)
    assert [json.loads(line)["seed"] for line in results.read_text().splitlines()] == [0, 1]
    assert "tiny" in capsys.readouterr().out


def test_the_verdict_compares_the_mean_with_the_bound(tiny_problem):
    rows = [{"set": "tiny", "seed": seed, "rmse": rmse, "seconds": 1.0} for seed, rmse in ((0, 1e9), (1, 3e9))]
    assert "MISSED" in accuracy.summary(rows, [tiny_problem])
    assert "met" in accuracy.summary(rows[:1], [tiny_problem])


def test_data_that_is_not_there_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHATTN_SHARED_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "--sets", "esol", "--results", str(tmp_path / "r.jsonl")])
    with pytest.raises(
        SystemExit, match=r"^error: public data file molnet/delaney-processed\.csv is not at .*; set GRAPH"
    ):
        accuracy.main()
