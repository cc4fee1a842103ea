"""What a model attended to in one molecule: weights per bond and atom, and their rollout through the layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Batch

from graphattn.errors import SettingError
from graphattn.featurize.molecule import MoleculeFeaturizer
from graphattn.model.network import NetworkWeights
from graphattn.model_folder import load_model
from graphattn.predict import Predictor, Target


class Fitted(Protocol):
    """A fitted estimator."""

    predictor_: Predictor


@dataclass(frozen=True, eq=False)
class AttentionExplanation:
    """What a model looked at when it predicted one molecule. Attention says where it looked, not why.

    ``atoms`` is attention rollout: the layers' weights (mean of heads, half of each step staying with the residual)
    multiplied through to the attention readout. It sums to 1; an atom at 1 / N got its fair share. It does not see what
    values, feed-forward parts and a sum or max readout beside the attention make of an atom; without an attention
    readout the walk starts from all atoms alike.
    """

    molecule: object  # as it was given
    targets: tuple[Target, ...]
    values: npt.NDArray[np.float64]  # (T,) what the model predicts
    edge_index: Tensor  # (2, E) sender and receiver of each edge, bond b behind edges 2b and 2b + 1
    weights: tuple[NetworkWeights, ...]  # of each ensemble member: per layer edges (E, H), self_loops (N, H); readout
    atoms: npt.NDArray[np.float64]  # (N,) rollout, mean of the members
    featurizer: MoleculeFeaturizer

    def draw(self, path: str | PathLike[str], *, size: tuple[int, int] = (520, 420)) -> None:
        """Write a picture, ``.svg`` or ``.png``: the deeper an atom's color, the more the model attended to it.

        Raises:
            SettingError: the name ends otherwise, its folder is not there, or the size is none.
        """
        from graphattn.explanation.drawing import draw_atoms  # noqa: PLC0415  (drawing is slow to import)

        predicted = ", ".join(
            f"{target.name} {value:.3g} {target.unit}".rstrip()
            for target, value in zip(self.targets, self.values, strict=True)
        )
        scale = f"full color: {self.atoms.max():.0%} of the attention; fair share: {1 / len(self.atoms):.0%}"
        draw_atoms(
            self.featurizer.molecule(self.molecule),  # type: ignore[arg-type]  # it was read once already
            self.atoms,
            Path(path),
            legend=f"predicted {predicted}\n{scale}",
            size=size,
        )


def explain(model: Predictor | Fitted | str | PathLike[str], molecule: object) -> AttentionExplanation:
    """What ``model`` attends to in ``molecule``.

    Args:
        model: a fitted :class:`graphattn.MoleculeRegressor` or classifier, what :func:`graphattn.load_model` gives, or
            a model folder.
        molecule: a SMILES or an RDKit molecule.

    Raises:
        MoleculeError: the molecule cannot be read.
        ModelFolderError: there is no such model folder, or something is wrong with it.
        SettingError: ``model`` is none of these, or an estimator that is not fitted yet.

    Source: Abnar and Zuidema 2020, arXiv:2005.00928 (attention rollout).
    """
    predictor = _predictor(model)
    values = predictor.predict([molecule], strict=True).values[0]
    graph = predictor.featurizer.rows([molecule])[0][0]
    assert graph is not None, "strict prediction refused it otherwise"
    batch = Batch.from_data_list([graph])
    with torch.no_grad():
        weights = tuple(network.attention_weights(batch) for network in predictor.networks)
    nodes = len(graph.x)
    atoms = torch.stack([rollout(each, graph.edge_index, nodes) for each in weights]).mean(0)
    return AttentionExplanation(
        molecule, predictor.targets, values, graph.edge_index, weights, atoms.numpy(), predictor.featurizer
    )


def _predictor(model: object) -> Predictor:
    if isinstance(model, str | PathLike):
        return load_model(model)
    predictor = model if isinstance(model, Predictor) else getattr(model, "predictor_", None)
    if not isinstance(predictor, Predictor):
        raise SettingError(
            f"there is no trained network in this {type(model).__name__}; explain takes a fitted MoleculeRegressor or "
            "MoleculeClassifier, what load_model gives, or a model folder"
        )
    return predictor


def rollout(weights: NetworkWeights, edge_index: Tensor, num_nodes: int) -> Tensor:
    """(N,) how much of the readout's attention goes back to each node of one graph, through all layers; sums to 1."""
    flow = torch.full((num_nodes,), 1 / num_nodes, dtype=torch.float64)
    if weights.readout is not None:
        flow = weights.readout.double().mean(-1)
    for step in reversed(_steps(weights, edge_index, num_nodes)):
        flow = flow @ step
    return flow


def _steps(weights: NetworkWeights, edge_index: Tensor, num_nodes: int) -> Sequence[Tensor]:
    """(N, N) per layer, receiver by sender, rows summing to 1: attention, and the residual with the same weight."""
    sender, receiver = edge_index
    steps = []
    for layer in weights.layers:
        attention = torch.diag(layer.self_loops.double().mean(-1))
        attention = attention.index_put((receiver, sender), layer.edges.double().mean(-1), accumulate=True)
        step = attention + torch.eye(num_nodes, dtype=torch.float64)
        steps.append(step / step.sum(1, keepdim=True))
    return steps
