"""X and y as callers give them: what is missing, what cannot be a label, what is no list."""

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from graphattn.errors import ShapeError, TableError
from graphattn.inputs import as_classes, as_columns, as_molecules, as_numbers

MISSING = [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT")]


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_every_kind_of_missing_is_not_measured(missing):
    (values,), _, _ = as_columns([2.5, missing, 1], rows=3)
    np.testing.assert_array_equal(as_numbers(values, "y"), [2.5, np.nan, 1])
    (labels,), _, _ = as_columns(["yes", missing, "no"], rows=3)
    target, codes = as_classes(labels, "y")
    assert target.classes == ("no", "yes")
    np.testing.assert_array_equal(codes, [1, np.nan, 0])


@pytest.mark.parametrize(
    ("dtype", "values"),
    [("Int64", [3, 4]), ("Float64", [0.5, 1.5]), ("boolean", [False, True]), ("string", ["0.5", "7"])],
)
def test_nullable_columns_of_pandas_have_missing_values(dtype, values):
    for y in (pd.Series([*values, pd.NA], dtype=dtype), pd.DataFrame({"a": pd.Series([*values, pd.NA], dtype=dtype)})):
        (column,), _, _ = as_columns(y, rows=3)
        np.testing.assert_array_equal(as_numbers(column, "a"), [*map(float, values), np.nan])
        assert as_classes(column, "a")[0].classes == tuple(values)


def test_the_caller_keeps_its_labels():
    y = np.array(["yes", np.nan], dtype=object)
    as_columns(y, rows=2)
    assert isinstance(y[1], float)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, "a"], "target 'y' has labels of type mixed-integer (1, 'a'); wanted all bool, all numbers or all strings"),
        ([True, "yes"], "target 'y' has labels of type mixed (True, 'yes')"),
        ([True, 0], "target 'y' has labels of type mixed-integer (True, 0)"),
        ([dt.date(2026, 1, 1)] * 2, "target 'y' has labels of type date (datetime.date(2026, 1, 1));"),
        ([np.datetime64("2026-01-01"), None], "target 'y' has labels of type datetime64"),
        ([b"a", b"b"], "target 'y' has labels of type bytes (b'a', b'b')"),
        ([Decimal(1), Decimal(2)], "target 'y' has labels of type decimal"),
        ([("a",), ("b",)], "target 'y' has labels of type mixed (('a',), ('b',))"),
        ([1j, 2j], "target 'y' has labels of type complex"),
        ([0.0, np.inf], "target 'y' has the classes 0.0, inf; wanted finite numbers"),
        (["a", "a"], "target 'y' has 1 classes ('a'); a binary target needs exactly two"),
    ],
    ids=repr,
)
def test_labels_that_a_model_file_cannot_hold_are_refused(labels, message):
    with pytest.raises(TableError, match=re.escape(message)):
        as_classes(labels, "y")


@pytest.mark.parametrize("value", ["tall", 10**400, 1j, [1.0], dt.date(2026, 1, 1)], ids=lambda value: str(value)[:9])
def test_what_is_no_number_is_refused_with_its_row(value):
    with pytest.raises(
        TableError, match=r"row 2 of 3: target 'y' is .*, which cannot be read as a number; give None or"
    ):
        as_numbers([1.0, value, 2.0], "y")


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        (np.array(["2026-01-01", "2026-01-02"], "M8[ns]"), TableError, "y holds datetime64[ns]; wanted numbers or"),
        (pd.Series(pd.to_timedelta([1, 2], "s")).astype("m8[ns]"), TableError, "y holds timedelta64[ns]; wanted"),
        (np.zeros((2, 1, 1)), ShapeError, "y has shape (2, 1, 1); 2 molecules need (rows,) or (rows, targets)"),
        (None, ShapeError, "y is None; 2 molecules need (rows,) or (rows, targets)"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), TableError, "more than one column named 'a'; give every"),
    ],
    ids=["times", "spans", "cube", "None", "one name twice"],
)
def test_y_that_does_not_fit_is_refused(y, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        as_columns(y, rows=2)


@pytest.mark.parametrize("X", ["CCO", b"CCO", {"CCO": 1}, np.array("CCO"), 5, None], ids=repr)
def test_what_is_no_list_of_molecules_is_refused(X):  # noqa: N803
    with pytest.raises(ShapeError, match=r"X is .*; pass a list of molecules, also for a single one"):
        as_molecules(X)


def test_a_generator_is_a_list_of_molecules():
    assert as_molecules(smiles for smiles in ("C", "CC")) == ["C", "CC"]
