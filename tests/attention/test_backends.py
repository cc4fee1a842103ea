"""Every backend against the one slow definition, values and gradients, on the awkward graphs."""

import shutil
from dataclasses import replace

import pytest
import torch
from awkward import AWKWARD_GRAPHS, EDGE_TERMS, SCORES, graph, inputs_of, random_call, value_and_gradients
from torch.autograd import gradcheck, gradgradcheck

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import BACKENDS, masked_attention
from graphattn.attention.backends.definition import Definition
from graphattn.attention.backends.sparse import Sparse
from graphattn.attention.call import AttentionCall, EdgeTerms
from graphattn.attention.scores import Additive
from graphattn.errors import ShapeError

OTHERS = [backend for backend in BACKENDS if backend.name != "definition"]
ids = {"ids": lambda backend: backend.name}


def assert_equal(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> None:
    for name, wanted in want.items():
        torch.testing.assert_close(
            got[name], wanted, rtol=1e-10, atol=1e-12, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("backend", OTHERS, **ids)
@pytest.mark.parametrize("terms", EDGE_TERMS)
@pytest.mark.parametrize("normalizer", ["softmax", "relu"])
@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_backend_matches_the_definition(backend, terms, normalizer, score):
    ran = 0
    for adjacency in AWKWARD_GRAPHS.values():
        call = random_call(adjacency, score, normalizer, terms)
        if backend.why_not(call) is None:
            assert_equal(value_and_gradients(backend, call), value_and_gradients(Definition(), call))
            ran += 1
    assert ran >= len(AWKWARD_GRAPHS) - 1  # the dense backend declines parallel edges, and nothing else here


@pytest.mark.parametrize("backend", OTHERS, **ids)
@pytest.mark.parametrize("activation", ["leaky_relu", "tanh"])
def test_the_vector_of_a_score_gets_the_gradient_of_the_definition(backend, activation):
    gradients = []
    for each in (backend, Definition()):
        vector = torch.linspace(-1, 2, 6, dtype=torch.float64).view(2, 3).requires_grad_()
        call = random_call(AWKWARD_GRAPHS["star"], Additive(activation, vector=vector), terms="everything by type")
        gradients.append(torch.autograd.grad(each(call).square().sum(), vector)[0])
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("backend", OTHERS, **ids)
def test_dropout_is_the_same_everywhere_and_follows_its_seed(backend):
    call = random_call(AWKWARD_GRAPHS["complete"], terms="everything", dropout=0.5)
    assert_equal(value_and_gradients(backend, call), value_and_gradients(Definition(), call))
    assert not torch.equal(backend(call), backend(replace(call, seed=torch.tensor(5))))


def test_dropout_drops_the_asked_share_and_keeps_the_mean():
    ones = torch.ones(400, 1, 1)
    torch.manual_seed(0)
    out = masked_attention(ones, ones, ones, Adjacency.complete(400), dropout=0.25)
    assert abs(float(out.mean()) - 1) < 0.01
    assert 0.01 < float(out.std()) < 0.1  # sqrt(0.25 / 0.75 / 400) = 0.029


@pytest.mark.parametrize("backend", BACKENDS, **ids)
@pytest.mark.parametrize(
    "name", ["lonely node beside a ring", "one lonely node", "one-way edge", "empty graph inside a batch"]
)
def test_receiver_without_senders_gets_zeros_and_finite_gradients(backend, name):
    call = random_call(AWKWARD_GRAPHS[name], terms="everything")
    result = value_and_gradients(backend, call)
    alone = call.adjacency.rowptr.diff() == 0
    assert alone.any()
    assert (result["output"][alone] == 0).all()
    assert all(tensor.isfinite().all() for tensor in result.values())


@pytest.mark.parametrize("backend", BACKENDS, **ids)
@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_poison_in_a_sender_nobody_sees_harms_nobody(backend, poison):
    call = random_call(graph([(0, 1), (1, 0), (3, 2)], 4), terms="key")
    clean = value_and_gradients(Sparse(), call)
    key, value = call.key.detach().clone(), call.value.detach().clone()
    key[2], value[2] = poison, poison  # node 2 sends to nobody
    poisoned = replace(call, key=key.requires_grad_(), value=value.requires_grad_())
    if backend.name == "dense":
        assert "NaN or inf" in backend.why_not(poisoned)
    else:
        assert_equal(value_and_gradients(backend, poisoned), clean)


@pytest.mark.parametrize("backend", BACKENDS, **ids)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_huge_scores_in_half_precision_stay_finite(backend, dtype):
    adjacency = graph([(0, 1), (1, 0), (2, 1), (1, 2)], 3)
    vectors = torch.tensor([[[100.0, 0.0]], [[-100.0, 0.0]], [[99.0, 1.0]]], dtype=dtype)  # scores of +-1e4
    out = masked_attention(vectors, vectors, vectors, adjacency, score=SCORES["dot, scale 1"], backend=backend.name)
    assert out.dtype == dtype
    assert out.isfinite().all()


@pytest.mark.parametrize("backend", OTHERS, **ids)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_error_in_low_precision_is_at_most_twice_that_of_the_definition(backend, dtype):
    adjacency = Adjacency.complete(ptr=torch.tensor([0, 20, 50]))
    exact = random_call(adjacency)
    truth, low = value_and_gradients(Definition(), exact), random_call(adjacency, dtype=dtype)
    plain, got = value_and_gradients(Definition(), low), value_and_gradients(backend, low)
    for name, want in truth.items():
        own, reference = ((each[name].double() - want).abs().max() for each in (got, plain))
        assert own <= 2 * reference + torch.finfo(dtype).eps, name


def small_functions():
    for terms in ("nothing", "everything", "everything by type"):
        for name, score in SCORES.items():
            for normalizer in ("softmax", "relu"):
                yield pytest.param(terms, score, normalizer, id=f"{name}-{normalizer}-{terms}")


def as_function(backend, call: AttentionCall):
    names = list(inputs_of(call))

    def run(*tensors):
        given = dict(zip(names, tensors, strict=True))

        def swap(name, original):
            if original is None or name not in given:
                return original
            return replace(original, table=given[name]) if hasattr(original, "table") else given[name]

        return backend(
            replace(
                call,
                query=given["query"],
                key=given["key"],
                value=given["value"],
                bias=swap("bias", call.bias),
                edges=EdgeTerms(swap("edges.key", call.edges.key), swap("edges.value", call.edges.value)),
            )
        )

    return run, tuple(inputs_of(call).values())


@pytest.mark.parametrize("backend", OTHERS, **ids)
@pytest.mark.parametrize(("terms", "score", "normalizer"), list(small_functions()))
def test_gradcheck(backend, terms, score, normalizer):
    call = random_call(graph([(0, 1), (1, 0), (2, 1), (1, 1)], 3).with_self_loops(), score, normalizer, terms)
    run, inputs = as_function(backend, call)
    assert gradcheck(run, inputs)


def test_sparse_backend_has_second_derivatives():
    call = random_call(graph([(0, 1), (1, 0), (2, 1)], 3), SCORES["additive, tanh"], terms="everything")
    run, inputs = as_function(Sparse(), call)
    assert gradgradcheck(run, inputs)


@pytest.mark.parametrize("compiler", ["aot_eager", "inductor"])
def test_sparse_backend_compiles_whole(compiler):
    if compiler == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor needs a C++ compiler, and there is no g++ here")

    def attention(query, key, value, adjacency):
        return masked_attention(query, key, value, adjacency, backend="sparse")

    compiled = torch.compile(attention, fullgraph=True, backend=compiler)
    call = random_call(AWKWARD_GRAPHS["self loops added"], dtype=torch.float32)
    got = compiled(call.query, call.key, call.value, call.adjacency)
    torch.testing.assert_close(got, Sparse()(call))
    gradient = torch.autograd.grad(got.square().sum(), call.key)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(Sparse()(call).square().sum(), call.key)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("backend", BACKENDS, **ids)
def test_entries_of_minus_infinity_weigh_nothing_and_a_row_of_them_is_zero(backend, dtype):
    adjacency = graph([(0, 1), (2, 1), (1, 0)], 3)
    for seed in range(20):
        call = random_call(adjacency, seed=seed, dtype=dtype)
        bias = torch.tensor([[0.0], [-torch.inf], [-torch.inf]], dtype=dtype).repeat(1, 2).requires_grad_()
        masked = replace(call, bias=bias, value=(1e3 * call.value).detach().requires_grad_())
        result = value_and_gradients(backend, masked)
        torch.testing.assert_close(result["output"][1], masked.value[0].detach())
        assert (result["output"][0] == 0).all()
        assert all(result[name].isfinite().all() for name in ("query", "key", "value", "bias"))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's, of Triton's interpreter
@pytest.mark.parametrize("backend", BACKENDS, **ids)
def test_an_entry_of_plus_infinity_makes_its_row_nan_and_no_other(backend):
    call = random_call(graph([(0, 1), (2, 1), (1, 0)], 3), dtype=torch.float32)
    out = backend(replace(call, bias=torch.tensor([[0.0], [torch.inf], [2.0]]).repeat(1, 2)))
    assert out[1].isnan().all()
    assert out[[0, 2]].isfinite().all()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("backend", OTHERS, **ids)
@pytest.mark.parametrize("normalizer", ["softmax", "relu"])
def test_nan_in_a_score_reaches_what_the_definition_lets_it_reach(backend, normalizer):
    call = random_call(graph([(0, 1), (2, 1), (1, 0)], 3), normalizer=normalizer)
    call = replace(call, bias=torch.tensor([[0.0], [torch.nan], [2.0]]).double().repeat(1, 2).requires_grad_())
    if objection := backend.why_not(call):
        pytest.skip(objection)
    got, want = (value_and_gradients(each, call) for each in (backend, Definition()))
    for name, wanted in want.items():
        torch.testing.assert_close(got[name], wanted, equal_nan=True)


@pytest.mark.parametrize("backend", BACKENDS, **ids)
def test_a_dropout_of_nearly_one_drops_everything(backend):
    call = random_call(AWKWARD_GRAPHS["complete"], dtype=torch.float32, dropout=1 - 1e-12)
    assert (backend(call) == 0).all()


@pytest.mark.parametrize("backend", BACKENDS, **ids)
def test_a_large_bias_and_large_edge_terms_do_not_overflow_half_precision(backend):
    generator = torch.Generator().manual_seed(0)
    query, key, value, terms = (torch.randn(4, 2, 4, generator=generator).half() for _ in range(4))
    adjacency = graph([(0, 1), (2, 1), (1, 0), (3, 2)], 4)
    out = masked_attention(
        query * 300,
        key,
        value,
        adjacency,
        bias=torch.full((4, 2), 1e5),
        edges=EdgeTerms(key=terms * 300),
        backend=backend.name,
    )
    exact = [each.double() for each in (query * 300, key, value)]
    bias, edges = torch.full((4, 2), 1e5).double(), EdgeTerms(key=(terms * 300).double())
    want = masked_attention(*exact, adjacency, bias=bias, edges=edges, backend="definition")
    torch.testing.assert_close(out.double(), want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("backend", OTHERS, **ids)
def test_a_score_that_cannot_take_zeros_sees_no_padding(backend):
    def cosine(query, key):
        return (query * key).sum(-1) / (query.norm(dim=-1) * key.norm(dim=-1))

    call = random_call(graph([(0, 1), (1, 0), (2, 2)], 3, ptr=[0, 2, 3]), cosine)
    if objection := backend.why_not(call):
        pytest.skip(objection)
    assert_equal(value_and_gradients(backend, call), value_and_gradients(Definition(), call))


@pytest.mark.parametrize("backend", OTHERS, **ids)
def test_a_score_of_a_wrong_shape_is_refused(backend):
    call = random_call(AWKWARD_GRAPHS["a bond"], lambda query, key: (query * key).sum(-1, keepdim=True))
    if objection := backend.why_not(call):
        pytest.skip(objection)
    with pytest.raises(ShapeError, match=r"the score gave shape \(2, 2, 1\).*one number per head, shape \(2, 2\)"):
        backend(call)


def test_planted_bugs_are_seen():
    """The bench itself: a mask turned round and a softmax over the wrong axis must not pass."""

    class TurnedRound(Sparse):
        def __call__(self, call):
            return super().__call__(replace(call, adjacency=call.adjacency.transpose))

    class WrongAxis(Sparse):
        def __call__(self, call):
            weight = call.score(call.query[call.adjacency.receiver], call.key[call.adjacency.sender]).softmax(-1)
            mixed = weight[..., None] * call.value[call.adjacency.sender]
            out = torch.zeros(len(call.query), *mixed.shape[1:], dtype=mixed.dtype)
            return out.index_add(0, call.adjacency.receiver, mixed)

    call = random_call(AWKWARD_GRAPHS["edges in no order"])
    for bug in (TurnedRound(), WrongAxis()):
        with pytest.raises(AssertionError):
            assert_equal(value_and_gradients(bug, call), value_and_gradients(Definition(), call))
