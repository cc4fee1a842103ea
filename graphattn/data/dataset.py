"""Graphs together with what is to be learned about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch_geometric.data import Batch

from graphattn.data.packed import PackedGraphs, row_numbers
from graphattn.errors import ShapeError


@dataclass(frozen=True, slots=True, eq=False)
class GraphDataset:
    """G graphs and T target values of each; NaN marks a value that was not measured.

    >>> from torch_geometric.data import Data
    >>> atom = Data(x=torch.tensor([[6]]), edge_index=torch.empty(2, 0, dtype=torch.long))
    >>> dataset = GraphDataset(PackedGraphs.from_data([atom, atom]), torch.tensor([[1.5], [torch.nan]]))
    >>> dataset.batch([1, 0]).y
    tensor([[   nan],
            [1.5000]])
    """

    graphs: PackedGraphs
    targets: Tensor  # (G, T) float32 or float64

    def __post_init__(self) -> None:
        if self.targets.dtype not in {torch.float32, torch.float64}:
            raise ShapeError(f"targets must be float32 or float64, got {self.targets.dtype}; use targets.float().")
        if self.targets.dim() != 2 or len(self.targets) != len(self.graphs):
            raise ShapeError(
                f"targets must have shape (graphs, targets) with one row for each of the {len(self.graphs)} graphs, "
                f"got {tuple(self.targets.shape)}."
            )
        if "y" in self.graphs.graph_fields:
            raise ShapeError("the graphs carry y themselves; give the targets once: delete y from the graphs.")

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def num_targets(self) -> int:
        """T."""
        return self.targets.shape[1]

    def subset(self, rows: Sequence[int] | Tensor) -> Self:
        """These rows, in this order, as a data set of their own; none at all is allowed.

        Raises:
            ShapeError: a row that is not there.
        """
        rows = row_numbers(rows, len(self))
        return replace(self, graphs=self.graphs.take(rows), targets=self.targets[rows.to(self.targets.device)])

    def batch(self, rows: Sequence[int] | Tensor) -> Batch:
        """These rows as one PyG ``Batch`` whose ``y`` is their targets, (rows, T).

        Raises:
            ShapeError: no row, or a row that is not there.
        """
        chosen = self.subset(rows)
        return replace(chosen.graphs, graph_fields={**chosen.graphs.graph_fields, "y": chosen.targets}).to_batch()
