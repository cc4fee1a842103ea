"""Solubility from SMILES, beside what most people would try first."""

import pytest
from example_modules import is_picture, load


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:3 molecules occur more than once with different labels")
def test_a_few_epochs_are_far_better_than_the_mean(tmp_path, capsys):
    errors = load("19_molecule_property").main(tmp_path, quick=True)
    assert set(errors) == {
        "graphattn",
        "the mean",
        "ridge regression on RDKit descriptors",
        "random forest on RDKit descriptors",
    }
    assert errors["graphattn"] < 0.8 * errors["the mean"]  # after 4 epochs; the full run is far below
    printed = capsys.readouterr().out
    assert all(f"  {name}: " in printed for name in ("caffeine", "naphthalene", "glycerol"))
    assert is_picture(tmp_path / "predicted_against_measured.png")
    assert is_picture(tmp_path / "ibuprofen_attention.png")
