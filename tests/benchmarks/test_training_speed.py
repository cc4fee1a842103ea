"""The speed benchmark: it times training steps in a process of its own and says how much memory that took."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import training_speed
from shared_data import shared_file
from tiny_models import MOLECULES

SCRIPT = Path(training_speed.__file__)


def test_it_measures_a_small_table(tmp_path):
    table = tmp_path / "lengths.csv"
    table.write_text("smiles,length\n" + "".join(f"{smiles},{len(smiles)}\n" for smiles in MOLECULES))
    result = training_speed.measure(table, "smiles", "length", epochs=10)
    assert (result["molecules"], result["training_molecules"]) == (20, 16)
    assert result["molecules_per_second"] > 0
    assert result["machine"]["torch"]


@pytest.mark.slow
def test_training_on_4200_drug_like_molecules_takes_less_than_2_gb(tmp_path):
    command = [sys.executable, SCRIPT, shared_file("molnet/Lipophilicity.csv"), "--epochs", "1"]
    done = subprocess.run([*command, "--json", tmp_path / "out"], capture_output=True, text=True, check=True)
    result = json.loads((tmp_path / "out").read_text())
    assert result["molecules"] == 4200
    assert 100 < result["peak_memory_mib"] < 2e9 / 1024**2
    assert "molecules_per_second" in done.stdout


def test_it_refuses_to_run_without_data(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHATTN_SHARED_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["training_speed.py"])
    with pytest.raises(SystemExit, match=r"Lipophilicity\.csv is not at .*, or give a table as the first argument"):
        training_speed.main()


def test_peak_memory_sees_what_was_held_and_let_go():
    """In a process of its own: here an earlier test may have held more than this one would."""
    code = """
from machine import peak_memory_mib
before = peak_memory_mib()
held = bytearray(300 * 1024**2)
held[::1024] = b"x" * len(held[::1024])
del held
print(peak_memory_mib() - before)
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=SCRIPT.parent, capture_output=True, text=True, check=True)
    assert float(ran.stdout) > 200
