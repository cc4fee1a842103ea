"""Graphs of other libraries in and out: networkx, SciPy and dense matrices."""

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.data import Batch, Data

from graphattn.adjacency import Adjacency
from graphattn.attention.layer import GraphAttention
from graphattn.convert import from_matrix, from_networkx, to_matrix, to_networkx
from graphattn.errors import GraphError, ShapeError


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
    torch.testing.assert_close(out[1], layer.value(x)[0])


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
    with pytest.raises(GraphError, match=r"edge attribute 'w' is float32 of shape \(2,\), but there are 1 edges"):
        to_networkx(data, edges={"w": torch.ones(2)})
    with pytest.raises(GraphError, match=r"node attribute 'w' is float32 of shape \(\), but there are 2 nodes"):
        to_networkx(data, nodes={"w": torch.tensor(1.0)})
    data.nodes = ["only one"]
    with pytest.raises(GraphError, match=r"data\.nodes has 1 labels, but there are 2 nodes"):
        to_networkx(data)
    data.nodes = ["a", "a"]
    with pytest.raises(GraphError, match="the label 'a' more than once"):
        to_networkx(data)


@pytest.mark.parametrize(("sender", "words"), [(-1, "sender -1"), (5, "sender 5, but there are 2 senders")])
def test_edges_of_nodes_that_are_not_there_do_not_leave(sender, words):
    with pytest.raises(GraphError, match=words):
        to_networkx(Data(edge_index=torch.tensor([[sender], [0]]), num_nodes=2))


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.0, 2.0])[::-1],
        np.array([2.0, 1.0], dtype=">f8"),
        torch.tensor([2.0, 1.0], dtype=torch.bfloat16, requires_grad=True),
        (2, True),
        np.array([2, 1], dtype=np.uint16),
    ],
    ids=["backwards", "big-endian", "bfloat16", "tuple", "unsigned"],
)
def test_attributes_are_numbers_in_many_forms(value):
    graph = nx.empty_graph(1)
    graph.nodes[0]["w"] = value
    assert from_networkx(graph, node_features=["w"]).x.tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1e300, "too large for float32"),
        (10**400, "is no number|too large"),
        (np.complex64(1 + 2j), "is no number"),
        ("a", "is no number"),
        ([1, [2]], "is no number"),
        (np.datetime64("2020-01-01"), "is no number"),
    ],
)
def test_attributes_that_float32_cannot_hold_are_refused(value, words):
    graph = nx.empty_graph(1)
    graph.nodes[0]["w"] = value
    with pytest.raises(GraphError, match=words):
        from_networkx(graph, node_features=["w"])


@pytest.mark.parametrize(
    ("matrix", "error", "words"),
    [
        ([[0, 1], [1]], ShapeError, "these rows are not"),
        (np.ma.masked_array(np.ones((2, 2)), mask=np.eye(2)), ShapeError, "a masked array .* use matrix.filled"),
        ([[0, 1e-50], [0, 0]], GraphError, r"matrix\[0, 1\] is 1e-50, which is no finite float32 other than 0"),
    ],
)
def test_matrices_that_would_lose_something_are_refused(matrix, error, words):
    with pytest.raises(error, match=words):
        from_matrix(matrix, weights=True)


def test_a_matrix_of_the_callers_stays_as_it_was():
    given = sparse.csr_array((np.array([1, 2, 5]), np.array([2, 0, 0]), np.array([0, 3, 3, 3])), shape=(3, 3))
    from_matrix(given)
    assert given.indices.tolist() == [2, 0, 0]
    assert given.data.tolist() == [1, 2, 5]


def test_weights_of_an_adjacency_are_those_of_its_edges():
    looped = Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 0]]), 2).with_self_loops()
    assert to_matrix(looped, weights=torch.tensor([2.0, 3.0])).toarray().tolist() == [[1, 2], [3, 1]]


def test_a_multigraph_comes_back_with_all_its_edges():
    graph = nx.MultiDiGraph([("a", "b"), ("b", "a"), ("a", "b"), ("b", "b"), ("b", "b"), ("a", "c")])
    for number, edge in enumerate(graph.edges(keys=True)):
        graph.edges[edge].update(order=float(number), key=-float(number))  # the name of an argument of networkx
    data = from_networkx(graph, edge_features=["order", "key"])
    columns = {"order": data.edge_attr[:, 0], "key": data.edge_attr[:, 1]}
    assert nx.utils.graphs_equal(to_networkx(data, edges=columns, multigraph=True), graph)
    with pytest.raises(GraphError, match=r"parallel edges, which .* would merge; pass multigraph=True to keep them"):
        to_networkx(data)


