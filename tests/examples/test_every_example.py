"""Every example is tested, listed, and runs as a user runs it."""

import subprocess
import sys

from example_modules import EXAMPLES, is_picture

NUMBERED = sorted(path for path in EXAMPLES.glob("*.py") if path.name[0].isdigit())


def run(name: str, *arguments: str) -> str:
    """What the example prints; a warning is an error but for those that pyproject.toml lets pass."""
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_every_example_is_tested_and_listed():
    tests = {path.name for path in EXAMPLES.parent.glob("tests/examples/test_*.py")}
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert len(NUMBERED) >= 19
    for path in NUMBERED:
        assert f"test_{path.name}" in tests
        assert f"({path.name})" in listed


def test_an_example_runs_from_the_command_line(tmp_path):
    assert "drawn in" in run("01_by_hand.py", "--quick", "--output", str(tmp_path / "pictures"))
    assert all(is_picture(path) for path in (tmp_path / "pictures").iterdir())
