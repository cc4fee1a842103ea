"""The Triton kernels as one differentiable function of PyTorch."""

from typing import Any

import torch
from torch import Tensor

from graphattn.attention.backends.fused_gpu.sweeps import Sweeps
from graphattn.attention.backends.plan import Plan
from graphattn.attention.backends.sparse import Sparse
from graphattn.attention.call import AttentionCall


def fused_attention(call: AttentionCall) -> Tensor:
    """(R, H, Dv), in the query's dtype."""
    plan, inputs = Plan.of(call)
    results: tuple[Tensor, ...] = _FusedAttention.apply(plan, *inputs)  # type: ignore[no-untyped-call]
    return results[0].to(call.query.dtype)


class _FusedAttention(torch.autograd.Function):
    """Saves its inputs, the output, the logits (entries, H) and two numbers per row; nothing of edges x width."""

    @staticmethod
    def forward(plan: Plan, *inputs: Any) -> tuple[Tensor, ...]:
        return Sweeps(plan, inputs).forward()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.plan = inputs[0]
        ctx.save_for_backward(*inputs[1:], *output, *ctx.plan.indices())
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad_out is None:
            return (None,) * len(ctx.needs_input_grad)
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[1:]
        inputs, results = saved[: len(wanted)], saved[len(wanted) : len(wanted) + 4]
        if torch.is_grad_enabled():  # somebody will differentiate the gradient: compute it in a way that can be
            of = [tensor for tensor, is_wanted in zip(inputs, wanted, strict=True) if is_wanted]
            out = Sparse()(ctx.plan.call(inputs))
            grads = iter(torch.autograd.grad(out, of, grad_out.to(out.dtype), create_graph=True, allow_unused=True))
            return None, *(next(grads) if is_wanted else None for is_wanted in wanted)
        return None, *Sweeps(ctx.plan, inputs).backward(grad_out.contiguous(), results, wanted)
