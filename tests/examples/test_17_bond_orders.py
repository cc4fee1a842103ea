"""Bond orders from a skeleton: nothing else is told, and more is found than the two ends of a bond say."""

import pytest
import torch
from example_modules import is_picture, load
from rdkit import Chem


@pytest.fixture(scope="module")
def example():
    return load("17_bond_orders")


def test_orders_of_unseen_molecules_are_found(example, tmp_path):
    results = example.main(tmp_path, quick=True)
    commonest, by_ends, attention = results.right.values()
    assert 0.4 < commonest < by_ends < attention
    assert attention > by_ends + 0.03
    assert attention > 0.85
    assert 0.3 < results.whole < attention
    assert results.confusion.sum() == 3387
    assert results.confusion.diagonal().sum() / 3387 == pytest.approx(attention)
    assert results.confusion.sum(1).tolist() == [1697, 235, 5, 1450]  # rows are the truth
    assert is_picture(tmp_path / "17_bond_orders.png")


def test_only_elements_hydrogens_and_connections_are_told(example):
    told = [example.FEATURIZER.node_columns[column] for column in example.TOLD_COLUMNS]
    assert [column.name for column in told] == ["element", "hydrogens"]
    graph = example.skeleton("OC(=O)C#N")
    assert sorted(graph.keys()) == ["edge_index", "order", "x"]
    assert [[column.labels[code] for column, code in zip(told, row, strict=True)] for row in graph.x.tolist()] == [
        ["O", "1"],
        ["C", "0"],
        ["O", "0"],
        ["C", "0"],
        ["N", "0"],
    ]
    assert graph.order[::2].tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("molecule", "other"),
    [
        ("c1ccccc1", "[CH]1[CH][CH][CH][CH][CH]1"),
        ("CC#CC", "C[C]=[C]C"),
        ("C[N+](=O)[O-]", "CN([O])[O]"),
        ("CS(=O)C", "C[S+]([O-])C"),
    ],
)
def test_molecules_of_one_skeleton_look_alike(example, molecule, other):
    one, two = example.skeleton(molecule), example.skeleton(other)
    assert not torch.equal(one.order, two.order)
    assert torch.equal(one.x, two.x)
    assert torch.equal(one.edge_index, two.edge_index)


def test_the_orders_are_hidden_from_the_network(example):
    known = example.pack([example.skeleton(smiles) for smiles in ("c1ccccc1O", "CC=O", "CC#N")])
    network, batch = example.learn(known, epochs=1), known.to_batch()
    told = network(batch)
    batch.order = torch.zeros_like(batch.order)
    assert torch.equal(network(batch), told)


def test_commonest_order_between_such_atoms(example):
    known, asked = (
        example.pack([example.skeleton(smiles) for smiles in group]).to_batch()
        for group in (("C=C", "C=CC=C", "CCO"), ("CC=C", "C#N"))
    )
    # CH3 beside CH is unknown, CH beside CH2 double twice; C beside N is unknown too
    assert example.commonest(known, asked).tolist() == [0, 1, 0]


def test_unseen_molecules_are_unseen(example):
    known, unseen = example.bundled()
    assert (len(known), len(unseen)) == (1021, 253)  # 1,025 and 257 without repeats and without 4 that are in both
    assert not set(known) & set(unseen)
    assert Chem.CanonSmiles(example.DRAWN[1]) in unseen
