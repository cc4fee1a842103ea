"""Canonical SMILES and scaffolds: what makes molecules the same, or alike."""

import collections

import pandas as pd
import pytest
from rdkit import Chem
from shared_data import shared_file

from graphattn.errors import MoleculeError
from graphattn.featurize.identity import canonical_smiles, murcko_scaffold


def test_spellings_of_one_molecule_are_one():
    spellings = ["CCO", " OCC ", "C(O)C", "[CH3:1][CH2:2][OH:3]", "[H]OC([H])([H])C", Chem.MolFromSmiles("OCC")]
    assert {canonical_smiles(molecule) for molecule in spellings} == {"CCO"}
    assert canonical_smiles("C1=CC=CC=C1") == canonical_smiles("c1ccccc1")


def test_what_is_another_molecule_stays_one():
    others = ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "CC(N)C(=O)O", "[13CH3]C(N)C(=O)O", "CC(N)C(=O)[O-]"]
    assert len({canonical_smiles(molecule) for molecule in others}) == len(others)


def test_a_given_molecule_keeps_its_map_numbers():
    mol = Chem.MolFromSmiles("[CH3:1][OH:2]")
    assert canonical_smiles(mol) == "CO"
    assert [atom.GetAtomMapNum() for atom in mol.GetAtoms()] == [1, 2]


def test_scaffolds():
    assert murcko_scaffold("CC(C)c1ccc(CC2CC2)cc1") == "c1ccc(CC2CC2)cc1"
    assert murcko_scaffold(Chem.MolFromSmiles("CCc1ccccc1")) == "c1ccccc1"
    assert murcko_scaffold("CCO") == ""
    spiro = "C1CC[C@]2(CCNC2)OC1"
    assert "@" in murcko_scaffold(spiro)
    assert "@" not in murcko_scaffold(spiro, chirality=False)


@pytest.mark.parametrize("function", [canonical_smiles, murcko_scaffold])
def test_unreadable_molecules_raise(function):
    with pytest.raises(MoleculeError, match="RDKit: SMILES Parse Error: unclosed ring"):
        function("C1CC")
    with pytest.raises(MoleculeError, match="the text is blank") as caught:
        function("")
    assert caught.value.status == "empty"


@pytest.mark.parametrize(("column", "chirality"), [("scaffold_chiral", True), ("scaffold_achiral", False)])
def test_scaffolds_are_those_of_the_published_splits(column, chirality):
    """Deterministic scaffold split of ESOL: groups by (size, first row) descending, filled up to 80, 10, 10 %."""
    smiles = pd.read_csv(shared_file("molnet/delaney-processed.csv"))["smiles"]
    published = pd.read_csv(shared_file("splits/delaney-processed_splits.csv.gz"))[column]
    groups = collections.defaultdict(list)
    for row, text in enumerate(smiles):
        groups[murcko_scaffold(text, chirality=chirality)].append(row)
    part_of = {}
    filled = collections.Counter()
    for rows in sorted(groups.values(), key=lambda rows: (len(rows), rows[0]), reverse=True):
        part = "train"
        if filled["train"] + len(rows) > 0.8 * len(smiles):
            part = "valid" if filled["train"] + filled["valid"] + len(rows) <= 0.9 * len(smiles) else "test"
        filled[part] += len(rows)
        part_of.update(dict.fromkeys(rows, part))
    assert [part_of[row] for row in range(len(smiles))] == published.tolist()
