"""A training run on disk: one safetensors file, replaced as a whole after every epoch, never half written."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from graphattn import __version__
from graphattn.errors import TrainingError
from graphattn.training.history import EpochRecord
from graphattn.training.identity import Identity, differences

_Kind = TypeVar("_Kind")

FORMAT = "graphattn training checkpoint"
FORMAT_VERSION = 1
_MOST_DIFFERENCES = 3  # named in one message
_START_OVER = "start over without resuming (the file is then replaced)"


@dataclass(frozen=True)
class Checkpoint:
    """All that a run needs to go on to the same bits; its randomness is a function of seed and epoch."""

    history: tuple[EpochRecord, ...]  # one per epoch done
    network: dict[str, Tensor]  # state after the last epoch done
    best: dict[str, Tensor]  # state after the best epoch
    optimizer: dict[str, Tensor]  # as optimizer_tensors gives it


def write_checkpoint(path: Path, checkpoint: Checkpoint, identity: Identity) -> None:
    """Write the file so that a kill at any moment leaves either the old one or the new one under its name.

    The bytes go to ``<name>.partial`` in the same folder, to the disk, and only then take the name.
    """
    tensors = {  # copies: safetensors refuses tensors that share memory, as tied weights do
        f"{part}.{name}": tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for part in _PARTS
        for name, tensor in getattr(checkpoint, part).items()
    }
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "library_version": __version__,
        "identity": json.dumps(identity),
        "history": json.dumps([asdict(record) for record in checkpoint.history]),
    }
    content = save(tensors, metadata)
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


_PARTS = ("network", "best", "optimizer")


def read_checkpoint(path: Path, identity: Identity) -> Checkpoint:
    """Read the file back for the run that ``identity`` describes.

    Raises:
        TrainingError: the file is truncated, damaged or foreign, of another format version, or of another run; the
            message names what differs.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            _check_format(path, metadata)
            _check_identity(path, metadata, identity)
            history = _history(path, metadata)
            # Copies: the tensors that safetensors gives are windows into the file.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (no mapping)
    except SafetensorError as error:
        raise TrainingError(
            f"{path} cannot be read as a checkpoint ({error}): it is truncated, or a file of another kind. "
            f"Remove it, or {_START_OVER}."
        ) from error
    parts = {
        part: {name.removeprefix(f"{part}."): t for name, t in tensors.items() if name.startswith(f"{part}.")}
        for part in _PARTS
    }
    return Checkpoint(history=history, **parts)


def _check_format(path: Path, metadata: Mapping[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise TrainingError(
            f"{path} is a safetensors file but no checkpoint of a graphattn training run (its format is "
            f"{metadata.get('format')!r}, wanted {FORMAT!r}). Name another file, or {_START_OVER}."
        )
    if metadata.get("format_version") != str(FORMAT_VERSION):
        raise TrainingError(
            f"{path} has checkpoint format version {metadata.get('format_version')}, written by graphattn "
            f"{metadata.get('library_version')}; this is graphattn {__version__}, which reads version "
            f"{FORMAT_VERSION}. Resume with that version, or {_START_OVER}."
        )


def _check_identity(path: Path, metadata: Mapping[str, str], identity: Identity) -> None:
    found = differences(_entry(path, metadata, "identity", dict), identity)
    if found:
        more = len(found) - _MOST_DIFFERENCES
        named = "; ".join(found[:_MOST_DIFFERENCES]) + (f"; and {more} more" if more > 0 else "")
        raise TrainingError(f"{path} belongs to another run: {named}. Resume with what it was, or {_START_OVER}.")


def _history(path: Path, metadata: Mapping[str, str]) -> tuple[EpochRecord, ...]:
    records = _entry(path, metadata, "history", list)
    try:
        return tuple(EpochRecord(**record) for record in records)
    except TypeError as error:
        raise _damaged(path, "history", error) from error


def _entry(path: Path, metadata: Mapping[str, str], name: str, kind: type[_Kind]) -> _Kind:
    """What the JSON of one entry holds, a ``kind``."""
    try:
        value = json.loads(metadata[name])
    except (KeyError, ValueError, RecursionError) as error:
        raise _damaged(path, name, error) from error
    if not isinstance(value, kind):
        raise _damaged(path, name, f"it is no {kind.__name__}")
    return value


def _damaged(path: Path, name: str, why: object) -> TrainingError:
    return TrainingError(
        f"{path} is damaged: its entry {name!r} is missing or cannot be read ({why}). Remove it, or {_START_OVER}."
    )
