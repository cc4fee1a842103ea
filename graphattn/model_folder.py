"""A model on disk: ``model.json`` and one ``weights-<k>.safetensors`` per ensemble member, nothing that could run.

``model.json`` holds everything but the numbers of the networks: format and versions, settings of network and
featurizer, targets, scaler, a summary of the training, the SHA-256 of each weights file and of itself, and a few
self-check molecules with their predictions. Loading checks all of it and refuses, by name, what does not fit.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from torch.nn import Module

import graphattn
from graphattn.data.scaling import TargetScaler
from graphattn.errors import GraphattnError, ModelFolderError
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.model.config import NetworkConfig
from graphattn.model.network import build_network
from graphattn.model_entries import check_entries
from graphattn.predict import Predictor, Target, TrainingSummary

MODEL_FILE = "model.json"
WEIGHTS_FILE = "weights-{}.safetensors"
OWN_WEIGHTS = re.compile(r"weights-[0-9]+\.safetensors")  # nothing else of that kind is ours to replace
FORMAT = "graphattn-model"
FORMAT_VERSION = 1  # raised when a folder of this version could not be read by the code before

# Small molecules that everybody knows, chosen before any training: the folder gives away nothing of its data.
SELF_CHECK_MOLECULES = ("C", "CCO", "c1ccccc1O", "CC(=O)[O-].[Na+]", "C[C@H](N)C(=O)O", "F/C=C/F")
SELF_CHECK_TOLERANCE = 1e-4  # of a standard deviation of the target, or of a probability


def save_model(predictor: Predictor, folder: str | os.PathLike[str]) -> None:
    """Write a model as a folder. All of it is there, or none: it is written beside its place and then renamed.

    A model folder that stands at that place is replaced; anything else there is left alone.

    Raises:
        ModelFolderError: something that is no model folder stands there.
    """
    check_place(Path(folder))
    folder = Path(folder).resolve()  # through a link to the folder behind it
    folder.parent.mkdir(parents=True, exist_ok=True)
    new, old = _beside(folder)
    new.mkdir()
    try:
        weights = [
            save({name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()})
            for network in predictor.networks
        ]
        for member, raw in enumerate(weights):
            (new / WEIGHTS_FILE.format(member)).write_bytes(raw)
        content = _content(predictor, [_sha256(raw) for raw in weights])
        content["sha256"] = _sha256(_canonical(content))
        (new / MODEL_FILE).write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        _replace(folder, new, old)
    finally:
        for left in (new, old):
            if left.exists():
                shutil.rmtree(left)


def _beside(folder: Path) -> tuple[Path, Path]:
    """Where a new model is until it is whole, and where the old one goes meanwhile."""
    new, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{which}") for which in ("new", "old"))
    return new, old


def _replace(folder: Path, new: Path, old: Path) -> None:
    """Rename ``new`` to ``folder``; what stood there is at ``old`` afterwards, or back in its place if that fails."""
    if folder.exists():
        folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise


def check_place(folder: Path) -> None:
    """Refuse a place where no model can be written.

    Raises:
        ModelFolderError: ``folder`` is neither free nor empty nor a model folder and nothing else, to be replaced; or
            no folder can be made there.
    """
    above = next(place for place in folder.absolute().parents if place.exists())
    if not above.is_dir():
        raise ModelFolderError(f"{above} is a file, so there can be no folder {folder}; name another place")
    if folder.exists():
        _check_replaceable(folder)
    place = Path(os.path.realpath(folder))
    if place.is_symlink():
        raise ModelFolderError(f"{folder} is a link in a circle of links; name another place")
    probe = next(above for above in place.parents if above.exists()) / _beside(place)[0].name
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        raise ModelFolderError(f"{folder} cannot be written: {error.strerror}; name another place") from error


def _check_replaceable(folder: Path) -> None:
    if not folder.is_dir():
        raise ModelFolderError(f"{folder} is a file; a model is a folder, so name another place")
    names = sorted(file.name for file in folder.iterdir())
    foreign = [name for name in names if name != MODEL_FILE and not OWN_WEIGHTS.fullmatch(name)]
    if foreign:
        raise ModelFolderError(
            f"{folder} holds {foreign[0]!r}, which no model folder does, so it is left alone; name another place"
        )
    if names and not (MODEL_FILE in names and FORMAT.encode() in (folder / MODEL_FILE).read_bytes()):
        raise ModelFolderError(
            f"{folder} holds {names[0]!r} but no {MODEL_FILE} of graphattn, so it is left alone; name another place"
        )


def load_model(folder: str | os.PathLike[str], *, self_check: bool = True) -> Predictor:
    """Read a model folder. Nothing in it is executed; everything in it is checked.

    Args:
        folder: as :func:`save_model` wrote it.
        self_check: predict the stored self-check molecules and compare. Switch it off only to use a model whose
            molecules another RDKit version reads differently, and know that its predictions may differ.

    Raises:
        ModelFolderError: what is wrong with the folder, and where.
    """
    folder = Path(folder)
    content = read_model_file(folder)
    try:
        predictor = _predictor(folder, content)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ModelFolderError(f"{folder / MODEL_FILE} lacks or misplaces an entry: {error!r}") from error
    except ModelFolderError:
        raise
    except GraphattnError as error:
        raise ModelFolderError(f"{folder / MODEL_FILE} does not fit this version of graphattn: {error}") from error
    if self_check:
        _check_predictions(folder, content, predictor)
    return predictor


def read_model_file(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The checked content of a folder's ``model.json``, without its weights. Raises as :func:`load_model`."""
    folder = Path(folder)
    file = folder / MODEL_FILE
    if not folder.exists():
        raise ModelFolderError(f"there is no folder {folder}; train a model first, or check the path")
    if not folder.is_dir():
        raise ModelFolderError(f"{folder} is a file; a model is the folder that training wrote")
    if not file.is_file():
        raise ModelFolderError(f"{folder} holds no {MODEL_FILE}, so it is no model folder of graphattn")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        json.dumps(content, ensure_ascii=False).encode()  # half a surrogate pair is no text: it cannot be printed
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(f"{file} is truncated or damaged: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFolderError(f"{file} does not say format {FORMAT!r}: another program wrote it")
    found = content.get("format_version")
    if type(found) is not int or found < 1:
        raise ModelFolderError(f"{file} has format version {found!r}, which no graphattn wrote; wanted a whole number")
    if found > FORMAT_VERSION:
        raise ModelFolderError(
            f"{file} has format version {found!r}, written by graphattn {content.get('library_version')}; "
            f"graphattn {graphattn.__version__} reads versions up to {FORMAT_VERSION}: upgrade it"
        )
    claimed = content.pop("sha256", None)
    if claimed != _sha256(_canonical(content)):
        raise ModelFolderError(f"{file} was changed after it was saved: its content and its SHA-256 differ")
    check_entries(content, file)
    return content


def _content(predictor: Predictor, weights_sha256: Sequence[str]) -> dict[str, Any]:
    scaler = predictor.scaler
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": graphattn.__version__,
        "written_with": {name: version(name) for name in ("rdkit", "torch")},
        "task": predictor.task,
        "targets": [asdict(target) for target in predictor.targets],
        "scaler": None if scaler is None else scaler.settings(),
        "featurizer": predictor.featurizer.settings(),
        "network": asdict(predictor.network_config),
        "training": predictor.summary.settings(),
        "weights_sha256": list(weights_sha256),
        "self_check": {
            "molecules": list(SELF_CHECK_MOLECULES),
            "predictions": predictor.predict(SELF_CHECK_MOLECULES).values.tolist(),
        },
    }


