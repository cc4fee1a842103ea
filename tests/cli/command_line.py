"""The command line within the test's own process: quick, with output and exit code."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tiny_models import MOLECULES
from typer.testing import CliRunner

from graphattn.cli import app

SMALL = ("--channels", "8", "--layers", "1", "--heads", "2", "--epochs", "2", "--accelerator", "cpu")


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code and what it said."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What went to the standard error on one line, without the frame around messages of wrong usage."""
        return re.sub(r"[\s│╭╮╰╯─]+", " ", self.err)


def run(*arguments: object) -> Done:
    """Run ``graphattn`` with these arguments."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    return Done(result.exit_code, result.stdout, result.stderr)


def write_table(path, rows: Sequence[Sequence[object]]):
    """Write cells as CSV, without any quoting, and give the path back."""
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def length_table(path):
    """A small table to learn from: columns name, smiles, length, long."""
    rows = [(f"m{number}", smiles, len(smiles), int(len(smiles) > 6)) for number, smiles in enumerate(MOLECULES)]
    return write_table(path, [("name", "smiles", "length", "long"), *rows])
