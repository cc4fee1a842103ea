"""What a measurement was made on and with, and the most memory that this process has held."""

import platform
import resource
import sys
from importlib.metadata import version
from pathlib import Path

import torch

import graphattn


def machine() -> dict[str, object]:
    """Processor, threads and versions, for the record beside every number."""
    return {
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "graphattn": graphattn.__version__,
        **{name: version(name) for name in ("torch", "torch-geometric", "rdkit", "numpy")},
    }


def peak_memory_mib() -> float:
    """The largest resident size of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux's ru_maxrss begins with what the parent held when it started this process; VmHWM does not.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    per_mib = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / per_mib


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
