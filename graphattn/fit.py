"""The one way from rows of molecules to a trained model: the estimators and the command line both go through it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from graphattn.checks import LARGEST_SEED, whole_number
from graphattn.data.dataset import GraphDataset
from graphattn.model.config import NetworkConfig
from graphattn.model.network import GraphTransformer, build_network
from graphattn.predict import Predictor, TrainingSummary
from graphattn.prepare import PreparedRows
from graphattn.training.config import TrainingConfig
from graphattn.training.history import TrainingResult
from graphattn.training.loop import train
from graphattn.training.metrics import TargetScore, score
from graphattn.training.progress import Progress, Silent

CHECKPOINT_FILE = "checkpoint-{}.safetensors"
OWN_CHECKPOINT = re.compile(r"checkpoint-[0-9]+\.safetensors(\.partial)?")


def fit_molecules(
    prepared: PreparedRows,
    *,
    network: NetworkConfig | None = None,
    training: TrainingConfig | None = None,
    ensemble: int = 1,
    checkpoints: Path | None = None,
    resume: bool = False,
    progress: Callable[[int], Progress] | None = None,
) -> Predictor:
    """Train one network, or an ensemble of them, on rows made ready by :func:`graphattn.prepare.prepare_rows`.

    Member k of an ensemble starts from, and learns with, the seed ``training.seed + k`` (after the largest, 0).

    Args:
        prepared: what to learn from, and the parts to stop and to judge by.
        network: size of each network; the defaults unless given.
        training: how each learns; the defaults unless given.
        ensemble: how many networks, at least 1.
        checkpoints: a folder to keep unfinished runs in, one file per member.
        resume: go on from the files in ``checkpoints`` to the same bits as a run that was never stopped.
        progress: what to show while member k learns; nothing unless given.

    Raises:
        SettingError: ``ensemble`` is no whole number of at least 1.
        TrainingError: as :func:`graphattn.training.loop.train`.
    """
    ensemble = whole_number("ensemble", ensemble, at_least=1)
    network = network or NetworkConfig()
    training = training or TrainingConfig()
    networks, results = [], []
    for member in range(ensemble):
        trained, result = _fit_member(
            prepared,
            network,
            replace(training, seed=(training.seed + member) % (LARGEST_SEED + 1)),
            checkpoint=None if checkpoints is None else checkpoints / CHECKPOINT_FILE.format(member),
            resume=resume,
            progress=Silent() if progress is None else progress(member),
        )
        networks.append(trained)
        results.append(result)
    predictor = Predictor(
        featurizer=prepared.featurizer,
        network_config=network,
        networks=tuple(networks),
        targets=prepared.targets,
        task=prepared.task,
        scaler=prepared.scaler,
        summary=_summary(prepared, training, results),
    )
    return replace(predictor, summary=replace(predictor.summary, scores=_scores(predictor, prepared)))


def _fit_member(
    prepared: PreparedRows,
    config: NetworkConfig,
    training: TrainingConfig,
    *,
    checkpoint: Path | None,
    resume: bool,
    progress: Progress,
) -> tuple[GraphTransformer, TrainingResult]:
    featurizer = prepared.featurizer
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(training.seed)
        network = build_network(
            config,
            node_widths=[column.width for column in featurizer.node_columns],
            edge_widths=[column.width for column in featurizer.edge_columns],
            out_channels=len(prepared.targets),
        )
    targets = prepared.dataset.targets
    if prepared.scaler is not None:
        targets = prepared.scaler.scale(targets)
    scaled = GraphDataset(prepared.dataset.graphs, targets)
    result = train(
        network,
        scaled.subset(torch.as_tensor(prepared.split.train)),
        scaled.subset(torch.as_tensor(prepared.split.valid)),
        training,
        task=prepared.task,
        checkpoint=checkpoint,
        resume=resume,
        details={"network": asdict(config), "featurizer": featurizer.settings()},
        progress=progress,
    )
    return network, result


def _summary(prepared: PreparedRows, training: TrainingConfig, results: Sequence[TrainingResult]) -> TrainingSummary:
    return TrainingSummary(
        rows=len(prepared.rows),
        left_out=prepared.left_out,
        remarks=prepared.remarks,
        split=prepared.split_reason,
        parts={part: len(positions) for part, positions in prepared.parts.items()},
        conflicts=prepared.conflicts,
        training=asdict(training),
        best_epochs=tuple(result.best_epoch for result in results),
        histories=tuple(result.history for result in results),
    )


def _scores(predictor: Predictor, prepared: PreparedRows) -> dict[str, tuple[TargetScore, ...]]:
    """How good the model is on the rows it did not learn from, part by part."""
    scores = {}
    for part in ("valid", "test"):
        positions = torch.as_tensor(prepared.parts[part])
        if len(positions):
            predicted = predictor.predict_graphs(prepared.dataset.graphs.take(positions))
            observed = prepared.dataset.targets[positions].numpy()
            names = [target.name for target in predictor.targets]
            scores[part] = score(predicted, observed, task=predictor.task, names=names)
    return scores


def discard_checkpoints(folder: Path) -> None:
    """Remove the files that :func:`fit_molecules` keeps in ``checkpoints``, and the folder if nothing else is in it."""
    if folder.is_dir():
        for file in list(folder.iterdir()):
            if OWN_CHECKPOINT.fullmatch(file.name):
                file.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()
