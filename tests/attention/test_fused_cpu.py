"""What is particular to the fused kernels on a CPU: bits, threads, processes, widths, the cache of compiled code."""

import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from awkward import AWKWARD_GRAPHS, SCORES, graph, inputs_of, random_call, value_and_gradients
from torch import Tensor
from torch.autograd import gradgradcheck
from torch.utils.data import DataLoader, Dataset

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import attend, masked_attention
from graphattn.attention.backends.definition import Definition
from graphattn.attention.backends.fused_cpu.backend import FusedCPU
from graphattn.attention.backends.fused_cpu.team import run_on_threads
from graphattn.attention.backends.sparse import Sparse
from graphattn.attention.call import AttentionCall, EdgeTerms
from graphattn.attention.scores import Additive, DotProduct
from graphattn.csr import MOST_RUNS
from graphattn.errors import BackendError, SettingError

FUSED = FusedCPU()


def batch_with_a_hub(nodes: int = 3000, edges: int = 9000) -> Adjacency:
    """Random edges, and one node that sees a third of the others: enough for several runs."""
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(nodes, (2, edges), generator=generator)
    edge_index[1, : edges // 3] = nodes // 2
    return Adjacency.from_edge_index(edge_index, nodes)


@pytest.fixture
def threads():
    """Sets PyTorch's threads; they are put back afterwards."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("score", ["dot", "additive, tanh"])
def test_the_number_of_threads_changes_no_bit(score, threads):
    call = random_call(batch_with_a_hub(), SCORES[score], terms="everything by type", dtype=torch.float32, dropout=0.2)
    assert len(call.adjacency.runs) > 8
    threads(1)
    alone = value_and_gradients(FUSED, call)
    for count in (2, 3, 7):
        threads(count)
        together = value_and_gradients(FUSED, call)
        assert all(torch.equal(together[name], alone[name]) for name in alone), count


def test_batch_company_changes_no_bit():
    small, other = AWKWARD_GRAPHS["edges in no order"], batch_with_a_hub()
    call = random_call(small, terms="everything", dtype=torch.float32)
    edges = torch.cat([small.edge_index(), other.edge_index() + small.num_senders], 1)
    both = Adjacency.from_edge_index(edges, small.num_senders + other.num_senders)
    company = random_call(both, terms="everything", dtype=torch.float32, seed=1)

    def joined(name: str) -> Tensor:
        mine = inputs_of(call)[name].detach()
        return torch.cat([mine, inputs_of(company)[name].detach()[len(mine) :]]).requires_grad_()

    together = value_and_gradients(
        FUSED,
        replace(
            company,
            query=joined("query"),
            key=joined("key"),
            value=joined("value"),
            bias=joined("bias"),
            edges=EdgeTerms(joined("edges.key"), joined("edges.value")),
        ),
    )
    for name, wanted in value_and_gradients(FUSED, call).items():
        assert torch.equal(together[name][: len(wanted)], wanted), name


def test_runs_share_out_the_entries_whatever_hubs_there_are():
    adjacency = batch_with_a_hub(20000, 300000)
    runs = adjacency.runs
    assert runs[0] == 0
    assert runs[-1] == 20000
    assert len(runs) == MOST_RUNS + 1
    cost = (adjacency.rowptr[runs].long() + runs).diff()
    assert cost.sort().values[-2] < 3 * 320000 / MOST_RUNS  # all but that of the hub
    assert AWKWARD_GRAPHS["no node at all"].runs.tolist() == [0, 0]


def test_several_python_threads_at_once_get_what_one_gets(threads):
    threads(2)
    calls = [random_call(batch_with_a_hub(), terms="everything by type", seed=seed) for seed in range(4)]
    wanted = [value_and_gradients(FUSED, call) for call in calls]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for got, want in zip(pool.map(lambda call: value_and_gradients(FUSED, call), calls), wanted, strict=True):
                assert all(torch.equal(got[name], want[name]) for name in want)


def test_python_threads_do_the_work_where_openmp_cannot_be_had(monkeypatch, threads):
    call = random_call(batch_with_a_hub(), terms="everything by type")
    threads(4)
    wanted = value_and_gradients(FUSED, call)
    monkeypatch.setattr("graphattn.attention.backends.fused_cpu.team._openmp_team", lambda: None)
    got = value_and_gradients(FUSED, call)
    assert all(torch.equal(got[name], wanted[name]) for name in wanted)


def test_all_threads_have_ended_when_the_work_is_done(monkeypatch):
    monkeypatch.setattr("graphattn.attention.backends.fused_cpu.team._openmp_team", lambda: None)
    done = []
    for _ in range(50):
        done.clear()
        run_on_threads(done.append, 7, 8)
        assert 1 <= len(done) <= 8
        assert set(done) == {7}


def run_python(code: str, **environment: str) -> str:
    """What a process of its own prints; it may take two minutes."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_computes_on():
    """OpenMP's threads stay with the parent; a child that waited for them would wait forever."""
    printed = run_python("""
        import os, torch
        from graphattn import Adjacency, masked_attention
        torch.set_num_threads(2)
        q, k, v, g = (torch.randn(5000, 4, 8, requires_grad=True) for _ in range(4))
        ring = Adjacency.from_edge_index(torch.stack([torch.arange(5000), torch.arange(5000).roll(1)]), 5000)
        def attention():
            out = masked_attention(q, k, v, ring, backend="fused_cpu")
            return b"".join(part.detach().numpy().tobytes() for part in (out, *torch.autograd.grad(out, (q, k, v), g)))
        wanted = attention()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, b"equal" if attention() == wanted else b"other")
            os._exit(0)
        print(os.read(read, 5).decode(), os.waitpid(child, 0)[1], attention() == wanted)
        """)
    assert printed.split() == ["equal", "0", "True"]


class _Attended(Dataset):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, item: int) -> Tensor:
        return FUSED(random_call(AWKWARD_GRAPHS["star"], seed=item)).detach()


