"""Tables at the command line: which column holds the molecules, and how predictions are written beside a table."""

import csv
import gzip
import io
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from graphattn.data.table import Table
from graphattn.errors import TableError
from graphattn.predict import Predictions, Target

MOST_NAMED = 3  # rows without a prediction that are named one by one
SIGNIFICANT_DIGITS = 6  # of a written prediction; single precision carries no more through a whole network


def smiles_column(table: Table, asked: str | None) -> str:
    """The name of the column that holds the molecules: the one asked for, else the one named smiles in any case.

    Raises:
        TableError: there is no such column, or there are several; the message lists the columns there are.
    """
    if asked is not None:
        table.column(asked)
        return asked
    found = [name for name in table.names if name.casefold() == "smiles"]
    if len(found) != 1:
        count = "no column" if not found else f"{len(found)} columns"
        raise TableError(
            f"{table.path} has {count} named smiles; say which one holds the molecules with --smiles-column. "
            f"Its columns are {', '.join(map(repr, table.names))}."
        )
    return found[0]


def output_columns(table: Table, targets: Sequence[Target]) -> list[str]:
    """The names of the columns that predictions add: one per target, ``status``, ``reason``.

    A name that the table has already gets ``_predicted`` behind it, as often as it takes.
    """
    taken = set(table.names)
    names = []
    for wanted in (*(target.name for target in targets), "status", "reason"):
        name = wanted
        while name in taken:
            name += "_predicted"
        taken.add(name)
        names.append(name)
    return names


def write_predictions(path: Path, table: Table, predictions: Predictions, targets: Sequence[Target]) -> None:
    """Write the table's own columns, cell for cell, then the predictions, ``status`` and ``reason``.

    A prediction has 6 significant digits; a row without one has an empty cell. ``.tsv`` and ``.tab`` are written with
    tabs, all else with commas; ``.gz`` is compressed. The file appears as a whole or not at all.
    """
    header = [*table.names, *output_columns(table, targets)]
    own_cells: Iterable[tuple[str, ...]] = table.frame.itertuples(index=False, name=None)
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if {".tsv", ".tab"} & set(path.suffixes) else ",", lineterminator="\n")
    writer.writerow(header)
    for cells, values, row in zip(own_cells, predictions.values.tolist(), predictions.rows, strict=True):
        writer.writerow([*cells, *map(_written, values), row.status, row.reason])
    content = text.getvalue().encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _written(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.{SIGNIFICANT_DIGITS}g}"
