"""What the first use of the fused kernels costs: on a machine, where they are compiled, and in every later process.

python benchmarks/first_use.py                   # a layer in training, once with an empty cache, then with that cache

Numba's own start (its import, and that of SciPy's BLAS, which it looks for) is paid once by all that a process compiles
or loads with it. The kernels are the three of one layer: forward, and backward over receivers and over senders.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from statistics import median

import torch
from machine import machine

import graphattn as ga


def first_use() -> dict[str, float]:
    """Seconds in this process: until Numba is ready, until the kernels are, and a second forward and backward."""
    adjacency, kind = ga.Adjacency.complete(30), torch.randint(12, (900,))
    x = torch.randn(30, 64, requires_grad=True)
    layers = {name: ga.GraphAttention(64, 64, 8, edge_types=12, backend=name) for name in ("sparse", "fused_cpu")}

    def seconds(backend: str) -> float:
        begun = time.perf_counter()
        layers[backend](x, adjacency, kind).sum().backward()
        return time.perf_counter() - begun

    seconds("sparse")  # wakes PyTorch up
    begun = time.perf_counter()
    from numba.core.registry import cpu_target  # noqa: PLC0415  (it is what is measured)

    cpu_target.target_context.refresh()
    numba = time.perf_counter() - begun
    return {"Numba": numba, "kernels": seconds("fused_cpu"), "second use": seconds("fused_cpu")}


def in_a_fresh_process(cache: str) -> dict[str, float]:
    """The same there, with this folder for Numba's cache."""
    done = subprocess.run(
        [sys.executable, __file__, "--here"],
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"error: the process that was to be timed ended with {done.returncode}:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(words: Sequence[str] | None = None) -> None:
    """Print seconds of the first process and medians of later ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="later processes")
    parser.add_argument("--here", action="store_true", help="measure in this process, and print JSON")
    arguments = parser.parse_args(words)
    if arguments.here:
        print(json.dumps(first_use()))
        return
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    with tempfile.TemporaryDirectory() as cache:
        first, *later = (in_a_fresh_process(cache) for _ in range(arguments.rounds + 1))
    print(f"{'seconds':16}{'Numba':>10}{'kernels':>10}{'second use':>12}")
    for name, processes in (("first process", [first]), ("later process", later)):
        numba, kernels, second = (median(process[part] for process in processes) for part in first)
        print(f"{name:16}{numba:10.2f}{kernels:10.2f}{second:12.4f}")
    print(f"Later processes: medians of {len(later)}.")


if __name__ == "__main__":
    main()
