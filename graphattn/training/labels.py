"""What the labels of a run must be before it starts: present, finite, and 0 or 1 where the task is binary."""

import torch
from torch import Tensor

from graphattn.errors import TrainingError
from graphattn.training.config import Task


def check_labels(train_targets: Tensor, valid_targets: Tensor, task: Task) -> None:
    """Refuse labels that a run could not learn from, or could not be judged by.

    Args:
        train_targets: (G, T), NaN where missing.
        valid_targets: (G', T), the same; a target may lack labels here as long as another has some.
        task: what the labels are.

    Raises:
        TrainingError: a set without a graph or without a label, a target without a training label, an infinite
            label, or one other than 0 and 1 for a binary task. Rows and targets are counted from 0.
    """
    for name, targets in (("training", train_targets), ("validation", valid_targets)):
        if targets.dim() != 2 or targets.shape[1] == 0:
            raise TrainingError(
                f"targets of the {name} set have shape {tuple(targets.shape)}; give one row per graph and one column "
                "per target, (G, T), also for a single target."
            )
        if len(targets) == 0:
            raise TrainingError(f"the {name} set has no graph; a run needs at least one to {_PURPOSE[name]}.")
        _check_values(name, targets, task)
        if targets.isnan().all():
            raise TrainingError(
                f"none of the {len(targets)} graphs of the {name} set has a label; a run needs at least one to "
                f"{_PURPOSE[name]}."
            )
    if train_targets.shape[1] != valid_targets.shape[1]:
        raise TrainingError(
            f"the training set has {train_targets.shape[1]} targets but the validation set {valid_targets.shape[1]}; "
            "both must have the same columns."
        )
    empty = train_targets.isnan().all(dim=0).nonzero().flatten().tolist()
    if empty:
        raise TrainingError(
            f"no graph of the training set has a label for target {', '.join(map(str, empty))} "
            f"(of {train_targets.shape[1]}, counted from 0); leave it out, nothing about it can be learned."
        )


_PURPOSE = {"training": "learn from", "validation": "find the best epoch"}


def _check_values(name: str, targets: Tensor, task: Task) -> None:
    wrong = targets.isinf() if task == "regression" else (targets != 0) & (targets != 1) & ~targets.isnan()
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        wanted = "finite numbers" if task == "regression" else "0 or 1"
        raise TrainingError(
            f"row {row} of the {name} set has {_plain(targets[row, column])} as target {column} (counted from 0); "
            f"the labels of a {task} task must be {wanted}, or NaN where missing."
        )


def _plain(value: Tensor) -> str:
    return f"{value.to(torch.float64).item():g}"
