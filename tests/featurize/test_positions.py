"""Places in sequences and images: values by hand, a convolution as an outside check, and every refusal in words."""

import math

import pytest
import torch
from torch import nn

from graphattn.adjacency import Adjacency
from graphattn.errors import GraphError, SettingError, ShapeError
from graphattn.featurize.positions import (
    LearnedPositions,
    pixel_positions,
    positions_in_sets,
    relative_kinds,
    sinusoidal,
)


def test_positions_in_sets_begin_again_in_each_set():
    ptr = torch.tensor([0, 2, 2, 6, 7])
    assert positions_in_sets(ptr).tolist() == [0, 1, 0, 1, 2, 3, 0]
    assert positions_in_sets(torch.tensor([0])).tolist() == []
    assert positions_in_sets(Adjacency.complete(3).ptr).tolist() == [0, 1, 2]


def test_positions_in_sets_refuse_what_bounds_nothing():
    with pytest.raises(GraphError, match=r"ptr must rise from 0 to the 2 nodes and never fall; got \[0, 3, 2\]"):
        positions_in_sets(torch.tensor([0, 3, 2]))


def test_pixels_are_counted_as_the_grid_counts_them():
    positions = pixel_positions(3, 4)
    assert positions.shape == (12, 2)
    assert positions.dtype == torch.int64
    assert positions[7].tolist() == [1, 3]
    grid = Adjacency.grid(3, 4)
    apart = (positions[grid.sender] - positions[grid.receiver]).abs()
    assert int(apart.max()) == 1
    assert pixel_positions(0, 4).shape == (0, 2)


def test_pixel_positions_refuse_a_negative_side():
    with pytest.raises(SettingError, match="width must be at least 0, got -1"):
        pixel_positions(2, -1)


