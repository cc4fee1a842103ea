"""From columns of integer codes to vectors: the sum of one learned vector per column."""

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphattn.errors import ShapeError
from graphattn.featurize.vectors import check_codes


class CodeEmbedding(nn.Module):
    """(N, C) integer codes -> (N, channels): equal to a linear layer on the joined one-hot vectors, without them.

    Args:
        widths: number of codes in each of the C columns.
        channels: width of the output.
    """

    offsets: Tensor

    def __init__(self, widths: Sequence[int], channels: int) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.table = nn.Parameter(torch.empty(sum(self.widths), channels))
        self.register_buffer("offsets", torch.tensor([0, *accumulate(self.widths)])[:-1], persistent=False)
        nn.init.normal_(self.table, std=len(self.widths) ** -0.5)  # the sum then has unit variance

    def forward(self, codes: Tensor) -> Tensor:
        """(N, C) -> (N, channels)."""
        check_codes(codes, self.widths, "x")
        return functional.embedding_bag(codes + self.offsets, self.table, mode="sum")

    def extra_repr(self) -> str:
        """Columns and widths."""
        return f"{self.widths}, {self.table.shape[1]}"


class FloatEmbedding(nn.Linear):
    """(N, in_channels) floats -> (N, channels), a linear layer that refuses other inputs in words."""

    def forward(self, x: Tensor) -> Tensor:
        """(N, in_channels) -> (N, channels)."""
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise ShapeError(f"x must have shape (nodes, {self.in_features}); got {tuple(x.shape)}.")
        if x.dtype != self.weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise ShapeError(f"x is {x.dtype}, but the network's weights are {self.weight.dtype}; convert one of them.")
        return super().forward(x)


def joint_code(codes: Tensor, widths: Sequence[int]) -> Tensor:
    """(E, B) codes -> (E,), one number in [0, prod(widths)) per combination; the last column counts fastest.

    >>> joint_code(torch.tensor([[0, 0], [1, 2]]), widths=(2, 3))
    tensor([0, 5])
    """
    check_codes(codes, widths, "edge_attr")
    strides = torch.tensor([*accumulate(reversed(widths), lambda a, b: a * b, initial=1)][-2::-1], device=codes.device)
    return (codes * strides).sum(-1)
