"""What a model attended to: lined up with atoms and bonds, summing to 1, drawn."""

import re

import numpy as np
import pytest
import torch
from rdkit import Chem

import graphattn as ga
from graphattn.attention.attend import AttentionWeights
from graphattn.errors import ModelFolderError, MoleculeError, SettingError
from graphattn.explanation.attention import rollout
from graphattn.model.network import NetworkWeights

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
SETTINGS = {"epochs": 2, "channels": 16, "layers": 2, "heads": 4}


@pytest.fixture(scope="module")
def model():
    smiles = ["CO", "CCO", "CCCO", "CCCCO", "CCCCCO", "c1ccccc1", "Cc1ccccc1", ASPIRIN]
    return ga.MoleculeRegressor(**SETTINGS, ensemble=2, random_state=0).fit(smiles, np.arange(8.0))


def test_one_number_per_bond_and_direction_per_head_and_layer(model):
    explanation = ga.explain(model, ASPIRIN)
    assert len(explanation.weights) == 2
    for member in explanation.weights:
        assert len(member.layers) == 2
        for layer in member.layers:
            assert layer.edges.shape == (26, 4)  # 13 bonds, both directions
            sums = layer.self_loops.index_add(0, explanation.edge_index[1], layer.edges)
            torch.testing.assert_close(sums, torch.ones(13, 4))
    assert explanation.atoms.shape == (13,)
    assert explanation.atoms.sum() == pytest.approx(1)
    np.testing.assert_allclose(explanation.values, model.predict([ASPIRIN]), rtol=1e-6)


def test_equal_atoms_get_equal_attention_and_order_does_not_matter(model):
    np.testing.assert_allclose(ga.explain(model, "c1ccccc1").atoms, 1 / 6, atol=1e-6)
    there, back = (ga.explain(model, smiles).atoms for smiles in ("CCCO", "OCCC"))
    np.testing.assert_allclose(there, back[::-1], atol=1e-6)


def test_rollout_by_hand():
    """Two nodes, one edge 0 -> 1 with all of node 1's attention; the readout looks at node 1 only."""
    layer = AttentionWeights(edges=torch.tensor([[1.0]]), self_loops=torch.tensor([[1.0], [0.0]]))
    weights = NetworkWeights(layers=(layer,), readout=torch.tensor([[0.0], [1.0]]))
    assert rollout(weights, torch.tensor([[0], [1]]), 2).tolist() == [0.5, 0.5]
    twice = NetworkWeights(layers=(layer, layer), readout=torch.tensor([[0.0], [1.0]]))
    assert rollout(twice, torch.tensor([[0], [1]]), 2).tolist() == [0.75, 0.25]
    alone = NetworkWeights(layers=(AttentionWeights(torch.zeros(0, 1), torch.zeros(2, 1)),), readout=None)
    assert rollout(alone, torch.zeros(2, 0, dtype=torch.long), 2).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("molecule", ["C", "[Na+].[Cl-]", ASPIRIN, Chem.MolFromSmiles("CCO")], ids=str)
@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_pictures(model, molecule, suffix, tmp_path):
    path = tmp_path / f"molecule.{suffix}"
    ga.explain(model, molecule).draw(path)
    start = path.read_bytes()[:200]
    assert start.startswith(b"\x89PNG") if suffix == "png" else b"<svg" in start


def test_hydrogens_of_the_model_are_drawn(tmp_path):
    model = ga.MoleculeRegressor(**SETTINGS, hydrogens="add", random_state=0).fit(
        ["C", "CC", "CCC", "CO"], np.arange(4.0)
    )
    explanation = ga.explain(model.predictor_, "CO")
    assert len(explanation.atoms) == 6
    explanation.draw(tmp_path / "methanol.svg")


def test_refusals(model, tmp_path):
    with pytest.raises(MoleculeError, match="C1CC"):
        ga.explain(model, "C1CC")
    explanation = ga.explain(model, "CCO")
    with pytest.raises(SettingError, match=r"a picture is \.svg or \.png, got 'molecule\.jpg'"):
        explanation.draw(tmp_path / "molecule.jpg")
    with pytest.raises(
        SettingError, match=r"there is no folder .*/nowhere for molecule\.svg; make it, or name another"
    ):
        explanation.draw(tmp_path / "nowhere" / "molecule.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(SettingError, match=r"folder\.svg is a folder; name a file to write"):
        explanation.draw(tmp_path / "folder.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ((0, 420), "size must be at least 1, got 0"),
        ((520, -1), "size must be at least 1, got -1"),
        ((520, 2**31), "size must be between 1 and 10000, got 2147483648"),
        ((520.0, 420), "size must be a whole number, got 520.0"),
        ("ab", "size must be a whole number, got 'a'"),
        (520, "size must be width and height in pixels, such as (520, 420), got 520"),
        ((520,), "size must be width and height in pixels, such as (520, 420), got (520,)"),
        ((1, 2, 3), "size must be width and height in pixels, such as (520, 420), got (1, 2, 3)"),
        (None, "size must be width and height in pixels, such as (520, 420), got None"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["molecule.svg", "molecule.png"])
def test_a_size_that_no_picture_has_is_refused(model, size, message, name, tmp_path):
    with pytest.raises(SettingError, match=re.escape(message)):
        ga.explain(model, "CCO").draw(tmp_path / name, size=size)
    assert not list(tmp_path.iterdir())


def test_a_size_may_be_a_pair_of_numpy(model, tmp_path):
    ga.explain(model, "CCO").draw(tmp_path / "molecule.svg", size=np.array([300, 200]))
    assert "width='300px' height='200px'" in (tmp_path / "molecule.svg").read_text()


def test_a_model_folder_is_explained_by_its_path(model, tmp_path):
    model.save(tmp_path / "model")
    for path in (tmp_path / "model", str(tmp_path / "model")):
        np.testing.assert_array_equal(ga.explain(path, "CCO").atoms, ga.explain(model, "CCO").atoms)
    with pytest.raises(ModelFolderError, match=r"there is no folder .*nowhere; train a model first"):
        ga.explain(str(tmp_path / "nowhere"), "CCO")


@pytest.mark.parametrize("other", [ga.MoleculeRegressor(), None], ids=["not fitted", "None"])
def test_what_holds_no_network_is_refused(other):
    with pytest.raises(
        SettingError,
        match=f"no trained network in this {type(other).__name__}; explain takes a fitted MoleculeRegressor",
    ):
        ga.explain(other, "CCO")
