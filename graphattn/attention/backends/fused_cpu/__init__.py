"""Attention in fused kernels on a CPU, compiled by Numba: nothing of the size of edges x width is ever made."""
