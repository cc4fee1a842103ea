"""What ``model.json`` must hold, checked entry by entry before any of it is believed."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphattn.errors import ModelFolderError
from graphattn.featurize.reading import shown
from graphattn.training.config import TASKS

Kinds = Mapping[str, type | tuple[type, ...]]

CONTENT: Kinds = {
    "library_version": str,
    "written_with": dict,
    "task": str,
    "targets": list,
    "scaler": (dict, type(None)),
    "featurizer": dict,
    "network": dict,
    "training": dict,
    "weights_sha256": list,
    "self_check": dict,
}
VERSIONS: Kinds = {"rdkit": str, "torch": str}
TARGET: Kinds = {"name": str, "unit": str, "classes": list}
SELF_CHECK: Kinds = {"molecules": list, "predictions": list}
TRAINING: Kinds = {
    **dict.fromkeys(("rows", "conflicts"), int),
    **dict.fromkeys(("left_out", "remarks", "parts", "training", "scores"), dict),
    **dict.fromkeys(("best_epochs", "histories"), list),
    "split": str,
}
SCORE: Kinds = {"target": str, "labels": int, "unpredicted": int, "values": dict, "undefined": dict}
JSON_NAMES = {str: "a text", dict: "an object", list: "a list", int: "a whole number", type(None): "null"}


def check_entries(content: Mapping[str, Any], file: Path) -> None:
    """Refuse content with an entry that is missing, of the wrong kind, or does not go with the others.

    Settings of featurizer, network and scaler are left to those who read them.

    Raises:
        ModelFolderError: names the first entry that cannot be.
    """
    _check_kinds(content, CONTENT, f"{file}")
    _check_kinds(content["written_with"], VERSIONS, f"{file}: written_with")
    if content["task"] not in TASKS:
        raise ModelFolderError(f"{file} has task {content['task']!r}; wanted one of {', '.join(TASKS)}")
    if (content["scaler"] is None) != (content["task"] == "binary"):
        raise ModelFolderError(f"{file} has the scaler {shown(content['scaler'])} with task {content['task']!r}")
    _check_targets(content["targets"], 2 if content["task"] == "binary" else 0, f"{file}: targets")
    hashes = content["weights_sha256"]
    if not hashes or not all(isinstance(sha256, str) for sha256 in hashes):
        raise ModelFolderError(f"{file} has {shown(hashes)} as weights_sha256; wanted the SHA-256 of at least one file")
    _check_training(content["training"], len(hashes), f"{file}: training")
    _check_self_check(content["self_check"], len(content["targets"]), f"{file}: self_check")


def _check_kinds(entries: object, kinds: Kinds, where: str) -> None:
    if not isinstance(entries, dict):
        raise ModelFolderError(f"{where} is {shown(entries)}; wanted an object with {', '.join(kinds)}")
    for name, kind in kinds.items():
        if name not in entries:
            raise ModelFolderError(f"{where} lacks the entry {name!r}")
        if not isinstance(entries[name], kind):
            wanted = " or ".join(JSON_NAMES[each] for each in (kind if isinstance(kind, tuple) else (kind,)))
            raise ModelFolderError(f"{where} has {shown(entries[name])} as {name!r}; wanted {wanted}")


def _check_targets(targets: list[Any], num_classes: int, where: str) -> None:
    if not targets:
        raise ModelFolderError(f"{where} is empty; a model has at least one target")
    for number, target in enumerate(targets):
        _check_kinds(target, TARGET, f"{where}[{number}]")
        classes = target["classes"]
        if not all(isinstance(label, bool | int | float | str) for label in classes) or not (
            len(classes) == len(set(classes)) == num_classes
        ):
            raise ModelFolderError(f"{where}[{number}] has the classes {shown(classes)}; wanted {num_classes} labels")


def _check_training(training: dict[str, Any], members: int, where: str) -> None:
    _check_kinds(training, TRAINING, where)
    for name in ("best_epochs", "histories"):
        if len(training[name]) != members:
            raise ModelFolderError(f"{where} has {len(training[name])} {name} for {members} weights files")
    for part, scores in training["scores"].items():
        if not isinstance(scores, list):
            raise ModelFolderError(f"{where} has {shown(scores)} as scores of {part}; wanted a list")
        for number, score in enumerate(scores):
            _check_kinds(score, SCORE, f"{where}: scores of {part}[{number}]")
            if not all(value is None or _is_number(value) for value in score["values"].values()):
                raise ModelFolderError(f"{where}: scores of {part}[{number}] has {shown(score['values'])} as values")


def _check_self_check(self_check: dict[str, Any], num_targets: int, where: str) -> None:
    _check_kinds(self_check, SELF_CHECK, where)
    molecules, predictions = self_check["molecules"], self_check["predictions"]
    if not molecules or not all(isinstance(molecule, str) for molecule in molecules):
        raise ModelFolderError(f"{where} has {shown(molecules)} as molecules; wanted at least one SMILES")
    if len(predictions) != len(molecules):
        raise ModelFolderError(f"{where} has {len(predictions)} predictions for {len(molecules)} molecules")
    for number, row in enumerate(predictions):
        if not isinstance(row, list) or [_is_number(value) for value in row] != [True] * num_targets:
            raise ModelFolderError(
                f"{where}: predictions[{number}] is {shown(row)}; wanted one number for each of {num_targets} targets"
            )


def _is_number(value: object) -> bool:
    """Whether a float can hold it: JSON's whole numbers know no bounds."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= sys.float_info.max)
