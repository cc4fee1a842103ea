"""What makes two molecules the same, or alike: canonical SMILES and Bemis-Murcko scaffolds."""

from rdkit import Chem
from rdkit.Chem.Scaffolds import MurckoScaffold

from graphattn.featurize.quiet import quiet_rdkit
from graphattn.featurize.reading import read_molecule


def canonical_smiles(molecule: str | Chem.Mol) -> str:
    """RDKit's canonical SMILES, without atom-map numbers: equal for two spellings of one molecule.

    Raises:
        MoleculeError: it cannot be read.

    >>> canonical_smiles("C(O)C"), canonical_smiles("[CH3:1][CH2:2][OH:3]")
    ('CCO', 'CCO')
    """
    mol = read_molecule(molecule).mol
    for atom in mol.GetAtoms():
        atom.SetAtomMapNum(0)
    with quiet_rdkit():
        return str(Chem.MolToSmiles(mol))


def murcko_scaffold(molecule: str | Chem.Mol, *, chirality: bool = True) -> str:
    """Canonical SMILES of the Bemis-Murcko scaffold: rings and what links them. Blank for a molecule without rings.

    With ``chirality`` these are the groups of the scaffold splits of OGB, without it those of DeepChem.

    Raises:
        MoleculeError: it cannot be read.

    >>> murcko_scaffold("CC(C)c1ccc(CC2CC2)cc1"), murcko_scaffold("CCO")
    ('c1ccc(CC2CC2)cc1', '')

    Source: Bemis and Murcko 1996, doi:10.1021/jm9602928.
    """
    mol = read_molecule(molecule).mol
    with quiet_rdkit():
        return str(MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=chirality))  # type: ignore[no-untyped-call]
