"""An epoch sees every row once, in an order that the generator alone decides."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphattn.data.loader import epoch_batches
from graphattn.errors import SettingError


def rows_of(*arguments):
    return [rows.tolist() for rows in epoch_batches(*arguments)]


@settings(deadline=None)
@given(num_graphs=st.integers(1, 60), batch_size=st.integers(1, 70), seed=st.none() | st.integers(0, 99))
def test_every_row_once_in_full_batches(num_graphs, batch_size, seed):
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    batches = rows_of(num_graphs, batch_size, generator)
    assert sorted(row for rows in batches for row in rows) == list(range(num_graphs))
    assert all(len(rows) == batch_size for rows in batches[:-1])
    assert 1 <= len(batches[-1]) <= batch_size


def test_the_generator_decides_the_order():
    def order(seed):
        return rows_of(40, 8, torch.Generator().manual_seed(seed))

    assert order(0) == order(0)
    assert order(0) != order(1)
    assert rows_of(40, 8, None) == [list(range(start, start + 8)) for start in range(0, 40, 8)]


def test_a_generator_goes_on_to_another_order():
    generator = torch.Generator().manual_seed(0)
    assert rows_of(40, 40, generator) != rows_of(40, 40, generator)


def test_the_global_state_is_left_alone():
    before = torch.random.get_rng_state()
    rows_of(40, 8, torch.Generator().manual_seed(0))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_sizes_that_cannot_be():
    with pytest.raises(SettingError, match="an epoch needs at least 1 graph, got 0"):
        epoch_batches(0, 8)
    with pytest.raises(SettingError, match="batch_size must be at least 1, got 0"):
        epoch_batches(8, 0)
