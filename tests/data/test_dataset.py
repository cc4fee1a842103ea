"""Graphs with their targets: subsets, batches with y, and what does not belong together."""

import re

import pytest
import torch
from torch_geometric.data import Batch, Data

from graphattn.data.dataset import GraphDataset
from graphattn.data.packed import PackedGraphs
from graphattn.errors import ShapeError


def some_graphs(count):
    return [
        Data(
            x=torch.full((n, 2), n),
            edge_index=torch.tensor([[0], [n - 1]]),
            edge_attr=torch.tensor([[n]]),
        )
        for n in range(1, count + 1)
    ]


TARGETS = torch.tensor([[1.0, torch.nan], [torch.nan, 2.0], [torch.nan, torch.nan]])  # case D7


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_batch_carries_its_targets_as_pyg_would(dtype):
    graphs, targets = some_graphs(3), TARGETS.to(dtype)
    dataset = GraphDataset(PackedGraphs.from_data(graphs), targets)
    rows = [2, 0, 0]
    batch = dataset.batch(rows)
    for graph, target in zip(graphs, targets, strict=True):
        graph.y = target[None]
    wanted = Batch.from_data_list([graphs[row] for row in rows])
    assert set(batch.keys()) == set(wanted.keys())
    for name in wanted.keys():  # noqa: SIM118
        torch.testing.assert_close(batch[name], wanted[name], rtol=0, atol=0, equal_nan=True)
    for ours, theirs in zip(batch.to_data_list(), wanted.to_data_list(), strict=True):
        torch.testing.assert_close(ours.to_dict(), theirs.to_dict(), rtol=0, atol=0, equal_nan=True)


def test_a_subset_keeps_order_and_targets_together():
    dataset = GraphDataset(PackedGraphs.from_data(some_graphs(4)), torch.arange(8.0).reshape(4, 2))
    subset = dataset.subset((3, 1))
    assert len(subset) == 2
    assert subset.num_targets == 2
    assert subset.targets.tolist() == [[6, 7], [2, 3]]
    assert subset.graphs.node_counts.tolist() == [4, 2]
    assert subset.batch([1]).y.tolist() == [[2, 3]]
    assert len(dataset.subset(())) == 0
    assert dataset.subset(()).targets.shape == (0, 2)


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (
            torch.zeros(2, 1, dtype=torch.long),
            "targets must be float32 or float64, got torch.int64; use targets.float()",
        ),
        (torch.zeros(2), "one row for each of the 2 graphs, got (2,)."),
        (torch.zeros(3, 1), "one row for each of the 2 graphs, got (3, 1)."),
    ],
)
def test_targets_that_do_not_fit(targets, words):
    with pytest.raises(ShapeError, match=re.escape(words)):
        GraphDataset(PackedGraphs.from_data(some_graphs(2)), targets)


def test_targets_are_given_once():
    (graph,) = some_graphs(1)
    graph.y = torch.zeros(1, 1)
    with pytest.raises(ShapeError, match="the graphs carry y themselves; give the targets once: delete y"):
        GraphDataset(PackedGraphs.from_data([graph]), torch.zeros(1, 1))


def test_rows_that_are_not_there():
    dataset = GraphDataset(PackedGraphs.from_data(some_graphs(2)), torch.zeros(2, 1))
    with pytest.raises(ShapeError, match="row 2 is not among the 2 graphs 0 to 1"):
        dataset.subset([2])
    with pytest.raises(ShapeError, match="a batch of no graphs"):
        dataset.batch([])
