"""Walks home and hops between nodes: by hand, by definition, by networkx; alone, in a batch and in blocks of rows."""

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from random_graphs import adjacencies, as_networkx, renumbered, undirected

from graphattn.adjacency import Adjacency
from graphattn.errors import GraphError, SettingError
from graphattn.featurize import graph_matrix, graph_positions
from graphattn.featurize.graph_positions import hop_distance, random_walk

BATCHES = st.lists(adjacencies(), min_size=1, max_size=4)


def in_small_pieces(patch: pytest.MonkeyPatch, *, worth_dense: float = 0.5) -> None:
    """Every component as one that is too large for a dense matrix, its rows in blocks of a few."""
    patch.setattr(graph_matrix, "DENSE_ENTRIES", 0)
    patch.setattr(graph_matrix, "BLOCK_ENTRIES", 5)
    patch.setattr(graph_positions, "WORTH_DENSE", worth_dense)


def walk_by_definition(adjacency: Adjacency, steps: int) -> torch.Tensor:
    size = adjacency.num_receivers
    counts = torch.zeros(size, size, dtype=torch.float64)
    for sender, receiver in adjacency.edge_index().T.tolist():
        counts[sender, receiver] += 1
    step = counts / counts.sum(1, keepdim=True).clamp(min=1)
    powers = [torch.linalg.matrix_power(step, number).diagonal() for number in range(1, steps + 1)]
    return torch.stack(powers, -1).float()


def hops_by_networkx(adjacency: Adjacency, pairs: Adjacency, farthest: int) -> list[int]:
    lengths = dict(nx.all_pairs_shortest_path_length(as_networkx(adjacency)))
    ends = pairs.edge_index()[:, : pairs.num_edges].T.tolist()
    return [
        min(lengths[sender].get(receiver, np.inf), farthest) if receiver in lengths[sender] else farthest + 1
        for sender, receiver in ends
    ]


def test_walks_on_benzene():
    home = random_walk(undirected(nx.cycle_graph(6)), 6)
    torch.testing.assert_close(home, torch.tensor([0, 1 / 2, 0, 3 / 8, 0, 11 / 32]).expand(6, 6))
    assert bool((home[:, ::2] == 0).all())


def test_walks_on_a_path_and_a_star():
    torch.testing.assert_close(random_walk(undirected(nx.path_graph(3)), 2), torch.tensor([[0, 0.5], [0, 1], [0, 0.5]]))
    star = random_walk(undirected(nx.star_graph(4)), 4)
    assert star[0].tolist() == [0, 1, 0, 1]
    torch.testing.assert_close(star[1:], torch.tensor([0, 0.25, 0, 0.25]).expand(4, 4))


def test_a_walk_goes_from_sender_to_receiver():
    ring = Adjacency.from_edge_index(torch.tensor([[0, 1, 2, 2], [1, 2, 0, 3]]), 4)
    assert random_walk(ring, 4).tolist() == [[0, 0, 0.5, 0]] * 3 + [[0, 0, 0, 0]]


def test_self_loops_and_parallel_edges_are_edges_like_any_other():
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 0, 0, 1], [0, 1, 1, 0]]), 2)
    torch.testing.assert_close(random_walk(adjacency, 2), torch.tensor([[1 / 3, 1 / 9 + 2 / 3], [0, 2 / 3]]))
    lonely = Adjacency.from_edge_index(torch.empty(2, 0, dtype=torch.long), 1)
    assert random_walk(lonely, 2).tolist() == [[0, 0]]
    assert random_walk(lonely.with_self_loops(), 2).tolist() == [[1, 1]]


@given(adjacencies(), st.integers(1, 7), st.booleans())
@settings(max_examples=80, deadline=None)
def test_walks_by_definition(adjacency, steps, in_pieces):
    with pytest.MonkeyPatch.context() as patch:
        if in_pieces:
            in_small_pieces(patch)
        torch.testing.assert_close(random_walk(adjacency, steps), walk_by_definition(adjacency, steps))


@pytest.mark.parametrize("worth_dense", [0, 0.2, 1], ids=["dense at once", "dense when full", "sparse"])
@pytest.mark.parametrize("directed", [False, True])
def test_walks_of_a_large_graph_are_those_of_dense_matrices(monkeypatch, worth_dense, directed):
    graph = nx.gnm_random_graph(40, 90, seed=1, directed=directed)
    adjacency = Adjacency.from_edge_index(torch.tensor(list(graph.edges)).T, 40) if directed else undirected(graph)
    wanted = random_walk(adjacency, 9)
    in_small_pieces(monkeypatch, worth_dense=worth_dense)
    monkeypatch.setattr(graph_matrix, "BLOCK_ENTRIES", 300)
    torch.testing.assert_close(random_walk(adjacency, 9), wanted)


