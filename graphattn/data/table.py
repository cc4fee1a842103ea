"""A file of rows, CSV or TSV: read so that every cell stays the text it was, with errors that say where.

Rows are counted from 1, the header apart; a message also gives the line of the file, where the two differ.
"""

import codecs
import csv
import gzip
import io
import math
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphattn.errors import TableError

# Cells that say "no value" where a number is wanted, in any case: those of pandas.
MISSING = frozenset(
    {"", "#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan", "1.#ind", "1.#qnan", "<na>"}
    | {"n/a", "na", "nan", "none", "null"}
)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SAID_DELIMITER = re.compile(r"sep=([^\r\n\"])(?=[\r\n])")  # a first line that Excel reads and writes
_DELIMITERS = (",", ";", "\t", "|")  # in order of preference
_LOOKED_AT = 50  # records that decide the delimiter
_LONGEST_CELL = 2**31 - 1  # characters; the csv module's own limit is 131,072, its largest one that of a C long
_csv_limit = threading.Lock()
_OTHER_FORMATS = {
    b"PK\x03\x04": "an Excel workbook or a zip archive; save it as CSV",
    codecs.BOM_UTF16_LE: "UTF-16 text; save it as UTF-8",
    codecs.BOM_UTF16_BE: "UTF-16 text; save it as UTF-8",
}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    r"""The rows of one file, every cell as the text it was.

    >>> table = parse_table(b"smiles; y ;note\nCCO;0.5;NA\nC;NA;a \n", Path("new.csv"))
    >>> table.names
    ('smiles', 'y', 'note')
    >>> table.numbers("y")
    array([0.5, nan])
    >>> table.column("note")
    ['NA', 'a ']
    """

    path: Path
    frame: pd.DataFrame  # one str per cell; columns named as in the header, without blanks around
    lines: tuple[int, ...]  # for each row the line of the file, counted from 1, that it begins on
    delimiter: str

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of the file."""
        return tuple(self.frame.columns)

    def where(self, row: int) -> str:
        """``row``, counted from 0, as messages name it: file, row counted from 1, line of the file."""
        return f"{self.path}, row {row + 1} (line {self.lines[row]})"

    def columns_in_words(self) -> str:
        """Sentences for a message about a column that is not there: those that are, and a likely reason."""
        listed = f"Its columns are {', '.join(map(repr, self.names))}."
        others = [mark for mark in _DELIMITERS if mark != self.delimiter and any(mark in name for name in self.names)]
        if not others:
            return listed
        return (
            f"{listed} They were told apart by {self.delimiter!r}; if the delimiter is {others[0]!r}, put every name "
            f"and cell that holds {self.delimiter!r} in double quotes."
        )

    def column(self, name: str) -> list[str]:
        """The cells of a column as they came.

        Raises:
            TableError: there is no such column; the message lists those there are.
        """
        wanted = name.strip()
        if wanted not in self.frame.columns:
            raise TableError(
                f"{self.path} has no column {name!r}{_meant(wanted, self.names)} {self.columns_in_words()}"
            )
        cells: list[str] = self.frame[wanted].tolist()
        return cells

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """A column as numbers, (rows,) float64; an empty cell, ``NA`` and their like are NaN.

        Raises:
            TableError: there is no such column, or a cell is neither a finite number nor missing; the message names
                the first such cell and counts the others.
        """
        values = np.full(len(self), np.nan)
        bad = []
        for row, cell in enumerate(self.column(name)):
            text = cell.strip()
            if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
                values[row] = float(text)
            elif text.casefold() not in MISSING:
                bad.append(row)
        if bad:
            others = f" ({len(bad) - 1} more such cells below)" if len(bad) > 1 else ""
            raise TableError(
                f"{self.where(bad[0])}, column {name.strip()!r}: {self.column(name)[bad[0]]!r} is not a finite number"
                f"{others}. Write one such as -1.25, with a point, or leave the cell empty for a missing value."
            )
        return values


def read_table(path: str | Path) -> Table:
    """Read a CSV or TSV file, plain or compressed with gzip (told by its content, not its name).

    The delimiter is a comma, semicolon, tab or bar, whichever makes header and rows agree; files that end in ``.tsv``
    or ``.tab`` (before ``.gz``, in any case) are tried with the tab first; a first line such as ``sep=;`` decides. Byte
    order marks and blanks around the names of columns are dropped, and so are columns at the end without a name or any
    content, as Excel writes them; cells stay as they are, however long. Blank lines are no rows. Text must be UTF-8.

    Raises:
        TableError: the file is missing, a folder, empty, not UTF-8 text or without rows; a row has another number of
            cells than the header; two columns share a name; a quote is never closed.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise TableError(f"{path} is a folder; name a CSV or TSV file in it.") from None
    except FileNotFoundError:
        raise TableError(f"{path} does not exist; the folder looked in is {path.absolute().parent}.") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from error
    return parse_table(content, path)