def _predictor(folder: Path, content: Mapping[str, Any]) -> Predictor:
    featurizer = MoleculeFeaturizer.from_settings(content["featurizer"])
    config = NetworkConfig(**content["network"])
    targets = tuple(Target(target["name"], target["unit"], tuple(target["classes"])) for target in content["targets"])
    scaler = None if content["scaler"] is None else TargetScaler.from_settings(content["scaler"])
    if scaler is not None and len(scaler.mean) != len(targets):
        raise ModelFolderError(f"{folder / MODEL_FILE} has a scaler of {len(scaler.mean)} for {len(targets)} targets")
    build = partial(
        build_network,
        config,
        node_widths=[column.width for column in featurizer.node_columns],
        edge_widths=[column.width for column in featurizer.edge_columns],
        out_channels=len(targets),
    )
    networks = []
    for member, sha256 in enumerate(content["weights_sha256"]):
        file = folder / WEIGHTS_FILE.format(member)
        weights = _read_weights(file, sha256)
        _check_weights(weights, config, build, file)
        network = build()
        network.load_state_dict(weights)
        networks.append(network.eval())
    return Predictor(
        featurizer=featurizer,
        network_config=config,
        networks=tuple(networks),
        targets=targets,
        task=content["task"],
        scaler=scaler,
        summary=TrainingSummary.from_settings(content["training"]),
    )


