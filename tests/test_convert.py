"""networkx graphs in and out."""

import networkx as nx
import pytest
import torch
from torch_geometric.data import Batch, Data

from graphattn.attention.layer import GraphAttention
from graphattn.convert import from_networkx, to_networkx
from graphattn.errors import GraphError


@pytest.mark.parametrize("labels", [["a", "c", "b"], [4, 2, 6], [("x", 1), None, 3.5]])
def test_node_order_is_the_graphs_own_and_labels_come_back(labels):
    graph = nx.Graph()
    graph.add_nodes_from(label for label in labels if label is not None)
    kept = list(graph.nodes)
    graph.add_edge(kept[0], kept[1])
    data = from_networkx(graph)
    assert data.nodes == kept
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert nx.utils.graphs_equal(to_networkx(data, directed=False), graph)


def test_directions_multigraphs_and_self_loops():
    assert from_networkx(nx.DiGraph([("u", "v")])).edge_index.tolist() == [[0], [1]]
    assert from_networkx(nx.Graph([(0, 0), (0, 1)])).edge_index.tolist() == [[0, 0, 1], [0, 1, 0]]
    multi = from_networkx(nx.MultiGraph([(0, 1), (0, 1)]))
    assert multi.edge_index.tolist() == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert from_networkx(nx.MultiDiGraph([(0, 1), (0, 1)])).edge_index.tolist() == [[0, 0], [1, 1]]
    with pytest.raises(GraphError, match="parallel edges"):
        to_networkx(multi)


def test_a_directed_edge_lets_its_target_attend_to_its_source():
    data = from_networkx(nx.DiGraph([("source", "target")]))
    layer, x = GraphAttention(2, 4, heads=1), torch.randn(2, 2)
    out = layer(x, data.edge_index)
    assert (out[0] == 0).all()
    assert torch.equal(out[1], layer.value(x)[0])


def test_round_trip_keeps_edges_and_attributes():
    graph = nx.gnp_random_graph(12, 0.3, seed=1, directed=True)
    data = from_networkx(graph)
    weights = torch.rand(data.num_edges, 2)
    back = to_networkx(data, nodes={"degree": torch.arange(12)}, edges={"weight": weights})
    assert set(back.edges) == set(graph.edges)
    assert back.nodes[3]["degree"] == 3
    sender, receiver = data.edge_index[:, 5].tolist()
    assert back[sender][receiver]["weight"] == weights[5].tolist()


def test_attributes_become_columns():
    graph = nx.Graph()
    graph.add_node("a", mass=12.0, place=[0.0, 1.0])
    graph.add_node("b", mass=1, place=[2.0, 3.0])
    graph.add_edge("a", "b", order=2)
    data = from_networkx(graph, node_features=["mass", "place"], edge_features=["order"])
    assert data.x.tolist() == [[12, 0, 1], [1, 2, 3]]
    assert data.edge_attr.tolist() == [[2], [2]]


def test_empty_graphs_are_ordinary():
    assert from_networkx(nx.Graph()).num_nodes == 0
    lonely = from_networkx(nx.empty_graph(3), edge_features=["order"])
    assert (lonely.num_nodes, lonely.edge_index.shape, lonely.edge_attr.shape) == (3, (2, 0), (0, 1))
    Batch.from_data_list([lonely, from_networkx(nx.Graph([(0, 1, {"order": 2})]), edge_features=["order"])])


def test_missing_attributes_are_named_or_filled():
    graph = nx.Graph([("a", "b")])
    graph.nodes["a"]["mass"] = 12.0
    with pytest.raises(GraphError, match="node 'b' has no attribute 'mass'; set it, or pass fill="):
        from_networkx(graph, node_features=["mass"])
    with pytest.raises(GraphError, match="edge 'a' - 'b' has no attribute 'order'"):
        from_networkx(graph, edge_features=["order"])
    assert from_networkx(graph, node_features=["mass"], fill=0.0).x.tolist() == [[12], [0]]
    graph.nodes["b"]["mass"] = "heavy"
    with pytest.raises(GraphError, match="attribute 'mass' of node 'b' is 'heavy', which is no number"):
        from_networkx(graph, node_features=["mass"])
    graph.nodes["b"]["mass"] = [1.0, 2.0]
    with pytest.raises(GraphError, match="attribute 'mass' has different lengths, 1 to 2"):
        from_networkx(graph, node_features=["mass"])
    graph.nodes["a"]["mass"] = None
    assert from_networkx(graph, node_features=["mass"], fill=9.0).x.tolist() == [[9, 9], [1, 2]]
    with pytest.raises(GraphError, match=r"got the text 'mass'; write \['mass'\]"):
        from_networkx(graph, node_features="mass")


def test_attributes_that_do_not_fit_are_refused():
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(GraphError, match="edge attribute 'w' has 2 rows, but there are 1 edges"):
        to_networkx(data, edges={"w": torch.ones(2)})
    data.nodes = ["only one"]
    with pytest.raises(GraphError, match=r"data\.nodes has 1 labels, but there are 2 nodes"):
        to_networkx(data)
