"""A trained model in memory, and what it predicts for rows of molecules."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphattn.data.packed import PackedGraphs
from graphattn.data.scaling import TargetScaler
from graphattn.errors import MoleculeError
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.featurize.reading import shown
from graphattn.featurize.rows import RowStatus
from graphattn.model.config import NetworkConfig
from graphattn.model.network import GraphTransformer
from graphattn.training.config import Task
from graphattn.training.history import EpochRecord
from graphattn.training.metrics import TargetScore

Label = int | float | bool | str

ROWS_AT_ONCE = 1024  # featurized and predicted together
NODES_AT_ONCE = 8192  # in one pass through a network, unless a single molecule is larger


@dataclass(frozen=True, slots=True)
class Target:
    """One property that a model predicts.

    ``classes`` are the two labels of a binary target, that of class 0 first; a regression target has none.
    """

    name: str
    unit: str = ""
    classes: tuple[Label, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrainingSummary:
    """Where a model comes from, in numbers small enough to travel with it; :meth:`settings` is for JSON."""

    rows: int  # rows given
    left_out: Mapping[str, int] = field(default_factory=dict)  # status word, or "unlabeled" -> rows not used
    remarks: Mapping[str, int] = field(default_factory=dict)  # of the featurizer on used rows -> rows
    split: str = ""  # how the rows were split, in words
    parts: Mapping[str, int] = field(default_factory=dict)  # train, valid, test -> rows
    conflicts: int = 0  # molecules that occur more than once with different labels
    training: Mapping[str, object] = field(default_factory=dict)  # its settings
    best_epochs: tuple[int, ...] = ()  # of each ensemble member
    histories: tuple[tuple[EpochRecord, ...], ...] = ()  # of each ensemble member
    scores: Mapping[str, tuple[TargetScore, ...]] = field(default_factory=dict)  # valid, test -> one for each target

    def settings(self) -> dict[str, object]:
        """For JSON; :meth:`from_settings` gives an equal summary."""
        return asdict(self)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The summary that :meth:`settings` described."""
        records = {
            "best_epochs": tuple(settings["best_epochs"]),
            "histories": tuple(tuple(EpochRecord(**record) for record in history) for history in settings["histories"]),
            "scores": {
                part: tuple(TargetScore(**score) for score in scores) for part, scores in settings["scores"].items()
            },
        }
        return cls(**{**settings, **records})


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says about rows of molecules, in the order in which they came.

    ``values`` is (rows, T) float64, in the unit of each target; for a binary target the probability of its class 1.
    A row without a prediction is NaN, and its status in ``rows`` says why.
    """

    values: npt.NDArray[np.float64]
    rows: list[RowStatus]

    @property
    def bad_rows(self) -> list[int]:
        """Positions of the rows that have no prediction."""
        return [position for position, row in enumerate(self.rows) if row.status != "ok"]


@dataclass(frozen=True, kw_only=True)
class Predictor:
    """One or more trained networks with everything that turns a molecule into their prediction and back into units."""

    featurizer: MoleculeFeaturizer
    network_config: NetworkConfig
    networks: tuple[GraphTransformer, ...]  # ensemble members; the prediction is their mean
    targets: tuple[Target, ...]
    task: Task
    scaler: TargetScaler | None  # None for binary targets
    summary: TrainingSummary

    def predict(
        self, molecules: Iterable[object], *, strict: bool = False, name_row: Callable[[int], str] | None = None
    ) -> Predictions:
        """Predict every target for every molecule (SMILES or RDKit Mol).

        Args:
            molecules: in any number; rows that are no molecule get NaN and a status.
            strict: raise for the first row that is no molecule instead, before anything is predicted.
            name_row: how a row is called in that error, by its position; "row 17" unless given.

        Raises:
            MoleculeError: ``strict``, and a row is no molecule.
        """
        if strict:
            molecules = list(molecules)
            check_rows(molecules, self.featurizer.rows(molecules)[1], name_row)
        values = [np.empty((0, len(self.targets)))]
        rows: list[RowStatus] = []
        for chunk in _chunks(molecules, ROWS_AT_ONCE):
            graphs, statuses = self.featurizer.rows(chunk)
            good = [position for position, graph in enumerate(graphs) if graph is not None]
            block = np.full((len(chunk), len(self.targets)), np.nan)
            if good:
                packed = PackedGraphs.from_data([graph for graph in graphs if graph is not None])
                block[good] = self.predict_graphs(packed)
            values.append(block)
            rows.extend(statuses)
        return Predictions(np.concatenate(values), rows)

    def predict_graphs(self, graphs: PackedGraphs) -> npt.NDArray[np.float64]:
        """Predict for featurized molecules: (G, T), in the unit of each target, or the probability of class 1."""
        outputs = torch.stack([_outputs(network, graphs) for network in self.networks])  # (members, G, T)
        if self.scaler is None:
            return torch.sigmoid(outputs).mean(0).numpy()
        return self.scaler.unscale(outputs.mean(0)).numpy()  # in this order, a constant target is exact


def check_rows(
    molecules: Sequence[object], rows: Sequence[RowStatus], name_row: Callable[[int], str] | None = None
) -> None:
    """Raise MoleculeError for the first row that is no molecule, naming it; say how many more there are."""
    bad = [position for position, row in enumerate(rows) if row.status != "ok"]
    if not bad:
        return
    first = bad[0]
    name = f"row {first + 1} of {len(rows)}" if name_row is None else name_row(first)
    more = f" ({len(bad) - 1} more rows cannot be used either.)" if len(bad) > 1 else ""
    raise MoleculeError(
        f"{name}: {shown(molecules[first])} is {rows[first].status}: {rows[first].reason}.{more} "
        "Fix the row, or do without strict to keep it with a status and no prediction."
    )


def _chunks(items: Iterable[object], size: int) -> Iterator[list[object]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _outputs(network: GraphTransformer, graphs: PackedGraphs) -> Tensor:
    """What one network says before units come in: (G, T) float64."""
    was_training = network.training
    network.eval()
    with torch.inference_mode():
        outputs = [network(graphs.batch(rows)) for rows in _passes(graphs.node_counts)]
    network.train(was_training)
    return torch.cat(outputs).double()


def _passes(node_counts: Tensor) -> Iterator[Tensor]:
    """Rows in order, in runs of at most NODES_AT_ONCE nodes."""
    start, nodes = 0, 0
    for row, count in enumerate(node_counts.tolist()):
        if row > start and nodes + count > NODES_AT_ONCE:
            yield torch.arange(start, row)
            start, nodes = row, 0
        nodes += count
    yield torch.arange(start, len(node_counts))
