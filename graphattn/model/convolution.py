"""A convolution as attention: every place of the kernel is a head that looks at one neighbor of each pixel."""

import math

import torch
from torch import Tensor, nn

from graphattn.adjacency import Adjacency
from graphattn.attention.layer import GraphAttention
from graphattn.attention.normalizers import Normalizer
from graphattn.errors import SettingError


class ConvolutionAttention(nn.Module):
    """Attention with a head per relative position, then a linear layer; :func:`attention_from_conv2d` sets its weights.

    Args:
        in_channels: C, channels of a pixel.
        out_channels: of the output.
        places: K, relative positions, each of which gets a head of ``in_channels`` channels.
        bias: whether the linear layer has one.
        normalizer: ``"softmax"`` or ``"relu"``.
        backend: see :func:`graphattn.masked_attention`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        places: int,
        *,
        bias: bool = True,
        normalizer: Normalizer = "softmax",
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.attention = GraphAttention(
            in_channels,
            places * in_channels,
            heads=places,
            normalizer=normalizer,
            edge_types=places,
            edge_into=("score",),
            bias=False,
            backend=backend,
        )
        self.merge = nn.Linear(places * in_channels, out_channels, bias=bias)

    def forward(self, x: Tensor, edge_index: Tensor | Adjacency, edge_attr: Tensor) -> Tensor:
        """(N, in_channels) pixels, and the relative position of each edge as an integer (E,) -> (N, out_channels)."""
        out: Tensor = self.merge(self.attention(x, edge_index, edge_attr))
        return out


def attention_from_conv2d(
    conv: nn.Conv2d, *, normalizer: Normalizer = "softmax", backend: str = "auto"
) -> ConvolutionAttention:
    """The attention that equals ``conv`` on ``Adjacency.grid(height, width, size=conv.kernel_size)``.

    Head h looks at the pixel at place h of the kernel and at nothing else: its score is the bias of that place alone (0
    there and -inf elsewhere; with ``"relu"`` 1 and 0), and its value is the pixel as it is. The linear layer holds the
    kernel. A head whose pixel lies outside the image sees nothing and gives zeros: the zero padding. Only the kernel
    and its bias learn, as in ``conv``; what is attention has ``requires_grad`` off.

    >>> from graphattn.featurize.positions import pixel_positions, relative_kinds
    >>> conv, image, grid = nn.Conv2d(3, 8, kernel_size=3, padding=1), torch.rand(3, 5, 7), Adjacency.grid(5, 7, size=3)
    >>> places = relative_kinds(grid, pixel_positions(5, 7), radius=1)
    >>> out = attention_from_conv2d(conv)(image.flatten(1).T, grid, places)
    >>> torch.allclose(out.T.view(8, 5, 7), conv(image), atol=1e-5)
    True

    Args:
        conv: odd kernel, stride 1, padded with zeros to the size of the image, one group.
        normalizer: ``"softmax"`` or ``"relu"``; both give the same layer.
        backend: see :func:`graphattn.masked_attention`.

    Returns:
        A layer of pixels as rows, with weights of its own in the dtype and on the device of ``conv``. The places that
        it takes as ``edge_attr`` are those of :func:`graphattn.featurize.positions.relative_kinds`, with half the
        kernel, rounded down, as radius.

    Raises:
        SettingError: ``conv`` is a convolution of another kind, or the normalizer is neither; the message names the
            setting.

    Source: Cordonnier et al. 2020, arXiv:1911.03584, theorem 1. Their score, quadratic in the distance to the place of
    the head, comes to this one as it grows, but for the rim, where it looks at the nearest pixel of the image.
    """
    _check_same_size(conv)
    places, channels = math.prod(conv.kernel_size), conv.in_channels
    layer = ConvolutionAttention(
        channels, conv.out_channels, places, bias=conv.bias is not None, normalizer=normalizer, backend=backend
    ).to(conv.weight)
    attention, own = layer.attention.requires_grad_(requires_grad=False), torch.eye(places, dtype=torch.bool)
    assert attention.query is not None
    assert attention.key is not None
    assert attention.edge_score is not None
    at_own, elsewhere = (0.0, -math.inf) if normalizer == "softmax" else (1.0, 0.0)
    with torch.no_grad():
        attention.query.weight.zero_()
        attention.key.weight.zero_()
        attention.edge_score.weight.copy_(torch.where(own, at_own, elsewhere))
        attention.value.weight.copy_(torch.eye(channels).repeat(places, 1))
        layer.merge.weight.copy_(conv.weight.permute(0, 2, 3, 1).flatten(1))
        if conv.bias is not None:
            layer.merge.bias.copy_(conv.bias)
    return layer


def _check_same_size(conv: nn.Conv2d) -> None:
    """Refuse a convolution that gives an image of another size, or mixes pixels in another way than one kernel."""
    if not isinstance(conv, nn.Conv2d):
        raise SettingError(f"a torch.nn.Conv2d is wanted, got {type(conv).__name__}.")
    rows, columns = conv.kernel_size
    if not rows % 2 or not columns % 2:
        raise SettingError(f"kernel_size must be odd, so that a pixel is its middle; got {conv.kernel_size}.")
    same = (rows // 2, columns // 2)
    wanted = {"stride": (1, 1), "dilation": (1, 1), "groups": 1, "padding_mode": "zeros"}
    for name, value in wanted.items():
        if getattr(conv, name) != value:
            raise SettingError(f"{name} must be {value!r}, got {getattr(conv, name)!r}; no head per place equals that.")
    if conv.padding not in (same, "same"):
        raise SettingError(f"padding must be {same} or 'same', so that the image keeps its size; got {conv.padding!r}.")
