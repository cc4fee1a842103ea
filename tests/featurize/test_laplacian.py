"""Eigenvectors of the Laplacian: by hand, by networkx, signs, components, batches, and both ways of large graphs."""

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from random_graphs import adjacencies, as_networkx, renumbered, undirected

from graphattn.adjacency import Adjacency
from graphattn.errors import GraphError, SettingError, ShapeError
from graphattn.featurize import graph_matrix
from graphattn.featurize import laplacian as module
from graphattn.featurize.laplacian import SignInvariant, laplacian

EIGH = np.linalg.eigh


@pytest.fixture(autouse=True)
def in_double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def simple_graph(adjacency: Adjacency) -> nx.Graph:
    """The undirected graph that counts: as many edges as the direction with more of them."""
    directed, graph = as_networkx(adjacency), nx.Graph()
    graph.add_nodes_from(directed)
    for one, other in directed.edges():
        graph.add_edge(
            one, other, weight=max(directed.number_of_edges(one, other), directed.number_of_edges(other, one))
        )
    return graph


def assert_eigenvectors(adjacency: Adjacency, vectors: torch.Tensor) -> None:
    """Of each component by itself: the smallest eigenvalues but 0, ascending, lengths 1, then zeros."""
    graph = simple_graph(adjacency)
    for nodes in map(sorted, nx.connected_components(graph)):
        matrix = nx.normalized_laplacian_matrix(graph, nodelist=nodes).toarray()
        spectrum = np.linalg.eigvalsh(matrix)
        mine = vectors[nodes].numpy()
        count = min(len(nodes) - 1, mine.shape[1])
        np.testing.assert_allclose(mine[:, :count].T @ mine[:, :count], np.eye(count), atol=1e-9)
        np.testing.assert_allclose(matrix @ mine[:, :count], mine[:, :count] * spectrum[1 : count + 1], atol=1e-9)
        assert not mine[:, count:].any()


def test_a_path_of_three():
    half, root = 0.5, 0.5**0.5
    by_hand = torch.tensor([[root, -half, 0], [0, root, 0], [-root, -half, 0]])
    torch.testing.assert_close(laplacian(undirected(nx.path_graph(3)), 3), by_hand, atol=1e-12, rtol=0)


def test_a_bond_is_its_own_mirror_image_and_the_first_node_is_positive():
    assert laplacian(undirected(nx.path_graph(2)), 2).flatten().tolist() == pytest.approx([0.5**0.5, 0, -(0.5**0.5), 0])


def test_the_last_eigenvector_of_benzene_alternates():
    vectors = laplacian(undirected(nx.cycle_graph(6)), 5)
    ring = torch.tensor([1.0, -1, 1, -1, 1, -1]) / 6**0.5
    torch.testing.assert_close(vectors[:, 4], ring)
    assert_eigenvectors(undirected(nx.cycle_graph(6)), vectors)


def test_small_graphs_are_padded():
    nothing = laplacian(Adjacency.from_edge_index(torch.empty(2, 0, dtype=torch.long), 2), 3)
    assert nothing.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert laplacian(Adjacency.complete(0), 3).shape == (0, 3)
    assert laplacian(Adjacency.complete(1), 2).tolist() == [[0, 0]]


@given(adjacencies(), st.integers(1, 7))
@settings(max_examples=80, deadline=None)
def test_against_networkx(adjacency, count):
    assert_eigenvectors(adjacency, laplacian(adjacency, count))


