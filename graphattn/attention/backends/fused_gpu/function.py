"""The Triton kernels as one differentiable function of PyTorch."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from graphattn.attention.backends.fused_gpu.sweeps import Plan, Sweeps
from graphattn.attention.backends.sparse import Sparse
from graphattn.attention.call import AttentionCall, ByType, PerEdge
from graphattn.attention.scores import Additive, DotProduct
from graphattn.errors import SettingError


def fused_attention(call: AttentionCall) -> Tensor:
    """(R, H, Dv), in the query's dtype."""
    assert isinstance(call.score, DotProduct | Additive)
    if call.dropout and call.seed is None:
        raise SettingError("dropout needs a seed that decides which weights drop.")
    vector = call.score.vector if isinstance(call.score, Additive) else None
    if vector is not None:
        vector = vector.expand(call.query.shape[1:])
    key_term, value_term = _table(call.edges.key), _table(call.edges.value)
    key_kind, value_kind = _kind(call.edges.key), _kind(call.edges.value)
    plan = Plan(
        adjacency=call.adjacency,
        score=replace(call.score, vector=None) if isinstance(call.score, Additive) else call.score,
        normalizer=call.normalizer,
        key_kind=key_kind,
        value_kind=value_kind,
        bias_kind=_kind(call.bias),
        one_term=key_term is not None and key_term is value_term and key_kind is value_kind,
        dropout=call.dropout,
        seed=None if call.seed is None else call.seed.to(call.query.device),
    )
    results: tuple[Tensor, ...] = _FusedAttention.apply(  # type: ignore[no-untyped-call]
        plan,
        call.query,
        call.key,
        None if call.value is call.key else call.value,
        key_term,
        None if plan.one_term else value_term,
        _table(call.bias),
        vector,
    )
    return results[0].to(call.query.dtype)


class _FusedAttention(torch.autograd.Function):
    """Saves its inputs, the output, the logits (entries, H) and two numbers per row; nothing of edges x width."""

    @staticmethod
    def forward(plan: Plan, *inputs: Tensor | None) -> tuple[Tensor, ...]:
        return Sweeps(plan, inputs).forward()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.plan = inputs[0]
        ctx.save_for_backward(*inputs[1:], *output)
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        inputs, results = ctx.saved_tensors[:-4], ctx.saved_tensors[-4:]
        wanted = ctx.needs_input_grad[1:]
        if grad_out is None:
            return (None,) * len(ctx.needs_input_grad)
        if torch.is_grad_enabled():  # somebody will differentiate the gradient: compute it in a way that can be
            of = [tensor for tensor, is_wanted in zip(inputs, wanted, strict=True) if is_wanted]
            out = Sparse()(ctx.plan.call(inputs))
            grads = iter(torch.autograd.grad(out, of, grad_out.to(out.dtype), create_graph=True, allow_unused=True))
            return None, *(next(grads) if is_wanted else None for is_wanted in wanted)
        return None, *Sweeps(ctx.plan, inputs).backward(grad_out.contiguous(), results, wanted)


def _table(terms: PerEdge | None) -> Tensor | None:
    return terms.table if isinstance(terms, ByType) else terms


def _kind(terms: PerEdge | None) -> Tensor | None:
    return terms.kind.contiguous() if isinstance(terms, ByType) else None
