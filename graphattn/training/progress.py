"""What a run shows while it works: a bar on a terminal, plain lines in a log, or nothing."""

import sys
from dataclasses import dataclass, field
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from graphattn.training.history import EpochRecord


class Progress(Protocol):
    """What the loop tells, in this order: ``start``, for each epoch its ``step``s and one ``epoch``, ``stop``."""

    def start(self, *, epochs: int, steps_per_epoch: int, epochs_done: int) -> None:
        """The run begins, or goes on where a checkpoint with ``epochs_done`` epochs left it."""

    def step(self) -> None:
        """One optimizer step is done."""

    def epoch(self, record: EpochRecord, best: EpochRecord) -> None:
        """One epoch is done; ``best`` is the best so far, itself included."""

    def stop(self) -> None:
        """The run ends: all done, stopped early, or by an error. Called once, always."""


class Silent:
    """Shows nothing."""

    def start(self, *, epochs: int, steps_per_epoch: int, epochs_done: int) -> None:
        """Nothing."""

    def step(self) -> None:
        """Nothing."""

    def epoch(self, record: EpochRecord, best: EpochRecord) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""


@dataclass
class Lines:
    """One plain line per epoch, for logs and pipes."""

    stream: TextIO
    label: str = ""  # put before every line, such as "network 2 of 5"
    _epochs: int = field(default=0, init=False)

    def start(self, *, epochs: int, steps_per_epoch: int, epochs_done: int) -> None:
        """Say how much there is to do only where a run is taken up again."""
        self._epochs = epochs
        if epochs_done:
            self._write(f"resumed after epoch {epochs_done} of {epochs} ({steps_per_epoch} steps each)")

    def step(self) -> None:
        """Nothing."""

    def epoch(self, record: EpochRecord, best: EpochRecord) -> None:
        """``epoch 7/50  train 0.412  valid 0.398  best 0.377 (epoch 5)  lr 9.8e-04  1.3 s``."""
        self._write(
            f"epoch {record.epoch}/{self._epochs}  {_losses(record, best)}  lr {record.learning_rate:.1e}  "
            f"{record.seconds:.1f} s"
        )

    def stop(self) -> None:
        """Nothing."""

    def _write(self, text: str) -> None:
        print(f"{_prefix(self.label)}{text}", file=self.stream, flush=True)


class Bar:
    """A bar over all steps of the run, with the losses beside it."""

    def __init__(self, stream: TextIO, label: str = "") -> None:
        self._label = label
        self._epochs = 0
        self._bar = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[losses]}", markup=False),
            TimeRemainingColumn(),
            console=Console(file=stream),
        )
        self._task = self._bar.add_task("", total=None, losses="")

    def start(self, *, epochs: int, steps_per_epoch: int, epochs_done: int) -> None:
        """Draw the bar, filled as far as a checkpoint had come."""
        self._epochs = epochs
        self._bar.update(
            self._task,
            description=self._describe(epochs_done),
            total=epochs * steps_per_epoch,
            completed=epochs_done * steps_per_epoch,
        )
        self._bar.start()

    def step(self) -> None:
        """Move on by one step."""
        self._bar.advance(self._task)

    def epoch(self, record: EpochRecord, best: EpochRecord) -> None:
        """Show the epoch and its losses."""
        self._bar.update(self._task, description=self._describe(record.epoch), losses=_losses(record, best))

    def stop(self) -> None:
        """Leave the bar as it stands and give the cursor back."""
        self._bar.stop()

    def _describe(self, epoch: int) -> str:
        return f"{_prefix(self._label)}epoch {epoch}/{self._epochs}"


def choose_progress(*, quiet: bool, stream: TextIO | None = None, label: str = "") -> Progress:
    """The fitting way to show a run.

    Args:
        quiet: show nothing.
        stream: where to; the standard error when not given, so that the standard output stays free for results.
        label: put before everything, such as ``"network 2 of 5"``.

    Returns:
        A bar when the stream is a terminal, else plain lines; nothing at all when quiet.
    """
    stream = sys.stderr if stream is None else stream
    if quiet:
        return Silent()
    return Bar(stream, label) if stream.isatty() else Lines(stream, label)


def _losses(record: EpochRecord, best: EpochRecord) -> str:
    return (
        f"train {record.train_loss:.4g}  valid {record.valid_loss:.4g}  best {best.valid_loss:.4g} (epoch {best.epoch})"
    )


def _prefix(label: str) -> str:
    return f"{label}: " if label else ""
