"""Tables at the command line: which column holds the molecules, and how predictions are written beside a table."""

import gzip
import math
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

from graphattn.data.scaling import TargetScaler
from graphattn.data.table import Table, ending, has_tabs, is_compressed
from graphattn.errors import TableError
from graphattn.predict import Predictions, Target

MOST_NAMED = 3  # rows without a prediction that are named one by one
SIGNIFICANT_DIGITS = 6  # of a prediction and of its target's spread; a network in single precision carries no more
_MOST_MORE_DIGITS = 11  # 17 digits tell any two numbers apart
_ENDINGS = (".csv", ".tsv", ".tab", ".txt")  # of tables that can be written
_SPECIAL = re.compile(r'[\t\n\r",]')  # what cells are quoted for, whatever the delimiter


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
            f"{table.columns_in_words()}"
        )
    return found[0]


def check_output(output: Path, *, table: Path, model: Path) -> None:
    """Refuse, before any work, a place where predictions cannot be written or would destroy what they come from.

    Raises:
        BadParameter: the input itself, a place in the model folder, a folder or device, a folder that is not there, a
            file of another kind than a table in text, or a place where no file can be made.
    """
    if output.exists() and table.exists() and output.samefile(table):
        raise typer.BadParameter(f"--output {output} is the input itself; name another file")
    if output.exists() and not output.is_file():
        kind = "a folder" if output.is_dir() else "no ordinary file"
        raise typer.BadParameter(f"--output {output} is {kind}; name a file to write")
    if not output.parent.is_dir():
        raise typer.BadParameter(
            f"--output {output}: there is no folder {output.parent}; make it, or name another file"
        )
    target, partial = _behind(output)
    if target.parent.is_relative_to(model.resolve()):
        raise typer.BadParameter(f"--output {output} is in the model folder {model}; name a file outside of it")
    if ending(output) not in {"", *_ENDINGS}:
        raise typer.BadParameter(
            f"--output {output}: tables are written as {', '.join(_ENDINGS)}, each also with .gz behind it, not as "
            f"{ending(output)}; name such a file"
        )
    try:
        partial.touch()
        partial.unlink()
    except OSError as error:
        raise typer.BadParameter(f"--output {output} cannot be written: {error.strerror}; name another file") from error


def _behind(output: Path) -> tuple[Path, Path]:
    """The file to write, behind a link if there is one, and where its content stands until it is whole."""
    target = Path(os.path.realpath(output))
    return target, target.with_name(f".{target.name}.{os.getpid()}.partial")


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


def write_predictions(
    path: Path, table: Table, predictions: Predictions, targets: Sequence[Target], scaler: TargetScaler | None
) -> None:
    """Write the table's own columns, cell for cell, then the predictions, ``status`` and ``reason``.

    A prediction has 6 significant digits, or as many more as show 6 of its target's spread over the training rows,
    which ``scaler`` knows; a row without one has an empty cell. ``.tsv`` and ``.tab`` are written with tabs, all else
    with commas; ``.gz`` is compressed. The file appears as a whole or not at all; a link stays, and the file behind it
    is replaced.
    """
    spreads = scaler.spread if scaler is not None else (1.0,) * len(targets)
    own_cells: Iterable[tuple[str, ...]] = table.frame.itertuples(index=False, name=None)
    rows = [(*table.names, *output_columns(table, targets))]
    for cells, values, row in zip(own_cells, predictions.values.tolist(), predictions.rows, strict=True):
        rows.append((*cells, *map(written, values, spreads), row.status, row.reason))
    delimiter = "\t" if has_tabs(path) else ","
    content = "".join(delimiter.join(map(_quoted, cells)) + "\n" for cells in rows).encode()
    target, partial = _behind(path)
    try:
        partial.write_bytes(gzip.compress(content, mtime=0) if is_compressed(path) else content)
        partial.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        partial.unlink(missing_ok=True)


def written(value: float, spread: float) -> str:
    """A prediction as text, with as many digits as mean something where targets differ by ``spread``; "" for NaN.

    >>> written(2.0 / 3, 1.0), written(1e6 + 2.0 / 3, 0.01), written(12.5, 1e6)
    ('0.666667', '1000000.6666667', '12.5')
    """
    if math.isnan(value):
        return ""
    above_spread = math.floor(math.log10(abs(value))) - math.floor(math.log10(spread)) if value else 0
    return f"{value:.{SIGNIFICANT_DIGITS + min(max(above_spread, 0), _MOST_MORE_DIGITS)}g}"


def _quoted(cell: str) -> str:
    """A cell as CSV holds it. The csv module's writer forgets to quote a lone carriage return."""
    return '"' + cell.replace('"', '""') + '"' if _SPECIAL.search(cell) else cell
