"""From rows of molecules and labels to a data set ready for training: read, checked, grouped, split, scaled."""

import warnings
from collections import Counter
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphattn.data.dataset import GraphDataset
from graphattn.data.packed import PackedGraphs
from graphattn.data.scaling import TargetScaler, check_targets, labeled_rows
from graphattn.data.split import Split, column_split, random_split, scaffold_split
from graphattn.errors import GraphattnWarning, SettingError, ShapeError, SplitError, TableError, TrainingError
from graphattn.featurize.identity import canonical_smiles
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.featurize.reading import shown
from graphattn.featurize.rows import RowStatus
from graphattn.predict import Target, check_rows
from graphattn.training.config import Task

Labels = npt.NDArray[np.float64]  # (rows, T), NaN where missing
SplitRule = Literal["random", "scaffold"] | Sequence[str] | Split
Fractions = tuple[float, float, float]
Acyclic = Literal["together", "apart"]
MOST_NAMED = 3  # rows or molecules named in one message


@dataclass(frozen=True, kw_only=True)
class PreparedRows:
    """A table of molecules made ready for training. Positions in ``split`` count the rows of ``dataset``."""

    featurizer: MoleculeFeaturizer
    targets: tuple[Target, ...]
    task: Task
    task_reason: str  # in words
    rows: list[RowStatus]  # of every row given
    kept: tuple[int, ...]  # position, among the rows given, of each row of the data set
    dataset: GraphDataset  # labels as they came, not scaled
    split: Split
    split_reason: str  # in words
    scaler: TargetScaler | None  # fitted on the training part only; None for binary targets
    conflicts: int  # molecules that occur more than once with different labels

    @property
    def left_out(self) -> dict[str, int]:
        """How many rows are not used, by status word; "unlabeled" for readable rows without any label."""
        counts = Counter(row.status for row in self.rows if row.status != "ok")
        unlabeled = len(self.rows) - len(self.kept) - sum(counts.values())
        return dict(counts) | ({"unlabeled": unlabeled} if unlabeled else {})

    @property
    def remarks(self) -> dict[str, int]:
        """What the featurizer remarked on rows that are used, such as elements outside its table -> rows."""
        return dict(Counter(reason for position in self.kept if (reason := self.rows[position].reason)).most_common())

    @property
    def parts(self) -> dict[str, Sequence[int]]:
        """Train, valid and test: positions in the data set."""
        return {"train": self.split.train, "valid": self.split.valid, "test": self.split.test}


