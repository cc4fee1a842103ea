"""The graph of a molecule does not depend on the order of atoms in its SMILES, nor on its spelling."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from graphs import in_place, random_smiles, reordered, same, shuffled
from rdkit import Chem
from shared_data import shared_file

from graphattn.featurize import stereo
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.featurize.reading import read_molecule

FEATURIZER = MoleculeFeaturizer()
ORDERS = 20

# Ring systems whose smallest rings are a matter of choice, so that a careless search finds other ones in other orders.
CAGES = {
    "cubane": "C12C3C4C1C5C2C3C45",
    "prismane": "C12C3C1C4C2C34",
    "tetrahedrane": "C12C3C1C23",
    "dodecahedrane": "C12C3C4C5C1C6C7C2C8C3C9C4C1C5C6C2C7C8C9C12",
    "bicyclo[2.2.2]octane": "C1CC2CCC1CC2",
    "adamantane": "C1C2CC3CC1CC(C2)C3",
    "two long bridges": "C1CCCC2CCCCC(CCC1)CCCC2",
    "porphyrin": "c1cc2cc3ccc(cc4ccc(cc5ccc(cc1n2)[nH]5)n4)[nH]3",
    "corannulene": "c1cc2ccc3ccc4ccc5ccc1c6c2c3c4c56",
    "a ring within rings": "C1CC2CC1CC3CCC(C3)CC4CCC(C4)C2",
}
STEREO = {
    "trans-1,4-dimethylcyclohexane": "C[C@H]1CC[C@H](C)CC1",
    "ribitol": "OC[C@H](O)[C@H](O)[C@H](O)CO",
    "quinine": "COc1ccc2nccc([C@@H](O)[C@@H]3C[C@@H]4CC[N@]3C[C@@H]4C=C)c2c1",
    "a sulfoxide and a phosphine": "C[S@](=O)CC[P@](CC)c1ccccc1",
    "a triene": "C/C=C/C=C\\C(\\F)=C(/Cl)C",
    "an oxime": "C/C(CC)=N/O",
    "an imine with a written hydrogen": "[H]/N=C(/C)CC",
    "square planar": "N[Pt@SP1](F)(Cl)Br",
    "an arrow": "C[N+](C)(C)CC.[NH3]->[Pt](Cl)(Cl)<-[NH3]",
}


def assert_order_does_not_matter(smiles: str, orders: int, generator: np.random.Generator) -> None:
    mol = read_molecule(smiles).mol
    expected = in_place(FEATURIZER.rows([smiles])[0][0])
    for _ in range(orders):
        again, order = random_smiles(mol, generator)
        graph = FEATURIZER.rows([again])[0][0]
        assert same(reordered(graph, order), expected), f"{smiles} written as {again}"


@pytest.mark.parametrize("name", CAGES | STEREO)
def test_an_awkward_molecule(name):
    assert_order_does_not_matter((CAGES | STEREO)[name], ORDERS, np.random.default_rng(0))


def test_a_fullerene():
    for case in json.loads(shared_file("stress/edge_cases.json").read_text(encoding="utf-8")):
        if case["what"] == "fullerene C60":
            assert_order_does_not_matter(case["smiles"], 5, np.random.default_rng(0))
            kekule = Chem.MolFromSmiles(case["smiles"])
            Chem.Kekulize(kekule, clearAromaticFlags=True)
            assert same(in_place(FEATURIZER(kekule)), in_place(FEATURIZER(case["smiles"])))


def sample(name: str, count: int, *, wanted: str = "") -> list[str]:
    """Some molecules of a public file, those with one of the characters ``wanted`` first."""
    if name.endswith(".smi.gz"):
        with gzip.open(shared_file(name), "rt", encoding="utf-8") as lines:
            smiles = [line.split()[0] for line in lines if line.strip()]
    else:
        smiles = pd.read_csv(shared_file(name))["smiles"].str.strip().tolist()
    smiles = np.random.default_rng(0).permutation(smiles).tolist()
    smiles.sort(key=lambda text: not any(character in text for character in wanted))
    smiles = smiles[: 2 * count]
    rows = FEATURIZER.rows(smiles)[1]
    return [text for text, row in zip(smiles, rows, strict=True) if row.status == "ok"][:count]


SETS = {
    "molnet/delaney-processed.csv": 60,
    "molnet/sider.csv.gz": 60,
    "molnet/clintox.csv.gz": 60,
    "stress/weird_from_real.csv": 60,
    "stress/rdkit_canonSmiles_long.smi.gz": 60,
}


@pytest.mark.parametrize("name", SETS)
def test_molecules_of_public_sets(name):
    generator = np.random.default_rng(1)
    for smiles in sample(name, SETS[name], wanted="@/\\"):
        if len(smiles) < 150:
            assert_order_does_not_matter(smiles, ORDERS, generator)
        else:
            assert_order_does_not_matter(smiles, 2, generator)


# RDKit writes some rings of nothing but stereo centers as their mirror image when it starts elsewhere (seen with
# 2026.09), so their order is changed without a detour through SMILES.
RING_STEREO = {
    "alpha-lindane": "Cl[C@H]1[C@H](Cl)[C@H](Cl)[C@@H](Cl)[C@H](Cl)[C@H]1Cl",
    "gamma-lindane": "Cl[C@H]1[C@H](Cl)[C@@H](Cl)[C@@H](Cl)[C@H](Cl)[C@H]1Cl",
    "scyllo-inositol": "O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O",
}


@pytest.mark.parametrize("name", RING_STEREO)
def test_rings_of_stereo_centers(name):
    generator = np.random.default_rng(2)
    mol = read_molecule(RING_STEREO[name]).mol
    expected = in_place(FEATURIZER(mol))
    assert expected.x[:, -1].any()
    for _ in range(ORDERS):
        again, order = shuffled(mol, generator)
        assert same(reordered(FEATURIZER(again), order), expected)


def test_kekule_spellings_of_public_molecules():
    generator = np.random.default_rng(3)
    for smiles in sample("molnet/clintox.csv.gz", 100):
        mol = read_molecule(smiles).mol
        expected = in_place(FEATURIZER.rows([mol])[0][0])
        again, order = shuffled(mol, generator)
        Chem.Kekulize(again, clearAromaticFlags=True)
        written = Chem.MolToSmiles(again, canonical=False, doRandom=True, kekuleSmiles=True)
        order = [order[index] for index in again.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]]
        assert same(reordered(FEATURIZER.rows([written])[0][0], order), expected), written


def test_past_the_limit_the_order_does_not_matter_either(monkeypatch):
    monkeypatch.setattr(stereo, "COMPARISONS_LIMIT", 1)
    for name in ("quinine", "a triene", "a sulfoxide and a phosphine"):
        assert_order_does_not_matter(STEREO[name], ORDERS, np.random.default_rng(4))
