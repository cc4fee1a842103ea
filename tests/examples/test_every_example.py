"""Every example is tested, listed, and runs as a user runs it."""

import re
import subprocess
import sys

from example_modules import EXAMPLES, is_picture

NUMBERED = sorted(path for path in EXAMPLES.glob("*.py") if path.name[0].isdigit())


def run(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """An example from the command line; a warning is an error but for those that pyproject.toml lets pass."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_example_is_tested_and_listed():
    tests = {path.name for path in EXAMPLES.parent.glob("tests/examples/test_*.py")}
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert len(NUMBERED) >= 20
    for path in NUMBERED:
        assert f"test_{path.name}" in tests
        assert f"({path.name})" in listed
        assert re.search(r"= (settings|parser)\(__doc__\)", path.read_text(encoding="utf-8"))  # both have --quick


def test_an_example_runs_from_the_command_line(tmp_path):
    finished = run("01_by_hand.py", "--quick", "--output", str(tmp_path / "pictures"))
    assert finished.returncode == 0, finished.stderr
    assert "drawn in" in finished.stdout
    assert all(is_picture(path) for path in (tmp_path / "pictures").iterdir())


def test_an_example_says_what_it_cannot_read(tmp_path):
    (tmp_path / "table.csv").write_text("name,y\nethanol,1\n", encoding="utf-8")
    for option, words in (
        (str(tmp_path / "nowhere.csv"), "nowhere.csv does not exist"),
        (str(tmp_path / "table.csv"), "has no column 'smiles'"),
    ):
        refused = run("18_formulas.py", "--molecules", option)
        assert refused.returncode == 2
        assert words in refused.stderr
        assert "Traceback" not in refused.stderr
