"""The settings of a training run, without torch: the command line reads them, ``train`` follows them."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Literal

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
    """How a network learns. The text beside each type is the help of its command-line option.

    With the same seed on the same machine's CPU, the same settings give the same bits. On a GPU some of PyTorch's own
    sums depend on the order in which threads arrive; call ``torch.use_deterministic_algorithms(True)`` before training
    where that matters.
    """

    epochs: Annotated[int, "passes over the training set, at most"] = 60
    batch_size: Annotated[int, "graphs per optimizer step"] = 32
    learning_rate: Annotated[float, "the highest, reached after warm-up"] = 1e-3
    weight_decay: Annotated[float, "of AdamW; biases, norms and embeddings are spared"] = 1e-2
    warmup_epochs: Annotated[float, "epochs of rising learning rate, at most half the run"] = 2.0
    clip_norm: Annotated[float, "largest norm of the whole gradient; 0 switches clipping off"] = 1.0
    patience: Annotated[int, "epochs without a better validation loss before training stops"] = 20
    loss: Annotated[RegressionLoss, "of regression; a binary target always takes the log loss"] = "mse"
    seed: Annotated[int, "decides all that is random: initial weights, order of graphs, dropout, a random split"] = 0
    accelerator: Annotated[Accelerator, "auto takes a CUDA GPU where there is one, else the CPU"] = "auto"
    precision: Annotated[Precision, "bf16-mixed computes matrix products in bfloat16"] = "32-true"

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
