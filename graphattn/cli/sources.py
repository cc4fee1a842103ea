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
    split_column: str | None  # taken where the user asks for no other split

    @property
    def molecules(self) -> list[str]:
        """The cells that hold the molecules."""
        return self.table.column(self.smiles_column)

    def split_rule(self, asked: Literal["random", "scaffold"] | None, column: str | None) -> SplitRule:
        """The split that was asked for, else the published one of the data set, else a random one."""
        if column is None and asked is None:
            column = self.split_column
        if column is not None:
            return self.table.column(column)
        return asked or "random"


def from_table(path: Path, molecules: str | None, targets: Sequence[str] | None) -> Source:
    """A table of the user's; which columns to learn must be said.

    Raises:
        TableError: the file or a column is not there, or cells are no numbers.
        BadParameter: no target column was given.
    """
    table = read_table(path)
    column = smiles_column(table, molecules)
    if not targets:
        others = ", ".join(repr(name) for name in table.names if name != column)
        raise typer.BadParameter(f"say what to learn with --target-column; beside {column!r}, {path} has {others}")
    return Source(
        table=table,
        smiles_column=column,
        targets=tuple(Target(name.strip()) for name in targets),
        labels=np.column_stack([table.numbers(name) for name in targets]),
        split_column=None,
    )


def from_dataset(name: str, molecules: str | None, targets: Sequence[str] | None) -> Source:
    """A bundled data set; its card says what the columns are, unless the user wants others of them.

    Raises:
        TableError: there is no such data set or column.
    """
    card = load_card(name)
    table = card.table()
    units = {target.name: target.unit for target in card.targets}
    wanted = list(targets or units)
    return Source(
        table=table,
        smiles_column=card.smiles_column if molecules is None else smiles_column(table, molecules),
        targets=tuple(Target(column.strip(), units.get(column.strip(), "")) for column in wanted),
        labels=np.column_stack([table.numbers(column) for column in wanted]),
        split_column=card.split_column,
    )
