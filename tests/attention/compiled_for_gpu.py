"""Compiles the Triton kernels that a few calls launch for an H100, on any machine: it needs Triton, but no GPU.

The interpreter runs Python, so it sees nothing of what Triton's compiler refuses. Run as a script; prints the kernels.
"""

import sys
from dataclasses import replace

import awkward
import torch
from awkward import AWKWARD_GRAPHS, random_call, value_and_gradients
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile  # noqa: A004 (its name)

from graphattn.attention.backends.fused_gpu import function, sweeps
from graphattn.attention.scores import Additive, DotProduct

H100 = GPUTarget("cuda", 90, 32)
DTYPES = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.int32: "*i32",
    torch.int64: "*i64",
}


def compile_instead(self, kernel, grid, **arguments):
    """Stands in for a launch."""
    constants = {
        parameter.name: arguments[parameter.name]
        for parameter in kernel.params
        if parameter.is_constexpr or arguments[parameter.name] is None or _is_one(arguments[parameter.name])
    }
    signature = {
        name: "constexpr" if name in constants else DTYPES[each.dtype] if isinstance(each, torch.Tensor) else "i32"
        for name, each in arguments.items()
    }
    signature = {parameter.name: signature[parameter.name] for parameter in kernel.params}
    compiled = compile(ASTSource(kernel, signature, constants), H100, {"num_warps": self.warps})
    assert len(compiled.asm["cubin"]) > 0
    sys.stdout.write(f"{kernel.__name__}\n")


def _is_one(argument):
    return isinstance(argument, int) and argument == 1  # Triton makes it a constant


def main():
    sweeps.Sweeps.launch = compile_instead
    for heads, width, dtype, score, normalizer, terms, dropout in (
        (8, 8, torch.float32, DotProduct(), "softmax", "everything by type", 0.1),
        (3, 40, torch.float64, Additive("tanh"), "softmax", "everything", 0.0),
        (1, 1, torch.bfloat16, Additive("leaky_relu"), "relu", "everything by type", 0.0),
        (8, 8, torch.float16, DotProduct(), "relu", "nothing", 0.0),
    ):
        awkward.HEADS, awkward.KEY_WIDTH, awkward.VALUE_WIDTH = heads, width, width
        vector = torch.ones(heads, width, dtype=dtype, requires_grad=True)
        with_vector = replace(score, vector=vector) if isinstance(score, Additive) else score
        adjacency = AWKWARD_GRAPHS["self loops added"]
        call = random_call(adjacency, with_vector, normalizer, terms, dtype=dtype, dropout=dropout)
        value_and_gradients(function.fused_attention, call)


if __name__ == "__main__":
    main()
