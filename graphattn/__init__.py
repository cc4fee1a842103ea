"""graphattn: attention over a set of vectors, where an adjacency says who may look at whom.

Public names load on first use, so that ``import graphattn`` is quick and the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphattn.adjacency import Adjacency as Adjacency

__version__ = "0.1.0"

_HOME = {
    "Adjacency": "graphattn.adjacency",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'graphattn' has no attribute {name!r}; it has {', '.join(sorted(_HOME))}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