def test_data_loader_workers_compute_too():
    loaded = torch.cat(list(DataLoader(_Attended(), num_workers=2, batch_size=2, multiprocessing_context="spawn")))
    assert torch.equal(loaded, torch.stack([_Attended()[item] for item in range(6)]))


SMALL_ATTENTION = """
    import logging, time, torch
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=__import__("sys").stdout)
    from graphattn import Adjacency, masked_attention
    q = torch.randn(9, 1, 2, requires_grad=True)
    pairs = Adjacency.complete(9); pairs.transpose
    start = time.perf_counter()
    masked_attention(q, q, q, pairs, backend="fused_cpu").sum().backward()
    print("seconds", time.perf_counter() - start)
    """


def test_kernels_are_compiled_once_for_all_processes(tmp_path):
    first, second = (run_python(SMALL_ATTENTION, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.count("compiled attention kernels") == 1
    assert "compiled" not in second
    assert list(tmp_path.rglob("*.nbi"))


def test_kernels_work_where_no_folder_can_be_written():
    code = """
    import numba.core.caching as caching
    def refuse(self):
        raise OSError("read-only")
    caching._CacheLocator.ensure_cache_path = refuse
    """
    printed = run_python(code + SMALL_ATTENTION)
    assert "no folder can be written" in printed
    assert "seconds" in printed


def test_a_machine_without_numba_uses_another_backend():
    printed = run_python(
        """
        import json, torch
        from graphattn import Adjacency, masked_attention
        from graphattn.errors import BackendError
        q, pairs = torch.ones(2, 1, 1), Adjacency.complete(2)
        try:
            masked_attention(q, q, q, pairs, backend="fused_cpu")
        except BackendError as error:
            print(json.dumps([str(error), masked_attention(q, q, q, pairs).tolist()]))
        """,
        NUMBA_DISABLE_JIT="1",
    )
    message, out = json.loads(printed)
    assert "NUMBA_DISABLE_JIT" in message
    assert out == [[[1.0]], [[1.0]]]


@pytest.mark.parametrize(
    ("heads", "key_width", "value_width"), [(1, 1, 7), (3, 10, 33), (6, 16, 16), (12, 5, 5), (1, 128, 100)]
)
def test_every_width_and_number_of_heads(heads, key_width, value_width):
    generator = torch.Generator().manual_seed(0)
    adjacency = AWKWARD_GRAPHS["parallel edges"]

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    nodes, edges = adjacency.num_senders, adjacency.num_edges
    call = AttentionCall(
        random(nodes, heads, key_width),
        random(nodes, heads, key_width),
        random(nodes, heads, value_width),
        adjacency,
        DotProduct(),
        edges=EdgeTerms(random(edges, heads, key_width), random(edges, heads, value_width)),
    )
    got, want = value_and_gradients(FUSED, call), value_and_gradients(Definition(), call)
    for name in want:
        torch.testing.assert_close(got[name], want[name], rtol=1e-10, atol=1e-12)


def test_one_vector_for_all_heads_is_read_as_the_definition_reads_it():
    call = random_call(AWKWARD_GRAPHS["star"], Additive(vector=torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)))
    torch.testing.assert_close(FUSED(call), Definition()(call), rtol=1e-10, atol=1e-12)


def test_dropout_without_a_seed_is_refused():
    call = random_call(AWKWARD_GRAPHS["star"])
    with pytest.raises(SettingError, match="dropout needs a seed"):
        FUSED(replace(call, dropout=0.5, seed=None))


def test_what_it_declines_it_declines_by_name():
    call = random_call(AWKWARD_GRAPHS["a bond"])
    wide = torch.zeros(2, 1, 300)
    assert "1 to 256 channels per head, not 300" in FUSED.why_not(
        AttentionCall(wide, wide, wide, call.adjacency, DotProduct())
    )
    assert "not the score" in FUSED.why_not(replace(call, score=lambda query, key: (query * key).sum(-1)))
    meta = torch.zeros(2, 1, 4, device="meta")
    assert "runs on the CPU" in FUSED.why_not(AttentionCall(meta, meta, meta, call.adjacency, DotProduct()))


def test_a_key_that_is_the_value_and_columns_of_one_matrix_give_the_same():
    adjacency, generator = batch_with_a_hub(200, 600), torch.Generator().manual_seed(0)
    matrix = torch.randn(200, 2 * 16, generator=generator, dtype=torch.float64, requires_grad=True)

    def attention(backend: str, *, apart: bool) -> Tensor:
        query, key = (part.unflatten(1, (2, 8)) for part in matrix.chunk(2, 1))
        score = Additive(vector=torch.linspace(-1, 1, 16, dtype=torch.float64).view(2, 8))
        value = key.clone() if apart else key
        return masked_attention(query, key, value, adjacency, score=score, backend=backend)

    weight = torch.randn(200, 2, 8, generator=generator, dtype=torch.float64)
    want = torch.autograd.grad((attention("sparse", apart=True) * weight).sum(), matrix)[0]
    for apart in (True, False):
        got = torch.autograd.grad((attention("fused_cpu", apart=apart) * weight).sum(), matrix)[0]
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("terms", ["nothing", "everything by type"])
def test_gradients_can_be_differentiated(terms):
    call = random_call(graph([(0, 1), (1, 0), (2, 1)], 3), SCORES["additive, tanh"], terms=terms)
    inputs = (call.query, call.key, call.value)
    assert gradgradcheck(lambda query, key, value: FUSED(replace(call, query=query, key=key, value=value)), inputs)


@pytest.mark.parametrize("changed", ["kind", "col", "rowptr", "edge_id"])
def test_indices_changed_before_backward_are_refused(changed):
    adjacency = Adjacency.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3)
    call = random_call(adjacency, terms="everything by type")
    out = FUSED(call)
    (call.edges.key.kind if changed == "kind" else getattr(adjacency, changed)).zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_numbers_whose_sign_is_still_to_be_turned_are_declined():
    call = random_call(AWKWARD_GRAPHS["star"])
    turned = torch.complex(call.query.detach(), call.query.detach()).conj().imag
    assert turned.is_neg()
    assert FUSED.why_not(replace(call, query=turned)) is not None
    torch.testing.assert_close(attend(replace(call, query=turned)), FUSED(replace(call, query=-call.query)))


