"""What ``graphattn train`` learns from: a table of the user's, or a data set that comes with the package."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import typer

from graphattn.cli.tables import smiles_column
from graphattn.data.card import load_card
from graphattn.data.table import Table, read_table
from graphattn.predict import Target
from graphattn.prepare import Labels, SplitRule


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table with what its columns mean."""

    table: Table
    smiles_column: str
    targets: tuple[Target, ...]
    labels: Labels  # (rows, T)
    split_column: str | None  # taken where the user asks for no split by name

    @property
    def molecules(self) -> list[str]:
        """The cells that hold the molecules."""
        return self.table.column(self.smiles_column)

    def split_rule(self, asked: Literal["random", "scaffold"] | None) -> SplitRule:
        """The split that was asked for, else that of the split column, else a random one."""
        if asked is None and self.split_column is not None:
            return self.table.column(self.split_column)
        return asked or "random"


def from_table(
    path: Path, molecules: str | None, targets: Sequence[str] | None, split_column: str | None = None
) -> Source:
    """A table of the user's; which columns to learn must be said.

    Raises:
        TableError: the file or a column is not there, or cells are no numbers.
        BadParameter: no target column was given, or one column twice.
    """
    table = read_table(path)
    column = smiles_column(table, molecules)
    if not targets:
        others = ", ".join(repr(name) for name in table.names if name != column)
        raise typer.BadParameter(f"say what to learn with --target-column; beside {column!r}, {path} has {others}")
    _check_uses(column, targets, split_column)
    return Source(
        table=table,
        smiles_column=column,
        targets=tuple(Target(name.strip()) for name in targets),
        labels=np.column_stack([table.numbers(name) for name in targets]),
        split_column=split_column,
    )


def from_dataset(
    name: str, molecules: str | None, targets: Sequence[str] | None, split_column: str | None = None
) -> Source:
    """A bundled data set; its card says what the columns are, unless the user wants others of them.

    Raises:
        TableError: there is no such data set or column.
        BadParameter: one column was given twice.
    """
    card = load_card(name)
    table = card.table()
    units = {target.name: target.unit for target in card.targets}
    wanted = list(targets or units)
    column = card.smiles_column if molecules is None else smiles_column(table, molecules)
    split_column = card.split_column if split_column is None else split_column
    _check_uses(column, wanted, split_column)
    return Source(
        table=table,
        smiles_column=column,
        targets=tuple(Target(target.strip(), units.get(target.strip(), "")) for target in wanted),
        labels=np.column_stack([table.numbers(target) for target in wanted]),
        split_column=split_column,
    )


def _check_uses(molecules: str, targets: Sequence[str], split_column: str | None) -> None:
    """Refuse a column that is to be two things at once, or to be learned twice."""
    use_of = {molecules.strip(): "the column with the molecules"}
    splits = [] if split_column is None else [split_column]
    for option, use, names in (
        ("--split-column", "the split column", splits),
        ("--target-column", "a target", targets),
    ):
        for name in map(str.strip, names):
            if name in use_of:
                raise typer.BadParameter(f"{option} {name} is {use_of[name]} already; give each column one use")
            use_of[name] = use
