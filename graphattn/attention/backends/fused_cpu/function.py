"""The fused kernels as one differentiable function of PyTorch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphattn.adjacency import Adjacency
from graphattn.attention.backends.fused_cpu import kernels
from graphattn.attention.backends.fused_cpu.library import kernel_for
from graphattn.attention.backends.fused_cpu.team import run_on_threads
from graphattn.attention.backends.plan import Inputs, Plan
from graphattn.attention.backends.sparse import Sparse
from graphattn.attention.call import AttentionCall, drop_below
from graphattn.attention.scores import DotProduct

BLOCK_BYTES = 512  # of the heads that a kernel takes at a time: 8 registers of AVX-512, a quarter of what there is
IN_ROWS = {"QUERY", "KEY", "VALUE", "GRAD_QUERY", "GRAD_KEY", "GRAD_VALUE"}  # may be columns of a wider matrix
LARGEST_TABLES = 2**22  # numbers in the tables of all tasks together


def fused_attention(call: AttentionCall) -> Tensor:
    """(R, H, Dv), in the query's dtype. Widths between powers of two are filled up with zeros."""
    dtype, width = call.compute_dtype(), call.value.shape[-1]
    plan, (*wide, bias, vector) = Plan.of(call)
    out: Tensor = _FusedAttention.apply(  # type: ignore[no-untyped-call]
        plan,
        *(_fitted(tensor, dtype) for tensor in wide),
        None if bias is None else bias.to(dtype),
        _fitted(vector, dtype),
    )[0]
    return out[..., :width].to(call.query.dtype)


