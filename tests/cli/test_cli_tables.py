"""Predictions beside a table: as many digits as mean something, and every cell comes back as it was."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphattn.cli.tables import write_predictions, written
from graphattn.data.table import Table, read_table
from graphattn.featurize.rows import RowStatus
from graphattn.predict import Predictions, Target


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (2 / 3, 1.5, "0.666667"),
        (-20 / 3, 2.0, "-6.66667"),
        (2e6 / 3, 1e5, "666667"),
        (2e6 / 3, 0.1, "666666.666667"),
        (1e6, 0.1, "1000000"),
        (0.0, 0.01, "0"),
        (2 / 3, 1e-300, "0.66666666666666663"),
        (1e-300, 1.0, "1e-300"),
        (float("nan"), 1.0, ""),
    ],
)
def test_digits_follow_the_spread_of_the_target(value, spread, text):
    assert written(value, spread) == text


@settings(deadline=None, max_examples=30)
@given(
    cells=st.lists(st.text("\r\n\t\",;| aC'\ufeff", max_size=6), min_size=1, max_size=4),
    name=st.sampled_from(["a.csv", "a.tsv", "a.csv.gz"]),
)
def test_every_cell_comes_back_through_our_reader_and_through_pandas(cells, name):
    frame = pd.DataFrame({"smiles": ["C"] * len(cells), "note": cells}, dtype=object)
    table = Table(Path("new.csv"), frame, tuple(range(2, len(cells) + 2)), ",")
    predictions = Predictions(np.array([[1.5]] * len(cells)), [RowStatus(status="ok", reason=cell) for cell in cells])
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_predictions(path, table, predictions, [Target("a, b")], None)
        back = read_table(path)
        by_pandas = pd.read_csv(path, dtype=object, na_filter=False, sep="\t" if "tsv" in name else ",")
    assert back.names == ("smiles", "note", "a, b", "status", "reason")
    assert back.column("note") == back.column("reason") == cells
    assert by_pandas["note"].tolist() == by_pandas["reason"].tolist() == cells
    assert by_pandas["a, b"].tolist() == ["1.5"] * len(cells)
