"""The record of who may attend to whom, and its constructors."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from graphattn.adjacency import Adjacency, as_adjacency
from graphattn.attention.attend import masked_attention
from graphattn.errors import GraphError, SettingError, ShapeError


def pairs(adjacency: Adjacency) -> list[tuple[int, int]]:
    """(receiver, sender) of every entry, sorted."""
    return sorted(zip(adjacency.receiver.tolist(), adjacency.sender.tolist(), strict=True))


def test_rows_keep_the_callers_order_and_know_the_callers_edges():
    edge_index = torch.tensor([[1, 2, 2, 0, 3, 0, 1], [0, 0, 1, 2, 2, 3, 3]])
    adjacency = Adjacency.from_edge_index(edge_index, 4)
    assert adjacency.rowptr.tolist() == [0, 2, 3, 5, 7]
    assert [adjacency.row(node)[0].tolist() for node in range(4)] == [[1, 2], [2], [0, 3], [0, 1]]
    assert adjacency.rowptr.dtype == adjacency.col.dtype == torch.int32
    assert torch.equal(adjacency.edge_index(), edge_index)


@given(st.integers(1, 9), st.data())
@settings(max_examples=50, deadline=None)
def test_edge_index_comes_back_in_the_callers_order(nodes, data):
    ends = st.integers(0, nodes - 1)
    edges = data.draw(st.lists(st.tuples(ends, ends), max_size=20))
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    adjacency = Adjacency.from_edge_index(edge_index, nodes)
    assert torch.equal(adjacency.edge_index(), edge_index)
    looped = adjacency.with_self_loops()
    assert torch.equal(looped.edge_index()[:, : len(edges)], edge_index)
    assert looped.num_entries == len(edges) + nodes - len({a for a, b in edges if a == b})
    assert pairs(looped) == sorted([*pairs(adjacency), *((n, n) for n in range(nodes) if (n, n) not in edges)])
    assert pairs(looped.with_self_loops()) == pairs(looped)
    assert pairs(adjacency.transpose) == sorted((s, r) for r, s in pairs(adjacency))
    assert torch.equal(adjacency.transpose.edge_id, adjacency.edge_id[adjacency.transpose_slots])
    assert adjacency.transpose is adjacency.transpose  # built once and kept


def test_complete_is_every_pair_of_each_graph():
    assert pairs(Adjacency.complete(2)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert pairs(Adjacency.complete(ptr=torch.tensor([0, 1, 1, 3]))) == [(0, 0), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert Adjacency.complete(0).num_entries == 0
    with pytest.raises(ShapeError, match="one of the two"):
        Adjacency.complete()
    with pytest.raises(SettingError, match="at least 0, got -1"):
        Adjacency.complete(-1)


def test_dense_matrix_means_may_attend():
    dense = torch.tensor([[0, 2, 0], [1, 0, 0]])
    adjacency = Adjacency.from_dense(dense)
    assert pairs(adjacency) == [(0, 1), (1, 0)]
    assert (adjacency.num_receivers, adjacency.num_senders) == (2, 3)
    with pytest.raises(ShapeError, match=r"a matrix \(receivers, senders\); got int64 of shape \(3,\)"):
        Adjacency.from_dense(torch.tensor([1, 0, 1]))
    with pytest.raises(GraphError, match=r"may_attend\[0, 1\] is NaN"):
        Adjacency.from_dense(torch.tensor([[0.0, torch.nan]]))


def test_pool_lets_one_seed_per_graph_see_its_nodes():
    adjacency = Adjacency.pool(torch.tensor([0, 2, 2, 3]))
    assert pairs(adjacency) == [(0, 0), (0, 1), (2, 2)]
    assert adjacency.ptr.tolist() == [0, 1, 2, 3]
    with pytest.raises(GraphError, match="ptr must rise from 0"):
        Adjacency.pool(torch.tensor([], dtype=torch.long))


def test_parallel_edges_are_noticed():
    assert Adjacency.from_edge_index(torch.tensor([[0, 0], [1, 1]]), 2).has_parallel_edges
    assert not Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2).has_parallel_edges


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=12), st.booleans())
@settings(deadline=None)
def test_parallel_edges_are_pairs_that_come_twice(edges, ascending):
    edges = sorted(edges) if ascending else edges  # rows in order take a shorter way
    edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).T
    adjacency = Adjacency.from_edge_index(edge_index, num_senders=4, num_receivers=5)
    assert adjacency.has_parallel_edges == (len({*edges}) < len(edges))


def test_moving_keeps_everything():
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2).with_self_loops()
    moved = adjacency.to("cpu")
    assert pairs(moved) == pairs(adjacency)
    assert moved.num_edges == 2


def test_repr_tells_the_sizes():
    assert (
        repr(Adjacency.complete(ptr=torch.tensor([0, 1, 3])))
        == "Adjacency(3 receivers, 3 senders, 5 entries, 2 graphs)"
    )


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (
            {"edge_index": torch.zeros(3, 2, dtype=torch.long)},
            ShapeError,
            r"shape \(2, E\).*got int64 of shape \(3, 2\)",
        ),
        ({"edge_index": torch.zeros(2, 2)}, ShapeError, "must hold integers.*got float32"),
        ({"edge_index": torch.ones(2, 2, dtype=torch.bool)}, ShapeError, "must hold integers.*got bool"),
        (
            {"edge_index": torch.zeros(2, 0, dtype=torch.long), "num_nodes": -1},
            GraphError,
            "there cannot be -1 senders",
        ),
        ({"num_nodes": None}, ShapeError, "give num_nodes, or num_senders and num_receivers"),
        ({"edge_index": torch.tensor([[0, 5], [1, 0]])}, GraphError, "edge 1 names sender 5, but there are 3 senders"),
        ({"edge_index": torch.tensor([[0, 1], [1, -1]])}, GraphError, "edge 1 names receiver -1, but there are 3"),
        ({"ptr": torch.tensor([0, 1, 3])}, GraphError, "edge 0 goes from sender 0 to receiver 1 of another graph"),
        ({"ptr": torch.tensor([0, 4])}, GraphError, "ptr must rise from 0 to the 3 nodes"),
        ({"ptr": torch.tensor([0, 2, 1, 3])}, GraphError, "ptr must rise from 0 to the 3 nodes and never fall"),
        (
            {"ptr": torch.tensor([0, 3]), "sender_ptr": torch.tensor([0, 1, 3])},
            GraphError,
            "ptr bounds 1 graphs but sender_ptr 2",
        ),
    ],
)
def test_impossible_edges_are_refused_in_words(arguments, error, words):
    with pytest.raises(error, match=words):
        Adjacency.from_edge_index(**({"edge_index": torch.tensor([[0, 1], [1, 0]]), "num_nodes": 3} | arguments))


def test_self_loops_need_one_set():
    with pytest.raises(GraphError, match="here are 2 senders and 1 receivers"):
        Adjacency.from_dense(torch.ones(1, 2)).with_self_loops()


def test_an_adjacency_of_other_sizes_is_refused():
    adjacency = Adjacency.complete(3)
    assert as_adjacency(adjacency, num_senders=3, num_receivers=3) is adjacency
    with pytest.raises(ShapeError, match="has 3 senders and 3 receivers, but there are 4 and 4 vectors"):
        as_adjacency(adjacency, num_senders=4, num_receivers=4)


@pytest.mark.parametrize("backend", ["sparse", "fused_cpu", "dense"])
def test_views_kept_in_inference_mode_serve_a_training_later(backend):
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    x = torch.ones(4, 2, 3, requires_grad=True)
    with torch.inference_mode():
        masked_attention(x, x, x, adjacency, backend=backend)
    masked_attention(x, x, x, adjacency, backend=backend).sum().backward()
    assert x.grad is not None


def test_boundaries_are_its_own():
    ptr = torch.tensor([0, 2, 5])
    adjacency = Adjacency.complete(ptr=ptr)
    ptr.zero_()
    assert adjacency.largest == (3, 3)
