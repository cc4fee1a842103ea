"""A run killed at any moment goes on to the same bits as one that was never killed."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file
from toy_graphs import KINDS, toy_dataset, toy_network, without_seconds

from graphattn.errors import TrainingError
from graphattn.model.network import GraphTransformer
from graphattn.training.config import TrainingConfig
from graphattn.training.loop import train

TRAIN, VALID = toy_dataset(40), toy_dataset(12, seed=1)
CONFIG = TrainingConfig(epochs=6, batch_size=16, learning_rate=0.01, accelerator="cpu")


class Enough(Exception):  # noqa: N818 (not an error)
    """Raised by a progress to end a run between two epochs."""


class StopAfter:
    """A progress that lets a run make so many epochs."""

    def __init__(self, epochs):
        self.epochs = epochs

    def start(self, *, epochs, steps_per_epoch, epochs_done):
        self.epochs += epochs_done

    def step(self):
        pass

    def epoch(self, record, best):
        if record.epoch == self.epochs:
            raise Enough

    def stop(self):
        pass


def run(path, *, config=CONFIG, network=None, train_set=TRAIN, valid_set=VALID, task="regression", **keywords):
    network = network or toy_network(batch_norm=True)
    result = train(network, train_set, valid_set, config, task=task, checkpoint=path, **keywords)
    bits = {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}
    return bits, without_seconds(result.history), result.best_epoch, result.stopped_early


@pytest.fixture
def unfinished(tmp_path):
    """The checkpoint of a run that ended after two of its six epochs."""
    path = tmp_path / "run.safetensors"
    with pytest.raises(Enough):
        run(path, progress=StopAfter(2))
    return path


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the attempts are forked, which this system cannot")
def test_a_run_killed_at_any_moment_goes_on_to_the_same_bits(tmp_path):
    script = Path(__file__).with_name("killed_run.py")
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert len(report["kills"]) >= 6, report
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert (killed / "outcome.json").read_text() == (whole / "outcome.json").read_text(), report
    one, other = load_file(whole / "network.safetensors"), load_file(killed / "network.safetensors")
    assert {name: one[name].numpy().tobytes() for name in one} == {
        name: other[name].numpy().tobytes() for name in other
    }, report
    assert [entry.name for entry in killed.glob("*.partial")] == []


def test_a_run_that_is_ended_after_every_epoch_gives_the_same_bits(tmp_path):
    path = tmp_path / "run.safetensors"
    for _ in range(CONFIG.epochs):
        with pytest.raises(Enough):
            run(
                path,
                resume=True,
                network=toy_network(seed=9, batch_norm=True) if path.exists() else None,
                progress=StopAfter(1),
            )
    assert run(path, resume=True, network=toy_network(seed=9, batch_norm=True)) == run(None)


def test_the_librarys_own_network_with_dropout_resumes_to_the_same_bits(tmp_path):
    def network():
        return GraphTransformer([KINDS], 2, channels=16, layers=2, heads=2, dropout=0.3)

    weights = network().state_dict()

    def same_network():
        fresh = network()
        fresh.load_state_dict(weights)
        return fresh

    path = tmp_path / "run.safetensors"
    with pytest.raises(Enough):
        run(path, network=same_network(), progress=StopAfter(3))
    assert run(path, network=network(), resume=True) == run(None, network=same_network())


def test_early_stopping_remembers_the_epochs_before_the_kill(tmp_path):
    config = replace(CONFIG, epochs=60, patience=4, learning_rate=0.3)
    path = tmp_path / "run.safetensors"
    wanted = run(None, config=config)
    assert wanted[-1], "this run stops early"
    with pytest.raises(Enough):
        run(path, config=config, progress=StopAfter(len(wanted[1]) - 2))
    assert run(path, config=config, resume=True) == wanted


def test_a_finished_run_returns_at_once_with_its_result(tmp_path):
    path = tmp_path / "run.safetensors"
    finished = run(path)
    content, written = path.read_bytes(), path.stat().st_mtime_ns
    network = toy_network(seed=9, batch_norm=True)
    assert run(path, resume=True, network=network, progress=StopAfter(0)) == finished
    assert not network.training
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (content, written)


def test_without_a_checkpoint_a_resumed_run_starts_from_the_beginning(tmp_path):
    path = tmp_path / "new folder" / "run.safetensors"
    assert run(path, resume=True) == run(None)
    assert path.exists()


def test_not_resuming_starts_over_and_replaces_the_file(unfinished):
    config = replace(CONFIG, seed=3)
    assert run(unfinished, config=config) == run(None, config=config)
    assert run(unfinished, config=config, resume=True) == run(None, config=config)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"config": replace(CONFIG, epochs=7)}, "settings.epochs was 6 and is now 7"),
        ({"config": replace(CONFIG, loss="mae")}, "settings.loss was 'auto' and is now 'mae'"),
        ({"train_set": toy_dataset(41)}, r"the data are not the same \(graphs, targets, nodes, edges of the tr"),
        ({"valid_set": toy_dataset(12, seed=2)}, r"the data are not the same \([a-z, ]+ of the validation set\)\. "),
        (
            {"network": toy_network(channels=8, batch_norm=True)},
            r"embedding.weight was 'float32 \[10, 16\]' and is now",
        ),
        ({"details": {"dropout": 0.5}}, "details.dropout was absent and is now 0.5"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_by_name(unfinished, changed, message):
    before = unfinished.read_bytes()
    with pytest.raises(TrainingError, match=rf"run\.safetensors belongs to another run: .*{message}"):
        run(unfinished, resume=True, **changed)
    assert unfinished.read_bytes() == before


def test_a_checkpoint_of_another_task_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    labels = {"train_set": toy_dataset(40, task="binary"), "valid_set": toy_dataset(12, seed=1, task="binary")}
    run(path, task="binary", **labels)
    with pytest.raises(TrainingError, match=r"another run: task was 'binary' and is now 'regression'"):
        run(path, resume=True, **labels)


def test_a_truncated_checkpoint_is_refused(unfinished):
    unfinished.write_bytes(unfinished.read_bytes()[:-9])
    with pytest.raises(TrainingError, match=r"run\.safetensors cannot be read as a checkpoint .* it is truncated"):
        run(unfinished, resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_in_place_of_the_checkpoint_is_refused_before_training(tmp_path, resume):
    words = rf"{tmp_path} is a folder, so no checkpoint can be there; remove it, or name a file\."
    with pytest.raises(TrainingError, match=words):
        run(tmp_path, resume=resume, progress=StopAfter(0))


def test_resuming_from_nowhere_is_refused():
    with pytest.raises(TrainingError, match=r"resume=True needs to know the file to resume from; pass checkpoint="):
        run(None, resume=True)
