"""What a training run leaves behind besides the weights: one record per epoch, and how it ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphattn.training.config import TrainingConfig


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """One pass over the training set, numbered from 1. Losses are means over observed labels, of scaled targets."""

    epoch: int
    train_loss: float  # while learning: with dropout, and with weights that change from step to step
    valid_loss: float  # over the whole validation set, with the weights at the epoch's end
    learning_rate: float  # of the epoch's last step
    seconds: float  # wall clock; the one number here that differs from run to run


@dataclass(frozen=True)
class TrainingResult:
    """How a run went; the weights of ``best_epoch`` are in the network."""

    history: tuple[EpochRecord, ...]
    best_epoch: int  # numbered from 1
    stopped_early: bool  # the validation loss did not improve for ``patience`` epochs

    @property
    def best(self) -> EpochRecord:
        """The record of the best epoch."""
        return self.history[self.best_epoch - 1]


def best_record(history: Sequence[EpochRecord]) -> EpochRecord:
    """The epoch with the lowest validation loss, the earliest of equals.

    >>> first, second = EpochRecord(1, 0.9, 0.5, 1e-3, 2.0), EpochRecord(2, 0.7, 0.5, 1e-3, 2.0)
    >>> best_record([first, second]).epoch
    1
    """
    return min(history, key=lambda record: record.valid_loss)


def out_of_patience(history: Sequence[EpochRecord], config: TrainingConfig) -> bool:
    """Whether the last ``patience`` epochs brought no better validation loss."""
    return bool(history) and history[-1].epoch - best_record(history).epoch >= config.patience


def is_finished(history: Sequence[EpochRecord], config: TrainingConfig) -> bool:
    """Whether a run with this history has nothing left to do: all epochs done, or out of patience."""
    return len(history) >= config.epochs or out_of_patience(history, config)
