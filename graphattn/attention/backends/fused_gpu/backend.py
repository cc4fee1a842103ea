"""The Triton kernels as a backend: when they can run a call."""

import functools
import importlib.util
import os

import torch
from torch import Tensor

from graphattn.attention.call import AttentionCall, is_plain
from graphattn.attention.scores import Additive, DotProduct

WIDEST = 1024  # channels of a head: what a program of a few warps holds in registers
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class FusedGPU:
    """One kernel forward, and two to five backward; no atomics, so the same bits every time."""

    name = "fused_gpu"

    def why_not(self, call: AttentionCall) -> str | None:
        """CPUs, scores of the user's own, very wide heads, and machines without Triton are declined."""
        if call.query.device.type != "cuda" and not interpreted():
            return (
                f"it runs on CUDA devices, and the query is on {call.query.device} (TRITON_INTERPRET=1, set before "
                "Python starts, runs it there in Triton's interpreter: for tests, thousands of times slower)"
            )
        if type(call.score) not in (DotProduct, Additive):
            return f"its kernels know DotProduct and Additive, not the score {call.score!r}"
        if call.query.dtype not in DTYPES:
            return f"its kernels compute in float32 and float64, and the query is {call.query.dtype}"
        widths = call.query.shape[-1], call.value.shape[-1]
        if not 1 <= min(widths) <= max(widths) <= WIDEST:
            return f"it takes 1 to {WIDEST} channels per head, not {widths[0]} of query and {widths[1]} of value"
        if not all(is_plain(tensor) for tensor in call.tensors()):
            return "torch.compile, torch.func and forward-mode differentiation cannot look into it"
        return None if _has_triton() else "Triton is not installed; the CUDA builds of PyTorch for Linux bring it along"

    def is_fastest(self, call: AttentionCall) -> bool:  # noqa: ARG002 (the protocol's)
        """Never claimed, for it was never measured: it runs when it is asked for by name."""
        return False

    def __call__(self, call: AttentionCall) -> Tensor:
        """(R, H, Dv), in the query's dtype."""
        from graphattn.attention.backends.fused_gpu.function import fused_attention  # noqa: PLC0415 (imports Triton)

        return fused_attention(call)


def interpreted() -> bool:
    """Whether Triton's interpreter runs kernels, on a CPU: for tests."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
