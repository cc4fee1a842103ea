"""What the examples share: command line, a plain training loop, tables and pictures. Attention is all graphattn's."""

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import matplotlib as mpl

mpl.use("Agg")  # draw to a file, with or without a screen

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

import graphattn as ga

Batch = TypeVar("Batch")

# Okabe and Ito's colors, told apart by every kind of eye.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#000000")


@dataclass(frozen=True)
class Settings:
    """What every example is told."""

    output: Path  # folder for pictures
    quick: bool  # a small run that shows that everything works, in seconds


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A command line with ``--output`` and ``--quick``, described by the example's own docstring."""
    made = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    made.add_argument("--output", type=Path, default=Path("out"), help="folder for pictures (default: out)")
    made.add_argument("--quick", action="store_true", help="a small run of seconds instead of the full one")
    return made


def existing(path: str) -> Path:
    """What a command line is given as a file or folder to read."""
    if not Path(path).exists():
        raise argparse.ArgumentTypeError(f"{path} does not exist; looked for it in {Path.cwd()}.")
    return Path(path)


@contextmanager
def told_plainly(command_line: argparse.ArgumentParser) -> Iterator[None]:
    """What the library refuses, as a line of the command instead of a traceback."""
    try:
        yield
    except ga.GraphattnError as refusal:
        command_line.error(str(refusal))


def settings(doc: str | None) -> Settings:
    """The command line of an example that takes nothing else."""
    given = parser(doc).parse_args()
    return Settings(given.output, given.quick)


def shuffled(count: int, batch_size: int) -> Iterator[Tensor]:
    """Indices 0 to ``count`` - 1 in random order, in batches."""
    order = torch.randperm(count)
    yield from (order[first : first + batch_size] for first in range(0, count, batch_size))


def train(
    network: nn.Module,
    batches: Callable[[], Iterable[Batch]],
    loss_of: Callable[[Batch], Tensor],
    *,
    epochs: int,
    learning_rate: float = 2e-3,
    weight_decay: float = 1e-4,
) -> None:
    """AdamW, a short warm-up, then the learning rate falls to zero along a cosine; ends in eval mode.

    Args:
        network: what learns.
        batches: gives one epoch of batches at each call.
        loss_of: the loss of the network on a batch.
        epochs: passes over the batches.
        learning_rate: the highest.
        weight_decay: see :class:`torch.optim.AdamW`.
    """
    optimizer = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    network.train()
    for epoch in range(epochs):
        for step, batch in enumerate(of_epoch := list(batches())):
            done = (epoch + step / len(of_epoch)) / epochs
            warm, cosine = min(1.0, (done + 1e-3) / 0.05), 0.5 * (1 + math.cos(math.pi * done))
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * warm * cosine
            loss = loss_of(batch)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
    network.eval()


def count_parameters(network: nn.Module) -> int:
    """Learned numbers in a network."""
    return sum(weight.numel() for weight in network.parameters())


def table(rows: Sequence[Mapping[str, object]], title: str = "") -> None:
    """Print rows of named cells as a table."""
    print(f"\n{title}\n" if title else "")
    print(pd.DataFrame(rows).to_string(index=False))


def matrix(name: str, values: Tensor, digits: int = 4) -> None:
    """Print a small matrix under its name."""
    print(f"\n{name}")
    for row in values.tolist():
        print("  ".join(f"{number:>{digits + 5}.{digits}f}" for number in row))


def figure(columns: int = 1, rows: int = 1, *, width: float = 5.0, height: float = 4.0) -> tuple[Figure, Any]:
    """A figure of equal panels, and its axes."""
    made, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows), layout="constrained")
    return made, axes


def save(drawn: Figure, folder: Path, name: str) -> Path:
    """Write a figure as ``folder/name`` and say so."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    drawn.savefig(path, dpi=120)
    plt.close(drawn)
    print(f"\ndrawn in {path}")
    return path
