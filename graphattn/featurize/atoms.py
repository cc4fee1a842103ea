"""Atoms: the columns that describe one, and their codes for a whole molecule."""

from collections.abc import Mapping
from itertools import repeat

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem
from rdkit.Chem import Atom

from graphattn.errors import SettingError
from graphattn.featurize.columns import NO_YES, OTHER, Column, counted

DEFAULT_ELEMENTS = (
    *("H", "Li", "B", "C", "N", "O", "F", "Na", "Mg", "Si"),
    *("P", "S", "Cl", "K", "Ca", "Zn", "As", "Se", "Br", "I"),
)

RING_SIZES = range(3, 9)  # each has a column of its own; one more is for larger rings
CHARGES = ("-3 or less", "-2", "-1", "0", "+1", "+2", "+3 or more")
HYBRIDIZATIONS = ("unspecified", "s", "sp", "sp2", "sp3", "sp2d", "sp3d", "sp3d2", OTHER)
CHIRALITIES = (
    "none",
    "R",
    "S",
    "r",
    "s",
    OTHER,
)  # CIP; r and s: pseudo-asymmetric; other: a center without such a name


def atom_columns(elements: tuple[str, ...] = DEFAULT_ELEMENTS) -> tuple[Column, ...]:
    """The columns of ``x``.

    - *element*: one of ``elements``, or ``other``.
    - *degree*: neighbors in the graph, which are heavy atoms unless hydrogens are atoms of it.
    - *hydrogens*: all of them, whether atoms of the graph or not.
    - *ring*: for each size, whether the atom is in a ring of that size (RDKit's symmetrized smallest rings). Several
      may be true.
    - *radical electrons*, *isotope*: as given in the SMILES; ``labeled`` is any isotope given.
    - *chirality*: the CIP label, which depends neither on the order of atoms nor on the spelling.
    """
    return (
        Column("element", (*elements, OTHER)),
        Column("degree", counted(7)),
        Column("charge", CHARGES),
        Column("hydrogens", counted(4)),
        Column("hybridization", HYBRIDIZATIONS),
        Column("aromatic", NO_YES),
        *(Column(f"in ring of {size}", NO_YES) for size in RING_SIZES),
        Column(f"in ring of {RING_SIZES.stop} or more", NO_YES),
        Column("radical electrons", counted(3)),
        Column("isotope", ("natural", "labeled")),
        Column("chirality", CHIRALITIES),
    )


def element_codes(elements: tuple[str, ...]) -> dict[int, int]:
    """Atomic number -> code. ``*`` is RDKit's dummy atom, number 0.

    Raises:
        SettingError: no elements, one named twice, or a name that is no element symbol.
    """
    if not elements:
        raise SettingError("elements is empty; name at least one, such as elements=('C', 'N', 'O')")
    table = Chem.GetPeriodicTable()
    numbers = {table.GetElementSymbol(number): number for number in range(119)}
    unknown = [name for name in elements if name not in numbers]
    if unknown:
        raise SettingError(f"elements holds {unknown[0]!r}, which is no element symbol (they are spelled as in 'Cl')")
    twice = [name for name in elements if elements.count(name) > 1]
    if twice:
        raise SettingError(f"elements holds {twice[0]!r} twice; name each element once")
    return {numbers[name]: code for code, name in enumerate(elements)}


_RING_BITS = (0, 0, 0, *(1 << place for place, _ in enumerate(RING_SIZES)))
_LARGE_RING_BIT = 1 << len(RING_SIZES)


def _ring_bits(mol: Chem.Mol) -> list[int]:
    """For each atom, the sizes of the rings it is in: a bit per ring column."""
    bits = [0] * mol.GetNumAtoms()
    for ring in mol.GetRingInfo().AtomRings():
        bit = _RING_BITS[len(ring)] if len(ring) < RING_SIZES.stop else _LARGE_RING_BIT
        for atom in ring:
            bits[atom] |= bit
    return bits


class AtomCodes(dict[tuple[object, ...], bytes]):
    """Traits of an atom -> its row of codes, one byte a column; each kind of atom is worked out once.

    A molecule has many atoms and a data set has few kinds of them: a look-up is what an atom costs.
    """

    def __init__(self, elements: tuple[str, ...]) -> None:
        super().__init__()
        self.elements = elements
        self._code_of = element_codes(elements)
        self.num_columns = len(atom_columns(elements))

    def __reduce__(self) -> tuple[type["AtomCodes"], tuple[tuple[str, ...]]]:
        return AtomCodes, (self.elements,)  # a copy, here or in another process, fills itself again

    def __missing__(self, traits: tuple[object, ...]) -> bytes:
        row = self[traits] = self._row(*traits)  # type: ignore[arg-type]
        return row

    def _row(
        self,
        number: int,
        degree: int,
        charge: int,
        hydrogens: int,
        hybridization: Chem.HybridizationType,
        aromatic: bool,  # noqa: FBT001
        rings: int,
        radical_electrons: int,
        isotope: int,
        chirality: str,
    ) -> bytes:
        return bytes(
            (
                self._code_of.get(number, len(self.elements)),
                min(degree, 7),
                min(max(charge, -3), 3) + 3,
                min(hydrogens, 4),
                HYBRIDIZATIONS.index(hybridization.name.lower()),
                aromatic,
                *(rings >> place & 1 for place in range(len(RING_SIZES) + 1)),
                min(radical_electrons, 3),
                isotope > 0,
                CHIRALITIES.index(chirality),
            )
        )

    def codes(self, mol: Chem.Mol, chirality: Mapping[int, str]) -> NDArray[np.int64]:
        """(N, columns); ``chirality`` holds the label of every atom that has one."""
        atoms = [*map(mol.GetAtomWithIdx, range(mol.GetNumAtoms()))]
        labels = ["none"] * len(atoms)
        for index, label in chirality.items():
            labels[index] = label
        traits = zip(
            map(Atom.GetAtomicNum, atoms),
            map(Atom.GetDegree, atoms),
            map(Atom.GetFormalCharge, atoms),
            map(Atom.GetTotalNumHs, atoms, repeat(True)),  # those that are atoms of the graph too
            map(Atom.GetHybridization, atoms),
            map(Atom.GetIsAromatic, atoms),
            _ring_bits(mol),
            map(Atom.GetNumRadicalElectrons, atoms),
            map(Atom.GetIsotope, atoms),
            labels,
            strict=True,
        )
        codes = np.frombuffer(b"".join(map(self.__getitem__, traits)), dtype=np.uint8)
        return codes.reshape(-1, self.num_columns).astype(np.int64)

    def outside(self, mol: Chem.Mol, codes: NDArray[np.int64]) -> list[str]:
        """The elements of ``mol`` that have no code of their own, sorted."""
        strangers = np.flatnonzero(codes[:, 0] == len(self.elements)).tolist()
        return sorted({mol.GetAtomWithIdx(index).GetSymbol() for index in strangers})
