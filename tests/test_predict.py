"""What a trained model says about rows of molecules: order, statuses, company, spelling, units."""

import re
from dataclasses import replace

import numpy as np
import pytest
from rdkit import Chem
from shared_data import shared_file
from tiny_models import MOLECULES, tiny_predictor

from graphattn import predict
from graphattn.data.table import read_table
from graphattn.errors import MoleculeError

DIRTY = ["CCO", "", "CC1=CC=C[NH+2]([O-])C1", None, 5, float("nan"), "CCO>>CC=O", "c1ccccc1"]


def test_every_row_keeps_its_place_and_says_what_it_is():
    predictions = tiny_predictor().predict(DIRTY)
    assert predictions.values.shape == (8, 2)
    assert predictions.values.dtype == np.float64
    assert predictions.bad_rows == [1, 2, 3, 4, 5, 6]
    assert np.isnan(predictions.values[1:7]).all()
    alone = tiny_predictor().predict(["CCO", "c1ccccc1"])
    np.testing.assert_allclose(predictions.values[[0, 7]], alone.values, rtol=0, atol=1e-5)
    assert [row.status for row in predictions.rows] == [
        *("ok", "empty", "unreadable", "not-a-string", "not-a-string", "not-a-string", "reaction", "ok")
    ]
    assert all(predictions.rows[row].reason for row in predictions.bad_rows)


def test_strict_raises_before_anything_is_predicted_and_names_row_and_smiles():
    with pytest.raises(MoleculeError, match=re.escape("row 2 of 3: 'C1CC' is unreadable")) as caught:
        tiny_predictor().predict(["CCO", "C1CC", ""], strict=True)
    assert "(1 more rows cannot be used either.)" in str(caught.value)
    with pytest.raises(MoleculeError, match=r"^x\.csv, row 2: 'C1CC' is unreadable"):
        tiny_predictor().predict(["CCO", "C1CC"], strict=True, name_row=lambda row: f"x.csv, row {row + 1}")
    assert tiny_predictor().predict(["CCO"], strict=True).bad_rows == []


def test_no_rows_give_no_predictions():
    predictions = tiny_predictor().predict([])
    assert predictions.values.shape == (0, 2)
    assert predictions.rows == []


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_company_and_the_size_of_a_pass_change_nothing(task, monkeypatch):
    predictor = tiny_predictor(task)
    together = predictor.predict(MOLECULES).values
    alone = np.concatenate([predictor.predict([smiles]).values for smiles in MOLECULES])
    monkeypatch.setattr(predict, "NODES_AT_ONCE", 5)  # smaller than some of the molecules
    monkeypatch.setattr(predict, "ROWS_AT_ONCE", 3)
    in_pieces = predictor.predict(iter(MOLECULES)).values
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-5)
    np.testing.assert_allclose(in_pieces, together, rtol=0, atol=1e-5)


def test_twice_gives_the_same_bits_and_leaves_the_networks_as_they_were():
    predictor = tiny_predictor()
    predictor.networks[0].train()
    first = predictor.predict(MOLECULES).values
    assert predictor.networks[0].training
    predictor.networks[0].eval()
    assert np.array_equal(first, predictor.predict(MOLECULES).values)


@pytest.mark.parametrize(
    ("one", "other"),
    [("C1=CC=CC=C1C", "Cc1ccccc1"), ("OCC", "CCO"), ("C[C@H](N)C(=O)O", "N[C@@H](C)C(=O)O")],
    ids=["Kekule form", "other end first", "chiral center, other neighbor first"],
)
def test_spelling_of_a_molecule_does_not_matter(one, other):
    values = tiny_predictor().predict([one, other]).values
    np.testing.assert_allclose(values[0], values[1], rtol=0, atol=1e-5)


def test_twenty_random_spellings_of_a_drug_agree():
    drug = Chem.MolFromSmiles("CN1C[C@H](C=C2[C@H]1Cc1c[nH]c3cccc2c13)C(=O)N(CC)CC")
    spellings = [Chem.MolToSmiles(drug, doRandom=True) for _ in range(20)]
    values = tiny_predictor().predict([drug, *spellings]).values
    np.testing.assert_allclose(values, np.broadcast_to(values[0], values.shape), rtol=0, atol=1e-5)


def test_stereo_counts_unless_the_model_was_trained_without():
    mirrored = ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"]
    geometric = ["F/C=C/F", "F/C=C\\F"]
    for pair in (mirrored, geometric):
        with_stereo = tiny_predictor().predict(pair).values
        without = tiny_predictor(stereo=False).predict(pair).values
        assert not np.allclose(with_stereo[0], with_stereo[1], rtol=0, atol=1e-6)
        np.testing.assert_allclose(without[0], without[1], rtol=0, atol=1e-6)


def test_an_unseen_element_is_predicted_and_reported():
    predictions = tiny_predictor().predict(["[Al].[OH2+]c1ccccc1", "[Na+].[Cl-]", "C"])
    assert np.isfinite(predictions.values).all()
    assert [row.status for row in predictions.rows] == ["ok"] * 3
    assert "Al" in predictions.rows[0].reason
    assert predictions.rows[2].reason == ""


def test_binary_targets_are_probabilities():
    values = tiny_predictor("binary").predict(MOLECULES).values
    assert ((values > 0) & (values < 1)).all()


def test_an_ensemble_predicts_the_mean_of_its_members():
    ensemble = tiny_predictor(ensemble=3)
    members = [replace(ensemble, networks=(network,)) for network in ensemble.networks]
    values = np.stack([member.predict(MOLECULES).values for member in members])
    assert np.ptp(values, axis=0).max() > 1e-3
    np.testing.assert_allclose(ensemble.predict(MOLECULES).values, values.mean(0), rtol=1e-12)


def test_extreme_molecules_from_real_sets_are_predicted_or_say_why_not():
    table = read_table(shared_file("stress/weird_from_real.csv"))
    predictions = tiny_predictor().predict(table.column("smiles"))
    assert predictions.values.shape == (len(table), 2)
    refused = [tag == "rdkit_rejects" for tag in table.column("tag")]
    assert [row.status != "ok" for row in predictions.rows] == refused
    assert (np.isnan(predictions.values).any(axis=1) == refused).all()
