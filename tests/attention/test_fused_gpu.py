"""What is particular to the Triton kernels: widths, layouts, who asks for them, and that they compile for a GPU."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from awkward import AWKWARD_GRAPHS, SCORES, graph, inputs_of, random_call, value_and_gradients
from torch.autograd import gradgradcheck

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import attend, masked_attention
from graphattn.attention.backends.fused_gpu.backend import FusedGPU
from graphattn.attention.backends.sparse import Sparse
from graphattn.attention.call import AttentionCall, ByType, EdgeTerms
from graphattn.attention.scores import Additive, DotProduct
from graphattn.errors import BackendError, SettingError

FUSED = FusedGPU()
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed; it exists for Linux only"
)


def assert_close_to_sparse(run, *inputs: torch.Tensor) -> None:
    """Values and gradients of ``run(backend, *inputs)``, which must be float64."""
    results = []
    for backend in (FUSED, Sparse()):
        out = run(backend)
        weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)
        results.append([out, *torch.autograd.grad((out * weights).sum(), inputs)])
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64).requires_grad_()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@needs_triton
@pytest.mark.parametrize(("heads", "key_width", "value_width"), [(1, 1, 1), (5, 3, 70), (3, 200, 2), (1, 300, 1024)])
@pytest.mark.parametrize("score", [DotProduct(), Additive("tanh")], ids=["dot", "additive"])
def test_any_number_of_heads_of_any_width(heads, key_width, value_width, score):
    adjacency = graph([(0, 1), (1, 0), (2, 1), (1, 1), (0, 1), (2, 1)], 3)
    query, key, value = random(3, heads, key_width), random(3, heads, key_width), random(3, heads, value_width)
    terms = ByType(random(2, heads, key_width), torch.tensor([0, 1, 1, 0, 1, 1]))
    call = AttentionCall(query, key, value, adjacency, score, edges=EdgeTerms(key=terms))
    assert_close_to_sparse(lambda backend: backend(call), query, key, value, terms.table)


@needs_triton
@pytest.mark.parametrize("score", ["dot", "additive, leaky relu"])
def test_one_tensor_as_key_and_value_and_one_term_for_both_get_both_gradients(score):
    adjacency = graph([(0, 1), (1, 0), (2, 1), (1, 1)], 3).with_self_loops()
    query, key = random(3, 2, 3), random(3, 2, 3)
    for terms in (random(4, 2, 3), ByType(random(3, 2, 3), torch.tensor([2, 0, 2, 2]))):
        call = AttentionCall(query, key, key, adjacency, SCORES[score], edges=EdgeTerms(terms, terms))
        table = terms.table if isinstance(terms, ByType) else terms
        assert_close_to_sparse(lambda backend, call=call: backend(call), query, key, table)


@needs_triton
def test_columns_of_one_projection_kinds_in_a_column_and_heads_in_another_order_are_read_as_they_lie():
    adjacency = graph([(0, 1), (1, 0), (2, 1), (1, 1)], 3)
    projected, values, table = random(3, 12), random(2, 5, 3), random(3, 2)
    query, key = (part.view(3, 2, 3) for part in projected.split(6, 1))
    kind = torch.tensor([[0, 9], [2, 9], [1, 9], [0, 9]], dtype=torch.uint8)[:, 0]
    for value in (values.permute(2, 0, 1), values.transpose(0, 1)[:3]):  # (3, 2, 5) and (3, 2, 3), of other strides
        call = AttentionCall(query, key, value, adjacency, DotProduct(), bias=ByType(table, kind))
        assert_close_to_sparse(lambda backend, call=call: backend(call), projected, values, table)


@needs_triton
def test_a_vector_shared_by_all_heads():
    adjacency, vector = graph([(0, 1), (1, 0), (2, 1)], 3), random(3)
    query, key, value = random(3, 2, 3), random(3, 2, 3), random(3, 2, 4)
    call = AttentionCall(query, key, value, adjacency, Additive(vector=vector))
    assert_close_to_sparse(lambda backend: backend(call), query, key, value, vector)


@needs_triton
def test_a_hub_and_tables_that_several_programs_share():
    edge_index = torch.stack([torch.arange(150) % 5, torch.arange(150) // 100])  # receivers 0 and 1 see 100 and 50
    adjacency = Adjacency.from_edge_index(edge_index, num_senders=5, num_receivers=2)
    score = SCORES["additive, leaky relu"]
    call = random_call(adjacency, replace(score, vector=random(2, 3)), terms="everything by type")
    inputs = [*inputs_of(call).values(), call.score.vector]
    assert_close_to_sparse(lambda backend: backend(call), *inputs)


@needs_triton
def test_company_in_the_batch_and_a_second_run_change_no_bit():
    small = AWKWARD_GRAPHS["edges in no order"]
    call = random_call(small, dtype=torch.float32)
    alone = value_and_gradients(FUSED, call)
    assert all(torch.equal(again, alone[name]) for name, again in value_and_gradients(FUSED, call).items())
    nodes, others = small.num_receivers, AWKWARD_GRAPHS["star"]
    both = torch.cat([small.edge_index(), others.edge_index() + nodes], 1)
    together = random_call(Adjacency.from_edge_index(both, nodes + 9), dtype=torch.float32, seed=1)
    rows = [
        torch.cat([mine.detach(), other.detach()[nodes:]]).requires_grad_()
        for mine, other in ((call.query, together.query), (call.key, together.key), (call.value, together.value))
    ]
    out = FUSED(replace(together, query=rows[0], key=rows[1], value=rows[2]))
    assert torch.equal(out[:nodes], alone["output"])


@needs_triton
def test_gradients_can_be_differentiated_again():
    call = random_call(graph([(0, 1), (1, 0), (2, 1)], 3), SCORES["additive, tanh"])

    def run(query, key, value):
        return FUSED(replace(call, query=query, key=key, value=value))

    assert gradgradcheck(run, (call.query, call.key, call.value), fast_mode=True)


@needs_triton
def test_only_what_is_asked_for_gets_a_gradient():
    call = random_call(graph([(0, 1), (1, 0)], 2), terms="everything by type")
    table = call.edges.value.table
    frozen = replace(
        call,
        query=call.query.detach(),
        key=call.key.detach(),
        value=call.value.detach(),
        bias=replace(call.bias, table=call.bias.table.detach()),
        edges=EdgeTerms(value=call.edges.value),
    )
    assert_close_to_sparse(lambda backend: backend(frozen), table)


@needs_triton
def test_it_is_never_chosen_on_a_cpu_but_runs_when_asked_for(monkeypatch):
    ran = []
    monkeypatch.setattr(FusedGPU, "__call__", lambda _, call: ran.append(call) or call.value)
    wide = torch.zeros(1, 1, 1024, dtype=torch.float64)  # more than the CPU's kernels take
    call = AttentionCall(wide, wide, wide, graph([(0, 0)], 1), DotProduct())
    attend(call)
    assert not ran
    attend(call, "fused_gpu")
    assert ran


def test_what_it_cannot_run_is_refused_in_words(monkeypatch):
    call = random_call(AWKWARD_GRAPHS["a bond"])
    assert "not the score <function" in FUSED.why_not(replace(call, score=lambda query, key: (query * key).sum(-1)))
    wide = torch.zeros(2, 1, 1025)
    assert "1 to 1024 channels per head, not 1025 of query and 4 of value" in FUSED.why_not(
        replace(call, query=wide, key=wide, value=torch.zeros(2, 1, 4))
    )
    whole = torch.zeros(2, 1, 4, dtype=torch.complex64)
    assert "the query is torch.complex64" in FUSED.why_not(replace(call, query=whole, key=whole, value=whole))
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(BackendError, match=r"runs on CUDA devices, and the query is on cpu \(TRITON_INTERPRET=1"):
        masked_attention(call.query, call.key, call.value, call.adjacency, backend="fused_gpu")


@needs_triton
def test_dropout_without_a_seed_is_refused():
    call = replace(random_call(AWKWARD_GRAPHS["a bond"]), dropout=0.5)
    with pytest.raises(SettingError, match="dropout needs a seed"):
        FUSED(call)


def run_python(*arguments: str) -> str:
    environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_of_triton_is_imported_before_it_is_asked_for():
    program = "import sys, graphattn.attention.attend; print([name for name in sys.modules if 'triton' in name])"
    assert "graphattn.attention.backends.fused_gpu.kernels" not in run_python("-c", program)


@needs_triton
def test_the_kernels_compile_for_a_gpu():
    compiled = run_python(str(Path(__file__).parent / "compiled_for_gpu.py")).split()
    assert set(compiled) == {"forward", "backward_receivers", "backward_senders", "sum_by_group"}


ON_A_GPU = """
import torch
from awkward import AWKWARD_GRAPHS, EDGE_TERMS, SCORES, random_call, inputs_of
from dataclasses import replace
from graphattn.attention.attend import attend
from graphattn.attention.call import ByType, EdgeTerms