def prepare_rows(
    molecules: Sequence[Any],
    labels: Labels,
    targets: Sequence[Target],
    *,
    task: Literal["auto"] | Task = "auto",
    featurizer: MoleculeFeaturizer | None = None,
    split: SplitRule = "random",
    fractions: Fractions = (0.8, 0.1, 0.1),
    acyclic: Acyclic = "together",
    seed: int = 0,
    strict: bool = False,
    name_row: Callable[[int], str] | None = None,
) -> PreparedRows:
    """Featurize every row, check every label, decide the task, and split.

    Rows that are no molecule and rows without any label are left out, with one warning that counts and names them.
    Rows of the same molecule (however it is spelled) stay on one side of a random or scaffold split.

    Args:
        molecules: SMILES or RDKit Mol.
        labels: (rows, T), NaN where missing.
        targets: the T names, units and classes; the classes of a binary target are 0 and 1 unless it says others.
        task: ``"auto"`` takes binary where every label is 0 or 1, else regression.
        featurizer: how a molecule becomes a graph; the default settings unless given.
        split: ``"random"``, ``"scaffold"``, one mark per row (train, val, test), or the positions themselves.
        fractions: of training, validation and test rows, where the split does not say.
        acyclic: in a scaffold split, molecules without rings are one group, or each its own (``"apart"``).
        seed: of the random split, and of the validation part that is cut where marks have none.
        strict: raise for the first row that is no molecule.
        name_row: how errors call a row, by its position; "row 17 of 1128" unless given.

    Raises:
        MoleculeError: ``strict``, and a row is no molecule.
        ShapeError: labels, targets and molecules do not belong together.
        TableError: a label that cannot be, or a target without one.
        TrainingError: a target that the training part says too little about.
        SplitError: a split that cannot be made.
        SettingError: ``acyclic`` without a scaffold split.
    """
    if acyclic != "together" and not (isinstance(split, str) and split == "scaffold"):
        raise SettingError(f"acyclic {acyclic!r} is for a scaffold split, and this is another one; leave it out")
    molecules = list(molecules)
    if labels.shape != (len(molecules), len(targets)):
        raise ShapeError(
            f"labels have shape {labels.shape}; {len(molecules)} molecules and {len(targets)} targets "
            f"need {(len(molecules), len(targets))}"
        )
    name_row = name_row or (lambda position: f"row {position + 1} of {len(molecules)}")
    found_by_values = task == "auto"
    task, task_reason = _decide_task(labels, task)
    _check_labels(labels, targets, task, name_row)
    featurizer = featurizer or MoleculeFeaturizer()
    graphs, rows = featurizer.rows(molecules)
    if strict:
        check_rows(molecules, rows, name_row)
    labeled = set(labeled_rows(torch.from_numpy(labels)).tolist())
    kept = tuple(position for position, graph in enumerate(graphs) if graph is not None and position in labeled)
    _check_kept(kept, rows)
    _warn_left_out(molecules, rows, labeled)
    groups = [canonical_smiles(molecules[position]) for position in kept]
    conflicts = _warn_conflicts(groups, labels[list(kept)], kept)
    parts, split_reason = _split(split, fractions, acyclic, seed, molecules, groups, kept, name_row)
    dataset = GraphDataset(
        graphs=PackedGraphs.from_data([graph for position in kept if (graph := graphs[position]) is not None]),
        targets=torch.from_numpy(labels[list(kept)]),
    )
    if task == "binary":
        targets = [target if target.classes else replace(target, classes=(0, 1)) for target in targets]
    names = [target.name for target in targets]
    train_targets = dataset.targets[torch.as_tensor(parts.train)]
    check_targets(train_targets, names)
    if task == "binary":
        _check_classes(train_targets, names, found_by_values=found_by_values)
    return PreparedRows(
        featurizer=featurizer,
        targets=tuple(targets),
        task=task,
        task_reason=task_reason,
        rows=rows,
        kept=kept,
        dataset=dataset,
        split=parts,
        split_reason=split_reason,
        scaler=TargetScaler.fit(train_targets, names) if task == "regression" else None,
        conflicts=conflicts,
    )


def _decide_task(labels: Labels, task: Literal["auto"] | Task) -> tuple[Task, str]:
    if task != "auto":
        return task, "as asked"
    observed = labels[~np.isnan(labels)]
    if observed.size and np.isin(observed, (0, 1)).all():
        return "binary", "every label is 0 or 1"
    return "regression", "labels other than 0 and 1"


def _check_labels(labels: Labels, targets: Sequence[Target], task: Task, name_row: Callable[[int], str]) -> None:
    wrong = np.isinf(labels) if task == "regression" else ~np.isnan(labels) & ~np.isin(labels, (0, 1))
    if wrong.any():
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        wanted = "a finite number" if task == "regression" else "0 or 1, as in every binary target"
        raise TableError(
            f"{name_row(row)}: target {targets[column].name!r} is {labels[row, column]:g}; wanted {wanted}, "
            "or nothing where it was not measured"
        )


def _check_kept(kept: Sequence[int], rows: Sequence[RowStatus]) -> None:
    if not kept:
        readable = sum(row.status == "ok" for row in rows)
        raise TableError(
            f"none of the {len(rows)} rows can be used: {readable} are readable molecules, none of which has a label"
        )


def _warn_left_out(molecules: Sequence[object], rows: Sequence[RowStatus], labeled: Container[int]) -> None:
    reasons = {
        position: row.status if row.status != "ok" else "unlabeled"
        for position, row in enumerate(rows)
        if row.status != "ok" or position not in labeled
    }
    if reasons:
        warnings.warn(left_out_message(molecules, reasons, "left out"), GraphattnWarning, stacklevel=5)


