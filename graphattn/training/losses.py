"""Losses over the labels that were observed: a NaN among the targets is a missing label and counts for nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import Tensor
from torch.nn import functional

from graphattn.checks import check_choice
from graphattn.errors import SettingError, ShapeError
from graphattn.training.config import LOSSES, TASKS, Loss, Task

_SQUARED: Callable[[Tensor, Tensor], Tensor] = partial(functional.mse_loss, reduction="none")
_REGRESSION: dict[Loss, Callable[[Tensor, Tensor], Tensor]] = {
    "auto": _SQUARED,
    "mse": _SQUARED,
    "huber": partial(functional.huber_loss, reduction="none", delta=1.0),
    "mae": partial(functional.l1_loss, reduction="none"),
}
_BINARY: Callable[[Tensor, Tensor], Tensor] = partial(functional.binary_cross_entropy_with_logits, reduction="none")


@dataclass(frozen=True)
class MaskedLoss:
    """Mean of a loss over all observed labels of a batch, whichever target they belong to.

    A batch without one label has loss 0 and gradient 0. The output of a network where the label is missing may be
    anything, NaN included: neither the loss nor the gradient sees it.

    >>> import torch
    >>> y = torch.tensor([[1.0, torch.nan], [torch.nan, 2.0], [torch.nan, torch.nan]])
    >>> float(loss_for("regression", "mse")(torch.zeros(3, 2), y))    # (1 + 4) / 2
    2.5
    """

    per_label: Callable[[Tensor, Tensor], Tensor]  # (G, T), (G, T) without NaN -> (G, T)

    def total(self, outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The sum over observed labels, and how many there are.

        Args:
            outputs: (G, T), of the network.
            targets: (G, T), NaN where the label is missing; taken to the outputs' dtype.

        Returns:
            The sum () in the outputs' dtype, and the count () int64.

        Raises:
            ShapeError: the two differ in shape (broadcasting (G,) against (G, 1) is a classic silent fault).
        """
        if outputs.shape != targets.shape:
            raise ShapeError(
                f"the network gave outputs of shape {tuple(outputs.shape)} for targets of shape "
                f"{tuple(targets.shape)}; it must give one row per graph and one column per target."
            )
        observed = ~targets.isnan()
        # Both sides are filled before the loss, not only the loss after: 0 * NaN in a gradient would be NaN.
        outputs = outputs.where(observed, 0.0)
        targets = targets.to(outputs.dtype).where(observed, 0.0)
        return self.per_label(outputs, targets).where(observed, 0.0).sum(), observed.sum()

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean over observed labels (), 0 where there are none. Raises as :meth:`total`."""
        total, count = self.total(outputs, targets)
        return total / count.clamp(min=1)


def loss_for(task: Task, loss: Loss) -> MaskedLoss:
    """The loss of a task: log loss on logits for ``"binary"``, the chosen one for ``"regression"``.

    In a regression ``"auto"`` is the squared error. Huber's loss is quadratic up to an error of 1 (one standard
    deviation of a scaled target), then linear.

    Raises:
        SettingError: no such task or loss, or a loss of regression for a binary task.
    """
    check_choice("task", task, TASKS)
    check_choice("loss", loss, LOSSES)
    if task == "regression":
        return MaskedLoss(_REGRESSION[loss])
    if loss != "auto":
        raise SettingError(
            f"loss {loss} is for regression, but these are classes, which take the log loss: leave loss out, or ask "
            "for task regression"
        )
    return MaskedLoss(_BINARY)
