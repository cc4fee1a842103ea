"""All randomness of a run comes from (seed, epoch), and none of it leaks into the caller's generators."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def own_randomness(device: torch.device) -> Iterator[None]:
    """Inside, torch's default generators may be seeded at will; afterwards they stand where they stood."""
    gpus = [torch.cuda.current_device() if device.index is None else device.index] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        yield


def seed_epoch(seed: int, epoch: int, device: torch.device) -> torch.Generator:
    """Seed torch's default generator (dropout draws from it) for one epoch; call inside :func:`own_randomness`.

    An epoch's randomness depends on nothing that came before it, so a resumed run needs no generator's state.

    Returns:
        A generator of its own for the order of the graphs, so that a change of the network leaves the order alone.
    """
    order, dropout = np.random.SeedSequence([seed, epoch]).generate_state(2, np.uint64).tolist()
    # Not torch.manual_seed: it would also seed every GPU, those outside own_randomness included.
    torch.default_generator.manual_seed(dropout)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(dropout)
    return torch.Generator().manual_seed(order)
