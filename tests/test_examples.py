"""Every example runs as a user runs it, and ends with the result it promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str) -> str:
    """What the example prints; a warning is an error but for those that pyproject.toml lets pass."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_every_example_is_tested_and_listed():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"01_molecule_property.py", "02_any_graph.py"}
    readme = (EXAMPLES.parent / "README.md").read_text()
    assert all(f"examples/{name}" in readme for name in names)


@pytest.mark.slow
def test_molecule_property(tmp_path):
    printed = run("01_molecule_property.py", "--output", str(tmp_path), "--epochs", "4")
    errors = {name: float(error) for error, name in re.findall(r"test RMSE ([\d.]+) log10 mol/L   (.+)", printed)}
    assert set(errors) == {
        "graphattn",
        "the mean",
        "ridge regression on RDKit descriptors",
        "random forest on RDKit descriptors",
    }
    assert errors["graphattn"] < 0.8 * errors["the mean"]  # after 4 epochs; the full run is far below
    assert all(f"  {name}: " in printed for name in ("caffeine", "naphthalene", "glycerol"))
    assert is_picture(tmp_path / "predicted_against_measured.png")
    assert is_picture(tmp_path / "ibuprofen_attention.png")


def test_any_graph(tmp_path):
    printed = run("02_any_graph.py", "--output", str(tmp_path))
    right = int(re.search(r"right about (\d+)% of the other 30", printed)[1])
    assert right >= 90
    assert is_picture(tmp_path / "karate_club.png")