def _read_weights(file: Path, sha256: str) -> dict[str, Tensor]:
    if not file.is_file():
        raise ModelFolderError(f"{file} is missing; copy the model folder again, with all of its files")
    raw = file.read_bytes()
    if _sha256(raw) != sha256:
        raise ModelFolderError(
            f"{file} is not the file that was saved: its SHA-256 begins {_sha256(raw)[:12]}, that of the saved one "
            f"{sha256[:12]}; it is truncated, damaged or of another model"
        )
    try:
        return load(raw)
    except SafetensorError as error:
        raise ModelFolderError(f"{file} is no safetensors file: {error}") from error


def _check_weights(
    weights: Mapping[str, Tensor], config: NetworkConfig, build: Callable[[], Module], file: Path
) -> None:
    """Refuse weights of another network than ``config`` describes, before memory is taken for one of its size."""
    held = sum(tensor.numel() for tensor in weights.values())
    if held < config.layers * config.channels:  # the norm of a layer alone has as many
        raise ModelFolderError(
            f"{file} holds {held} numbers, too few for {config.layers} layers of {config.channels} channels, "
            f"which {MODEL_FILE} says the network has"
        )
    with torch.device("meta"):  # shapes without numbers
        wanted = build().state_dict()
    for name in chain(wanted, weights):
        got, want = (_kind(tensors.get(name)) for tensors in (weights, wanted))
        if got != want:
            raise ModelFolderError(f"{file} has {got} for the tensor {name!r} where the network has {want}")
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise ModelFolderError(f"{file} has NaN or infinity in the tensor {name!r}; no model predicts with it")


def _kind(tensor: Tensor | None) -> str:
    return "nothing" if tensor is None else f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def _check_predictions(folder: Path, content: Mapping[str, Any], predictor: Predictor) -> None:
    molecules = content["self_check"]["molecules"]
    wanted: npt.NDArray[np.float64] = np.array(content["self_check"]["predictions"], dtype=float)
    error = np.abs(predictor.predict(molecules).values - wanted)
    if predictor.scaler is not None:
        error /= np.array(predictor.scaler.spread)
    error[np.isnan(error)] = np.inf
    if error.max() > SELF_CHECK_TOLERANCE:
        row, column = np.unravel_index(error.argmax(), error.shape)
        unit = "standard deviations" if predictor.scaler is not None else "of probability"
        raise ModelFolderError(
            f"{folder}: the model now predicts {predictor.targets[column].name!r} of {molecules[row]!r} "
            f"{error[row, column]:.2g} {unit} away from what it said when it was saved. It was written "
            f"with RDKit {content['written_with']['rdkit']}, this is RDKit {version('rdkit')}: use that version, "
            "train again, or load it from Python with self_check=False and accept other predictions"
        )


def _canonical(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
