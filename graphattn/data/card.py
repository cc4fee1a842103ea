"""The data sets that come with the package: what each holds, where it is from, and what is wrong with it."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from graphattn.data.table import Table, read_table
from graphattn.errors import TableError

CARD_FILE = "card.toml"
DATA_FILE = "data.csv"


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column to be learned, and its unit; "" for none."""

    name: str
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCard:
    """One data set in a folder of its own: ``card.toml`` (these fields), ``data.csv``, ``README.md``.

    >>> card = load_card("solubility")
    >>> card.rows, card.targets
    (1282, (TargetColumn(name='log_solubility', unit='log10 mol/L'),))
    >>> len(card.table())
    1282
    """

    name: str
    title: str
    task: str  # "regression" or "binary"
    targets: tuple[TargetColumn, ...]
    smiles_column: str
    split_column: str | None = None  # None where nobody published a split
    rows: int
    sha256: str  # of data.csv
    url: str
    license: str
    citation: str
    metric: str  # what published results report, such as "rmse"
    known_faults: tuple[str, ...]
    path: Path  # of data.csv on this machine

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The card of the data set in this folder.

        Raises:
            TableError: no card there, one that is no TOML or lacks or has keys, or data that is not what it names.
        """
        file = folder / CARD_FILE
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise TableError(f"{folder} holds no {CARD_FILE}, so it is no data set.") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise TableError(f"{file} is not valid TOML: {error}.") from error
        _check_keys(content, cls, file)
        card = cls(
            **{
                **content,
                "targets": tuple(TargetColumn(**target) for target in content["targets"]),
                "known_faults": tuple(content["known_faults"]),
                "path": folder / DATA_FILE,
            }
        )
        card.check()
        return card

    def check(self) -> None:
        """Compare the data with the card.

        Raises:
            TableError: ``data.csv`` is missing, or its bytes are not those that the card was written for.
        """
        if not self.path.is_file():
            raise TableError(f"{self.path} is missing; install graphattn again, or make the file with prepare.py.")
        found = hashlib.sha256(self.path.read_bytes()).hexdigest()
        if found != self.sha256:
            raise TableError(
                f"{self.path} is not the file that its card describes: its SHA-256 is {found}, not {self.sha256}. "
                "Install graphattn again, or make the file with prepare.py."
            )

    def table(self) -> Table:
        """The data, every cell as text.

        Raises:
            TableError: the file has changed, has another number of rows, or lacks a column that the card names.
        """
        self.check()
        table = read_table(self.path)
        if len(table) != self.rows:
            raise TableError(f"{self.path} has {len(table)} rows but its card says {self.rows}.")
        columns = [self.smiles_column, *(target.name for target in self.targets)]
        for name in columns if self.split_column is None else [*columns, self.split_column]:
            table.column(name)
        return table


def dataset_names() -> tuple[str, ...]:
    """The names of the data sets that come with the package, in alphabetical order.

    >>> "solubility" in dataset_names()
    True
    """
    return tuple(sorted(file.parent.name for file in _home().glob(f"*/{CARD_FILE}")))


def load_card(name: str) -> DatasetCard:
    """The card of a data set that comes with the package; its data is checked against the card's SHA-256.

    Raises:
        TableError: there is no data set of this name, or it is damaged.
    """
    names = dataset_names()
    if name not in names:
        close = get_close_matches(name.casefold(), names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise TableError(f"no data set {name!r} comes with graphattn; there are: {', '.join(names) or 'none'}.{hint}")
    return DatasetCard.read(_home() / name)


def _home() -> Path:
    """The folder of all data sets: inside the package where it was installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "datasets"
    return installed if installed.is_dir() else package.parent / "datasets"


def _check_keys(content: Mapping[str, Any], kind: type[DatasetCard], file: Path) -> None:
    known = {field.name for field in fields(kind)} - {"path"}
    unknown = sorted(content.keys() - known)
    missing = sorted(known - {"split_column"} - content.keys())
    if unknown or missing:
        raise TableError(f"{file}: keys that are missing: {missing}; keys that mean nothing: {unknown}.")
    for target in content["targets"]:
        if not {"name"} <= target.keys() <= {"name", "unit"}:
            raise TableError(f"{file}: a target has a name and a unit, got {sorted(target)}.")
