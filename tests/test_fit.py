"""From prepared rows to a model: it learns, repeats itself bit for bit, resumes, and says how good it is."""

import re

import numpy as np
import pytest
import torch
from tiny_models import MOLECULES, NETWORK, TRAINING, made_up_values, tiny_predictor

from graphattn.data.split import Split
from graphattn.errors import SettingError, TrainingError
from graphattn.fit import discard_checkpoints, fit_molecules
from graphattn.model.config import NetworkConfig
from graphattn.predict import Target
from graphattn.prepare import prepare_rows
from graphattn.training.config import TrainingConfig


def prepared_rows(**settings):
    return prepare_rows(MOLECULES, made_up_values(), [Target("length", "letters")], **settings)


def weights(predictor):
    return [tensor for network in predictor.networks for tensor in network.state_dict().values()]


def same_bits(one, other):
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


def test_ten_molecules_are_learned_by_heart():
    """A network that cannot learn ten values by heart has a fault somewhere."""
    molecules, values = MOLECULES[5:15], np.random.default_rng(0).normal(size=(10, 1)) * 3 + 100
    # One of the ten chooses the best epoch, so that it is one that knows them.
    split = Split(tuple(range(10)), (10,), ())
    predictor = fit_molecules(
        prepare_rows([*molecules, molecules[0]], np.vstack([values, values[:1]]), [Target("y")], split=split),
        network=NetworkConfig(channels=32, layers=2, heads=4, dropout=0.0),
        training=TrainingConfig(epochs=150, batch_size=5, learning_rate=3e-3, weight_decay=0.0, patience=150),
    )
    error = predictor.predict(molecules).values - values
    assert np.sqrt((error**2).mean()) < 0.1 * values.std()


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    runs = [fit_molecules(prepared_rows(), network=NETWORK, training=TRAINING) for _ in range(2)]
    other = fit_molecules(
        prepared_rows(), network=NETWORK, training=TrainingConfig(epochs=2, batch_size=8, accelerator="cpu", seed=1)
    )
    assert same_bits(*runs)
    assert not same_bits(runs[0], other)


def test_training_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    fit_molecules(prepared_rows(), network=NETWORK, training=TRAINING)
    assert torch.equal(torch.rand(3), expected)


def test_members_of_an_ensemble_are_the_networks_of_the_seeds_that_follow():
    ensemble = fit_molecules(prepared_rows(), network=NETWORK, training=TRAINING, ensemble=2)
    alone = fit_molecules(
        prepared_rows(), network=NETWORK, training=TrainingConfig(epochs=2, batch_size=8, accelerator="cpu", seed=1)
    )
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            ensemble.networks[1].state_dict().values(), alone.networks[0].state_dict().values(), strict=True
        )
    )
    with pytest.raises(SettingError, match="ensemble must be at least 1, got 0"):
        fit_molecules(prepared_rows(), ensemble=0)
    with pytest.raises(SettingError, match=r"ensemble must be a whole number, got 1\.5"):
        fit_molecules(prepared_rows(), ensemble=1.5)


def test_a_run_resumes_from_its_checkpoints_to_the_same_bits(tmp_path):
    class StopAfterOneEpoch:
        def start(self, **_): ...
        def step(self): ...
        def stop(self): ...
        def epoch(self, record, best):
            raise KeyboardInterrupt

    straight = fit_molecules(prepared_rows(), network=NETWORK, training=TRAINING, ensemble=2)
    settings = {"network": NETWORK, "training": TRAINING, "ensemble": 2, "checkpoints": tmp_path / "run"}
    with pytest.raises(KeyboardInterrupt):
        fit_molecules(prepared_rows(), **settings, progress=lambda _: StopAfterOneEpoch())
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["checkpoint-0.safetensors"]
    resumed = fit_molecules(prepared_rows(), **settings, resume=True)
    assert same_bits(straight, resumed)
    assert [len(history) for history in resumed.summary.histories] == [2, 2]


def test_a_checkpoint_of_other_settings_is_refused_by_what_differs(tmp_path):
    fit_molecules(prepared_rows(), network=NETWORK, training=TRAINING, checkpoints=tmp_path)
    other = NetworkConfig(channels=8, layers=1, heads=4)
    with pytest.raises(TrainingError, match=re.escape("details.network.heads was 2 and is now 4")):
        fit_molecules(prepared_rows(), network=other, training=TRAINING, checkpoints=tmp_path, resume=True)


def test_a_file_that_only_looks_like_a_checkpoint_is_kept(tmp_path):
    for name in ("checkpoint-best.safetensors", "checkpoint-0.safetensors", "checkpoint-1.safetensors.partial"):
        (tmp_path / name).touch()
    discard_checkpoints(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint-best.safetensors"]


def test_checkpoints_are_discarded_and_nothing_else(tmp_path):
    folder = tmp_path / "model.partial"
    fit_molecules(prepared_rows(), network=NETWORK, training=TRAINING, ensemble=2, checkpoints=folder)
    (folder / "notes.txt").write_text("mine")
    discard_checkpoints(folder)
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]
    (folder / "notes.txt").unlink()
    discard_checkpoints(folder)
    assert not folder.exists()
    discard_checkpoints(folder)


def test_the_summary_says_what_was_learned_from_and_how_well():
    summary = tiny_predictor(ensemble=2).summary
    assert summary.rows == len(MOLECULES)
    assert summary.parts == {"train": 14, "valid": 3, "test": 3}
    assert summary.split == "random, seed 0"
    assert summary.training["epochs"] == 2
    assert len(summary.histories) == len(summary.best_epochs) == 2
    assert [record.epoch for record in summary.histories[0]] == [1, 2]
    for part in ("valid", "test"):
        assert [score.target for score in summary.scores[part]] == ["length", "odd"]
        assert set(summary.scores[part][0].values) == {"rmse", "mae", "r2"}
        assert summary.scores[part][0].labels == 3


def test_the_test_error_is_that_of_the_saved_predictions():
    prepared = prepared_rows()
    predictor = fit_molecules(prepared, network=NETWORK, training=TRAINING)
    rows = list(prepared.split.test)
    predicted = predictor.predict([MOLECULES[row] for row in rows]).values
    rmse = np.sqrt(((predicted - made_up_values()[rows]) ** 2).mean())
    assert predictor.summary.scores["test"][0].values["rmse"] == pytest.approx(rmse, rel=1e-5)


def test_a_large_and_a_small_scale_are_both_learned_in_their_own_unit():
    lengths = made_up_values()
    labels = np.hstack([1e6 + lengths, 1e-3 * lengths])
    predictor = fit_molecules(
        prepare_rows(MOLECULES, labels, [Target("big"), Target("small")]), network=NETWORK, training=TRAINING
    )
    values = predictor.predict(MOLECULES).values
    assert (np.abs(values[:, 0] - 1e6) < 100).all()
    assert (np.abs(values[:, 1]) < 0.1).all()


def test_molecules_without_bonds_and_single_atoms_are_ordinary():
    molecules = ["C", "[Na+].[Cl-]", "[He]", "[H][H]", "[Na+]", "O"]
    prepared = prepare_rows(molecules, np.arange(6.0)[:, None], [Target("y")], split=Split((0, 1, 2, 3), (4,), (5,)))
    predictor = fit_molecules(prepared, network=NETWORK, training=TRAINING)
    together = predictor.predict(molecules).values
    alone = np.concatenate([predictor.predict([smiles]).values for smiles in molecules])
    assert np.isfinite(together).all()
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-5)
