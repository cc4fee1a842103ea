"""Running a kernel on several threads, those of PyTorch where they can be had."""

import ctypes
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

Kernel = Callable[[int], None]  # takes the address of its arguments; draws tasks from them until none is left


class _Forked:
    """Whether this process came out of a fork: OpenMP's threads are not there then, though it believes they are."""

    yes = False


def _after_fork() -> None:
    _Forked.yes = True
    _own_threads.cache_clear()  # they stayed with the parent


def run_on_threads(kernel: Kernel, arguments: int, threads: int) -> None:
    """Run ``kernel(arguments)`` on so many threads at once, the calling one included, until all are done.

    On Linux the others are those of PyTorch's own OpenMP: they are awake already after a matrix product, and there are
    never more of them than the user set. Elsewhere, and after a fork, they are Python's; kernels hold no lock.
    """
    team = None if _Forked.yes else _openmp_team()
    if threads == 1:
        kernel(arguments)
    elif team is not None:
        team(ctypes.cast(kernel, ctypes.c_void_p), arguments, threads, 0)  # type: ignore[arg-type]  # a ctypes function
    else:
        others = [_own_threads().submit(kernel, arguments) for _ in range(threads - 1)]
        kernel(arguments)
        for other in others:
            if not other.cancel():  # one that has not begun would find no task left
                other.result()


@functools.cache
def _openmp_team() -> Callable[..., None] | None:
    """OpenMP's ``GOMP_parallel(function, argument, threads, flags)`` in the library that PyTorch itself runs on."""
    try:
        team = ctypes.CDLL(torch._C.__file__).GOMP_parallel  # noqa: SLF001 (it looks in what PyTorch is linked with)
    except (AttributeError, OSError):
        return None
    team.argtypes, team.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint), None
    return team


@functools.cache
def _own_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="graphattn")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
