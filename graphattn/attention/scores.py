"""What is compared: functions of broadcastable queries and keys, ``(..., H, D) x (..., H, D) -> (..., H)``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor
from torch.nn import functional

from graphattn.errors import SettingError

Score = Callable[[Tensor, Tensor], Tensor]
Activation = Literal["leaky_relu", "tanh"]


@dataclass(frozen=True)
class DotProduct:
    """q.k times ``scale``, which is 1 / sqrt(D) where it is not given. Vaswani et al. 2017, arXiv:1706.03762, eq. 1.

    >>> import torch
    >>> DotProduct(scale=1.0)(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([11.])
    """

    scale: float | None = None

    def factor(self, width: int) -> float:
        """What q.k is multiplied by when query and key have ``width`` channels per head."""
        return width**-0.5 if self.scale is None else self.scale

    def __call__(self, query: Tensor, key: Tensor) -> Tensor:
        """(..., H, D) x (..., H, D) -> (..., H)."""
        return (query * key).sum(-1) * self.factor(query.shape[-1])


@dataclass(frozen=True, eq=False)
class Additive:
    """a . activation(q + k).

    With ``tanh`` the score of Bahdanau et al. 2015, arXiv:1409.0473, app. A.1.2; with LeakyReLU that of GATv2, Brody et
    al. 2022, arXiv:2105.14491, eq. 7. At width 1 and without a vector it is the score of GAT.

    >>> import torch
    >>> Additive(activation="leaky_relu")(torch.tensor([[1.0]]), torch.tensor([[-2.0]]))
    tensor([-0.2000])
    """

    activation: Activation = "leaky_relu"
    negative_slope: float = 0.2  # of the LeakyReLU
    vector: Tensor | None = None  # (H, D), the a of the formula; ones where left out. A layer learns its own.

    def __post_init__(self) -> None:
        if self.activation not in ("leaky_relu", "tanh"):
            raise SettingError(f"activation must be 'leaky_relu' or 'tanh', got {self.activation!r}.")

    def __call__(self, query: Tensor, key: Tensor) -> Tensor:
        """(..., H, D) x (..., H, D) -> (..., H)."""
        total = query + key
        hidden = total.tanh() if self.activation == "tanh" else functional.leaky_relu(total, self.negative_slope)
        return (hidden if self.vector is None else hidden * self.vector).sum(-1)


def as_score(score: str | Score) -> Score:
    """The score behind a name: ``"dot"`` or ``"additive"``; any function of query and key passes as it is."""
    if not isinstance(score, str):
        return score
    if score == "dot":
        return DotProduct()
    if score == "additive":
        return Additive()
    raise SettingError(
        f"score must be 'dot', 'additive' or a function of query and key (a layer also takes 'gat'), got {score!r}."
    )
