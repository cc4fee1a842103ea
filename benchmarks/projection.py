"""Which library of PyTorch's is faster at the matrix products of a layer: its default (MKL on x86), or oneDNN.

python benchmarks/projection.py                  # query, key and value of 32 to 7,000 nodes, at widths 32 to 256
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from machine import machine
from torch import Tensor
from torch.nn import functional

from graphattn.attention import projection

ROWS, WIDTHS = (32, 256, 1024, 7000), (32, 64, 128, 256)


def products(rows: int, width: int) -> dict[str, tuple[Tensor, Tensor]]:
    """The operands a, b of ``a @ b.T`` as the layer has them: forward, and backward for the vectors and the weights."""
    x, weight, grad = torch.randn(rows, width), torch.randn(3 * width, width), torch.randn(rows, 3 * width)
    return {"forward": (x, weight), "to vectors": (grad, weight.t()), "to weights": (x.t(), grad.t())}


def interleaved(contestants: Sequence[Callable[[], Tensor]], rounds: int) -> list[list[float]]:
    """Milliseconds of every round of each; a first round warms up and does not count."""
    times: list[list[float]] = [[] for _ in contestants]
    for _ in range(rounds + 1):
        for own, run in zip(times, contestants, strict=True):
            begun = time.perf_counter()
            run()
            own.append((time.perf_counter() - begun) * 1e3)
    return [own[1:] for own in times]


def main(words: Sequence[str] | None = None) -> None:
    """Time both, side by side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    arguments = parser.parse_args(words)
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(f"layers here take {'oneDNN' if projection.onednn_is_faster() else 'the default'} for large products")
    print(f"{'width':>6}{'rows':>7}  {'product':12}{'default ms':>11}{'oneDNN ms':>11}{'ratio':>8}{'layer':>10}")
    for width in arguments.widths:
        for rows in arguments.rows:
            for name, (a, b) in products(rows, width).items():
                torch.testing.assert_close(projection.by_onednn(a, b), functional.linear(a, b), rtol=1e-3, atol=1e-3)
                contestants = [partial(functional.linear, a, b), partial(projection.by_onednn, a, b)]
                default, onednn = interleaved(contestants, arguments.rounds)
                ratio = statistics.median(above / below for above, below in zip(default, onednn, strict=True))
                takes = "oneDNN" if projection.is_worthwhile(rows * width * 3 * width) else "default"
                medians = "".join(f"{statistics.median(own):11.3f}" for own in (default, onednn))
                print(f"{width:6}{rows:7}  {name:12}{medians}{ratio:8.2f}{takes:>10}")
    print(f"Medians of {arguments.rounds} interleaved rounds; ratio: the median of default / oneDNN in one round.")


if __name__ == "__main__":
    main()
