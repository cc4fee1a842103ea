"""What cannot be packed is refused where it comes in, with the graph, the attribute and the sizes."""

import re

import pytest
import torch
from torch_geometric.data import Batch, Data

from graphattn.data.packed import PackedGraphs
from graphattn.errors import GraphError, ShapeError

NO_EDGES = torch.empty(2, 0, dtype=torch.long)


def a_graph(**more):
    return Data(**{"x": torch.zeros(2, 3), "edge_index": torch.tensor([[0, 1], [1, 0]])} | more)


class OwnData(Data):
    pass


@pytest.mark.parametrize(
    ("graphs", "words"),
    [
        ([], "no graphs to pack; give at least one."),
        ([a_graph(), OwnData(x=torch.zeros(1, 3))], "graph 1 is a OwnData, not a torch_geometric.data.Data itself"),
        ([Batch.from_data_list([a_graph()])], "graph 0 is a DataBatch, not a torch_geometric.data.Data itself"),
        (
            [a_graph(), a_graph(y=torch.zeros(1))],
            "graph 1 has attributes 'edge_index', 'x', 'y' but graph 0 has 'edge_index', 'x'; all must have the same.",
        ),
        (
            [a_graph(smiles="CC", pe=torch.zeros(2, 1))],
            "attributes that nobody said what to do with: 'pe', 'smiles'. Name each in node_fields=, edge_fields= or",
        ),
        ([Data(x=torch.zeros(2, 3))], "the graphs have no edge_index; a graph without edges has one of shape (2, 0)."),
        ([Data(edge_index=NO_EDGES)], "graph 0 does not say how many nodes it has; give it x or num_nodes."),
        (
            [a_graph(), a_graph(edge_index=torch.tensor([[0, 1, 0], [1, 0, 2]]))],
            "graph 1: an edge joins node 0 to node 2, but its 2 nodes are numbered from 0.",
        ),
        (
            [a_graph(), a_graph(edge_index=torch.tensor([[-1], [1]]))],
            "graph 1: an edge joins node -1 to node 1, but its 2 nodes are numbered from 0.",
        ),
        (
            [a_graph(edge_index=NO_EDGES), a_graph(x=torch.zeros(0, 3)), a_graph()],
            "graph 1: an edge joins node 0 to node 1, but its 0 nodes are numbered from 0.",
        ),
    ],
)
def test_graphs_that_cannot_be_packed(graphs, words):
    with pytest.raises(GraphError, match=re.escape(words)):
        PackedGraphs.from_data(graphs)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (a_graph(edge_index=[[0], [1]]), "edge_index must be a tensor of shape (2, E), got a list."),
        (
            a_graph(edge_index=torch.zeros(3, 2).long()),
            "edge_index must be a tensor of shape (2, E), got int64 of shape (3, 2).",
        ),
        (
            a_graph(edge_index=torch.zeros(2).long()),
            "edge_index must be a tensor of shape (2, E), got int64 of shape (2,).",
        ),
        (
            a_graph(edge_index=torch.zeros(2, 1).int()),
            "edge_index must be int64, got torch.int32; use edge_index.long().",
        ),
        (a_graph(x=torch.zeros(2, 3).to_sparse()), "x must be a dense tensor, got sparse_coo float32 of shape (2, 3)."),
        (a_graph(x=[[1.0], [2.0]], num_nodes=2), "x must be a dense tensor, got a list."),
        (a_graph(x=torch.tensor(1.0), num_nodes=2), "x must have one row for each of its 2 nodes, got float32 of"),
        (a_graph(num_nodes=3), "x must have one row for each of its 3 nodes, got float32 of shape (2, 3)."),
        (a_graph(pos=torch.zeros(3, 2)), "pos must have one row for each of its 2 nodes, got float32 of shape (3, 2)."),
        (a_graph(edge_attr=torch.zeros(4, 1)), "edge_attr must have one row for each of its 2 edges, got float32"),
        (a_graph(y=torch.zeros(2)), "y must have one row, shape (1, ...), got float32 of shape (2,)."),
        (a_graph(y=1.5), "y must be a dense tensor, got a float."),
    ],
)
def test_fields_that_do_not_fit(graph, words):
    with pytest.raises(ShapeError, match=re.escape(f"graph 0: {words}")):
        PackedGraphs.from_data([graph])


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (
            torch.zeros(1, 4),
            "x is float32 of shape (1, 4) but that of graph 0 is float32 of shape (2, 3)",
        ),
        (
            torch.zeros(1, 3).long(),
            "x is int64 of shape (1, 3) but that of graph 0 is float32 of shape (2, 3)",
        ),
    ],
)
def test_fields_that_differ_between_graphs(x, words):
    with pytest.raises(ShapeError, match=re.escape(f"graph 1: {words}")):
        PackedGraphs.from_data([a_graph(), a_graph(x=x, edge_index=NO_EDGES)])


@pytest.mark.parametrize("name", ["ptr", "face", "num_nodes", "batch", "atom_index", "batch_of_origin"])
def test_names_that_pyg_treats_in_its_own_way(name):
    words = (
        f"field '{name}' cannot be packed: PyG batches attributes called 'face', 'num_nodes', 'ptr' "
        "or with 'batch', 'index' in their name by rules of its own; rename it."
    )
    with pytest.raises(GraphError, match=re.escape(words)):
        PackedGraphs.from_data([a_graph()], node_fields=["x", name])


def test_a_field_with_two_homes():
    with pytest.raises(
        GraphError, match=re.escape("field 'y' is named for the nodes and for the graphs; name it once")
    ):
        PackedGraphs.from_data([a_graph(y=torch.zeros(2))], node_fields=["x", "y"])
