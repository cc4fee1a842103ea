"""Where a vector stands in its sequence or image, as numbers that attention can use: without them it cannot know.

Sizes: ``N`` vectors of all sets, ``P`` coordinates of a position (1 in a sequence; row and column in an image), ``E``
the caller's edges. For places in a graph see :mod:`graphattn.featurize.graph_positions`.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphattn.adjacency import Adjacency
from graphattn.checks import whole_number
from graphattn.csr import bounds_of, described, holds_integers
from graphattn.errors import SettingError, ShapeError

_MOST_KINDS = 2**31 - 1  # more than any table has room for


def positions_in_sets(ptr: Tensor) -> Tensor:
    """The place of each vector in its own set, counted from 0.

    >>> positions_in_sets(torch.tensor([0, 3, 3, 5]))
    tensor([0, 1, 2, 0, 1])

    Args:
        ptr: (G + 1,) boundaries of the sets: PyG's ``batch.ptr``, or ``adjacency.ptr``.

    Returns:
        (N,) int64.

    Raises:
        GraphError: ``ptr`` does not begin at 0, or falls.
    """
    bounds = bounds_of(None, ptr, "num_nodes", "ptr")
    first = bounds[:-1].repeat_interleave(bounds.diff())
    return torch.arange(len(first), device=ptr.device) - first


def pixel_positions(height: int, width: int) -> Tensor:
    """Row and column of each pixel in reading order, the order of :meth:`graphattn.Adjacency.grid`.

    >>> pixel_positions(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]

    Returns:
        (height * width, 2) int64.

    Raises:
        SettingError: ``height`` or ``width`` is below 0.
    """
    height, width = (whole_number(*side, at_least=0) for side in (("height", height), ("width", width)))
    return torch.cartesian_prod(torch.arange(height), torch.arange(width))


def sinusoidal(position: Tensor, channels: int, *, base: float = 10_000.0) -> Tensor:
    """Sines and cosines of the position, from wavelength 2 pi in the first two channels up to almost 2 pi ``base``.

    Channel 2i is ``sin(position / base ** (2i / channels))``, channel 2i + 1 the cosine of the same angle. Of
    several coordinates, each gets such waves in its share of the channels, side by side.

    >>> sinusoidal(torch.tensor([0, 1]), channels=2)
    tensor([[0.0000, 1.0000],
            [0.8415, 0.5403]])

    Args:
        position: (N,) or (N, P) numbers, whole or not: places, rows and columns, seconds.
        channels: a multiple of 2 P: every coordinate gets pairs of a sine and a cosine.
        base: above 0; sets how slow the slowest wave is.

    Returns:
        (N, channels), in [-1, 1]; in the dtype of floating-point positions, else in PyTorch's default.

    Raises:
        ShapeError: ``position`` holds no numbers or has another shape.
        SettingError: ``channels`` or ``base`` is out of its range.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
    """
    coordinates = _coordinates(position, "position")
    parts = 2 * coordinates.shape[1]
    channels = whole_number("channels", channels, at_least=1)
    if channels % parts:
        raise SettingError(
            f"channels must be a multiple of {parts}, a sine and a cosine for each of {parts // 2} coordinates; "
            f"got {channels}."
        )
    if not 0 < base < math.inf:
        raise SettingError(f"base must be a number above 0, got {base}.")
    pairs = channels // parts
    rate = base ** -(torch.arange(pairs, device=position.device, dtype=torch.float64) / pairs)
    angle = coordinates.double()[..., None] * rate  # (N, P, pairs); float32 is too coarse from some 10,000 on
    waves = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
    return waves.to(position.dtype if position.is_floating_point() else torch.get_default_dtype())


class LearnedPositions(nn.Module):
    """A learned vector per place; with several coordinates, the sum of one per coordinate.

    >>> LearnedPositions(longest=(8, 8), channels=16)(pixel_positions(8, 8)).shape
    torch.Size([64, 16])

    Args:
        longest: the most places that there can be; of several coordinates one number each, such as (height, width).
        channels: width of the vectors.

    Raises:
        SettingError: a number is below 1, or there is no coordinate.

    Source: Gehring et al. 2017, arXiv:1705.03122, section 3.1.
    """

    offsets: Tensor

    def __init__(self, longest: int | Sequence[int], channels: int) -> None:
        super().__init__()
        places = tuple(longest) if isinstance(longest, Sequence) else (longest,)
        if not places:
            raise SettingError("longest must be a number, or one per coordinate; got none.")
        self.longest = tuple(whole_number("longest", each, at_least=1) for each in places)
        self.table = nn.Parameter(torch.empty(sum(self.longest), whole_number("channels", channels, at_least=1)))
        self.register_buffer("offsets", torch.tensor([0, *accumulate(self.longest)])[:-1], persistent=False)
        nn.init.normal_(self.table, std=len(self.longest) ** -0.5)  # the sum then has unit variance

    def forward(self, position: Tensor) -> Tensor:
        """(N,) or (N, P) integers from 0 -> (N, channels).

        Raises:
            ShapeError: ``position`` holds no integers, has not P coordinates, or names a place that has no vector.
        """
        places = _whole_coordinates(position, "position")
        if places.shape[1] != len(self.longest):
            raise ShapeError(
                f"position has {places.shape[1]} coordinates, but these vectors were made for {len(self.longest)}."
            )
        outside = (places < 0) | (places >= self.offsets.new_tensor(self.longest))
        if bool(outside.any()):
            row, column = outside.nonzero()[0].tolist()
            raise ShapeError(
                f"position {int(places[row, column])} of vector {row}, coordinate {column}, is not among the "
                f"{self.longest[column]} places from 0 that have a vector; make longest larger, or cut the set."
            )
        return functional.embedding_bag(places + self.offsets, self.table, mode="sum")

    def extra_repr(self) -> str:
        """Places and width."""
        return f"{self.longest}, {self.table.shape[1]}"


def relative_kinds(
    adjacency: Adjacency, position: Tensor | tuple[Tensor, Tensor], radius: int | Sequence[int]
) -> Tensor:
    """Where the sender of each edge stands from its receiver, as a kind of edge.

    The offset is the sender's position minus the receiver's, clipped to -radius..radius in each coordinate. Kinds count
    offsets from the lowest, the last coordinate fastest. With one number per kind added to the score, attention knows
    relative positions. In an image, kinds are the places of a convolution kernel of 2 radius + 1 pixels a side, in
    reading order: kind 0 is the neighbor above on the left, where ``Conv2d.weight[..., 0, 0]`` looks.

    >>> relative_kinds(Adjacency.complete(3), torch.arange(3), radius=1).view(3, 3)  # a row per receiver
    tensor([[1, 2, 2],
            [0, 1, 2],
            [0, 0, 1]])

    Args:
        adjacency: E edges. Windows, grids and complete ones hold each node's pair with itself as an edge, offset 0;
            self loops that ``with_self_loops()`` added are no edges, and have no kind.
        position: (N,) or (N, P) integers; a pair (of senders, of receivers) where those are two sets.
        radius: at least 0; or one number per coordinate.

    Returns:
        (E,) int64 in the caller's order of edges, in [0, (2 radius + 1) ** P): the ``edge_types`` of a layer.

    Raises:
        ShapeError: positions are no integers, not one per node, or of different numbers of coordinates.
        SettingError: ``radius`` is below 0, has not one number per coordinate, or makes more than 2^31 - 1 kinds.

    Source: Shaw et al. 2018, arXiv:1803.02155, section 3.2.
    """
    of_senders, of_receivers = position if isinstance(position, tuple) else (position, position)
    seen = _whole_coordinates(of_senders, "position of senders", adjacency.num_senders)
    seer = _whole_coordinates(of_receivers, "position of receivers", adjacency.num_receivers)
    coordinates = seen.shape[1]
    if seer.shape[1] != coordinates:
        raise ShapeError(
            f"positions of senders have {coordinates} coordinates, but those of receivers {seer.shape[1]}."
        )
    given = tuple(radius) if isinstance(radius, Sequence) else (radius,) * coordinates
    reaches = [whole_number("radius", each, at_least=0) for each in given]
    if len(reaches) != coordinates:
        raise SettingError(f"radius has {len(reaches)} numbers for {coordinates} coordinates; give one for each.")
    if math.prod(2 * most + 1 for most in reaches) > _MOST_KINDS:
        raise SettingError(
            f"radius {tuple(reaches)} makes more than {_MOST_KINDS:,} kinds of edge; take a smaller one."
        )
    sender, receiver = adjacency.edge_index()[:, : adjacency.num_edges]  # added self loops come last
    kind = torch.zeros_like(sender)
    for offset, most in zip((seen[sender] - seer[receiver]).T, reaches, strict=True):
        kind = kind * (2 * most + 1) + offset.clamp(-most, most) + most
    return kind


def _coordinates(position: Tensor, name: str) -> Tensor:
    """(N, P): a column per coordinate; (N,) has one."""
    columns = position[:, None] if position.ndim == 1 else position
    if columns.ndim != 2 or columns.shape[1] < 1 or columns.is_complex() or columns.dtype == torch.bool:
        raise ShapeError(f"{name} must hold numbers of shape (N,) or (N, coordinates); got {described(position)}.")
    return columns


def _whole_coordinates(position: Tensor, name: str, rows: int | None = None) -> Tensor:
    """The same of integers, for ``rows`` nodes."""
    if not holds_integers(position):
        raise ShapeError(f"{name} must hold integers; got {described(position)}.")
    columns = _coordinates(position, name)
    if rows is not None and len(columns) != rows:
        raise ShapeError(
            f"{name} has {len(columns)} rows, but the adjacency has {rows} of them; pass one row per node."
        )
    return columns.long()
