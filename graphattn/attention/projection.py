"""The matrix product of a layer, by the faster of the two libraries that PyTorch brings along.

On x86, PyTorch gives products in float32 to MKL, and MKL runs its AVX2 code on processors that are not Intel's. oneDNN
takes AVX-512 wherever it is: twice as fast on an AMD Zen 5, forward and backward, for products of more than two million
multiplications (``benchmarks/projection.py``). PyTorch has no public door to it for dense tensors; where the one used
here is missing, PyTorch's own choice is taken.
"""

import functools
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from graphattn.attention.call import is_plain

WORTHWHILE = 2**21  # multiplications; with fewer, starting oneDNN takes longer than it saves


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``x @ weight.T + bias``: shapes (N, in), (out, in), (out,) -> (N, out); errors are PyTorch's."""
    if _is_for_onednn(x, weight):
        product: Tensor = _ByOneDNN.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return product
    return functional.linear(x, weight, bias)


def by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product by oneDNN, without gradients."""
    out: Tensor = torch.ops.mkldnn._linear_pointwise(x.contiguous(), weight, bias, "none", [], "")  # noqa: SLF001
    return out


def is_worthwhile(multiplications: int) -> bool:
    """Whether oneDNN is faster here at a product of so many multiplications."""
    return multiplications >= WORTHWHILE and onednn_is_faster()


@functools.cache
def onednn_is_faster() -> bool:
    """Whether PyTorch takes MKL, has oneDNN as well, and the processor is AMD's with AVX-512; measured on Zen 5."""
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):  # type: ignore[no-untyped-call]
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    from llvmlite import binding  # noqa: PLC0415 (slow to import, and not needed where there is no choice)

    has_avx512: bool = binding.get_host_cpu_features().get("avx512f", False)
    return has_avx512 and binding.get_host_cpu_name().startswith("znver")


def _is_for_onednn(x: Tensor, weight: Tensor) -> bool:
    return (
        is_plain(x)
        and is_plain(weight)
        and x.ndim == 2
        and x.shape[1] == weight.shape[1]
        and x.dtype == weight.dtype == torch.float32
        and x.device.type == weight.device.type == "cpu"
        and is_worthwhile(x.numel() * len(weight))
        and not torch.is_autocast_enabled("cpu")
    )


class _ByOneDNN(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return by_onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        product = functional.linear if torch.is_grad_enabled() else by_onednn  # enabled: it is to be differentiated
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            product(grad, weight.t()) if of_x else None,
            product(x.t(), grad.t()).t() if of_weight else None,
            grad.sum(0) if of_bias else None,
        )
