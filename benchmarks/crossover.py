"""Where attention on padded matrices (``dense``) is faster than the fused kernels: what ``backend="auto"`` rests on.

python benchmarks/crossover.py                   # by width of a head, size of graph, and share of pairs that may attend
python benchmarks/crossover.py --causal          # of written sequences, in which each sees itself and those before it

Scaled dot product with softmax and nothing else: with anything else ``dense`` spells the formula out, and is slower.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from itertools import product

import torch
from machine import machine
from torch import Tensor

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import attend, fastest
from graphattn.attention.call import AttentionCall
from graphattn.attention.scores import DotProduct

BACKENDS = ("fused_cpu", "dense")
HEADS = 8
WIDTHS = (8, 16, 32, 64, 128)  # of a head
GRAPHS = ((64, 24), (1, 64), (16, 150), (1, 256), (1, 1024))  # how many, and nodes of each
SEQUENCES = ((64, 24), (1, 256), (4, 512), (1, 1024), (1, 2048), (1, 4096))
DENSITIES = (1.0, 0.9, 0.6, 0.5, 0.25)


def random_graphs(graphs: int, nodes: int, density: float) -> Adjacency:
    """Graphs of one size in which each pair may attend with that chance; everything a backend keeps is made."""
    graph, receiver, sender = (torch.rand(graphs, nodes, nodes) < density).nonzero().T
    edge_index = torch.stack([sender, receiver]) + graph * nodes
    return Adjacency.from_edge_index(edge_index, graphs * nodes, ptr=torch.arange(graphs + 1) * nodes)


def seconds(call: AttentionCall, backend: str, grad: Tensor) -> float:
    """Forward and backward once."""
    begun = time.perf_counter()
    torch.autograd.grad(attend(call, backend), (call.query, call.key, call.value), grad)
    return time.perf_counter() - begun


def main(words: Sequence[str] | None = None) -> None:
    """Time both backends side by side, a line for each kind of graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--densities", type=float, nargs="+", default=DENSITIES)
    parser.add_argument("--causal", action="store_true", help="sequences in which each sees those up to itself")
    parser.add_argument("--largest", type=int, default=4096, help="nodes of the largest graph")
    arguments = parser.parse_args(words)
    torch.manual_seed(0)
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(
        f"{'graphs':>7}{'nodes':>7}{'width':>7}{'density':>9}{'fused ms':>11}{'dense ms':>11}{'ratio':>8}  auto takes"
    )
    densities = [0.5] if arguments.causal else arguments.densities
    sizes = SEQUENCES if arguments.causal else GRAPHS
    for width, (graphs, nodes), density in product(arguments.widths, sizes, densities):
        if nodes > arguments.largest:
            continue
        written = Adjacency.causal(ptr=torch.arange(graphs + 1) * nodes) if arguments.causal else None
        adjacency = random_graphs(graphs, nodes, density) if written is None else written
        query, key, value = (torch.randn(graphs * nodes, HEADS, width, requires_grad=True) for _ in range(3))
        call, grad = (
            AttentionCall(query, key, value, adjacency, DotProduct()),
            torch.randn(graphs * nodes, HEADS, width),
        )
        torch.testing.assert_close(*(attend(call, backend) for backend in BACKENDS), rtol=1e-4, atol=1e-4)
        rounds = [[seconds(call, backend, grad) for backend in BACKENDS] for _ in range(arguments.rounds + 1)][1:]
        fused, dense = (statistics.median(own) * 1e3 for own in zip(*rounds, strict=True))
        ratio = statistics.median(above / below for above, below in rounds)
        line = f"{graphs:7}{nodes:7}{width:7}{density:9.2f}{fused:11.3f}{dense:11.3f}{ratio:8.2f}"
        print(f"{line}  {fastest(call).name}", flush=True)
    print(
        f"Forward and backward, {HEADS} heads; medians of {arguments.rounds} interleaved rounds; ratio: fused / dense."
    )


if __name__ == "__main__":
    main()