def test_an_undirected_multigraph_joins_the_two_directions_of_each_of_its_edges():
    graph = nx.MultiGraph([("a", "b", {"order": 1.0}), ("a", "b", {"order": 2.0}), ("b", "b", {"order": 3.0})])
    graph.add_node("lonely")
    data = from_networkx(graph, edge_features=["order"])
    back = to_networkx(data, edges={"order": data.edge_attr[:, 0]}, directed=False, multigraph=True)
    assert nx.utils.graphs_equal(back, graph)
    one_way = Data(edge_index=torch.tensor([[0, 0, 1], [1, 1, 0]]), num_nodes=2)
    assert to_networkx(one_way, directed=False, multigraph=True).number_of_edges() == 2


ONE_WAY = np.array([[0, 2, 0, 0], [0, 3, 0, 4], [5, 0, 0, 0], [0, 0, 0, 0]])  # a self loop, a lonely row, no symmetry
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


def same(one, other):
    assert one.num_nodes == other.num_nodes
    assert torch.equal(one.edge_index, other.edge_index)
    assert torch.equal(one.edge_attr, other.edge_attr)


def test_an_entry_is_an_edge_from_its_row_to_its_column():
    data = from_matrix(ONE_WAY, weights=True)
    assert data.edge_index.T.tolist() == [[0, 1], [1, 1], [1, 3], [2, 0]]
    assert data.edge_attr.tolist() == [[2], [3], [4], [5]]
    assert (data.edge_attr.dtype, data.num_nodes) == (torch.float32, 4)
    assert from_matrix(ONE_WAY).edge_attr is None
    layer, x = GraphAttention(2, 4, heads=1), torch.randn(4, 2)
    out = layer(x, data.edge_index)
    torch.testing.assert_close(out[3], layer.value(x)[1])  # column 3 attends to row 1
    assert (out[2] == 0).all()


def test_networkx_reads_matrices_the_same_way():
    theirs = from_networkx(nx.from_numpy_array(ONE_WAY, create_using=nx.DiGraph), edge_features=["weight"])
    del theirs.nodes
    same(from_matrix(ONE_WAY, weights=True), theirs)
    assert set(nx.from_scipy_sparse_array(to_matrix(theirs), create_using=nx.DiGraph).edges) == {
        (0, 1),
        (1, 1),
        (1, 3),
        (2, 0),
    }


def test_a_mask_for_attention_is_the_transpose():
    seen = Adjacency.from_dense(torch.from_numpy(ONE_WAY.T)).edge_index().T.tolist()
    assert sorted(seen) == from_matrix(ONE_WAY).edge_index.T.tolist()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("form", [*(f"{name}_{kind}" for name in FORMATS for kind in ("array", "matrix"))])
def test_every_sparse_format_is_its_dense_form(form, dtype):
    dense = ONE_WAY.astype(dtype)
    given = getattr(sparse, form)(dense)
    same(from_matrix(given, weights=True), from_matrix(dense, weights=True))
    np.testing.assert_array_equal(given.toarray(), dense)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float64])
def test_tensors_are_dense_forms(dtype):
    expected = from_matrix(ONE_WAY.astype(bool) if dtype == torch.bool else ONE_WAY, weights=True)
    same(from_matrix(torch.from_numpy(ONE_WAY).to(dtype), weights=True), expected)


@pytest.mark.parametrize(
    "given",
    [
        ONE_WAY.tolist(),
        ONE_WAY.astype(np.float16),
        np.asfortranarray(ONE_WAY),
        torch.tensor(ONE_WAY * 1.0, requires_grad=True),
    ],
    ids=["lists", "halves", "Fortran", "with gradient"],
)
def test_other_dense_forms(given):
    same(from_matrix(given, weights=True), from_matrix(ONE_WAY, weights=True))


def test_stored_zeros_are_no_edges_and_repeated_entries_are_one():
    row, column = np.array([0, 0, 1, 1, 2, 2]), np.array([1, 1, 2, 0, 0, 0])
    repeated = sparse.coo_array((np.array([1.0, 2, 0, 4, 5, -5]), (row, column)), shape=(3, 3))
    data = from_matrix(repeated, weights=True)
    assert data.edge_index.T.tolist() == [[0, 1], [1, 0]]
    assert data.edge_attr.tolist() == [[3], [4]]
    same(data, from_matrix(repeated.toarray(), weights=True))
    assert repeated.nnz == 6  # the caller's matrix is as it was
    unsorted = sparse.csr_array((np.array([1.0, 2, 0]), np.array([2, 0, 1]), np.array([0, 3, 3, 3])))
    assert from_matrix(unsorted, weights=True).edge_attr.tolist() == [[2], [1]]
    assert unsorted.indices.tolist() == [2, 0, 1]
    assert unsorted.nnz == 3


