"""The order in which the rows of a data set are seen: one epoch as a run of row numbers."""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from graphattn.errors import SettingError


def epoch_batches(num_graphs: int, batch_size: int, generator: Generator | None = None) -> Iterator[Tensor]:
    """Every row once, ``batch_size`` at a time; the last batch holds what is left.

    >>> [rows.tolist() for rows in epoch_batches(5, batch_size=2)]
    [[0, 1], [2, 3], [4]]

    Args:
        num_graphs: rows of the data set, at least 1.
        batch_size: graphs per batch, at least 1.
        generator: shuffles the rows; its state alone decides the order. None keeps them as they are.

    Returns:
        Row numbers, (batch_size,) int64 each, for ``GraphDataset.batch``.

    Raises:
        SettingError: ``num_graphs`` or ``batch_size`` is below 1.
    """
    if num_graphs < 1:
        raise SettingError(f"an epoch needs at least 1 graph, got {num_graphs}.")
    if batch_size < 1:
        raise SettingError(f"batch_size must be at least 1, got {batch_size}.")
    rows = torch.arange(num_graphs) if generator is None else torch.randperm(num_graphs, generator=generator)
    return iter(torch.split(rows, batch_size))