def test_torch_func_takes_another_backend():
    call = random_call(AWKWARD_GRAPHS["star"])

    def loss(query: Tensor, backend: str = "auto") -> Tensor:
        return attend(replace(call, query=query), backend).square().sum()

    query = call.query.detach()
    gradient = torch.autograd.grad(loss(call.query), call.query)[0]
    torch.testing.assert_close(torch.func.grad(loss)(query), gradient)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(loss))(query[None]), gradient[None])
    torch.testing.assert_close(torch.func.jvp(loss, (query,), (query,))[1], (gradient * query).sum())
    with pytest.raises(BackendError, match=r"torch\.func"):
        torch.func.grad(loss)(query, "fused_cpu")


def test_compiled_models_trace_another_backend():
    call = random_call(AWKWARD_GRAPHS["star"], dtype=torch.float32)

    def attention(query: Tensor, adjacency: Adjacency) -> Tensor:
        return masked_attention(query, call.key, call.value, adjacency)

    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(call.query, call.adjacency), FUSED(call))


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_error_in_float32_is_at_most_twice_that_of_plain_pytorch(score):
    adjacency = batch_with_a_hub()
    truth = value_and_gradients(Sparse(), random_call(adjacency, score, terms="everything by type"))
    if isinstance(score, Additive):
        score = replace(score, vector=score.vector.float())
    low = random_call(adjacency, score, terms="everything by type", dtype=torch.float32)
    plain, got = value_and_gradients(Sparse(), low), value_and_gradients(FUSED, low)
    for name, want in truth.items():
        own, reference = ((each[name].double() - want).abs().max() for each in (got, plain))
        assert own <= 2 * reference, name


