"""Which calls the fused kernels on a CPU run, and the door to them: what is heavy is imported at the first."""

import functools

import torch
from torch import Tensor

from graphattn.attention.call import AttentionCall, is_plain
from graphattn.attention.scores import Additive, DotProduct

WIDEST_BYTES = 1024  # of a head; a wider one would not fit into registers
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class FusedCPU:
    """One kernel forward and two backward, the same bits for every number of threads and batch company."""

    name = "fused_cpu"

    def why_not(self, call: AttentionCall) -> str | None:  # noqa: PLR0911 (one objection after another)
        """Other devices, scores of the user's own, very wide heads, and machines without Numba are declined."""
        if call.query.device.type != "cpu":
            return f"it runs on the CPU, and the query is on {call.query.device}"
        if type(call.score) not in (DotProduct, Additive):
            return f"its kernels know DotProduct and Additive, not the score {call.score!r}"
        if call.query.dtype not in DTYPES:
            return f"its kernels compute in float32 and float64, and the query is {call.query.dtype}"
        widest = max(call.query.shape[-1], call.value.shape[-1])
        allowed = WIDEST_BYTES // call.compute_dtype().itemsize
        if not 1 <= min(call.query.shape[-1], call.value.shape[-1]) <= widest <= allowed:
            return f"it takes 1 to {allowed} channels per head, not {widest}"
        if call.adjacency.rowptr.dtype != torch.int32 or call.adjacency.col.dtype != torch.int32:
            return "the adjacency has more than 2**31 entries or senders"
        if not all(is_plain(tensor) for tensor in call.tensors()):
            return "torch.compile, torch.func and forward-mode differentiation cannot look into it"
        return _numba_fault()

    def is_fastest(self, call: AttentionCall) -> bool:  # noqa: ARG002 (the protocol's)
        """Always: ``sparse`` was faster in no case of ``benchmarks/attention.py``."""
        return True

    def __call__(self, call: AttentionCall) -> Tensor:
        """(R, H, Dv), in the query's dtype."""
        from graphattn.attention.backends.fused_cpu.function import fused_attention  # noqa: PLC0415 (imports Numba)

        return fused_attention(call)


@functools.cache
def _numba_fault() -> str | None:
    try:
        import numba  # noqa: PLC0415
    except ImportError as error:
        return f"Numba cannot be imported here: {error}"
    switched_off: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
    return "Numba is switched off by NUMBA_DISABLE_JIT" if switched_off else None
