"""A packed batch is PyG's batch: every field, every order of rows, and it comes apart again."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from graphattn.data.packed import PackedGraphs
from graphattn.errors import ShapeError


def random_graph(nodes, edges, seed, **more):
    """Integer codes as the molecule featurizer gives them, with random edges (none where there is no node)."""
    generator = torch.Generator().manual_seed(seed)
    edges = edges if nodes else 0
    return Data(
        x=torch.randint(0, 50, (nodes, 3), generator=generator),
        edge_index=torch.randint(0, max(nodes, 1), (2, edges), generator=generator),
        edge_attr=torch.randint(0, 4, (edges, 2), generator=generator),
        **more,
    )


AWKWARD_GRAPHS = {
    "one lonely node": [random_graph(1, 0, seed=0)],
    "graphs without edges": [random_graph(3, 0, seed=0), random_graph(1, 0, seed=1)],
    "self loop": [random_graph(1, 2, seed=0)],
    "two sizes": [random_graph(2, 2, seed=0), random_graph(7, 12, seed=1)],
    "empty last graph": [random_graph(4, 6, seed=0), random_graph(0, 0, seed=1)],
    "empty first graph": [random_graph(0, 0, seed=1), random_graph(4, 6, seed=0)],
    "more edges than nodes": [random_graph(2, 30, seed=0), random_graph(2, 0, seed=1), random_graph(1, 1, seed=2)],
}


def assert_same_data(ours, theirs):
    ours_as_dict, theirs_as_dict = ours.to_dict(), theirs.to_dict()
    assert ours_as_dict.keys() == theirs_as_dict.keys()
    for name, value in theirs_as_dict.items():
        if isinstance(value, torch.Tensor):
            assert ours_as_dict[name].dtype == value.dtype, name
            assert torch.equal(ours_as_dict[name], value), name
        else:
            assert ours_as_dict[name] == value, name
    assert ours.num_nodes == theirs.num_nodes
    assert ours.num_edges == theirs.num_edges


def assert_same_batch(ours, theirs):
    assert type(ours) is type(theirs)
    assert_same_data(ours, theirs)
    assert ours.num_graphs == ours.batch_size == len(ours) == theirs.num_graphs
    for ours_alone, theirs_alone in zip(ours.to_data_list(), theirs.to_data_list(), strict=True):
        assert_same_data(ours_alone, theirs_alone)


@pytest.mark.parametrize("graphs", AWKWARD_GRAPHS.values(), ids=AWKWARD_GRAPHS)
def test_batch_of_awkward_graphs_is_that_of_pyg(graphs):
    rows = [*range(len(graphs)), 0, *reversed(range(len(graphs)))]
    batch = PackedGraphs.from_data(graphs).batch(rows)
    assert_same_batch(batch, Batch.from_data_list([graphs[row] for row in rows]))


@st.composite
def graphs_and_rows(draw):
    sizes = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), min_size=1, max_size=6))
    graphs = [
        random_graph(
            nodes,
            edges,
            seed,
            pos=torch.full((nodes, 2), seed + 0.5),
            y=torch.tensor([[seed, float("inf")]], dtype=torch.float64),
        )
        for seed, (nodes, edges) in enumerate(sizes)
    ]
    rows = draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=12))
    return graphs, rows


@settings(deadline=None, max_examples=100)
@given(graphs_and_rows())
def test_unbatch_of_batch_gives_the_graphs_back(graphs_and_rows):
    graphs, rows = graphs_and_rows
    batch = PackedGraphs.from_data(graphs).batch(rows)
    for alone, row in zip(batch.to_data_list(), rows, strict=True):
        assert_same_data(alone, graphs[row])
    assert_same_batch(batch, Batch.from_data_list([graphs[row] for row in rows]))
    assert_same_data(batch.get_example(len(rows) - 1), graphs[rows[-1]])


@settings(deadline=None, max_examples=50)
@given(graphs_and_rows(), st.data())
def test_take_of_take_is_one_take(graphs_and_rows, data):
    graphs, rows = graphs_and_rows
    again = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=6))
    packed = PackedGraphs.from_data(graphs)
    assert_same_batch(packed.take(rows).batch(again), packed.batch([rows[place] for place in again]))


@pytest.mark.parametrize(
    "more",
    [
        {"y": torch.tensor(2.5)},
        {"y": torch.tensor([2.5])},
        {"y": torch.tensor([[1.0, 2.0]])},
        {"edge_weight": torch.rand(4), "pos": torch.rand(3, 3)},
        {"num_nodes": 3},
    ],
    ids=["y of shape ()", "y of shape (1,)", "y of shape (1, T)", "edge_weight and pos", "num_nodes"],
)
def test_known_fields_are_carried(more):
    graphs = [random_graph(3, 4, seed, **more) for seed in range(3)]
    assert_same_batch(PackedGraphs.from_data(graphs).batch([2, 0]), Batch.from_data_list([graphs[2], graphs[0]]))


def test_own_fields_are_carried_where_they_are_named():
    graphs = [
        random_graph(n, 4, seed=n, walk=torch.rand(n, 2, 2), kind=torch.arange(4), temperature=torch.rand(1, 3))
        for n in (4, 1)
    ]
    packed = PackedGraphs.from_data(
        graphs, node_fields=["x", "walk"], edge_fields=["edge_attr", "kind"], graph_fields=["temperature"]
    )
    assert_same_batch(packed.batch([1, 1, 0]), Batch.from_data_list([graphs[1], graphs[1], graphs[0]]))


def test_labels_of_nodes_are_carried_where_they_are_named():
    graphs = [random_graph(n, 4, seed=n, y=torch.arange(n)) for n in (4, 1)]
    packed = PackedGraphs.from_data(graphs, node_fields=["x", "y"], graph_fields=[])
    assert_same_batch(packed.batch([1, 0]), Batch.from_data_list([graphs[1], graphs[0]]))


def test_graphs_without_features_carry_their_num_nodes():
    graphs = [Data(num_nodes=n, edge_index=torch.zeros(2, n, dtype=torch.long)) for n in (2, 3)]
    assert_same_batch(PackedGraphs.from_data(graphs).batch([1, 0]), Batch.from_data_list([graphs[1], graphs[0]]))


def test_counts_and_length():
    packed = PackedGraphs.from_data(AWKWARD_GRAPHS["empty last graph"])
    assert len(packed) == 2
    assert packed.node_counts.tolist() == [4, 0]
    assert packed.edge_counts.tolist() == [6, 0]
    assert len(packed.take([])) == 0
    assert packed.take([]).node_fields["x"].shape == (0, 3)


@pytest.mark.parametrize(
    "rows", [(1, 0), torch.tensor([1, 0]), torch.tensor([1, 0], dtype=torch.int32), range(1, -1, -1)], ids=repr
)
def test_rows_in_any_form(rows):
    packed = PackedGraphs.from_data(AWKWARD_GRAPHS["two sizes"])
    assert packed.batch(rows).ptr.tolist() == [0, 7, 9]


def test_a_batch_is_a_copy():
    packed = PackedGraphs.from_data(AWKWARD_GRAPHS["two sizes"])
    before = packed.batch([0, 1])
    changed = packed.batch([0, 1])
    for name in ("x", "edge_attr", "edge_index"):
        changed[name].zero_()
    assert_same_batch(packed.batch([0, 1]), before)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([0, 2], "row 2 is not among the 2 graphs 0 to 1."),
        ([-1], "row -1 is not among the 2 graphs 0 to 1."),
        ([], "a batch of no graphs cannot be made; give at least one row."),
        ([0.0], "rows must be whole numbers in one dimension, got torch.float32 of shape (1,); for a mask pass"),
        (torch.tensor([True, False]), "got torch.bool of shape (2,); for a mask pass mask.nonzero().flatten()."),
        (torch.tensor([[0, 1]]), "got torch.int64 of shape (1, 2)"),
        (torch.tensor(1), "got torch.int64 of shape ()"),
    ],
)
def test_rows_that_cannot_be(rows, words):
    packed = PackedGraphs.from_data(AWKWARD_GRAPHS["two sizes"])
    with pytest.raises(ShapeError, match=re.escape(words)):
        packed.batch(rows)
