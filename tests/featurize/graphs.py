"""Ways to read and to compare the graphs of molecules."""

import numpy as np
import torch
from rdkit import Chem
from torch_geometric.data import Data


def traits(featurizer, graph: Data) -> list[dict[str, str]]:
    """The labels of every atom, by column."""
    return _labels(featurizer.node_columns, graph.x)


def bonds(featurizer, graph: Data) -> dict[tuple[int, int], dict[str, str]]:
    """The labels of every edge, by (sender, receiver) and column."""
    ends = [tuple(pair) for pair in graph.edge_index.T.tolist()]
    assert len(set(ends)) == len(ends)
    return dict(zip(ends, _labels(featurizer.edge_columns, graph.edge_attr), strict=True))


def column(featurizer, graph: Data, name: str) -> list[str]:
    """One trait of all atoms."""
    return [atom[name] for atom in traits(featurizer, graph)]


def _labels(columns, codes: torch.Tensor) -> list[dict[str, str]]:
    return [
        {column.name: column.labels[code] for column, code in zip(columns, row, strict=True)} for row in codes.tolist()
    ]


def same(one: Data, other: Data) -> bool:
    """Equal to the last code, in the same order."""
    return all(torch.equal(one[key], other[key]) for key in ("x", "edge_index", "edge_attr"))


def reordered(graph: Data, order: list[int]) -> Data:
    """``graph`` with node k called ``order[k]``, edges sorted: two graphs of one molecule become the same."""
    order = torch.tensor(order, dtype=torch.int64)
    x = torch.empty_like(graph.x)
    x[order] = graph.x
    ends = order[graph.edge_index]
    place = (ends[0] * len(x) + ends[1]).argsort()
    return Data(x=x, edge_index=ends[:, place], edge_attr=graph.edge_attr[place])


def in_place(graph: Data) -> Data:
    """``graph`` with its edges sorted."""
    return reordered(graph, list(range(graph.num_nodes)))


def shuffled(mol: Chem.Mol, generator: np.random.Generator) -> tuple[Chem.Mol, list[int]]:
    """``mol`` with its atoms in a random order, and for each of them its index in ``mol``."""
    order = generator.permutation(mol.GetNumAtoms()).tolist()
    return Chem.RenumberAtoms(mol, order), order


def random_smiles(mol: Chem.Mol, generator: np.random.Generator) -> tuple[str, list[int]]:
    """A SMILES of ``mol`` in random order, and for each of its atoms the index in ``mol``."""
    again, order = shuffled(mol, generator)
    smiles = Chem.MolToSmiles(again, canonical=False, doRandom=True)
    written = again.GetPropsAsDict(includePrivate=True, includeComputed=True)["_smilesAtomOutputOrder"]
    return smiles, [order[index] for index in written]
