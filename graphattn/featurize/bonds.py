"""Bonds: the columns that describe one, and their codes for a whole molecule, each bond in both directions."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem
from rdkit.Chem import Bond, BondType

from graphattn.featurize.columns import NO_YES, OTHER, Column

ORDERS = ("single", "double", "triple", "quadruple", "aromatic", "dative along", "dative against", "zero", OTHER)
STEREO = ("none", "E", "Z", "M", "P", OTHER)  # CIP; M and P: axial; other: a geometry without such a name

BOND_COLUMNS = (
    Column("order", ORDERS),  # a dative bond goes along its arrow in one direction and against it in the other
    Column("conjugated", NO_YES),
    Column("in ring", NO_YES),
    Column("stereo", STEREO),
)

_ORDER_OF = {
    BondType.SINGLE: "single",
    BondType.DOUBLE: "double",
    BondType.TRIPLE: "triple",
    BondType.QUADRUPLE: "quadruple",
    BondType.AROMATIC: "aromatic",
    BondType.ZERO: "zero",
}


class BondCodes(dict[tuple[object, ...], bytes]):
    """Traits of a bond -> its two rows of codes, one byte a column: from begin to end, then back."""

    def __reduce__(self) -> tuple[type["BondCodes"], tuple[()]]:
        return BondCodes, ()  # a copy, here or in another process, fills itself again

    def __missing__(self, traits: tuple[object, ...]) -> bytes:
        rows = self[traits] = self._rows(*traits)  # type: ignore[arg-type]
        return rows

    @staticmethod
    def _rows(kind: BondType, conjugated: bool, in_ring: bool, stereo: str) -> bytes:  # noqa: FBT001
        if kind == BondType.DATIVE:
            there, back = "dative along", "dative against"
        else:
            there = back = _ORDER_OF.get(kind, OTHER)
        traits = (conjugated, in_ring, STEREO.index(stereo))
        return bytes((ORDERS.index(there), *traits, ORDERS.index(back), *traits))

    def codes(self, mol: Chem.Mol, stereo: Mapping[int, str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``edge_index`` (2, E) and ``edge_attr`` (E, columns); ``stereo``: the label of every bond that has one."""
        bonds = [*map(mol.GetBondWithIdx, range(mol.GetNumBonds()))]
        labels = ["none"] * len(bonds)
        for index, label in stereo.items():
            labels[index] = label
        traits = zip(
            map(Bond.GetBondType, bonds),
            map(Bond.GetIsConjugated, bonds),
            map(Bond.IsInRing, bonds),
            labels,
            strict=True,
        )
        codes = np.frombuffer(b"".join(map(self.__getitem__, traits)), dtype=np.uint8)
        edge_index = np.empty((2, len(bonds), 2), dtype=np.int64)  # the last axis: there, back
        edge_index[0, :, 0] = edge_index[1, :, 1] = [*map(Bond.GetBeginAtomIdx, bonds)]
        edge_index[1, :, 0] = edge_index[0, :, 1] = [*map(Bond.GetEndAtomIdx, bonds)]
        return edge_index.reshape(2, -1), codes.reshape(-1, len(BOND_COLUMNS)).astype(np.int64)

    @staticmethod
    def outside(mol: Chem.Mol, codes: NDArray[np.int64]) -> list[str]:
        """RDKit's names of the bond types of ``mol`` that have no code of their own, sorted."""
        strangers = np.flatnonzero(codes[0::2, 0] == ORDERS.index(OTHER)).tolist()
        return sorted({mol.GetBondWithIdx(index).GetBondType().name for index in strangers})
