"""Which backend ``"auto"`` takes, and that it is right there."""

from dataclasses import replace

import pytest
import torch
from awkward import AWKWARD_GRAPHS, value_and_gradients
from torch.utils.checkpoint import checkpoint

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import attend, fastest
from graphattn.attention.backends.definition import Definition
from graphattn.attention.backends.dense import Dense
from graphattn.attention.call import AttentionCall
from graphattn.attention.scores import Additive, DotProduct
from graphattn.errors import BackendError


def plain_call(adjacency: Adjacency, width: int, **settings) -> AttentionCall:
    generator = torch.Generator().manual_seed(0)
    sizes = (adjacency.num_receivers, adjacency.num_senders, adjacency.num_senders)
    rows = [torch.randn(size, 2, width, generator=generator) for size in sizes]
    return replace(AttentionCall(*rows, adjacency, DotProduct()), **settings)


def two_graphs(nodes: int, of_pairs: float = 1.0) -> Adjacency:
    """Both of one size, in which each pair may attend with that chance."""
    chance = torch.rand(2, nodes, nodes, generator=torch.Generator().manual_seed(0))
    graph, receiver, sender = (chance < of_pairs).nonzero().T
    edge_index = torch.stack([sender, receiver]) + graph * nodes
    return Adjacency.from_edge_index(edge_index, 2 * nodes, ptr=torch.tensor([0, nodes, 2 * nodes]))


@pytest.mark.parametrize(
    ("adjacency", "width", "settings", "backend"),
    [
        (AWKWARD_GRAPHS["parallel edges"], 3, {}, "fused_cpu"),
        (Adjacency.complete(1024), 8, {}, "dense"),
        (Adjacency.complete(1023), 8, {}, "fused_cpu"),
        (two_graphs(64), 32, {}, "dense"),
        (two_graphs(63), 32, {}, "fused_cpu"),
        (two_graphs(64, 0.9), 32, {}, "fused_cpu"),
        (two_graphs(150, 0.85), 32, {}, "dense"),
        (two_graphs(150, 0.7), 32, {}, "fused_cpu"),
        (two_graphs(1024, 0.52), 32, {}, "dense"),
        (two_graphs(256, 0.7), 64, {}, "dense"),
        (two_graphs(256, 0.5), 64, {}, "fused_cpu"),
        (two_graphs(255, 0.7), 64, {}, "fused_cpu"),
        (two_graphs(1024, 0.7), 16, {}, "fused_cpu"),
        (Adjacency.causal(512), 32, {}, "dense"),
        (Adjacency.causal(1024), 16, {}, "dense"),
        (Adjacency.causal(1023), 16, {}, "fused_cpu"),
        (Adjacency.causal(511), 64, {}, "fused_cpu"),
        (Adjacency.causal(ptr=torch.tensor([0, 512, 1024])), 32, {}, "dense"),
        (Adjacency.causal(ptr=torch.tensor([0, 512, 600])), 32, {}, "fused_cpu"),
        (Adjacency.from_dense(torch.ones(100, 63)), 32, {}, "fused_cpu"),
        (two_graphs(64), 32, {"normalizer": "relu"}, "fused_cpu"),
        (two_graphs(64), 32, {"score": Additive()}, "fused_cpu"),
        (two_graphs(64), 32, {"bias": torch.zeros(2 * 64**2, 2)}, "fused_cpu"),
        (two_graphs(64), 32, {"value": torch.ones(128, 2, 16)}, "fused_cpu"),
        (two_graphs(64), 32, {"dropout": 0.5, "seed": torch.tensor(1)}, "fused_cpu"),
        (two_graphs(16, 0.5), 257, {}, "sparse"),
        (two_graphs(16, 0.5), 8, {"score": lambda query, key: (query * key).sum(-1)}, "sparse"),
    ],
)
def test_auto_takes_what_was_measured_to_be_fastest(adjacency, width, settings, backend):
    call = plain_call(adjacency, width, **settings)
    assert fastest(call).name == backend
    assert torch.equal(attend(call), attend(call, backend))


def test_auto_takes_kernels_of_float32_for_half_precision():
    call = plain_call(two_graphs(64), 32)
    half = {name: getattr(call, name).bfloat16() for name in ("query", "key", "value")}
    assert fastest(replace(call, **half)).name == "fused_cpu"


