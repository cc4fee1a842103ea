"""Attention in fused Triton kernels on a GPU: nothing of the size of edges x width is ever made.

The kernels are Python, compiled by Triton at their first use. The CUDA builds of PyTorch for Linux bring Triton along.

No number about their speed exists: they were never run on a GPU. What the tests show is that they are right, by
Triton's interpreter on a CPU, and that they compile for an H100; sizes of tiles and numbers of warps are reasoned.
"""
