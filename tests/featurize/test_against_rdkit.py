"""Every column of every molecule of three public sets equals RDKit asked directly, atom by atom."""

import pandas as pd
import pytest
from by_rdkit import graph_by_rdkit
from graphs import same
from shared_data import shared_file

from graphattn.featurize.molecule import MoleculeFeaturizer

SETS = {"ESOL": "molnet/delaney-processed.csv", "FreeSolv": "molnet/SAMPL.csv", "ClinTox": "molnet/clintox.csv.gz"}
REFUSED = {"ESOL": 0, "FreeSolv": 0, "ClinTox": 4}


@pytest.mark.parametrize("name", SETS)
def test_a_public_set_equals_rdkit(name):
    smiles = pd.read_csv(shared_file(SETS[name]))["smiles"].tolist()
    featurizer = MoleculeFeaturizer()
    graphs, rows = featurizer.rows(smiles)
    assert len(graphs) == len(rows) == len(smiles)
    assert sum(graph is None for graph in graphs) == REFUSED[name]
    for text, graph, row in zip(smiles, graphs, rows, strict=True):
        if graph is None:
            assert row.status == "unreadable"
            assert row.reason.startswith("RDKit: ")
        else:
            assert same(graph, graph_by_rdkit(text.strip(), featurizer)), text


@pytest.mark.parametrize(
    "smiles",
    [
        "[NH3]->[Pt](Cl)(Cl)<-[NH3]",
        "[Na+].[Cl-]",
        "[2H]OC",
        "[H][H]",
        "[CH3]",
        "C1CC12CCCC2",
        "O=C1CCCCCCCCCCCCCCC1",
        "C[C@H]1CC[C@@H](C)CC1",
        "C/C=C\\C=C/C",
        "FS(F)(F)(F)(F)F",
        "C |^3:0|",
    ],
)
def test_an_awkward_molecule_equals_rdkit(smiles):
    featurizer = MoleculeFeaturizer()
    assert same(featurizer.rows([smiles])[0][0], graph_by_rdkit(smiles, featurizer))
