"""What makes two runs the same run: task, settings, data and network, as a flat record to compare by name."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from torch import Tensor, nn

from graphattn.data.dataset import GraphDataset
from graphattn.training.config import Task, TrainingConfig

Identity = dict[str, object]  # dotted name -> a JSON scalar or list

_DATA = ("training set", "validation set")
_LONGEST_VALUE = 80  # characters of a value in a message


def run_identity(
    network: nn.Module,
    train_set: GraphDataset,
    valid_set: GraphDataset,
    config: TrainingConfig,
    *,
    task: Task,
    details: Mapping[str, object],
) -> Identity:
    """Everything that decides a run's bits, under names such as ``settings.learning_rate``.

    Args:
        network: enters by the names, dtypes and shapes of its state; two networks that differ in nothing else (say,
            in dropout) are told apart by ``details`` alone.
        train_set: enters by size and SHA-256 of its nodes, edges and targets.
        valid_set: as ``train_set``.
        config: enters field by field.
        task: enters as it is.
        details: whatever else the caller knows to matter, JSON-able; nested mappings become dotted names.
    """
    nested = {
        "task": task,
        "settings": asdict(config),
        **dict(zip(_DATA, map(_fingerprint, (train_set, valid_set)), strict=True)),
        "network": {name: _shape(tensor) for name, tensor in network.state_dict().items()},
        "details": details,
    }
    return dict(_flat(json.loads(json.dumps(nested))))  # through JSON, as the stored one went


def differences(stored: Mapping[str, object], current: Mapping[str, object]) -> list[str]:
    """One sentence part for each name whose value is not the same in both, and a single one for the data.

    >>> differences({"settings.seed": 1, "task": "binary"}, {"settings.seed": 2, "task": "binary"})
    ['settings.seed was 1 and is now 2']
    >>> differences({"training set.targets": "ab12", "training set.nodes": "ef"}, {"training set.targets": "cd34"})
    ['the data are not the same (targets, nodes of the training set)']
    """
    names = [*current, *(name for name in stored if name not in current)]
    missing = object()
    changed = [name for name in names if stored.get(name, missing) != current.get(name, missing)]
    data = [_changed_in(part, changed) for part in _DATA if _changed_in(part, changed)]
    others = [
        f"{name} was {_value(stored, name)} and is now {_value(current, name)}"
        for name in changed
        if not name.startswith(_DATA)
    ]
    return [*others, f"the data are not the same ({'; '.join(data)})"] if data else others


def _changed_in(part: str, changed: Sequence[str]) -> str:
    """What changed in a part of the data, whose hashes say nothing to a reader."""
    whats = [name.removeprefix(f"{part}.") for name in changed if name.startswith(f"{part}.")]
    return f"{', '.join(whats)} of the {part}" if whats else ""


def _value(identity: Mapping[str, object], name: str) -> str:
    value = repr(identity[name]) if name in identity else "absent"
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."


def _flat(nested: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in nested.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _shape(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _fingerprint(dataset: GraphDataset) -> dict[str, object]:
    graphs = dataset.graphs
    return {
        "graphs": len(dataset),
        "targets": _sha256([dataset.targets]),
        "nodes": _sha256([graphs.node_ptr, *_by_name(graphs.node_fields)]),
        "edges": _sha256([graphs.edge_ptr, graphs.edge_index, *_by_name(graphs.edge_fields)]),
        "graph fields": _sha256(_by_name(graphs.graph_fields)),
    }


def _by_name(fields: Mapping[str, Tensor]) -> list[Tensor]:
    return [fields[name] for name in sorted(fields)]


def _sha256(tensors: Sequence[Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(_shape(tensor).encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()
