"""What a layer of attention over a recording costs, measured in a process of its own, which this file is as well."""

import ctypes
import gc
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeVar

import torch

import graphattn as ga

RADIUS = 15  # frames to both sides that a window lets through
CHANNELS, HEADS = 64, 4
BUDGET_MIB = 6 * 1024  # what a measurement may ask for
STATUS = Path("/proc/self/status")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Cost:
    """One layer of 64 channels and 4 heads, in float32 on the CPU; seconds that its one thread is busy."""

    view: str  # "full" or "window"
    frames: int
    pairs: int  # entries of the adjacency
    build_seconds: float  # the adjacency, once per length of recording
    forward_seconds: float
    both_seconds: float  # forward and backward
    peak_mib: float  # adjacency, forward and backward: the most memory above that before; NaN where there is no /proc


def costs(lengths: Sequence[int], *, rounds: int) -> list[Cost]:
    """Of both views at rising lengths as far as the budget goes, by medians over ``rounds``, in a new process.

    Raises:
        subprocess.CalledProcessError: the process failed; its own words are printed.
    """
    command = [sys.executable, __file__, str(rounds), *map(str, lengths)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 (this file)
    return [Cost(**each) for each in json.loads(ran.stdout)]


def grown(before: Cost, last: Cost, frames: int) -> Cost:
    """The cost at another length, were every part of it to grow on with the power of the length that it grew with."""

    def at(small: float, large: float) -> float:
        power = math.log(large / small) / math.log(last.frames / before.frames)
        return float(large * (frames / last.frames) ** power)

    return Cost(
        last.view,
        frames,
        round(at(before.pairs, last.pairs)),
        at(before.build_seconds, last.build_seconds),
        at(before.forward_seconds, last.forward_seconds),
        at(before.both_seconds, last.both_seconds),
        at(before.peak_mib, last.peak_mib),
    )


def adjacency(view: str, frames: int) -> ga.Adjacency:
    """Every frame sees all frames, or those at most ``RADIUS`` away."""
    return ga.Adjacency.complete(frames) if view == "full" else ga.Adjacency.window(frames, radius=RADIUS)


def measured(view: str, lengths: Sequence[int], rounds: int) -> list[Cost]:
    """Of one view, in this process; the first two lengths whatever they ask for: the others are foreseen from them."""
    torch.manual_seed(0)
    layer = ga.GraphAttention(CHANNELS, CHANNELS, HEADS)
    forward_and_backward(layer, torch.randn(50, CHANNELS), adjacency(view, 50))  # loads the kernels
    found: list[Cost] = []
    for frames in lengths:
        if len(found) > 1 and grown(found[-2], found[-1], frames).peak_mib > BUDGET_MIB:
            break
        found.append(cost(layer, view, frames, rounds))
    return found


def cost(layer: ga.GraphAttention, view: str, frames: int, rounds: int) -> Cost:
    """At one length."""
    before = begin_high_water()
    x = torch.randn(frames, CHANNELS, requires_grad=True)
    build_seconds, seen = timed(partial(adjacency, view, frames))
    forward_and_backward(layer, x, seen)  # the adjacency keeps what it computes here, and it is slower
    peak = mebibytes("VmHWM") - before
    forward_seconds, both_seconds = (
        median(timed(partial(run, layer, x, seen))[0] for _ in range(rounds))
        for run in (forward_only, forward_and_backward)
    )
    return Cost(view, frames, seen.num_entries, build_seconds, forward_seconds, both_seconds, peak)


def forward_only(layer: ga.GraphAttention, x: torch.Tensor, seen: ga.Adjacency) -> None:
    """As in use."""
    with torch.no_grad():
        layer(x, seen)


def forward_and_backward(layer: ga.GraphAttention, x: torch.Tensor, seen: ga.Adjacency) -> None:
    """As in training."""
    torch.autograd.backward(layer(x, seen).sum())


def timed(make: Callable[[], Made]) -> tuple[float, Made]:
    """Seconds of the processor that a call takes, whatever else the machine does; and what it gives."""
    start = time.process_time()
    made = make()
    return time.process_time() - start, made


def begin_high_water() -> float:
    """Memory held now, in MiB, with all that was freed given back; from here on the system notes the most."""
    gc.collect()
    with suppress(AttributeError, OSError):  # no glibc
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):  # not allowed: then the most since the process began
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return mebibytes("VmRSS")


def mebibytes(name: str) -> float:
    """A size that Linux tells of this process; NaN on other systems."""
    if not STATUS.exists():
        return math.nan
    lines = STATUS.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    torch.set_num_threads(1)  # several would be busy waiting for each other
    times, *sizes = map(int, sys.argv[1:])
    print(json.dumps([asdict(each) for view in ("window", "full") for each in measured(view, sizes, times)]))
