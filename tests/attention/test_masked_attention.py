"""What a caller of masked_attention sees: locality, renumbering, company, direction, refusals."""

import re

import hypothesis.strategies as st
import pytest
import torch
from awkward import AWKWARD_GRAPHS, graph, random_call
from hypothesis import given, settings

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import BACKENDS, masked_attention
from graphattn.attention.call import AttentionCall, ByType, EdgeTerms
from graphattn.attention.scores import Additive, DotProduct
from graphattn.errors import BackendError, GraphError, SettingError, ShapeError


@st.composite
def random_graphs(draw) -> tuple[int, torch.Tensor]:
    """Node count and edge index, loops and parallel edges included."""
    nodes = draw(st.integers(1, 8))
    ends = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(ends, ends), max_size=20))
    return nodes, torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T


def vectors(nodes: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (torch.randn(nodes, 2, 3, generator=generator) for _ in range(3))
    return query, key, value


@given(random_graphs(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_renumbering_nodes_renumbers_outputs(case, random):
    nodes, edge_index = case
    order = list(range(nodes))
    random.shuffle(order)
    to_new = torch.empty(nodes, dtype=torch.long)
    to_new[torch.tensor(order)] = torch.arange(nodes)
    inputs = vectors(nodes)
    out = masked_attention(*inputs, Adjacency.from_edge_index(edge_index, nodes))
    renumbered = masked_attention(
        *(each[order] for each in inputs), Adjacency.from_edge_index(to_new[edge_index], nodes)
    )
    assert torch.equal(renumbered, out[order])


@given(random_graphs(), random_graphs())
@settings(max_examples=60, deadline=None)
def test_company_in_the_batch_changes_no_bit(first, second):
    (nodes, edges), (others, other_edges) = first, second
    alone = masked_attention(*vectors(nodes), Adjacency.from_edge_index(edges, nodes))
    together = Adjacency.from_edge_index(
        torch.cat([edges, other_edges + nodes], 1), nodes + others, ptr=torch.tensor([0, nodes, nodes + others])
    )
    joined = (torch.cat(pair) for pair in zip(vectors(nodes), vectors(others, seed=1), strict=True))
    assert torch.equal(masked_attention(*joined, together)[:nodes], alone)


@given(random_graphs(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_node_that_is_not_seen_changes_nothing_even_as_nan(case, data):
    nodes, edge_index = case
    receiver, stranger = data.draw(st.integers(0, nodes - 1)), data.draw(st.integers(0, nodes - 1))
    adjacency = Adjacency.from_edge_index(edge_index, nodes)
    query, key, value = vectors(nodes)
    out = masked_attention(query, key, value, adjacency)[receiver]
    if stranger not in adjacency.row(receiver)[0].tolist():
        key[stranger], value[stranger] = torch.nan, torch.nan
        assert torch.equal(masked_attention(query, key, value, adjacency)[receiver], out)


def test_rows_padded_with_nan_that_nobody_sees_change_no_bit():
    nodes, edge_index = 4, torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    padded = [torch.cat([each, torch.full((3, 2, 3), torch.nan)]) for each in vectors(nodes)]
    out = masked_attention(*padded, Adjacency.from_edge_index(edge_index, nodes + 3))
    assert torch.equal(out[:nodes], masked_attention(*vectors(nodes), Adjacency.from_edge_index(edge_index, nodes)))


def test_threads_change_no_bit():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(3000, (2, 20000), generator=generator)
    adjacency, inputs, before = Adjacency.from_edge_index(edge_index, 3000), vectors(3000), torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            leaves = [each.clone().requires_grad_() for each in inputs]
            out = masked_attention(*leaves, adjacency)
            results.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def test_direction_receiver_zero_sees_node_one_and_not_the_other_way():
    query, key, value = vectors(2)
    out = masked_attention(query, key, value, graph([(1, 0)], 2))
    assert torch.equal(out[0], value[1])
    assert (out[1] == 0).all()


def test_key_and_value_may_differ_in_width():
    out = masked_attention(torch.ones(2, 1, 3), torch.ones(2, 1, 3), torch.ones(2, 1, 5), graph([(0, 1)], 2))
    assert out.shape == (2, 1, 5)


def test_a_score_of_ones_own_works_in_every_backend_that_calls_it():
    def negative_distance(query, key):
        return -(query - key).abs().sum(-1)

    query, key, value = (each.double() for each in vectors(4))
    results = [
        masked_attention(query, key, value, Adjacency.complete(4), score=negative_distance, backend=backend.name)
        for backend in BACKENDS
        if not backend.name.startswith("fused")  # their kernels have scores of their own
    ]
    for result in results:
        torch.testing.assert_close(result, results[-1])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"query": torch.ones(3, 2, 3)}, ShapeError, r"query has shape \(3, 2, 3\).*2 receivers and 2 senders"),
        ({"key": torch.ones(2, 2, 4)}, ShapeError, r"key has shape \(2, 2, 4\)"),
        ({"value": torch.ones(2, 3, 4)}, ShapeError, r"value has shape \(2, 3, 4\).*2 senders and the query 2 heads"),
        ({"normalizer": "max"}, SettingError, "normalizer must be 'softmax' or 'relu', got 'max'"),
        ({"dropout": 1.0}, SettingError, r"dropout must be in \[0, 1\), got 1.0"),
        ({"score": "cosine"}, SettingError, "score must be 'dot', 'additive' or a function.*got 'cosine'"),
        ({"bias": torch.ones(3, 2)}, ShapeError, "bias has 3 rows but the adjacency has 1 edges"),
        ({"bias": torch.ones(1, 3)}, ShapeError, r"bias has rows of shape \(3,\).*want \(2,\)"),
        ({"edges": EdgeTerms(key=torch.ones(1, 2, 9))}, ShapeError, r"edges.key has rows of shape \(2, 9\)"),
        (
            {"bias": ByType(torch.ones(3, 2), torch.tensor([3]))},
            GraphError,
            "bias has edge kinds from 3 to 3, but a table of 3 kinds",
        ),
        (
            {"bias": ByType(torch.ones(3, 2), torch.tensor([0.9]))},
            ShapeError,
            "bias has kinds of edge in torch.float32",
        ),
        (
            {"bias": ByType(torch.ones(3, 2), torch.tensor([[0]]))},
            ShapeError,
            r"bias has kinds of edge of shape \(1, 1\); pass one kind per edge",
        ),
        ({"value": torch.ones(2, 2, 0)}, ShapeError, r"value \(2, 2, 0\); there must be at least one head"),
        (
            {"backend": "fast"},
            BackendError,
            "there is no backend 'fast'; there are auto, dense, fused_cpu, sparse, fused_gpu, definition",
        ),
    ],
)
def test_wrong_calls_are_refused_in_words(change, error, words):
    arguments = dict(zip(("query", "key", "value"), vectors(2), strict=True)) | {"adjacency": graph([(0, 1)], 2)}
    with pytest.raises(error, match=words):
        masked_attention(**(arguments | change))


def test_dropout_without_a_seed_is_refused():
    call = random_call(graph([(0, 1)], 2))
    unseeded = AttentionCall(call.query, call.key, call.value, call.adjacency, DotProduct(), dropout=0.5)
    with pytest.raises(SettingError, match="dropout needs a seed"):
        BACKENDS[0](unseeded)


def test_a_backend_asked_for_by_name_says_why_not():
    query, key, value = vectors(3)
    with pytest.raises(BackendError, match="'dense' cannot run this call: the adjacency has parallel edges"):
        masked_attention(query, key, value, AWKWARD_GRAPHS["parallel edges"], backend="dense")
    adjacency = Adjacency.from_edge_index(torch.zeros(2, 0, dtype=torch.long), 50_000)
    with pytest.raises(BackendError, match=re.escape("padding to 50000 x 50000 in 1 graphs would make 5.0e+09")):
        masked_attention(*vectors(50_000), adjacency, backend="dense")


def test_unknown_activation_is_refused():
    with pytest.raises(SettingError, match="activation must be 'leaky_relu' or 'tanh', got 'gelu'"):
        Additive(activation="gelu")
