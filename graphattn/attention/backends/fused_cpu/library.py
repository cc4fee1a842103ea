"""Compiled kernels, each made at its first use on a machine and kept in Numba's cache for the processes to come."""

import ctypes
import functools
import logging
import time

from graphattn.attention.backends.fused_cpu.kernels import compiled
from graphattn.attention.backends.fused_cpu.team import Kernel

logger = logging.getLogger("graphattn")
_owners: list[object] = []  # of the compiled code, which must live as long as its functions


@functools.cache
def kernel_for(sweep: int, bits: int, block: int, key_width: int, value_width: int, score: int) -> Kernel:
    """The kernel of these constants (see ``kernels.compiled``): from the cache, or compiled, which takes a second."""
    start = time.perf_counter()
    try:
        kernel = compiled(sweep, bits, block, key_width, value_width, score, cache=True)
    except RuntimeError as error:  # Numba finds no folder to write to
        if "cannot cache" not in str(error):
            raise
        _say_once(
            "no folder can be written, so attention kernels are compiled anew in every process: set NUMBA_CACHE_DIR"
        )
        kernel = compiled(sweep, bits, block, key_width, value_width, score, cache=False)
    if not kernel.cache_hits:
        logger.debug("compiled an attention kernel in %.1f s", time.perf_counter() - start)
        _say_once("compiled attention kernels for this machine; later processes find them in Numba's cache")
    _owners.append(kernel)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(kernel.address)


@functools.cache
def _say_once(text: str) -> None:
    logger.info(text)
