"""Which backend ``"auto"`` takes, and that it is right there."""

from dataclasses import replace

import pytest
import torch
from awkward import AWKWARD_GRAPHS, value_and_gradients

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import attend, fastest
from graphattn.attention.backends.definition import Definition
from graphattn.attention.backends.dense import Dense
from graphattn.attention.call import AttentionCall
from graphattn.attention.scores import Additive, DotProduct


def plain_call(adjacency: Adjacency, width: int, **settings) -> AttentionCall:
    generator = torch.Generator().manual_seed(0)
    sizes = (adjacency.num_receivers, adjacency.num_senders, adjacency.num_senders)
    rows = [torch.randn(size, 2, width, generator=generator) for size in sizes]
    return AttentionCall(*rows, adjacency, **{"score": DotProduct(), **settings})


def two_graphs(nodes: int, of_pairs: float) -> Adjacency:
    """Both of one size, in which each pair may attend with that chance."""
    chance = torch.rand(2, nodes, nodes, generator=torch.Generator().manual_seed(0))
    graph, receiver, sender = (chance < of_pairs).nonzero().T
    edge_index = torch.stack([sender, receiver]) + graph * nodes
    return Adjacency.from_edge_index(edge_index, 2 * nodes, ptr=torch.tensor([0, nodes, 2 * nodes]))


@pytest.mark.parametrize(
    ("adjacency", "width", "settings", "backend"),
    [
        (AWKWARD_GRAPHS["parallel edges"], 3, {}, "fused_cpu"),
        (Adjacency.complete(256), 8, {}, "dense"),
        (Adjacency.complete(255), 8, {}, "fused_cpu"),
        (two_graphs(256, 0.9), 8, {}, "fused_cpu"),
        (two_graphs(64, 0.9), 32, {}, "dense"),
        (two_graphs(64, 0.5), 32, {}, "fused_cpu"),
        (two_graphs(63, 0.9), 32, {}, "fused_cpu"),
        (Adjacency.complete(256), 32, {"normalizer": "relu"}, "fused_cpu"),
        (Adjacency.complete(256), 32, {"score": Additive()}, "fused_cpu"),
        (Adjacency.complete(256), 32, {"bias": torch.zeros(256**2, 2)}, "fused_cpu"),
        (Adjacency.complete(256), 32, {"dropout": 0.5, "seed": torch.tensor(1)}, "fused_cpu"),
        (two_graphs(16, 0.5), 257, {}, "sparse"),
        (two_graphs(16, 0.5), 8, {"score": lambda query, key: (query * key).sum(-1)}, "sparse"),
    ],
)
def test_auto_takes_what_was_measured_to_be_fastest(adjacency, width, settings, backend):
    call = plain_call(adjacency, width, **settings)
    assert fastest(call).name == backend
    assert torch.equal(attend(call), attend(call, backend))


def test_auto_passes_over_a_backend_that_cannot():
    call = plain_call(Adjacency.complete(256), 8)
    call.value[0, 0, 0] = torch.nan
    assert Dense().is_fastest(call)
    assert fastest(call).name == "fused_cpu"


@pytest.mark.parametrize("of_pairs", [1.0, 0.7], ids=["complete", "nearly complete"])
def test_dense_is_right_where_auto_takes_it(of_pairs):
    call = plain_call(two_graphs(64, of_pairs), 32)
    assert call.adjacency.is_complete == (of_pairs == 1)
    inputs = {name: getattr(call, name).double().requires_grad_() for name in ("query", "key", "value")}
    truth = value_and_gradients(Definition(), replace(call, **inputs))
    got = value_and_gradients(Dense(), replace(call, **{name: each.float() for name, each in inputs.items()}))
    for name, want in truth.items():
        torch.testing.assert_close(got[name].double(), want, rtol=1e-5, atol=1e-5)


def test_completeness_counts_pairs_not_entries():
    all_but_one = torch.tensor([[0, 1, 0, 0], [0, 0, 1, 1]])  # 0 -> 1 twice, and 1 -> 1 is missing
    adjacency = Adjacency.from_edge_index(all_but_one, 2)
    assert (adjacency.density, adjacency.is_complete) == (1, False)
    assert Adjacency.complete(3).is_complete
    assert not Adjacency.complete(ptr=torch.tensor([0, 2, 5])).is_complete
    assert Adjacency.complete(ptr=torch.tensor([0, 2, 5])).density == 13 / 18
    assert Adjacency.complete(0).density == 0