def left_out_message(molecules: Sequence[object], reasons: Mapping[int, str], verb: str) -> str:
    """A sentence that counts rows and names the first: ``3 of 9 rows left out (2 unreadable, 1 empty): row 2 ...``."""
    counts = ", ".join(f"{count} {reason}" for reason, count in Counter(reasons.values()).items())
    named = ", ".join(f"row {position + 1} {shown(molecules[position])}" for position in list(reasons)[:MOST_NAMED])
    more = f" and {len(reasons) - MOST_NAMED} more" if len(reasons) > MOST_NAMED else ""
    return f"{len(reasons)} of {len(molecules)} rows {verb} ({counts}): {named}{more}"


def _warn_conflicts(groups: Sequence[Hashable], labels: Labels, kept: Sequence[int]) -> int:
    """Count the molecules that occur more than once with different labels, and warn of them."""
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    conflicts = {group: indices for group, indices in members.items() if len(indices) > 1 and _differ(labels[indices])}
    if conflicts:
        named = "; ".join(
            f"{group} (rows {', '.join(str(kept[index] + 1) for index in indices)})"
            for group, indices in list(conflicts.items())[:MOST_NAMED]
        )
        more = f"; and {len(conflicts) - MOST_NAMED} more" if len(conflicts) > MOST_NAMED else ""
        warnings.warn(
            f"{len(conflicts)} molecules occur more than once with different labels: {named}{more}. "
            "All of their rows are used",
            GraphattnWarning,
            stacklevel=5,
        )
    return len(conflicts)


def _differ(labels: Labels) -> bool:
    """Whether any column holds two different observed values."""
    return any(len(np.unique(column[~np.isnan(column)])) > 1 for column in labels.T)


def _split(
    rule: SplitRule,
    fractions: Fractions,
    acyclic: Acyclic,
    seed: int,
    molecules: Sequence[Any],
    groups: Sequence[str],
    kept: Sequence[int],
    name_row: Callable[[int], str],
) -> tuple[Split, str]:
    """The split of the kept rows, and what it is in words; ``molecules`` are all that were given."""
    if isinstance(rule, Split):
        place = {position: index for index, position in enumerate(kept)}
        parts = ([place[row] for row in part if row in place] for part in (rule.train, rule.valid, rule.test))
        return Split(*(tuple(part) for part in parts)), "as given"
    if rule == "random":
        return random_split(groups, fractions=fractions, seed=seed), f"random, seed {seed}"
    if rule == "scaffold":
        used = [molecules[position] for position in kept]
        parts_by_scaffold = scaffold_split(used, fractions=fractions, acyclic=acyclic)
        return parts_by_scaffold, f"Bemis-Murcko scaffolds, molecules without rings {acyclic}"
    if isinstance(rule, str):
        raise SplitError(f"split must be 'random', 'scaffold', one mark per row, or a Split, got {rule!r}")
    if len(rule) != len(molecules):
        raise ShapeError(f"the split has {len(rule)} marks for {len(molecules)} rows; give one mark per row")
    marks = [rule[position] for position in kept]
    by_marks = column_split(marks, seed=seed, groups=groups, name_row=lambda index: name_row(kept[index]))
    return by_marks, "marks in the table"


def _check_classes(labels: Tensor, names: Sequence[str], *, found_by_values: bool) -> None:
    """A binary target needs both of its classes among the training rows (G, T)."""
    amounts = "; or ask for task regression, if its values are amounts and not classes" if found_by_values else ""
    for name, column in zip(names, labels.T, strict=True):
        observed = column[~column.isnan()]
        if (observed == observed[0]).all():
            raise TrainingError(
                f"target {name!r} is {float(observed[0]):g} in all {len(observed)} labeled training rows; "
                f"a binary target needs both classes there: leave it out, or split otherwise{amounts}"
            )