def test_sinusoidal_is_the_formula():
    place, channels = 12_345.678, 6
    by_hand = [
        wave(place / 10_000 ** (2 * pair / channels)) for pair in range(channels // 2) for wave in (math.sin, math.cos)
    ]
    assert sinusoidal(torch.tensor([place], dtype=torch.float64), channels)[0].tolist() == pytest.approx(by_hand)
    assert sinusoidal(torch.tensor([0]), 4).tolist() == [[0, 1, 0, 1]]


def test_sinusoidal_turns_by_the_distance_wherever_it_starts():
    """What makes it useful: the product of two depends on nothing but how far apart they are."""
    waves = sinusoidal(torch.arange(50, dtype=torch.float64), 16)
    products = waves @ waves.T
    torch.testing.assert_close(products[0, :20], products[30, 30:])


def test_two_coordinates_stand_side_by_side():
    positions = pixel_positions(3, 5)
    both = sinusoidal(positions, 12)
    assert torch.equal(both, torch.cat([sinusoidal(positions[:, 0], 6), sinusoidal(positions[:, 1], 6)], 1))


def test_sinusoidal_is_exact_far_out():
    """Ten minutes of speech are 60,000 frames; angles computed in float32 would be off in the third decimal."""
    assert float(sinusoidal(torch.tensor([59_999]), 4)[0, 2]) == pytest.approx(math.sin(59_999 / 100), abs=1e-7)


def test_sinusoidal_takes_another_base():
    waves = sinusoidal(torch.tensor([3.0]), 4, base=100.0)
    assert waves[0, 2:].tolist() == pytest.approx([math.sin(0.3), math.cos(0.3)])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_sinusoidal_keeps_the_dtype_of_floats(dtype):
    assert sinusoidal(torch.tensor([0.5, 1.5], dtype=dtype), 4).dtype == dtype
    assert sinusoidal(torch.tensor([1, 2], dtype=torch.int32), 4).dtype == torch.get_default_dtype()


@pytest.mark.parametrize(
    ("position", "channels", "base", "error", "words"),
    [
        (torch.arange(3), 5, 10.0, SettingError, "multiple of 2, a sine and a cosine for each of 1 coordinates; got 5"),
        (pixel_positions(2, 2), 6, 10.0, SettingError, "multiple of 4, .* each of 2 coordinates; got 6"),
        (torch.arange(3), 0, 10.0, SettingError, "channels must be at least 1, got 0"),
        (torch.arange(3), 4, 0.0, SettingError, "base must be a number above 0, got 0.0"),
        (torch.arange(3), 4, math.nan, SettingError, "base must be a number above 0, got nan"),
        (torch.ones(3, dtype=torch.bool), 4, 10.0, ShapeError, r"position must hold numbers .* got bool of shape \(3,"),
        (torch.zeros(2, 2, 2), 4, 10.0, ShapeError, r"numbers of shape \(N,\) or \(N, coordinates\); got float32 of"),
        (torch.zeros(2, 0), 4, 10.0, ShapeError, r"got float32 of shape \(2, 0\)"),
    ],
)
def test_sinusoidal_refuses(position, channels, base, error, words):
    with pytest.raises(error, match=words):
        sinusoidal(position, channels, base=base)


def test_learned_positions_are_a_table():
    torch.manual_seed(0)
    module = LearnedPositions(longest=10, channels=4)
    out = module(torch.tensor([3, 9, 3], dtype=torch.int32))
    assert torch.equal(out, module.table[[3, 9, 3]])
    out.sum().backward()
    assert module.table.grad.sum(1).nonzero().flatten().tolist() == [3, 9]
    assert [name for name, _ in module.named_parameters()] == list(module.state_dict()) == ["table"]


def test_learned_positions_of_two_coordinates_are_summed():
    torch.manual_seed(0)
    module = LearnedPositions(longest=(2, 3), channels=4)
    rows, columns = module.table[:2], module.table[2:]
    torch.testing.assert_close(module(pixel_positions(2, 3)).view(2, 3, 4), rows[:, None] + columns)


def test_learned_positions_begin_with_unit_variance():
    torch.manual_seed(0)
    vectors = LearnedPositions((40, 40), 64)(pixel_positions(40, 40)).detach()
    assert float(vectors.std()) == pytest.approx(1, abs=0.05)


def test_learned_positions_follow_dtype_and_say_what_they_are():
    module = LearnedPositions((2, 3), 4).double()
    assert module(pixel_positions(2, 3)).dtype == torch.float64
    assert repr(module) == "LearnedPositions((2, 3), 4)"
    assert module(torch.empty(0, 2, dtype=torch.long)).shape == (0, 4)


@pytest.mark.parametrize(
    ("position", "words"),
    [
        (torch.tensor([[0, 0], [1, 3]]), "position 3 of vector 1, coordinate 1, is not among the 3 places from 0"),
        (torch.tensor([[-1, 0]]), "position -1 of vector 0, coordinate 0, is not among the 2 places"),
        (torch.tensor([0, 1]), "position has 1 coordinates, but these vectors were made for 2"),
        (torch.zeros(2, 2), r"position must hold integers; got float32 of shape \(2, 2\)"),
        (
            torch.zeros(2, 2, 2, dtype=torch.long),
            r"position must hold numbers of shape \(N,\) or .* got int64 of shape",
        ),
    ],
)
def test_learned_positions_refuse(position, words):
    with pytest.raises(ShapeError, match=words):
        LearnedPositions((2, 3), 4)(position)


@pytest.mark.parametrize(
    ("longest", "channels", "words"),
    [
        (0, 4, "longest must be at least 1, got 0"),
        ((3, 2.5), 4, "longest must be a whole number, got 2.5"),
        ((), 4, "longest must be a number, or one per coordinate; got none"),
        (3, 0, "channels must be at least 1, got 0"),
    ],
)
def test_learned_positions_cannot_be_made_of(longest, channels, words):
    with pytest.raises(SettingError, match=words):
        LearnedPositions(longest, channels)


def test_relative_kinds_of_a_sequence_are_clipped():
    kinds = relative_kinds(Adjacency.complete(5), torch.arange(5), radius=2).view(5, 5)
    assert kinds[0].tolist() == [2, 3, 4, 4, 4]
    assert kinds[4].tolist() == [0, 0, 0, 1, 2]
    assert kinds.dtype == torch.int64
    assert relative_kinds(Adjacency.complete(3), torch.arange(3), radius=0).tolist() == [0] * 9


def test_relative_kinds_keep_the_order_of_the_caller():
    edge_index = torch.tensor([[2, 0, 1, 0], [0, 2, 0, 0]])
    adjacency = Adjacency.from_edge_index(edge_index, 3)
    assert relative_kinds(adjacency, torch.arange(3), radius=2).tolist() == [4, 0, 3, 2]
    assert relative_kinds(adjacency.with_self_loops(), torch.arange(3), radius=2).tolist() == [4, 0, 3, 2]


def test_relative_kinds_do_not_wrap_around_in_small_dtypes():
    assert relative_kinds(Adjacency.complete(2), torch.tensor([0, 9], dtype=torch.uint8), radius=9).tolist() == [
        9,
        18,
        0,
        9,
    ]


def test_relative_kinds_between_two_sets():
    """The last position of a sequence that is being written looks at all that were written before."""
    kinds = relative_kinds(Adjacency.cross(1, 4), (torch.arange(4), torch.tensor([3])), radius=2)
    assert kinds.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (3, 5), (1, 3)])
