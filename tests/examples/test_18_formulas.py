"""Formulas of molecules: the truth by hand, the split, and that sums count where means cannot."""

import math
import random

import pytest
import torch
from example_modules import is_picture, load
from rdkit import Chem
from rdkit.Chem.rdMolDescriptors import CalcMolFormula

BY_HAND = {
    "CCO": "C2H6O",
    "C" * 11: "C11H24",
    "C" * 10: "C10H22",
    "O": "H2O",
    "Cl": "ClH",
    "[NH4+].[Cl-]": "ClH4N",  # no carbon: by the alphabet, and without charge
    "ClC(Cl)(Cl)Cl": "CCl4",
    "BrCCN": "C2H6BrN",  # carbon, hydrogen, then the others
    "[2H]O[2H]": "H2O",  # isotopes count as their element
    "[Na+].CC(=O)[O-]": "C2H3NaO2",
    "c1ccc2ccccc2c1Cl": "C10H7Cl",
}


@pytest.mark.parametrize(("smiles", "formula"), BY_HAND.items())
def test_formulas_by_hand(smiles, formula):
    example = load("18_formulas")
    (molecule,) = example.read_molecules([smiles])
    assert molecule.formula == formula
    assert "".join(example.symbols(formula)) == formula


def test_symbols_are_elements_and_single_digits():
    assert load("18_formulas").symbols("C10H7ClSi") == ["C", "1", "0", "H", "7", "Cl", "Si"]


def test_a_molecule_is_read_once_and_an_unreadable_one_not_at_all():
    example = load("18_formulas")
    ethanol, alanine = example.read_molecules(["CCO", "OCC", "C1CC", "", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"])
    assert (ethanol.smiles, ethanol.formula, alanine.formula) == ("CCO", "C2H6O", "C3H7NO2")


def test_an_atom_is_its_element_and_its_hydrogens():
    example = load("18_formulas")
    (amine,) = example.read_molecules(["CN"])
    element, hydrogens = (column.labels for column in example.TOLD)
    assert [(element[one], hydrogens[other]) for one, other in amine.graph.x.tolist()] == [("C", "3"), ("N", "2")]
    assert amine.graph.edge_index.tolist() == [[0, 1], [1, 0]]


def test_no_unseen_molecule_is_known():
    example = load("18_formulas")
    alkanes = example.read_molecules(["C" * length for length in range(1, 41)])
    alcohols = example.read_molecules(["C" * length + "O" for length in range(1, 31)])
    tables = {"alkanes": alkanes, "mixed": alcohols + alkanes[:20]}
    known, unseen = example.split(tables, random.Random(0))  # noqa: S311 (no secret)
    assert [len(molecules) for molecules in unseen.values()] == [4, 5]
    held_back = {molecule.smiles for molecules in unseen.values() for molecule in molecules}
    learned = [molecule.smiles for molecule in known]
    assert len({*learned}) == len(learned)
    assert not held_back & {*learned}
    assert held_back | {*learned} == {molecule.smiles for molecule in alkanes + alcohols}


def test_a_mixture_is_both_molecules_side_by_side():
    example = load("18_formulas")
    known = example.read_molecules(["CN", "O"])
    mixed = example.mixtures(known, 20, random.Random(0))  # noqa: S311 (no secret)
    assert len(mixed) == 20
    for mixture in mixed:
        (alone,) = example.read_molecules([mixture.smiles])
        assert mixture.formula == alone.formula == "CH7NO"
        assert torch.equal(mixture.graph.x, alone.graph.x)
        assert torch.equal(mixture.graph.edge_index, alone.graph.edge_index)


def test_shares_count_right_formulas_by_size():
    example = load("18_formulas")
    small, large = example.read_molecules(["CCO", "C" * 12])
    judged = [
        example.Judged("one", small, novel=False, written={"relu": "C2H6O", "softmax": "C2H6O"}),
        example.Judged("one", large, novel=True, written={"relu": "C12H26", "softmax": "C2H6"}),
    ]
    assert (example.share(judged, "relu"), example.share(judged, "softmax")) == (1.0, 0.5)
    assert math.isnan(example.share([], "relu"))
    assert example.by_size(judged) == {"1 to 10": judged[:1], "11 to 20": judged[1:]}


def test_looks_are_the_weights_of_a_formula_on_its_own_atoms():
    example = load("18_formulas")
    molecules = example.read_molecules(["CCO", "CCN"])
    vocabulary = example.Vocabulary.of([example.symbols(each.formula) for each in molecules], reserved=("<s>", "<e>"))
    torch.manual_seed(0)
    means = example.Writer(vocabulary, "softmax").looks(molecules[0])
    assert means.shape == (6, 3)  # C, 2, H, 6, O and the end; three atoms
    assert means.sum(1).tolist() == pytest.approx([example.HEADS] * 6)  # a mean's weights sum to 1 in each head
    sums = example.Writer(vocabulary, "relu").looks(molecules[0])
    assert sums.min() >= 0
    assert sums.sum(1).tolist() != pytest.approx([example.HEADS] * 6)


def test_sums_count_where_means_cannot(tmp_path, capsys):
    example = load("18_formulas")
    judged = example.main(tmp_path, example.read_tables([], "smiles"), quick=True)
    assert {each.table for each in judged} == {"solubility"}
    for each in judged:
        mol = Chem.MolFromSmiles(each.molecule.smiles)
        if mol.HasSubstructMatch(Chem.MolFromSmarts("[#6]")):  # RDKit writes hydrogen first where there is no carbon
            assert each.molecule.formula == CalcMolFormula(mol)
    assert example.share(judged, "relu") > 0.4
    assert example.share(judged, "relu") > example.share(judged, "softmax") + 0.1
    assert "by heavy atoms" in capsys.readouterr().out
    assert is_picture(tmp_path / "18_formulas.png")


def test_tables_of_your_own_are_read(tmp_path):
    example = load("18_formulas")
    files = [tmp_path / name for name in ("first.csv", "second.tsv")]
    files[0].write_text("name,SMILES\nethanol,CCO\n", encoding="utf-8")
    files[1].write_text("SMILES\tname\nC\tmethane\nCC\tethane\n", encoding="utf-8")
    assert example.read_tables(files, "SMILES") == dict(zip(map(str, files), (["CCO"], ["C", "CC"]), strict=True))