def parse_table(content: bytes, path: Path) -> Table:
    """The table in these bytes; ``path`` names them in messages and its ending hints at the delimiter.

    Raises:
        TableError: as :func:`read_table`.
    """
    text = _decoded(_decompressed(content, path), path)
    said = _SAID_DELIMITER.match(text)
    if said:
        text = text[said.end() :]  # its line break stays, so that lines are counted as they are
    if not text.strip():
        raise TableError(f"{path} is empty; a table begins with a line that names its columns.")
    delimiter = said[1] if said else _delimiter(text, path)
    records = _records(text, delimiter, path)
    header = [name.strip() for name in records[0][1]]
    rows = [(line, cells) for line, cells in records[1:] if not _is_blank_line(cells, header)]
    header, rows = _without_empty_end(header, rows)
    _check_header(header, path)
    for row, (line, cells) in enumerate(rows):
        if len(cells) != len(header):
            raise TableError(
                f"{path}, row {row + 1} (line {line}) has {len(cells)} cells but the header names {len(header)} columns"
                f" (delimiter {delimiter!r}); put a cell that holds the delimiter in double quotes."
            )
    if not rows:
        raise TableError(f"{path} has a header, {', '.join(map(repr, header))}, but no rows below it.")
    columns = zip(*(cells for _, cells in rows), strict=True)
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in zip(header, columns, strict=True)})
    return Table(path, frame, tuple(line for line, _ in rows), delimiter)


def _decompressed(content: bytes, path: Path) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{path} is compressed with gzip but damaged: {error}. Fetch or make it again.") from error


def _decoded(content: bytes, path: Path) -> str:
    for start, found in _OTHER_FORMATS.items():
        if content.startswith(start):
            raise TableError(f"{path} is not a CSV or TSV file but {found}.")
    if b"\0" in content:
        raise TableError(
            f"{path} holds a zero byte at offset {content.index(0)}, so it is no UTF-8 text (UTF-16, or not text at "
            "all?); save it as CSV in UTF-8."
        )
    text = content
    while text.startswith(codecs.BOM_UTF8):  # two, where a program put its own before another's
        text = text.removeprefix(codecs.BOM_UTF8)
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        offset = error.start + len(content) - len(text)
        raise TableError(
            f"{path}, line {line}: byte 0x{content[offset]:02x} at offset {offset} is not UTF-8; "
            "save the file with the encoding UTF-8."
        ) from None


def _records(text: str, delimiter: str, path: Path, at_most: int | None = None) -> list[tuple[int, list[str]]]:
    """The line that each record begins on, and its cells; lines without a character are left out."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    records = []
    line = 1
    try:
        with _cells_of_any_length():
            for cells in reader:
                if cells:
                    records.append((line, cells))
                line = reader.line_num + 1
                if at_most is not None and len(records) >= at_most:
                    break
    except csv.Error as error:
        raise TableError(
            f"{path}: the row that begins on line {line} cannot be read: {error}. "
            'Look for a double quote that is never closed; one within a quoted cell is written twice, "".'
        ) from error
    return records


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """The csv module has one limit for the whole process: raise it for one reader at a time, then put it back."""
    with _csv_limit:
        before = csv.field_size_limit(_LONGEST_CELL)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def is_compressed(path: Path) -> bool:
    """Whether a file's name ends in ``.gz``, in any case."""
    return path.suffix.casefold() == ".gz"


def ending(path: Path) -> str:
    """The last ending of a file's name, ``.gz`` apart, in small letters; "" if it has none."""
    plain = path.with_suffix("") if is_compressed(path) else path
    return plain.suffix.casefold()


def has_tabs(path: Path) -> bool:
    """Whether a file's name says that its cells stand between tabs."""
    return ending(path) in {".tsv", ".tab"}


def _delimiter(text: str, path: Path) -> str:
    """The first delimiter that splits the header and gives all rows as many cells; else the one that most rows fit."""
    first = "\t" if has_tabs(path) else ","
    fits: dict[str, tuple[int, int]] = {}  # how many rows have as many cells as the header, and how many are split
    for delimiter in sorted(_DELIMITERS, key=lambda delimiter: delimiter != first):
        try:
            records = _records(text, delimiter, path, at_most=_LOOKED_AT)
        except TableError:  # quotes that make no sense with this delimiter; the chosen one is read again and reports
            continue
        header = records[0][1]
        if len(header) > 1:
            sizes = [len(cells) for _, cells in records[1:] if not _is_blank_line(cells, header)]
            fits[delimiter] = sizes.count(len(header)), sum(size > 1 for size in sizes)
            if all(size == len(header) for size in sizes):
                return delimiter
    best = max(fits, key=fits.__getitem__, default=first)
    return best if any(fits.get(best, ())) else first


def _is_blank_line(cells: Sequence[str], header: Sequence[str]) -> bool:
    """Whether a record is a line of blanks in a table of several columns."""
    return len(header) > 1 and len(cells) == 1 and not cells[0].strip()


def _without_empty_end(
    header: list[str], rows: list[tuple[int, list[str]]]
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Header and rows without the columns at the end that have neither name nor content."""
    width = len(header)
    while width and not header[width - 1]:
        width -= 1
    if width in {0, len(header)} or any(cell.strip() for _, cells in rows for cell in cells[width:]):
        return header, rows
    return header[:width], [(line, cells[:width]) for line, cells in rows]


def _check_header(header: Sequence[str], path: Path) -> None:
    first_place: dict[str, int] = {}
    for place, name in enumerate(header, start=1):
        if name in first_place:
            raise TableError(
                f"{path}: columns {first_place[name]} and {place} are both named {name!r}; give each its own name."
            )
        first_place[name] = place


def _meant(wanted: str, names: Sequence[str]) -> str:
    """What follows "no such column": a likely other name, or a full stop."""
    by_lower = {name.casefold(): name for name in names}
    close = get_close_matches(wanted.casefold(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else "."