@given(BATCHES, st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_a_batch_walks_like_its_graphs_alone(graphs, steps):
    alone = torch.cat([random_walk(graph, steps) for graph in graphs])
    assert torch.equal(random_walk(Adjacency.batch(graphs), steps), alone)


@given(adjacencies(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_renumbering_nodes_renumbers_walks(adjacency, random):
    order = torch.tensor(random.sample(range(adjacency.num_receivers), adjacency.num_receivers), dtype=torch.long)
    torch.testing.assert_close(random_walk(renumbered(adjacency, order), 4), random_walk(adjacency, 4)[order])


def test_walks_come_in_the_default_dtype():
    ring = undirected(nx.cycle_graph(5))
    assert random_walk(ring, 3).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert random_walk(ring, 3).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_walks_refuse_in_words():
    with pytest.raises(SettingError, match="steps must be at least 1, got 0"):
        random_walk(Adjacency.complete(3), 0)
    with pytest.raises(GraphError, match=r"need senders and receivers to be one set; got Adjacency\(2 receivers, 3 s"):
        random_walk(Adjacency.cross(2, 3), 2)
    two_sets_of_one_size = Adjacency.cross(ptr=torch.tensor([0, 1, 3]), sender_ptr=torch.tensor([0, 2, 3]))
    with pytest.raises(GraphError, match="need senders and receivers to be one set"):
        random_walk(two_sets_of_one_size, 2)


def test_hops_on_a_ring_and_beyond_the_farthest():
    ring = undirected(nx.cycle_graph(8))
    every_pair = Adjacency.complete(8)
    assert hop_distance(ring, every_pair, 9).view(8, 8)[0].tolist() == [0, 1, 2, 3, 4, 3, 2, 1]
    assert hop_distance(ring, every_pair, 2).view(8, 8)[0].tolist() == [0, 1, 2, 2, 2, 2, 2, 1]
    assert hop_distance(ring, every_pair, 0).tolist() == [0] * 64


def test_hops_without_a_way():
    two = undirected(nx.disjoint_union(nx.path_graph(3), nx.path_graph(1)))
    assert hop_distance(two, Adjacency.complete(4), 1).view(4, 4).tolist() == [
        [0, 1, 1, 2],
        [1, 0, 1, 2],
        [1, 1, 0, 2],
        [2, 2, 2, 0],
    ]


def test_hops_lead_from_sender_to_receiver():
    one_way = Adjacency.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    there_and_back = Adjacency.from_edge_index(torch.tensor([[0, 3, 1], [3, 0, 1]]), 4)
    assert hop_distance(one_way, there_and_back, 9).tolist() == [3, 10, 0]
    assert hop_distance(one_way, there_and_back, 2).tolist() == [2, 3, 0]


@given(adjacencies(), st.integers(0, 6), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=100, deadline=None)
def test_hops_by_networkx(adjacency, farthest, random, in_pieces):
    size = adjacency.num_receivers
    ends = [[random.randrange(size), random.randrange(size)] for _ in range(12 if size else 0)]
    pairs = Adjacency.from_edge_index(torch.tensor(ends, dtype=torch.long).reshape(-1, 2).T, size)
    with pytest.MonkeyPatch.context() as patch:
        if in_pieces:
            in_small_pieces(patch)
        hops = hop_distance(adjacency, pairs, farthest)
    assert hops.tolist() == hops_by_networkx(adjacency, pairs, farthest)
    assert hops.dtype == torch.int64
    assert torch.equal(hop_distance(adjacency, pairs.with_self_loops(), farthest), hops)


@given(BATCHES, st.integers(0, 6))
@settings(max_examples=40, deadline=None)
def test_hops_of_a_batch_are_those_of_its_graphs_alone(graphs, farthest):
    alone = torch.cat([hop_distance(graph, Adjacency.complete(graph.num_receivers), farthest) for graph in graphs])
    batch = Adjacency.batch(graphs)
    assert torch.equal(hop_distance(batch, Adjacency.complete(ptr=batch.ptr), farthest), alone)


def test_hops_agree_with_k_hop():
    graph = undirected(nx.gnm_random_graph(30, 40, seed=0))
    hops = hop_distance(graph, graph.k_hop(3), 3)
    assert sorted(hops.unique().tolist()) == [0, 1, 2, 3]
    every_pair = hop_distance(graph, Adjacency.complete(30), 29)
    assert int((every_pair <= 3).sum()) == len(hops)


def test_hops_refuse_in_words():
    graph = Adjacency.complete(3)
    with pytest.raises(SettingError, match="farthest must be at least 0, got -1"):
        hop_distance(graph, graph, -1)
    with pytest.raises(
        GraphError, match=r"pairs must be about the nodes and graphs of the adjacency, .*3 r.*; got .*4"
    ):
        hop_distance(graph, Adjacency.complete(4), 2)
    with pytest.raises(GraphError, match=r"pairs must be about .*got Adjacency\(3 receivers.* 2 graphs\)"):
        hop_distance(graph, Adjacency.complete(ptr=torch.tensor([0, 1, 3])), 2)
    with pytest.raises(GraphError, match="need senders and receivers to be one set"):
        hop_distance(Adjacency.cross(2, 3), graph, 2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_results_lie_where_the_adjacency_lies():
    ring = undirected(nx.cycle_graph(5)).to("cuda")
    assert random_walk(ring, 2).device.type == hop_distance(ring, ring, 2).device.type == "cuda"
