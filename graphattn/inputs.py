"""What a caller gives an estimator: X and y, as molecules, targets and columns of labels."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from graphattn.errors import ShapeError, TableError
from graphattn.featurize.reading import shown
from graphattn.predict import Label, Target
from graphattn.prepare import Labels

# What labels may be, as pandas calls it, and the type that a model file holds them as.
LABEL_TYPES: dict[str, type[Label]] = {
    "boolean": bool,
    "integer": int,
    "floating": float,
    "mixed-integer-float": float,
    "string": str,
}


def as_molecules(X: object) -> list[object]:  # noqa: N803 (scikit-learn's name)
    """The molecules of a list, array, series or single column, as a list.

    Raises:
        ShapeError: no list of anything, or more than one column.
    """
    shape = getattr(X, "shape", None)
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable) or shape == ():
        raise ShapeError(f"X is {shown(X)}; pass a list of molecules, also for a single one")
    if shape is None or len(shape) == 1:
        return list(X)
    if len(shape) == 2 and shape[1] == 1:
        return list(np.asarray(X, dtype=object)[:, 0])
    raise ShapeError(f"X has shape {tuple(shape)}; pass one molecule per row, (rows,) or (rows, 1)")


def as_columns(y: object, rows: int) -> tuple[list[list[Any]], list[str], bool]:
    """The columns of y, their names ("y", or "y0", "y1", ... unless y names them), and whether y was one column flat.

    What was not measured (None, NaN, NA, NaT) is None.

    Raises:
        ShapeError: y is not (rows,) or (rows, T), or there is no row.
        TableError: y holds times, or two columns of one name.
    """
    if not rows:
        raise ShapeError("X has no rows; a model needs molecules to learn from")
    if getattr(getattr(y, "dtype", None), "kind", "") in {"m", "M"}:  # NumPy would make integers of them
        raise TableError(f"y holds {y.dtype}; wanted numbers or labels")  # type: ignore[attr-defined]
    values = np.array(y, dtype=object)
    if values.ndim not in {1, 2} or len(values) != rows or not values.size:
        got = f"has shape {values.shape}" if values.ndim else f"is {shown(y)}"
        raise ShapeError(f"y {got}; {rows} molecules need (rows,) or (rows, targets)")
    flat = values.ndim == 1
    values[pd.isna(values)] = None
    columns = values.reshape(rows, -1).T.tolist()
    names = [f"y{number}" for number in range(len(columns))]
    if len(columns) == 1:
        names = ["y"]
    if flat and getattr(y, "name", None) is not None:
        names = [str(y.name)]  # type: ignore[attr-defined]
    elif hasattr(y, "columns"):
        names = [str(name) for name in y.columns]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise TableError(f"y has more than one column named {twice[0]!r}; give every target a name of its own")
    return columns, names, flat


def as_numbers(column: Sequence[Any], name: str) -> Labels:
    """The values of a target, NaN where not measured.

    Raises:
        TableError: names the first that is no number.
    """
    numbers = np.full(len(column), np.nan)
    for row, value in enumerate(column):
        if value is None:
            continue
        try:
            numbers[row] = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise TableError(
                f"row {row + 1} of {len(column)}: target {name!r} is {shown(value)}, which cannot be read as a number; "
                "give None or NaN where it was not measured"
            ) from error
    return numbers


def as_classes(column: Sequence[Any], name: str) -> tuple[Target, Labels]:
    """A target with its two classes, sorted, and the labels as 0, 1 and NaN.

    Raises:
        TableError: not two classes, or labels of mixed types or of a type that a model file cannot hold.
    """
    observed = [value for value in column if value is not None]
    kind = pd.api.types.infer_dtype(observed, skipna=False)
    if observed and kind not in LABEL_TYPES:
        raise TableError(
            f"target {name!r} has labels of type {kind} ({_listed(observed)}); "
            "wanted all bool, all numbers or all strings, and None or NaN where not measured"
        )
    as_label = LABEL_TYPES.get(kind, str)
    classes: tuple[Label, ...] = tuple(sorted(set(map(as_label, observed))))
    if len(classes) != 2:
        raise TableError(
            f"target {name!r} has {len(classes)} classes ({_listed(classes)}); a binary target needs exactly two"
        )
    if any(isinstance(label, float) and math.isinf(label) for label in classes):
        raise TableError(f"target {name!r} has the classes {_listed(classes)}; wanted finite numbers")
    code = {None: np.nan, classes[0]: 0.0, classes[1]: 1.0}
    labels = np.array([code[None if value is None else as_label(value)] for value in column])
    return Target(name, classes=classes), labels


def _listed(labels: Iterable[object]) -> str:
    """The first few different ones."""
    return ", ".join(list(dict.fromkeys(map(shown, labels)))[:5]) or "none"