@pytest.mark.parametrize("make", [np.array, sparse.csr_array, sparse.coo_matrix, torch.tensor])
def test_matrices_without_edges_are_ordinary(make):
    lonely = from_matrix(make(np.zeros((3, 3))), weights=True)
    assert (lonely.num_nodes, lonely.edge_index.shape, lonely.edge_attr.shape) == (3, (2, 0), (0, 1))
    assert lonely.edge_index.dtype == torch.long
    empty = from_matrix(np.zeros((0, 0)))
    assert (empty.num_nodes, empty.edge_index.shape) == (0, (2, 0))
    assert to_matrix(empty).shape == (0, 0)


@pytest.mark.parametrize("make", [np.array, sparse.csr_array, torch.tensor])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_entries_that_are_no_numbers_are_named(make, value):
    matrix = np.zeros((3, 3))
    matrix[1, 2] = value
    with pytest.raises(GraphError, match=rf"matrix\[1, 2\] is {value}, which is no finite float32".replace("+", r"\+")):
        from_matrix(make(matrix))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (
            np.zeros((2, 3)),
            r"is square, .*; got shape \(2, 3\)\. .* make an Adjacency: from_dense has receivers as rows",
        ),
        (sparse.csr_array((3, 2)), r"got shape \(3, 2\)"),
        (np.zeros(4), r"got shape \(4,\)"),
        (sparse.coo_array(np.ones(3)), r"got shape \(3,\)"),
        (torch.zeros(2, 2, 2), r"got shape \(2, 2, 2\)"),
        (np.zeros((2, 2), complex), "holds bools, integers or floats; got dtype complex128"),
        (np.full((2, 2), None), "got dtype object"),
        (sparse.csr_array(np.eye(2, dtype=complex)), "got dtype complex128"),
        ([["a", "b"], ["c", "d"]], "got dtype <U1"),
        (
            torch.eye(2).to_sparse(),
            r"must be dense here, got one of layout torch\.sparse_coo; use matrix\.to_dense\(\)",
        ),
    ],
)
def test_what_is_no_matrix_of_a_graph(matrix, words):
    with pytest.raises(ShapeError, match=words):
        from_matrix(matrix)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bfloat16])
def test_a_matrix_comes_back(dtype):
    data = from_matrix(ONE_WAY, weights=True)
    for weights in (data.edge_attr, data.edge_attr[:, 0], data.edge_attr[:, 0].requires_grad_()):
        made = to_matrix(data, weights=weights.to(dtype))
        assert isinstance(made, sparse.csr_array)
        np.testing.assert_array_equal(made.toarray(), ONE_WAY)
    np.testing.assert_array_equal(to_matrix(data).toarray(), ONE_WAY != 0)
    batch = Batch.from_data_list([data, data])
    np.testing.assert_array_equal(to_matrix(batch).toarray(), np.kron(np.eye(2), ONE_WAY != 0))


def test_weights_follow_their_edges_in_any_order():
    data = Data(edge_index=torch.tensor([[2, 0, 1], [0, 2, 0]]), num_nodes=3)
    made = to_matrix(data, weights=torch.tensor([1.0, 2.0, 3.0])).toarray()
    assert made.tolist() == [[0, 0, 2], [3, 0, 0], [1, 0, 0]]


def test_an_adjacency_is_a_matrix_with_senders_as_rows():
    cross = Adjacency.from_edge_index(torch.tensor([[2, 0], [1, 1]]), num_senders=3, num_receivers=2)
    assert to_matrix(cross, weights=torch.tensor([5.0, 7.0])).toarray().tolist() == [[0, 7], [0, 0], [0, 5]]
    path = Adjacency.from_edge_index(torch.tensor([[0], [1]]), 2).with_self_loops()
    assert to_matrix(path).toarray().tolist() == [[1, 1], [0, 1]]


def test_graphs_that_a_matrix_cannot_hold():
    parallel = Data(edge_index=torch.tensor([[0, 0], [1, 1]]), num_nodes=2)
    with pytest.raises(GraphError, match="parallel edges, which a matrix would add up; merge them first"):
        to_matrix(parallel)
    data = from_matrix(ONE_WAY)
    with pytest.raises(GraphError, match="the weight of edge 2, 1 -> 3, is 0: no edge in a matrix"):
        to_matrix(data, weights=torch.tensor([1.0, 2.0, 0.0, 4.0]))
    with pytest.raises(ShapeError, match=r"one number per edge, \(4,\) or \(4, 1\); got float32 of shape \(4, 2\)"):
        to_matrix(data, weights=torch.ones(4, 2))
    with pytest.raises(GraphError, match="edge 0 names receiver 7, but there are 2 receivers"):
        to_matrix(Data(edge_index=torch.tensor([[0], [7]]), num_nodes=2))