def test_kinds_of_a_grid_are_the_places_of_a_convolution_kernel(kernel):
    height, width = 6, 7
    convolution = nn.Conv2d(1, 1, kernel, padding=(kernel[0] // 2, kernel[1] // 2), bias=False, dtype=torch.float64)
    image = torch.randn(height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    grid = Adjacency.grid(height, width, size=kernel)
    kinds = relative_kinds(grid, pixel_positions(height, width), radius=(kernel[0] // 2, kernel[1] // 2))
    sender, receiver = grid.edge_index()
    seen = convolution.weight.flatten()[kinds] * image.flatten()[sender]
    out = torch.zeros(height * width, dtype=torch.float64).index_add(0, receiver, seen)
    torch.testing.assert_close(out.view(height, width), convolution(image[None, None])[0, 0])
    assert kinds.unique().tolist() == list(range(kernel[0] * kernel[1]))


def test_kind_0_is_the_neighbor_above_on_the_left():
    grid = Adjacency.grid(3, 3)
    kinds = relative_kinds(grid, pixel_positions(3, 3), radius=1)
    senders, edges = grid.row(4)
    assert senders[kinds[edges] == 0].tolist() == [0]


@pytest.mark.parametrize(
    ("position", "radius", "error", "words"),
    [
        (torch.arange(4), 1, ShapeError, "position of senders has 4 rows, but the adjacency has 3"),
        (torch.ones(3), 1, ShapeError, r"position of senders must hold integers; got float32 of shape \(3,\)"),
        (
            (torch.arange(3), torch.zeros(3, 2, dtype=torch.long)),
            1,
            ShapeError,
            "senders have 1 coordinates, but those of receivers 2",
        ),
        (
            (torch.arange(3), torch.arange(2)),
            1,
            ShapeError,
            "position of receivers has 2 rows, but the adjacency has 3",
        ),
        (torch.arange(3), -1, SettingError, "radius must be at least 0, got -1"),
        (torch.zeros(3, 2).long(), 2**40, SettingError, "makes more than 2,147,483,647 kinds of edge"),
        (torch.arange(3), (1, 2), SettingError, "radius has 2 numbers for 1 coordinates; give one for each"),
    ],
)
def test_relative_kinds_refuse(position, radius, error, words):
    with pytest.raises(error, match=words):
        relative_kinds(Adjacency.complete(3), position, radius)
