"""Solubility classes: cut where they should be, and learned better than by naming the commonest."""

import numpy as np
import pandas as pd
import pytest
from example_modules import is_picture, load


@pytest.fixture(scope="module")
def example():
    return load("20_solubility_class")


@pytest.mark.filterwarnings("ignore:1 molecules occur more than once with different labels")
def test_classes_are_learned(example, tmp_path):
    results = example.main(tmp_path, quick=True)
    right = results.right
    assert list(right) == [
        "the commonest class",
        "attention, classes",
        "attention, values",
        "forest on fingerprints, classes",
        "forest on fingerprints, values",
        "forest on descriptors, classes",
        "forest on descriptors, values",
    ]
    assert right["the commonest class"] == pytest.approx(43 / 84)
    assert all(right[name] > right["the commonest class"] + 0.1 for name in list(right)[1:])
    for name, confusion in results.confusion.items():
        assert confusion.sum(1).tolist() == [29, 43, 12]  # rows are the truth
        assert np.trace(confusion) / 84 == pytest.approx(right[name])
    assert is_picture(tmp_path / "20_solubility_class.png")


def test_a_class_counts_the_borders_reached(example):
    reached = example.reached(np.array([-3.01, -3.0, -1.01, -1.0, 1.5]))
    assert reached.tolist() == [[0, 0], [1, 0], [1, 0], [1, 1], [1, 1]]
    classes = [example.NAMES[each] for each in reached.sum(1)]
    assert classes == ["low", "medium", "medium", "high", "high"]


def test_the_bundled_split_is_used(example):
    molecules = example.measured()
    assert molecules.part.value_counts().to_dict() == {"train": 1025, "test": 253}  # four of 257 are in train as well
    pentane = molecules[molecules.smiles == "CCCCC"].iloc[0]
    assert (pentane.part, pentane.value) == ("train", -3.18)


def test_what_forests_are_told(example):
    smiles = pd.Series(["C", "CCO"])
    fingerprints, descriptors = example.fingerprints(smiles), example.descriptors(smiles)
    assert fingerprints.sum(1).tolist() == [1, 6]  # one atom; three atoms, and what is one bond around each
    assert descriptors.shape == (2, 43)
    assert np.isfinite(descriptors).all()
    assert descriptors[:, 0] == pytest.approx([16.031, 46.042], abs=1e-3)  # exact masses