def random_graph(seed: int) -> Adjacency:
    """Anything that can be: no nodes, no edges, hubs, parallel edges, self loops, rectangles, several graphs."""
    generator = torch.Generator().manual_seed(seed)

    def below(limit: int) -> int:
        return int(torch.randint(limit, (), generator=generator))

    senders, receivers, edges = below(12), below(12), below(40)
    if not senders or not receivers:
        edges = 0
    ends = torch.stack([torch.randint(max(count, 1), (edges,), generator=generator) for count in (senders, receivers)])
    if below(3) == 0 and edges:
        ends[below(2), : edges // 2] = 0  # a hub
    if below(2):
        return Adjacency.from_edge_index(ends, num_senders=senders, num_receivers=receivers)
    square = Adjacency.from_edge_index(ends, max(senders, receivers))
    return square.with_self_loops() if below(2) else square


def soak(seeds: range) -> None:
    """Random graphs and settings against the definition, values and gradients."""
    terms = ("nothing", "bias", "key", "value", "everything", "everything by type")
    for seed in seeds:
        adjacency = random_graph(seed)
        call = random_call(
            adjacency,
            list(SCORES.values())[seed % len(SCORES)],
            ("softmax", "relu")[seed // 4 % 2],
            terms[seed // 8 % len(terms)],
            dropout=0.3 * (seed // 48 % 2),
            seed=seed,
        )
        got, want = value_and_gradients(FUSED, call), value_and_gradients(Definition(), call)
        for name in want:
            torch.testing.assert_close(
                got[name],
                want[name],
                rtol=1e-10,
                atol=1e-12,
                msg=lambda text, name=name, seed=seed: f"{seed} {name}: {text}",
            )


def test_random_graphs():
    soak(range(600))


@pytest.mark.slow
def test_ten_thousand_random_graphs():
    soak(range(600, 10600))
