"""Chirality of atoms and geometry of bonds by CIP, whatever the order of atoms in the SMILES.

A raw tag (``@``, clockwise) says how an atom's neighbors turn *in the order in which they are listed*: it flips with
the spelling. The CIP label does not. RDKit has two labelers. This one (Hanson et al. 2018,
doi:10.1021/acs.jcim.8b00324) follows the rules to the end and names pseudo-asymmetric centers, such as the two of
1,4-dimethylcyclohexane, which the older one leaves without a name. Where branches are much alike it may need very
many comparisons, so it runs with a limit.
"""

from typing import NamedTuple

from rdkit import Chem
from rdkit.Chem import Bond, rdCIPLabeler, rdqueries

from graphattn.featurize.columns import OTHER
from graphattn.featurize.quiet import quiet_rdkit

COMPARISONS_LIMIT = 400_000  # about a microsecond each; most molecules need fewer than 1,000, a few 100,000
GAVE_UP = f"more than {COMPARISONS_LIMIT:,} comparisons would name its stereo centers: they are coded {OTHER!r}"

_TAGGED_ATOM = rdqueries.HasChiralTagQueryAtom()
_TETRAHEDRAL = (Chem.ChiralType.CHI_TETRAHEDRAL_CW, Chem.ChiralType.CHI_TETRAHEDRAL_CCW)
_NO_STEREO = Chem.BondStereo.STEREONONE
_ANY_STEREO = Chem.BondStereo.STEREOANY
_BOND_LABELS = {"E": "E", "Z": "Z", "e": "E", "z": "Z", "M": "M", "P": "P", "m": "M", "p": "P"}
_LIMIT_ERRORS = ("Max Iterations Exceeded", "Too many nodes")  # the labeler's documented ways to stop


class StereoLabels(NamedTuple):
    """The labels of the atoms and bonds that have one, by index, and a remark where they could not be worked out."""

    atoms: dict[int, str]
    bonds: dict[int, str]
    remark: str = ""


def stereo_labels(mol: Chem.Mol) -> StereoLabels:
    """CIP labels: atoms R, S, r, s; bonds E, Z (also where they rest on mirror-image branches), M, P.

    A center whose arrangement is given but has no such label (square-planar, octahedral, "either" of two) is ``other``.
    So is every marked center of a molecule that needs more than ``COMPARISONS_LIMIT`` comparisons; their number varies
    with the order of atoms by a percent, no more, and the labels do not.

    >>> stereo_labels(Chem.MolFromSmiles("C[C@H](N)/C=C/F"))
    StereoLabels(atoms={1: 'S'}, bonds={3: 'E'}, remark='')
    """
    tagged = list(mol.GetAtomsMatchingQuery(_TAGGED_ATOM))
    bonds = [*map(mol.GetBondWithIdx, range(mol.GetNumBonds()))]
    marked = [bond for bond, stereo in zip(bonds, map(Bond.GetStereo, bonds), strict=True) if stereo != _NO_STEREO]
    try:
        with quiet_rdkit():
            rdCIPLabeler.AssignCIPLabels(mol, maxRecursiveIterations=COMPARISONS_LIMIT)
    except RuntimeError as error:
        if not any(words in str(error) for words in _LIMIT_ERRORS):
            raise
        return StereoLabels(
            {atom.GetIdx(): OTHER for atom in tagged}, {bond.GetIdx(): OTHER for bond in marked}, GAVE_UP
        )
    atoms = {}
    for atom in tagged:
        if atom.HasProp("_CIPCode"):
            atoms[atom.GetIdx()] = atom.GetProp("_CIPCode")
        elif atom.GetChiralTag() not in _TETRAHEDRAL:
            atoms[atom.GetIdx()] = OTHER
    labels = {}
    for bond in marked:
        if bond.HasProp("_CIPCode"):
            labels[bond.GetIdx()] = _BOND_LABELS[bond.GetProp("_CIPCode")]
        elif bond.GetStereo() == _ANY_STEREO:
            labels[bond.GetIdx()] = OTHER
    return StereoLabels(atoms, labels)
