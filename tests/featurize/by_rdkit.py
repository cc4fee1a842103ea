"""The definition: every trait of every atom and bond asked of RDKit one at a time. Slow on purpose; never optimize it.

Nothing is taken from the featurizer but the names of its columns and labels: this module says what they mean.
"""

import torch
from rdkit import Chem
from rdkit.Chem import rdCIPLabeler
from torch_geometric.data import Data

BONDS = {
    Chem.BondType.SINGLE: "single",
    Chem.BondType.DOUBLE: "double",
    Chem.BondType.TRIPLE: "triple",
    Chem.BondType.QUADRUPLE: "quadruple",
    Chem.BondType.AROMATIC: "aromatic",
    Chem.BondType.ZERO: "zero",
}


def yes(truth: bool) -> str:  # noqa: FBT001
    return "yes" if truth else "no"


def up_to(count: int, largest: int) -> str:
    return str(count) if count < largest else f"{largest} or more"


def charge(charge: int) -> str:
    if charge <= -3:
        return "-3 or less"
    if charge >= 3:
        return "+3 or more"
    return f"{charge:+d}" if charge else "0"


def cip(part: Chem.Atom | Chem.Bond) -> str:
    return part.GetProp("_CIPCode") if part.HasProp("_CIPCode") else "none"


def atom_traits(atom: Chem.Atom, elements: tuple[str, ...], rings: Chem.RingInfo) -> dict[str, str]:
    large = any(size >= 9 for size in rings.AtomRingSizes(atom.GetIdx()))
    return {
        "element": atom.GetSymbol() if atom.GetSymbol() in elements else "other",
        "degree": up_to(len(atom.GetNeighbors()), 7),
        "charge": charge(atom.GetFormalCharge()),
        "hydrogens": up_to(atom.GetTotalNumHs(includeNeighbors=True), 4),
        "hybridization": str(atom.GetHybridization()).lower(),
        "aromatic": yes(atom.GetIsAromatic()),
        **{f"in ring of {size}": yes(rings.IsAtomInRingOfSize(atom.GetIdx(), size)) for size in range(3, 9)},
        "in ring of 9 or more": yes(large),
        "radical electrons": up_to(atom.GetNumRadicalElectrons(), 3),
        "isotope": "labeled" if atom.GetIsotope() else "natural",
        "chirality": cip(atom),
    }


def bond_traits(bond: Chem.Bond, sender: int) -> dict[str, str]:
    order = BONDS.get(bond.GetBondType(), "other")
    if bond.GetBondType() == Chem.BondType.DATIVE:
        order = "dative along" if bond.GetBeginAtomIdx() == sender else "dative against"
    return {
        "order": order,
        "conjugated": yes(bond.GetIsConjugated()),
        "in ring": yes(bond.IsInRing()),
        "stereo": cip(bond),
    }


def graph_by_rdkit(smiles: str, featurizer) -> Data:
    """What ``featurizer``, with hydrogens implicit and stereo on, must make of ``smiles``."""
    mol = Chem.MolFromSmiles(smiles)
    rdCIPLabeler.AssignCIPLabels(mol)
    atoms = [atom_traits(atom, featurizer.elements, mol.GetRingInfo()) for atom in mol.GetAtoms()]
    ends, bonds = [], []
    for bond in mol.GetBonds():
        begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        for sender, receiver in ((begin, end), (end, begin)):
            ends.append((sender, receiver))
            bonds.append(bond_traits(bond, sender))
    return Data(
        x=_codes(atoms, featurizer.node_columns),
        edge_index=torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T,
        edge_attr=_codes(bonds, featurizer.edge_columns),
    )


def _codes(parts: list[dict[str, str]], columns) -> torch.Tensor:
    for part in parts:
        assert list(part) == [column.name for column in columns]
    codes = [[column.labels.index(part[column.name]) for column in columns] for part in parts]
    return torch.tensor(codes, dtype=torch.int64).reshape(-1, len(columns))
