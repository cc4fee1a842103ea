"""Inputs collected to break readers: every row is accounted for, and nothing but its own status comes of a bad one."""

import gzip
import json

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem
from shared_data import shared_file

from graphattn.featurize.molecule import MoleculeFeaturizer

STATUSES = {"ok", "empty", "not-a-string", "unreadable", "reaction"}
FEATURIZER = MoleculeFeaturizer()


def assert_accounted_for(featurizer, molecules):
    graphs, rows = featurizer.rows(molecules)
    assert len(graphs) == len(rows) == len(molecules)
    widths = torch.tensor([column.width for column in featurizer.node_columns])
    edge_widths = torch.tensor([column.width for column in featurizer.edge_columns])
    for graph, row in zip(graphs, rows, strict=True):
        assert row.status in STATUSES
        assert (graph is None) == (row.status != "ok")
        if graph is None:
            assert row.reason
            continue
        assert graph.validate()
        assert graph.num_nodes > 0
        assert ((graph.x >= 0) & (graph.x < widths)).all()
        assert ((graph.edge_attr >= 0) & (graph.edge_attr < edge_widths)).all()
        there, back = graph.edge_index[:, 0::2], graph.edge_index[:, 1::2]
        assert torch.equal(there, back.flip(0))
    return rows


def test_edge_cases():
    cases = json.loads(shared_file("stress/edge_cases.json").read_text(encoding="utf-8"))
    rows = assert_accounted_for(FEATURIZER, [case["smiles"] for case in cases])
    ours = {"SMILES with name": "unreadable", "SMARTS": "unreadable"}  # RDKit reads these: a name dropped, a query
    for case, row in zip(cases, rows, strict=True):
        wanted = ours.get(case["what"], "ok" if case["rdkit_outcome"] == "ok" else "refused")
        assert row.status == wanted or (wanted == "refused" and row.status != "ok"), case


@pytest.mark.parametrize(
    "featurizer",
    [FEATURIZER, MoleculeFeaturizer(hydrogens="add", stereo=False), MoleculeFeaturizer(hydrogens="keep")],
    ids=["default", "add, no stereo", "keep"],
)
def test_weird_molecules_from_real_sets(featurizer):
    table = pd.read_csv(shared_file("stress/weird_from_real.csv"))
    rows = assert_accounted_for(featurizer, table["smiles"].tolist())
    refused = [row.status != "ok" for row in rows]
    assert refused == (table["tag"] == "rdkit_rejects").tolist()


def test_seeds_of_a_fuzzer():
    seeds = json.loads(shared_file("stress/rdkit_smiles_fuzz_corpus.json").read_text(encoding="utf-8"))
    assert_accounted_for(FEATURIZER, [seed[:-1] for seed in seeds])


@pytest.mark.parametrize("name", ["rdkit_nontetrahedral_3d", "rdkit_witch_salts", "chembl_standardiser_examples.in"])
def test_molecules_of_an_sdf(name):
    with gzip.open(shared_file(f"stress/{name}.sdf.gz")) as file:
        assert_accounted_for(FEATURIZER, [mol for mol in Chem.ForwardSDMolSupplier(file, sanitize=False) if mol])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | st.integers() | st.floats() | st.text() | st.binary(), max_size=5))
def test_anything_may_stand_in_a_row(molecules):
    assert_accounted_for(FEATURIZER, molecules)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet="CNOPScnos[]()=#@/\\+-123%.:*H>| \t", max_size=20), max_size=5))
def test_any_text_of_smiles_characters_may_stand_in_a_row(molecules):
    assert_accounted_for(FEATURIZER, molecules)