@given(adjacencies(), st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_the_sum_of_cubes_is_never_negative(adjacency, count):
    vectors = laplacian(adjacency, count)
    for nodes in nx.connected_components(simple_graph(adjacency)):
        assert float((vectors[sorted(nodes)] ** 3).sum(0).min()) > -1e-6


@given(st.lists(adjacencies(), min_size=1, max_size=4), st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_a_batch_gives_what_its_graphs_alone_give(graphs, count):
    alone = torch.cat([laplacian(graph, count) for graph in graphs])
    assert torch.equal(laplacian(Adjacency.batch(graphs), count), alone)


def test_each_fragment_gets_what_it_alone_gets():
    ring, chain = nx.cycle_graph(6), nx.path_graph(4)
    alone = torch.cat([laplacian(undirected(graph), 4) for graph in (ring, chain)])
    assert torch.equal(laplacian(undirected(nx.disjoint_union(ring, chain)), 4), alone)


def mirrored(column: np.ndarray) -> bool:
    return bool(np.allclose(np.sort(column), np.sort(-column), atol=1e-6))


@pytest.mark.parametrize("seed", range(12))
def test_renumbering_nodes_renumbers_rows(seed):
    graph = nx.gnm_random_graph(12, 17, seed=seed)
    graph = nx.convert_node_labels_to_integers(graph.subgraph(max(nx.connected_components(graph), key=len)))
    adjacency = undirected(graph)
    order = torch.randperm(len(graph), generator=torch.Generator().manual_seed(seed))
    spectrum = np.linalg.eigvalsh(nx.normalized_laplacian_matrix(graph).toarray())
    vectors, others = laplacian(adjacency, 6), laplacian(renumbered(adjacency, order), 6)
    gaps = np.diff(spectrum)
    simple = [each for each in range(6) if min(gaps[each : each + 2]) > 1e-6 and not mirrored(vectors[:, each].numpy())]
    assert len(simple) >= 3
    torch.testing.assert_close(others[:, simple], vectors[order][:, simple], atol=1e-9, rtol=0)


@pytest.mark.parametrize("affordable", [0, np.inf], ids=["Lanczos", "inverse iteration"])
def test_large_graphs_are_like_small_ones(monkeypatch, affordable):
    graph = nx.convert_node_labels_to_integers(nx.connected_watts_strogatz_graph(60, 4, 0.3, seed=0))
    adjacency = Adjacency.batch([undirected(nx.path_graph(3)), undirected(graph)])
    wanted = laplacian(adjacency, 5)
    monkeypatch.setattr(graph_matrix, "DENSE_ENTRIES", 9)
    monkeypatch.setattr(module, "AFFORDABLE", affordable)
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: pytest.fail("dense") if len(matrix[0]) > 3 else EIGH(matrix))
    out = laplacian(adjacency, 5)
    torch.testing.assert_close(out, wanted, atol=1e-8, rtol=0)
    assert torch.equal(out, laplacian(adjacency, 5))
    assert torch.equal(out[3:], laplacian(undirected(graph), 5))


@pytest.mark.parametrize("graph", [nx.cycle_graph(700), nx.star_graph(700), nx.grid_2d_graph(26, 26)], ids=str)
@pytest.mark.parametrize("affordable", [0, np.inf], ids=["Lanczos", "inverse iteration"])
def test_large_symmetric_graphs_give_every_eigenvector_that_shares_its_eigenvalue(monkeypatch, graph, affordable):
    monkeypatch.setattr(module, "AFFORDABLE", affordable)
    adjacency = undirected(nx.convert_node_labels_to_integers(graph))
    vectors = laplacian(adjacency, 6)
    assert_eigenvectors(adjacency, vectors)
    assert torch.equal(vectors, laplacian(adjacency, 6))


def test_a_long_path_has_the_vectors_of_the_formula():
    """Eigenvalues crowd at 1e-7 beside 0: eigenvector k is a cosine of k half waves, times the root of the degree."""
    size = 5000
    vectors = laplacian(undirected(nx.path_graph(size)), 4)
    degree = torch.full((size,), 2.0)
    degree[[0, -1]] = 1
    for number in range(1, 5):
        wave = degree.sqrt() * torch.cos(torch.pi * number * torch.arange(size) / (size - 1))
        overlap = float(vectors[:, number - 1] @ wave / wave.norm())
        assert abs(overlap) == pytest.approx(1, abs=1e-9)


def test_dense_ones_are_not_taken_for_factorizable():
    """The bound on what factorizing costs: narrow graphs are cheap, densely linked ones are not."""
    path, dense = undirected(nx.path_graph(600)), undirected(nx.random_regular_graph(8, 600, seed=0))
    narrow, wide = (
        module._factorization_cost(graph_matrix.normalized(graph_matrix.edge_counts(each))) for each in (path, dense)
    )
    assert narrow == 599
    assert 1e6 < wide < 600**3


def test_the_dtype_is_the_default():
    assert laplacian(Adjacency.complete(3), 1).dtype == torch.float64
    torch.set_default_dtype(torch.float32)
    assert laplacian(Adjacency.complete(3), 1).dtype == torch.float32


def test_laplacian_refuses_in_words():
    with pytest.raises(SettingError, match="count must be at least 1, got 0"):
        laplacian(Adjacency.complete(3), 0)
    with pytest.raises(GraphError, match="need senders and receivers to be one set"):
        laplacian(Adjacency.cross(2, 3), 2)


def test_sign_invariant_does_not_mind_signs():
    torch.manual_seed(0)
    vectors, network = torch.randn(9, 4), SignInvariant(count=4, channels=5, hidden=16)
    out = network(vectors)
    assert out.shape == (9, 5)
    for signs in torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 4):
        assert torch.equal(network(vectors * signs), out)


def test_sign_invariant_minds_everything_else():
    torch.manual_seed(0)
    vectors, network = torch.randn(9, 4), SignInvariant(count=4, channels=5, hidden=16)
    with torch.no_grad():
        out = network(vectors)
        for others in (vectors[:, [1, 0, 2, 3]], 2 * vectors):
            assert float((network(others) - out).abs().max(1).values.min()) > 1e-5


def test_sign_invariant_learns():
    torch.manual_seed(0)
    network, vectors = SignInvariant(count=4, channels=5, hidden=16), torch.randn(9, 4, requires_grad=True)
    network(vectors).sum().backward()
    assert bool((vectors.grad != 0).all())
    assert all(bool(each.grad.any()) for each in network.parameters())


def test_sign_invariant_tells_nodes_apart_from_the_start():
    """The numbers of an eigenvector of a molecule are small, about 0.2; they must not drown in the biases."""
    torch.manual_seed(0)
    network = SignInvariant(count=4, channels=16)
    assert float(network(0.2 * torch.randn(200, 4)).std(0).mean().detach()) > 0.1


def test_sign_invariant_makes_mirror_images_alike():
    """The two ends of a chain get opposite numbers, by no right of theirs; the network gives them the same vector."""
    network = SignInvariant(count=3, channels=4)
    out = network(laplacian(undirected(nx.path_graph(6)), 3))
    torch.testing.assert_close(out, out.flip(0))


def test_sign_invariant_refuses_in_words():
    with pytest.raises(ShapeError, match=r"vectors must be of shape \(nodes, 4\); got float64 of shape \(9, 3\)"):
        SignInvariant(4, 5)(torch.ones(9, 3))
    with pytest.raises(SettingError, match="hidden must be at least 1, got 0"):
        SignInvariant(4, 5, hidden=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_vectors_lie_where_the_adjacency_lies():
    assert laplacian(undirected(nx.cycle_graph(5)).to("cuda"), 2).device.type == "cuda"
