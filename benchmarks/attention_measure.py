"""Time of contestants, interleaved; and the memory of one, in a process of its own, which this file is as well."""

import ctypes
import gc
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import psutil  # type: ignore[import-untyped]
import torch
from attention_cases import BY_NAME, window
from attention_contestants import Contestant, Declined, Problem, WrongAnswer
from machine import peak_memory_mib

SLOW_SECONDS = 20.0  # a contestant that would take longer for all rounds does fewer, but at least FEWEST
FEWEST = 3
GIB, MIB = 1024**3, 1024**2


@dataclass(frozen=True)
class Times:
    """Seconds of each round; a slow contestant does not play the last rounds."""

    forward: tuple[float, ...]
    both: tuple[float, ...]


def interleaved(contestants: Sequence[Contestant], rounds: int) -> list[Times]:
    """Times of all contestants: all in each round, in an order drawn anew, so that none always follows the same other.

    Each first runs forward untimed: what its neighbour left in caches and in the allocator is not its own doing.
    """
    order = random.Random(0)  # noqa: S311  (no secret)
    limits, forward, both = [], [[] for _ in contestants], [[] for _ in contestants]  # type: ignore[var-annotated]
    for contestant in contestants:
        _once(contestant)  # warms up
        limits.append(min(rounds, max(FEWEST, int(SLOW_SECONDS / sum(_once(contestant))))))
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            for number in order.sample(range(len(contestants)), len(contestants)):
                if turn < limits[number]:
                    contestants[number].forward()
                    times = _once(contestants[number])
                    forward[number].append(times[0])
                    both[number].append(times[1])
    finally:
        gc.enable()
    return [Times(tuple(one), tuple(two)) for one, two in zip(forward, both, strict=True)]


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median over the rounds that both played."""
    return statistics.median(one / other for one, other in zip(above, below, strict=False))


def _once(contestant: Contestant) -> tuple[float, float]:
    contestant.clear()
    begun = time.perf_counter()
    contestant.forward()
    between = time.perf_counter()
    contestant.forward_backward()
    return between - begun, time.perf_counter() - between


@dataclass(frozen=True, kw_only=True)
class Alone:
    """What a process measures by itself."""

    case: str
    width: int
    score: str
    edges: bool
    level: str
    name: str
    threads: int
    cap_gib: float  # extra memory that it may ask for
    rounds: int = 0
    check: bool = False  # against the truth, after the measurement; else whoever asks has checked


def measured_alone(what: Alone) -> Mapping[str, Any]:
    """Extra and whole peak memory in MiB, and times if there are rounds; or how much memory it asked for in vain.

    Raises:
        WrongAnswer: the process found its contestant to be wrong; nothing it measured is told.
    """
    command = [sys.executable, __file__, json.dumps(asdict(what))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    lines = ran.stdout.splitlines()
    if not lines or not lines[-1].startswith("{"):
        tail = " ".join(ran.stderr.splitlines()[-3:])
        return {"failed": f"its process ended with {ran.returncode}: {tail}"}
    found: dict[str, Any] = json.loads(lines[-1])
    if "wrong" in found:
        raise WrongAnswer(found["wrong"])
    return found


def _measure(what: Alone) -> Mapping[str, Any]:
    """What ``measured_alone`` tells, in the process that is for it."""
    torch.set_num_threads(what.threads)
    graph = BY_NAME[what.case].make()
    problem = Problem(graph, what.width, what.score, what.edges)
    contestant = problem.contestant(what.level, what.name)
    small = Problem(window(50, 2), what.width, what.score, what.edges).contestant(what.level, what.name)
    for _ in range(2):  # loads libraries and kernels
        _once(small)
    cap = min(what.cap_gib * GIB, 0.9 * psutil.virtual_memory().available)
    _forget_peak()
    before = psutil.Process().memory_info().rss / MIB
    _limit_memory(cap)
    try:
        with _Children() as children:
            for _ in range(2):
                _once(contestant)
        peak = peak_memory_mib()
        times = interleaved([contestant], what.rounds)[0] if what.rounds else Times((), ())
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        error = problem.check(contestant) if what.check else None
    except (MemoryError, RuntimeError) as why:
        if isinstance(why, MemoryError) or "alloc" in str(why) or "memory" in str(why):
            return {"passed_gib": round(cap / GIB, 1)}
        raise
    except WrongAnswer as wrong:
        return {"wrong": str(wrong)}
    return {
        "extra_mib": round(peak - before + children.most, 1),
        "peak_mib": round(peak + children.most, 1),
        "forward": times.forward,
        "both": times.both,
        "error": error,
        "adjacency_ms": round(graph.adjacency_ms, 3) if what.name.startswith("ours") else None,
    }


def _forget_peak() -> None:
    """Give freed memory back and begin the high-water mark anew, where the system can (Linux, glibc)."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _limit_memory(more: float) -> None:
    """Let this process ask for ``more`` bytes and fail beyond, before the machine runs out."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmData:"))
        held = int(line.split()[1]) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (int(held + more), resource.RLIM_INFINITY))


class _Children:
    """Watches the memory of this process' children; ``most`` is their largest sum in MiB."""

    def __init__(self) -> None:
        self.most, self._done = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process()
        while not self._done.wait(0.01):
            with suppress(psutil.Error):
                held = sum(child.memory_info().rss for child in me.children(recursive=True))
                self.most = max(self.most, held / MIB)


if __name__ == "__main__":
    try:
        answer = _measure(Alone(**json.loads(sys.argv[1])))
    except Declined as why:
        answer = {"declined": str(why)}
    print(json.dumps(answer))