class _FusedAttention(torch.autograd.Function):
    """Saves its inputs, the output and the weights (entries, H); nothing else of the size of the edges exists."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, *inputs: Any) -> tuple[Tensor, Tensor]:
        sweep = _Sweep(plan, inputs)
        sweep.run(kernels.FORWARD, plan.adjacency)
        ctx.plan = plan
        ctx.save_for_backward(*inputs, sweep.out, sweep.weight, *plan.indices())
        ctx.mark_non_differentiable(sweep.weight)
        ctx.set_materialize_grads(False)
        return sweep.out, sweep.weight

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad_out is None:
            return (None,) * len(ctx.needs_input_grad)
        saved, count = ctx.saved_tensors, len(ctx.needs_input_grad) - 1
        inputs, (out, weight) = saved[:count], saved[count : count + 2]
        if torch.is_grad_enabled():  # somebody will differentiate the gradient: compute it in a way that can be
            wanted = ctx.needs_input_grad[1:]
            of = [tensor for tensor, is_wanted in zip(inputs, wanted, strict=True) if is_wanted]
            grads = iter(
                torch.autograd.grad(Sparse()(ctx.plan.call(inputs)), of, grad_out, create_graph=True, allow_unused=True)
            )
            return None, *(next(grads) if is_wanted else None for is_wanted in wanted)
        sweep = _Sweep(ctx.plan, inputs, out, weight)
        return None, *sweep.backward(grad_out)


class _Sweep:
    """The arguments of the kernels for one call, and the tensors behind them."""

    def __init__(self, plan: Plan, inputs: Inputs, out: Tensor | None = None, weight: Tensor | None = None) -> None:
        query, key, value, key_term, value_term, bias, vector = inputs
        adjacency, score = plan.adjacency, plan.score
        query, key = _in_rows(query), _in_rows(key)
        value = key if value is None else _in_rows(value)
        if plan.one_term:
            value_term = key_term
        receivers, self.heads, self.key_width = query.shape
        self.value_width = value.shape[-1]
        self.out = query.new_empty(receivers, self.heads, self.value_width) if out is None else out
        self.weight = query.new_empty(adjacency.num_entries, self.heads) if weight is None else weight
        self.plan, self.inputs = plan, (query, key, value, key_term, value_term, bias, vector)
        self.bits = query.element_size() * 8
        self.block = _largest_block(self.heads, query.element_size() * max(self.key_width, self.value_width))
        self.arguments = np.zeros(kernels.ARGUMENTS, dtype=np.int64)
        self.kept: list[object] = []
        constants = np.zeros(3)
        constants[kernels.KEPT] = 1 / (1 - plan.dropout)
        if isinstance(score, DotProduct):
            self.score, constants[kernels.SCALE] = kernels.DOT, score.factor(self.key_width)
        else:
            self.score = kernels.TANH if score.activation == "tanh" else kernels.LEAKY_RELU
            constants[kernels.SLOPE] = score.negative_slope
        self.set(
            HEADS=self.heads,
            ENTRIES=adjacency.num_entries,
            GRAD_OUT_STRIDE=self.heads * self.value_width,
            SOFTMAX=plan.normalizer == "softmax",
            CONSTANTS=constants.ctypes.data,
            DROP_BELOW=drop_below(plan.dropout),
            SEED=0 if plan.seed is None else int(plan.seed) & 0xFFFFFFFF,
            QUERY_STRIDE=query.stride(0),
            KEY_STRIDE=key.stride(0),
            VALUE_STRIDE=value.stride(0),
        )
        self.kept.append(constants)
        self.point(
            QUERY=query,
            KEY=key,
            VALUE=value,
            OUT=self.out,
            WEIGHT=self.weight,
            KEY_TERM=key_term,
            KEY_KIND=plan.key_kind,
            VALUE_TERM=value_term,
            VALUE_KIND=plan.value_kind,
            BIAS=bias,
            BIAS_KIND=plan.bias_kind,
            VECTOR=vector,
        )

    def set(self, **numbers: int) -> None:
        """Arguments by name."""
        for name, number in numbers.items():
            self.arguments[getattr(kernels, name)] = number

    def point(self, **tensors: Tensor | None) -> None:
        """Arguments that are addresses; the tensors stay as long as this does."""
        for name, tensor in tensors.items():
            if tensor is not None:
                packed = tensor if name in IN_ROWS else tensor.contiguous()
                self.kept.append(packed)
                self.arguments[getattr(kernels, name)] = packed.data_ptr()

    def run(self, sweep: int, adjacency: Adjacency, runs: Tensor | None = None) -> None:
        """Sweep over the rows of ``adjacency``."""
        runs = adjacency.runs if runs is None else runs
        tasks = len(runs) - 1
        self.set(NEXT=0, TASKS=tasks)
        self.point(RUNS=runs, ROWPTR=adjacency.rowptr, COL=adjacency.col, EDGE_ID=adjacency.edge_id)
        kernel = kernel_for(sweep, self.bits, self.block, self.key_width, self.value_width, self.score)
        threads = max(1, min(torch.get_num_threads(), tasks))
        run_on_threads(kernel, self.arguments.ctypes.data, threads)

    def backward(self, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the inputs, in their order."""
        plan, adjacency = self.plan, self.plan.adjacency
        query, key, value, key_term, value_term, bias, vector = self.inputs
        tied = value is key
        grads = _together([query, key] if tied else [query, key, value])
        grad_query, grad_key, grad_value = grads[0], grads[1], grads[-1]
        self.set(
            KEY_IS_VALUE=tied,
            GRAD_QUERY_STRIDE=grad_query.stride(0),
            GRAD_KEY_STRIDE=grad_key.stride(0),
            GRAD_VALUE_STRIDE=grad_value.stride(0),
        )
        self.point(
            GRAD_OUT=grad_out,
            GRAD_LOGIT=torch.empty_like(self.weight),
            GRAD_QUERY=grad_query,
            GRAD_KEY=grad_key,
            GRAD_VALUE=grad_value,
        )
        runs, tables = self.tables(key_term, value_term, bias, vector)
        self.run(kernels.RECEIVERS, adjacency, runs)
        self.point(SLOT=adjacency.transpose_slots)
        self.run(kernels.SENDERS, adjacency.transpose)
        totals = [None if table is None else _total(table) for table in tables]
        if plan.one_term:
            totals[1] = None
        return grad_query, grad_key, None if tied else grad_value, *totals

    def tables(
        self, key_term: Tensor | None, value_term: Tensor | None, bias: Tensor | None, vector: Tensor | None
    ) -> tuple[Tensor, list[Tensor | None]]:
        """Tasks for the sweep over receivers, and zeros (tasks or 1, ...) for the gradients that they sum up."""
        plan, runs = self.plan, self.plan.adjacency.runs
        given = {
            "KEY_TERM": (key_term, plan.key_kind is not None),
            "VALUE_TERM": (value_term, plan.value_kind is not None),
            "BIAS": (bias, plan.bias_kind is not None),
            "VECTOR": (vector, True),
        }
        shared = sum(table.numel() for table, is_shared in given.values() if table is not None and is_shared)
        most = max(1, LARGEST_TABLES // max(1, shared))
        every = -(-(len(runs) - 1) // most)
        if every > 1:
            runs = torch.cat([runs[:-1:every], runs[-1:]])
        made: dict[str, Tensor] = {}
        for name, (table, is_shared) in given.items():
            if table is None:
                continue
            if name == "VALUE_TERM" and plan.one_term:
                made[name] = made["KEY_TERM"]
            else:
                made[name] = table.new_zeros(len(runs) - 1 if is_shared else 1, *table.shape)
            self.point(**{f"GRAD_{name}": made[name]})
            self.set(**{f"GRAD_{name}_STRIDE": table.numel() * table.element_size() if is_shared else 0})
        return runs, [made.get(name) for name in given]


def filled_width(width: int) -> int:
    """The next power of two: what kernels are made for."""
    return 1 << (width - 1).bit_length()


def _fitted(tensor: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    if tensor is None:
        return None
    missing = filled_width(tensor.shape[-1]) - tensor.shape[-1]
    return functional.pad(tensor.to(dtype), (0, missing)) if missing else tensor.to(dtype)


def _largest_block(heads: int, bytes_per_head: int) -> int:
    """How many heads a kernel takes at a time: the most that divide all and fit."""
    return max(
        block
        for block in range(1, heads + 1)
        if heads % block == 0 and (block == 1 or block * bytes_per_head <= BLOCK_BYTES)
    )


def _in_rows(tensor: Tensor) -> Tensor:
    """The tensor itself if the numbers of a row lie side by side, else a copy in which they do."""
    _, heads, width = tensor.shape
    packed = (width == 1 or tensor.stride(2) == 1) and (heads == 1 or tensor.stride(1) == width)
    return tensor if packed else tensor.contiguous()


def _together(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Empty tensors of these shapes; columns of one matrix where the given ones are."""
    first = tensors[0]
    widths = [tensor.shape[1] * tensor.shape[2] for tensor in tensors]
    starts = [(tensor.data_ptr() - first.data_ptr()) // first.element_size() for tensor in tensors]
    columns = sum(widths)
    if all(tensor.stride(0) == columns and len(tensor) == len(first) for tensor in tensors) and starts == [
        sum(widths[:place]) for place in range(len(widths))
    ]:
        whole = first.new_empty(len(first), columns)
        return [
            part.view(tensor.shape) for part, tensor in zip(whole.split_with_sizes(widths, 1), tensors, strict=True)
        ]
    return [torch.empty(tensor.shape, dtype=tensor.dtype) for tensor in tensors]


def _total(tables: Tensor) -> Tensor:
    """The sum over tasks, in their order."""
    return tables[0] if len(tables) == 1 else torch.from_numpy(np.add.reduce(tables.numpy(), axis=0))