def moved(terms):
    if isinstance(terms, ByType):
        return ByType(moved(terms.table), terms.kind.cuda())
    return None if terms is None else terms.detach().cuda().requires_grad_()

ran = 0
for adjacency in AWKWARD_GRAPHS.values():
    for score in SCORES.values():
        if getattr(score, "vector", None) is not None:
            score = replace(score, vector=score.vector.cuda())
        for normalizer in ("softmax", "relu"):
            for terms in EDGE_TERMS:
                call = random_call(adjacency, score, normalizer, terms)
                call = replace(
                    call, query=moved(call.query), key=moved(call.key), value=moved(call.value),
                    adjacency=adjacency.to("cuda"), bias=moved(call.bias), dropout=0.25, seed=torch.tensor(3).cuda(),
                    edges=EdgeTerms(moved(call.edges.key), moved(call.edges.value)),
                )
                got, want = attend(call), attend(call, "sparse")
                torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)
                if not want.requires_grad:
                    continue
                inputs = list(inputs_of(call).values())
                for one, other in zip(*(torch.autograd.grad(out.square().sum(), inputs, allow_unused=True,
                                                            materialize_grads=True) for out in (got, want))):
                    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)
                ran += 1
print(ran)
"""


@needs_triton
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here; the interpreter runs the kernels")
def test_a_gpu_gives_what_the_sparse_backend_gives():
    assert int(run_python("-c", ON_A_GPU)) > 500
