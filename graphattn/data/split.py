"""Which rows train, which choose the best epoch, and which only test: no molecule on two sides.

Rows are put together in groups, one per molecule or scaffold, and a group goes to one part as a whole. A row whose key
is None (a molecule that cannot be read) belongs to no part.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from graphattn.errors import MoleculeError, SettingError, SplitError
from graphattn.featurize.identity import canonical_smiles, murcko_scaffold

PARTS = ("train", "valid", "test")
_LABELS = {"train": "train", "val": "valid", "valid": "valid", "validation": "valid", "test": "test"}
_VALID_SHARE = 0.1  # of the training rows, where a split column marks none
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Split:
    """The rows of each part, counted from 0; whatever their order was, it is ascending here. No row is in two."""

    train: tuple[int, ...]
    valid: tuple[int, ...]
    test: tuple[int, ...]

    def __post_init__(self) -> None:
        for part in PARTS:
            object.__setattr__(self, part, tuple(sorted(int(row) for row in getattr(self, part))))
        rows = [row for part in PARTS for row in getattr(self, part)]
        if len(set(rows)) != len(rows):
            twice = Counter(rows).most_common(1)[0][0]
            raise SplitError(f"row {twice} (counted from 0) is in a split twice; each row belongs to one part.")


def random_split(
    groups: Sequence[Hashable], fractions: tuple[float, float, float] = (0.8, 0.1, 0.1), *, seed: int
) -> Split:
    """Groups in random order, cut where train and validation have their share of the rows.

    Where every row is its own group, these are the rows of ``numpy.random.default_rng(seed).permutation(rows)``: the
    first 80 % train, the next 10 % validation, the rest test. A group with more rows than validation and test together
    goes to train. Every part whose fraction is above 0 gets at least one group.

    >>> random_split(["CCO", "CCO", "C", "CC", "CCC", None], seed=0)
    Split(train=(0, 1, 3), valid=(2,), test=(4,))

    Args:
        groups: one key per row, such as the molecule's canonical SMILES; None keeps a row out of every part.
        fractions: of the rows, for train, validation and test; they add up to 1, and one may be 0.
        seed: decides the order.

    Raises:
        SettingError: fractions that are negative, do not add up to 1, or leave nothing to train on.
        SplitError: fewer groups than parts to fill.
    """
    _check_fractions(fractions)
    return _cut_at_random(list(_rows_by_key(groups).values()), fractions, seed)


def scaffold_split(
    molecules: Sequence[Any],
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1),
    *,
    acyclic: Literal["together", "apart"] = "together",
) -> Split:
    """Whole Bemis-Murcko scaffolds (with chirality) to one part each, the big ones to train: as OGB and DeepChem do.

    Scaffolds are taken in descending order of (rows, first row). One goes to train while train stays within its share
    of the rows, else to validation while train and validation together stay within theirs, else to test. No seed: the
    same rows always give the same split. Molecules that RDKit cannot read belong to no part.

    >>> scaffold_split(["c1ccccc1", "c1ccccc1C", "C1CC1", "CCO"], (0.5, 0.25, 0.25))
    Split(train=(0, 1), valid=(3,), test=(2,))

    Args:
        molecules: SMILES or RDKit molecules.
        fractions: of the rows, for train, validation and test; they add up to 1, and one may be 0.
        acyclic: molecules without rings have no scaffold. ``"together"`` makes them one group, as OGB does;
            ``"apart"`` makes each such molecule a group of its own.

    Raises:
        SettingError: as :func:`random_split`; or ``acyclic`` is something else.
        SplitError: a part would be empty.

    Source: Bemis and Murcko 1996, J. Med. Chem. 39, 2887; Hu et al. 2020, arXiv:2005.00687 (OGB).
    """
    _check_fractions(fractions)
    if acyclic not in {"together", "apart"}:
        raise SettingError(f"acyclic must be 'together' or 'apart', got {acyclic!r}.")
    rows_of = _rows_by_key(_scaffold_keys(molecules, apart=acyclic == "apart"))
    parts = _fill_in_order(sorted(rows_of.values(), key=lambda rows: (len(rows), rows[0]), reverse=True), fractions)
    empty = [part for part, rows, share in zip(PARTS, parts, fractions, strict=True) if share and not rows]
    if empty:
        raise SplitError(_why_empty(empty, {key: len(rows) for key, rows in rows_of.items()}, acyclic))
    return Split(*map(tuple, parts))


def column_split(
    values: Sequence[str],
    *,
    seed: int,
    groups: Sequence[Hashable] | None = None,
    name_row: Callable[[int], str] | None = None,
) -> Split:
    """The parts that a column of the table marks: train; val, valid or validation; test, in any case.

    Where no row is marked as validation, a tenth of the training rows is cut off at random, by whole groups. No row
    need be marked test. The marks themselves are kept as they are, also where they put one molecule on two sides.

    >>> column_split(["train", "Test", "VAL", "train"], seed=0)
    Split(train=(0, 3), valid=(2,), test=(1,))

    Args:
        values: one mark per row.
        seed: decides which training rows become validation.
        groups: one key per row, such as the molecule's canonical SMILES; None keeps a row out of every part. Left
            out, each row is a group of its own.
        name_row: how errors call a row, by its position; "row 17 of 1128" unless given.

    Raises:
        SplitError: a mark that is none of these, with its row; another number of groups than marks; no
            row to train on; or training rows of one group only, from which no validation part can be cut.
    """
    keys: Sequence[Hashable] = range(len(values)) if groups is None else groups
    if len(keys) != len(values):
        raise SplitError(f"the split column has {len(values)} marks for {len(keys)} rows; give one mark per row.")
    name_row = name_row or (lambda row: f"row {row + 1} of {len(values)}")
    marks = [_part_of(value, row, name_row) for row, value in enumerate(values)]
    usable = [mark if key is not None else None for mark, key in zip(marks, keys, strict=True)]
    train, valid, test = ([row for row, mark in enumerate(usable) if mark == part] for part in PARTS)
    if not train:
        raise SplitError(
            f"the split column leaves no row to train on: of {len(values)} rows, {len(valid)} usable ones are "
            f"marked validation and {len(test)} test; mark some with train."
        )
    if valid:
        return Split(tuple(train), tuple(valid), tuple(test))
    keys_of_train = [key if mark == "train" else None for key, mark in zip(keys, marks, strict=True)]
    cut = _cut_at_random(list(_rows_by_key(keys_of_train).values()), (1 - _VALID_SHARE, _VALID_SHARE, 0.0), seed)
    return Split(cut.train, cut.valid, tuple(test))


def _part_of(value: str, row: int, name_row: Callable[[int], str]) -> str:
    """The part that a cell of the split column marks."""
    part = _LABELS.get(str(value).strip().casefold())
    if part is None:
        raise SplitError(
            f"{name_row(row)} is marked {value!r} in the split column; mark every row with one of {', '.join(_LABELS)}."
        )
    return part


def _check_fractions(fractions: Sequence[float]) -> None:
    if len(fractions) != 3 or not all(share >= 0 for share in fractions) or abs(sum(fractions) - 1) > _ROUNDING:
        raise SettingError(
            f"fractions must be three numbers of at least 0 that add up to 1 (train, valid, test), got {fractions}."
        )
    if not fractions[0]:
        raise SettingError(f"fractions must leave something to train on, got {fractions}.")


def _rows_by_key(keys: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    """The rows of each key, in order of first appearance; None is no key."""
    rows_of: dict[Hashable, list[int]] = {}
    for row, key in enumerate(keys):
        if key is not None:
            rows_of.setdefault(key, []).append(row)
    return rows_of


def _scaffold_keys(molecules: Iterable[Any], *, apart: bool) -> Iterator[str | None]:
    """Each molecule's scaffold; without rings "", or where ``apart`` the molecule itself; None if it is unreadable.

    RDKit's scaffold of a molecule may depend on how its SMILES is spelled (about 1 in 100 with stereo marks), so all
    spellings get that of the first.
    """
    scaffold_of: dict[str, str] = {}
    for molecule in molecules:
        try:
            same = canonical_smiles(molecule)
        except MoleculeError:
            yield None
            continue
        if same not in scaffold_of:
            scaffold = murcko_scaffold(molecule, chirality=True)
            scaffold_of[same] = same if apart and not scaffold else scaffold
        yield scaffold_of[same]


def _why_empty(empty: Sequence[str], sizes: Mapping[Hashable, int], acyclic: str) -> str:
    """The message of a scaffold split that leaves parts empty; ``sizes`` are the rows of each scaffold."""
    largest, rows = max(sizes.items(), key=lambda item: item[1], default=("", 0))
    of_whom = f"of scaffold {largest!r}" if largest else "of molecules without rings"
    apart = ""
    if acyclic == "together" and "" in sizes:
        apart = "ask for acyclic 'apart', which makes each molecule without rings a group of its own, or "
    return (
        f"a scaffold split of {sum(sizes.values())} molecules leaves nothing for {' and '.join(empty)}: the largest of "
        f"{len(sizes)} groups, {of_whom}, holds {rows}; {apart}use a random split or other fractions."
    )


def _ends(fractions: Sequence[float], num_rows: int) -> tuple[float, float]:
    """How many rows train may hold, and train and validation together; 0.7 + 0.1 is a little below 0.8 in binary."""
    return fractions[0] * num_rows + _ROUNDING, (fractions[0] + fractions[1]) * num_rows + _ROUNDING


def _fill_in_order(groups: Iterable[list[int]], fractions: Sequence[float]) -> tuple[list[int], list[int], list[int]]:
    """Each group to the first of train, validation and test that has room for it."""
    groups = list(groups)
    train_end, valid_end = _ends(fractions, sum(map(len, groups)))
    train: list[int] = []
    valid: list[int] = []
    test: list[int] = []
    for rows in groups:
        if len(train) + len(rows) <= train_end:
            train += rows
        elif len(train) + len(valid) + len(rows) <= valid_end:
            valid += rows
        else:
            test += rows
    return train, valid, test


def _cut_at_random(groups: Sequence[list[int]], fractions: Sequence[float], seed: int) -> Split:
    """Groups in random order, those too large for validation and test first, cut at the parts' shares of the rows."""
    wanted = [share > 0 for share in fractions]
    num_rows = sum(map(len, groups))
    if len(groups) < sum(wanted):
        parts = " and ".join(part for part, is_wanted in zip(PARTS, wanted, strict=True) if is_wanted)
        raise SplitError(
            f"{num_rows} rows of {len(groups)} different molecules cannot fill {parts}, one at least in each; "
            "give more molecules, or ask for fewer parts."
        )
    train_end, valid_end = (int(end) for end in _ends(fractions, num_rows))
    shuffled = [groups[place] for place in np.random.default_rng(seed).permutation(len(groups))]
    shuffled.sort(key=lambda rows: len(rows) <= num_rows - train_end)
    sizes = np.array([len(rows) for rows in shuffled])
    first_cut, second_cut = np.searchsorted(sizes.cumsum() - sizes, [train_end, valid_end])
    second_cut = min(second_cut, len(groups) - wanted[2])
    first_cut = max(min(first_cut, second_cut - wanted[1]), 1)
    second_cut = max(second_cut, first_cut + wanted[1])
    pieces = shuffled[:first_cut], shuffled[first_cut:second_cut], shuffled[second_cut:]
    return Split(*(tuple(row for rows in piece for row in rows) for piece in pieces))
