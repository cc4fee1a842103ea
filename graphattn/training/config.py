"""The settings of a training run, without torch: the command line reads them, ``train`` follows them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from graphattn.checks import LARGEST_COUNT, LARGEST_SEED, check_choice, number_from_0, whole_number
from graphattn.errors import SettingError

Task = Literal["regression", "binary"]
TASKS: tuple[Task, ...] = ("regression", "binary")

Loss = Literal["auto", "mse", "huber", "mae"]
LOSSES: tuple[Loss, ...] = ("auto", "mse", "huber", "mae")

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
    loss: Annotated[Loss, "of regression, where auto is mse; classes always take the log loss"] = "auto"
    seed: Annotated[int, "decides all that is random: initial weights, order of graphs, dropout, a random split"] = 0
    accelerator: Annotated[Accelerator, "auto takes a CUDA GPU where there is one, else the CPU"] = "auto"
    precision: Annotated[Precision, "bf16-mixed computes matrix products in bfloat16"] = "32-true"

    def __post_init__(self) -> None:
        kept: dict[str, object] = {
            name: whole_number(name, getattr(self, name), at_least=1, at_most=LARGEST_COUNT)
            for name in ("epochs", "batch_size", "patience")
        }
        kept["seed"] = whole_number("seed", self.seed, at_least=0, at_most=LARGEST_SEED)
        for name in ("learning_rate", "weight_decay", "warmup_epochs", "clip_norm"):
            kept[name] = number_from_0(name, getattr(self, name))
        if kept["learning_rate"] == 0:
            raise SettingError("learning_rate must be above 0, got 0.0")
        check_choice("loss", self.loss, LOSSES)
        check_choice("accelerator", self.accelerator, ACCELERATORS)
        check_choice("precision", self.precision, PRECISIONS)
        for name, value in kept.items():
            object.__setattr__(self, name, value)
