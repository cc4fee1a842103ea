"""Why positions: without them attention gives a vector the same output wherever it stands; with each kind it cannot."""

import pytest
import torch

import graphattn as ga
from graphattn.adjacency import Adjacency
from graphattn.featurize.graph_positions import hop_distance, random_walk
from graphattn.featurize.laplacian import SignInvariant, laplacian
from graphattn.featurize.positions import LearnedPositions, pixel_positions, relative_kinds, sinusoidal

NODES, CHANNELS = 6, 8
# A chain that ends in a triangle, two of whose nodes stand alike; the others do not.
ENDS = torch.tensor([[0, 1, 2, 3, 3, 4], [1, 2, 3, 4, 5, 5]])
GRAPH = Adjacency.from_edge_index(torch.cat([ENDS, ENDS.flip(0)], 1), NODES)
EVERY_PAIR = Adjacency.complete(NODES)


def projected(columns: torch.Tensor) -> torch.Tensor:
    return columns @ torch.randn(columns.shape[1], CHANNELS)


ADDED = {
    "sinusoidal": lambda: sinusoidal(torch.arange(NODES), CHANNELS),
    "sinusoidal, of an image": lambda: sinusoidal(pixel_positions(2, 3), CHANNELS),
    "learned": lambda: LearnedPositions(NODES, CHANNELS)(torch.arange(NODES)),
    "learned, of an image": lambda: LearnedPositions((2, 3), CHANNELS)(pixel_positions(2, 3)),
    "random walk": lambda: projected(random_walk(GRAPH, 4)),
    "laplacian": lambda: projected(laplacian(GRAPH, 3)),
    "laplacian, any sign": lambda: SignInvariant(3, CHANNELS)(laplacian(GRAPH, 3)),
}
KINDS = {
    "relative": lambda: relative_kinds(EVERY_PAIR, torch.arange(NODES), radius=2),
    "relative, of an image": lambda: relative_kinds(EVERY_PAIR, pixel_positions(2, 3), radius=1),
    "hops": lambda: hop_distance(GRAPH, EVERY_PAIR, farthest=7),
}


@pytest.fixture(autouse=True)
def in_double():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


def same_vectors(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether each row of either is a row of the other."""
    equal = torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist") < 1e-9
    return bool(equal.any(0).all() and equal.any(1).all())


def test_without_positions_the_output_is_a_permutation_of_the_same_vectors():
    layer, x, order = (
        ga.GraphAttention(CHANNELS, CHANNELS, heads=2),
        torch.randn(NODES, CHANNELS),
        torch.randperm(NODES),
    )
    out, moved = layer(x, EVERY_PAIR), layer(x[order], EVERY_PAIR)
    torch.testing.assert_close(moved, out[order], rtol=1e-12, atol=1e-12)
    assert same_vectors(moved, out)
    assert not same_vectors(layer(2 * x, EVERY_PAIR), out)


@pytest.mark.parametrize("made", ADDED.values(), ids=ADDED)
def test_with_positions_added_it_is_not(made):
    layer, x, positions = ga.GraphAttention(CHANNELS, CHANNELS, heads=2), torch.randn(NODES, CHANNELS), made()
    order = torch.randperm(NODES)
    assert positions.shape == (NODES, CHANNELS)
    out, moved = layer(x + positions, EVERY_PAIR), layer(x[order] + positions, EVERY_PAIR)
    assert not same_vectors(moved, out)
    together = layer((x + positions)[order], EVERY_PAIR)  # a vector that takes its position along changes nothing
    torch.testing.assert_close(together, out[order], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("made", KINDS.values(), ids=KINDS)
def test_with_a_bias_by_position_it_is_not(made):
    kinds = made()
    layer = ga.GraphAttention(CHANNELS, CHANNELS, heads=2, edge_types=int(kinds.max()) + 1, edge_into=("score",))
    x, order = torch.randn(NODES, CHANNELS), torch.randperm(NODES)
    out, moved = layer(x, EVERY_PAIR, kinds), layer(x[order], EVERY_PAIR, kinds)
    assert not same_vectors(moved, out)
    alike = layer(x[order], EVERY_PAIR, kinds.view(NODES, NODES)[order][:, order].flatten())
    torch.testing.assert_close(alike, out[order], rtol=1e-12, atol=1e-12)


def test_the_kinds_of_hops_serve_masked_attention_as_they_are():
    kinds = hop_distance(GRAPH, EVERY_PAIR, farthest=2)
    vectors, table = torch.randn(NODES, 1, CHANNELS), torch.full((4, 1), -torch.inf)
    table[0] = 0  # only at no distance: each sees itself
    out = ga.masked_attention(vectors, vectors, vectors, EVERY_PAIR, bias=ga.ByType(table, kinds))
    torch.testing.assert_close(out, vectors)
