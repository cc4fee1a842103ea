"""The settings of a training run, without torch: the command line reads them, ``train`` follows them."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

from graphattn.errors import SettingError

Task = Literal["regression", "binary"]
TASKS: tuple[Task, ...] = ("regression", "binary")

RegressionLoss = Literal["mse", "huber", "mae"]
REGRESSION_LOSSES: tuple[RegressionLoss, ...] = ("mse", "huber", "mae")

Accelerator = Literal["auto", "cpu", "cuda"]
ACCELERATORS: tuple[Accelerator, ...] = ("auto", "cpu", "cuda")

Precision = Literal["32-true", "bf16-mixed"]
PRECISIONS: tuple[Precision, ...] = ("32-true", "bf16-mixed")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a network learns. With the same seed on the same machine's CPU, the same settings give the same bits.

    On a GPU some of PyTorch's own sums depend on the order in which threads arrive; call
    ``torch.use_deterministic_algorithms(True)`` before training where that matters.
    """

    epochs: int = 100  # passes over the training set, at most
    batch_size: int = 32  # graphs per optimizer step
    learning_rate: float = 1e-3  # the highest, reached after warm-up
    weight_decay: float = 1e-2  # of AdamW; biases, norms and embeddings are spared
    warmup_epochs: float = 2.0  # epochs of rising learning rate, at most half the run
    clip_norm: float = 1.0  # largest norm of the whole gradient; 0 switches clipping off
    patience: int = 20  # epochs without a better validation loss before training stops
    loss: RegressionLoss = "mse"  # of regression; a binary target always takes the log loss
    seed: int = 0  # decides the order of graphs and the dropout
    accelerator: Accelerator = "auto"  # auto takes a CUDA GPU where there is one, else the CPU
    precision: Precision = "32-true"  # bf16-mixed computes matrix products in bfloat16

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            self._keep_whole(name, at_least=1)
        self._keep_whole("seed", at_least=0)
        for name in ("learning_rate", "weight_decay", "warmup_epochs", "clip_norm"):
            self._keep_number(name)
        if self.learning_rate == 0:
            raise SettingError("learning_rate must be above 0, got 0.0")
        self._check_choice("loss", REGRESSION_LOSSES)
        self._check_choice("accelerator", ACCELERATORS)
        self._check_choice("precision", PRECISIONS)

    def _keep_whole(self, name: str, *, at_least: int) -> None:
        """Refuse what is no whole number; keep NumPy's as Python's, so that a checkpoint can write it as JSON."""
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise SettingError(f"{name} must be a whole number, got {value!r}")
        if value < at_least:
            raise SettingError(f"{name} must be at least {at_least}, got {value}")
        object.__setattr__(self, name, int(value))

    def _keep_number(self, name: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, Real):
            raise SettingError(f"{name} must be a number, got {value!r}")
        number = float(value)
        if not 0 <= number < math.inf:
            raise SettingError(f"{name} must be at least 0 and finite, got {number}")
        object.__setattr__(self, name, number)

    def _check_choice(self, name: str, allowed: tuple[str, ...]) -> None:
        if getattr(self, name) not in allowed:
            raise SettingError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