def test_auto_passes_over_a_backend_that_cannot():
    call = plain_call(two_graphs(64), 32)
    call.value[0, 0, 0] = torch.nan
    assert Dense().is_fastest(call)
    assert fastest(call).name == "fused_cpu"


@pytest.mark.parametrize("of_pairs", [1.0, 0.7], ids=["complete", "nearly complete"])
def test_dense_is_right_on_large_graphs(of_pairs):
    call = plain_call(two_graphs(64, of_pairs), 32)
    assert call.adjacency.is_complete == (of_pairs == 1)
    inputs = {name: getattr(call, name).double().requires_grad_() for name in ("query", "key", "value")}
    truth = value_and_gradients(Definition(), replace(call, **inputs))
    got = value_and_gradients(Dense(), replace(call, **{name: each.float() for name, each in inputs.items()}))
    for name, want in truth.items():
        torch.testing.assert_close(got[name].double(), want, rtol=1e-5, atol=1e-5)


def test_dense_is_right_on_written_sequences():
    call = plain_call(Adjacency.causal(ptr=torch.tensor([0, 300, 300, 501])), 32)
    inputs = {name: getattr(call, name).double().requires_grad_() for name in ("query", "key", "value")}
    truth = value_and_gradients(Definition(), replace(call, **inputs))
    got = value_and_gradients(Dense(), replace(call, **{name: each.float() for name, each in inputs.items()}))
    for name, want in truth.items():
        torch.testing.assert_close(got[name].double(), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("backend", ["dense", "fused_cpu", "sparse"])
@pytest.mark.parametrize("adjacency", [two_graphs(64), Adjacency.causal(64)], ids=["complete", "causal"])
def test_second_derivatives_exist_whatever_auto_takes(backend, adjacency):
    call = plain_call(adjacency, 32)
    inputs = [tensor.double().requires_grad_() for tensor in (call.query, call.key, call.value)]

    def penalty(name):
        out = attend(replace(call, **dict(zip(("query", "key", "value"), inputs, strict=True))), name)
        grads = torch.autograd.grad(out.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(grad.square().sum() for grad in grads), inputs)

    torch.testing.assert_close(penalty(backend), penalty("definition"))


@pytest.mark.parametrize("backend", ["dense", "fused_cpu", "sparse"])
@pytest.mark.parametrize("reentrant", [True, False])
def test_memory_can_be_saved_by_checkpoints(backend, reentrant):
    call = plain_call(two_graphs(64), 32)
    query = call.query.requires_grad_()

    def attention(query):
        return attend(replace(call, query=query), backend).square()

    checkpoint(attention, query, use_reentrant=reentrant).sum().backward()
    got, query.grad = query.grad, None
    attention(query).sum().backward()
    torch.testing.assert_close(got, query.grad)


@pytest.mark.parametrize("transformed", ["query", "key", "value"])
def test_torch_func_takes_sparse_whichever_tensor_it_transforms(transformed):
    call = plain_call(two_graphs(64), 32)
    tensor = getattr(call, transformed)

    def attention(tensor):
        return attend(replace(call, **{transformed: tensor}))

    out = attention(tensor)
    torch.testing.assert_close(torch.func.vmap(attention)(tensor[None]), out[None])
    torch.testing.assert_close(torch.func.jvp(attention, (tensor,), (torch.zeros_like(tensor),)), (out, 0 * out))


def test_a_masked_out_score_that_overflows_is_none_of_dense():
    may_attend = torch.ones(256, 256)
    may_attend[:, 5] = 0
    call = plain_call(Adjacency.from_dense(may_attend), 64)
    call.key[5] = 1e38
    call.query[:] *= 1e3
    assert Dense().is_fastest(call)
    with pytest.raises(BackendError, match="might have a score that overflows"):
        attend(call, "dense")
    assert attend(call).isfinite().all()


def test_completeness_counts_pairs_not_entries():
    all_but_one = torch.tensor([[0, 1, 0, 0], [0, 0, 1, 1]])  # 0 -> 1 twice, and 1 -> 1 is missing
    assert not Adjacency.from_edge_index(all_but_one, 2).is_complete
    assert Adjacency.complete(3).is_complete
    assert not Adjacency.complete(ptr=torch.tensor([0, 2, 5])).is_complete
    assert not Adjacency.complete(0).is_complete
