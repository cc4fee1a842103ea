"""graphattn: attention over a set of vectors, where an adjacency says who may look at whom.

Public names load on first use, so that ``import graphattn`` is quick and the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphattn.adjacency import Adjacency as Adjacency
    from graphattn.attention.attend import AttentionWeights as AttentionWeights
    from graphattn.attention.attend import masked_attention as masked_attention
    from graphattn.attention.call import ByType as ByType
    from graphattn.attention.call import EdgeTerms as EdgeTerms
    from graphattn.attention.layer import GraphAttention as GraphAttention
    from graphattn.attention.scores import Additive as Additive
    from graphattn.attention.scores import DotProduct as DotProduct
    from graphattn.convert import from_matrix as from_matrix
    from graphattn.convert import from_networkx as from_networkx
    from graphattn.convert import to_matrix as to_matrix
    from graphattn.convert import to_networkx as to_networkx
    from graphattn.errors import GraphattnError as GraphattnError
    from graphattn.errors import GraphattnWarning as GraphattnWarning
    from graphattn.estimators import MoleculeClassifier as MoleculeClassifier
    from graphattn.estimators import MoleculeRegressor as MoleculeRegressor
    from graphattn.explanation.attention import explain as explain
    from graphattn.featurize.molecule import MoleculeFeaturizer as MoleculeFeaturizer
    from graphattn.model.block import Block as Block
    from graphattn.model.decoder import SequenceDecoder as SequenceDecoder
    from graphattn.model.network import GraphTransformer as GraphTransformer
    from graphattn.model_folder import load_model as load_model
    from graphattn.model_folder import save_model as save_model

__version__ = "0.1.0"

_HOME = {
    "Additive": "graphattn.attention.scores",
    "Adjacency": "graphattn.adjacency",
    "AttentionWeights": "graphattn.attention.attend",
    "Block": "graphattn.model.block",
    "ByType": "graphattn.attention.call",
    "DotProduct": "graphattn.attention.scores",
    "EdgeTerms": "graphattn.attention.call",
    "GraphAttention": "graphattn.attention.layer",
    "GraphTransformer": "graphattn.model.network",
    "GraphattnError": "graphattn.errors",
    "GraphattnWarning": "graphattn.errors",
    "MoleculeClassifier": "graphattn.estimators",
    "MoleculeFeaturizer": "graphattn.featurize.molecule",
    "MoleculeRegressor": "graphattn.estimators",
    "SequenceDecoder": "graphattn.model.decoder",
    "explain": "graphattn.explanation.attention",
    "from_matrix": "graphattn.convert",
    "from_networkx": "graphattn.convert",
    "load_model": "graphattn.model_folder",
    "masked_attention": "graphattn.attention.attend",
    "save_model": "graphattn.model_folder",
    "to_matrix": "graphattn.convert",
    "to_networkx": "graphattn.convert",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604  (the keys are strings)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'graphattn' has no attribute {name!r}; it has {', '.join(sorted(_HOME))}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
