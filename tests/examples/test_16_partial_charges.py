"""Partial charges: computed right, learned from few molecules, heard from as far as the network is deep."""

import pytest
import torch
from example_modules import is_picture, load
from rdkit import Chem


@pytest.fixture(scope="module")
def example():
    return load("16_partial_charges")


def test_charges_of_unseen_molecules_are_predicted(example, tmp_path):
    results = example.main(tmp_path, quick=True)
    assert list(results.r2) == [
        "atoms of its element",
        "atoms described alike",
        "attention, depth 1",
        "attention, depth 3",
    ]
    element, alike, shallow, deep = results.r2.values()
    assert 0.3 < element < alike < min(shallow, deep)
    assert max(shallow, deep) > 0.9
    assert is_picture(tmp_path / "16_partial_charges.png")


def test_each_block_hears_one_bond_farther(example):
    butanol, butylamine = example.charged("CCCCO"), example.charged("CCCCN")
    known = example.pack([butanol, butylamine])
    for layers in (1, 2, 3):
        network = example.learn(known, layers, epochs=1)
        alcohol, amine = (example.predict(network, graph) for graph in (butanol, butylamine))
        heard = (alcohol - amine).abs() > 1e-6
        assert heard.tolist() == [atom >= 4 - layers for atom in range(5)]


def test_each_atom_has_its_own_charge(example):
    graph = example.charged("CCO")
    assert [example.FEATURIZER.node_columns[0].labels[code] for code in graph.x[:, 0]] == ["C", "C", "O"]
    torch.testing.assert_close(graph.charge, torch.tensor([-0.0420, 0.0402, -0.3967]), atol=5e-4, rtol=0)


def test_a_molecule_with_an_unknown_element_has_none(example):
    assert example.charged("C[Sn](C)(C)C") is None


def test_unseen_molecules_are_unseen(example):
    known, unseen = example.bundled()
    assert (len(known), len(unseen)) == (1021, 253)  # 1,025 and 257 without repeats and without 4 that are in both
    assert not set(known) & set(unseen)
    assert Chem.CanonSmiles(example.DRAWN[1]) in unseen


def test_the_mean_of_a_kind(example):
    known = example.pack([example.charged(smiles) for smiles in ("CCO", "CO")]).to_batch()
    asked = example.pack([example.charged(smiles) for smiles in ("O", "N")]).to_batch()
    oxygen = known.charge[[2, 4]].mean()
    guess = example.mean_of_kind(known, asked, ["element"]).float()
    torch.testing.assert_close(guess, torch.stack([oxygen, known.charge.mean()]))  # no nitrogen is known
