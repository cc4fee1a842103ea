"""Many graphs packed into a few tensors with offsets, so that a batch is one vectorized gather."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from graphattn.data.packing import check_edges, check_graphs, concatenate, homes_of_fields, num_edges, num_nodes
from graphattn.errors import ShapeError


@dataclass(frozen=True, slots=True, eq=False)
class PackedGraphs:
    """G graphs in a handful of tensors: everything concatenated, with offsets that say where each graph begins.

    Made by :meth:`from_data`; :meth:`batch` equals PyG's ``Batch.from_data_list`` on the same graphs in every field,
    without a Python loop over graphs.

    >>> bond = Data(x=torch.tensor([[6], [8]]), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> atom = Data(x=torch.tensor([[6]]), edge_index=torch.empty(2, 0, dtype=torch.long))
    >>> graphs = PackedGraphs.from_data([bond, atom])
    >>> graphs.batch([1, 0, 0])
    DataBatch(edge_index=[2, 4], x=[5, 1], batch=[5], ptr=[4])
    >>> graphs.batch([1, 0, 0]).edge_index
    tensor([[1, 2, 3, 4],
            [2, 1, 4, 3]])
    """

    node_ptr: Tensor  # (G + 1,) int64 on the CPU, graph g owns the nodes node_ptr[g] to node_ptr[g + 1]
    edge_ptr: Tensor  # (G + 1,) int64 on the CPU, the same for edges
    edge_index: Tensor  # (2, E) int64, sender and receiver, numbered from 0 within each graph
    node_fields: Mapping[str, Tensor]  # name -> (N, ...)
    edge_fields: Mapping[str, Tensor]  # name -> (E, ...)
    graph_fields: Mapping[str, Tensor]  # name -> (G, ...)
    carries_num_nodes: bool = False  # whether the graphs said ``num_nodes`` themselves, and batches say it too

    @classmethod
    def from_data(
        cls,
        graphs: Sequence[Data],
        *,
        node_fields: Sequence[str] = ("x", "pos"),
        edge_fields: Sequence[str] = ("edge_attr", "edge_weight"),
        graph_fields: Sequence[str] = ("y",),
    ) -> Self:
        """Pack graphs that all have the same attributes, dtypes and widths.

        What an attribute belongs to is said, not guessed from its length: one that is in none of the three lists is
        refused by name.

        Args:
            graphs: at least one PyG ``Data``, with ``edge_index`` (2, E) int64 (edges may be none), and with a field
                per node or ``num_nodes``.
            node_fields: attributes with one row per node.
            edge_fields: attributes with one row per edge.
            graph_fields: attributes with one value or one row per graph: shape () or (1, ...).

        Raises:
            GraphError: no graphs, something that is no ``Data``, attributes that are unknown or differ between
                graphs, or an edge that names a node that is not there. The message names the graph, counted from 0.
            ShapeError: sizes or dtypes of an attribute that do not belong together.
        """
        homes = homes_of_fields(node_fields, edge_fields, graph_fields)
        check_graphs(graphs, homes)
        names = [name for name in graphs[0].keys() if name not in {"edge_index", "num_nodes"}]  # noqa: SIM118
        node_counts = [num_nodes(graph, row, node_fields) for row, graph in enumerate(graphs)]
        edge_counts = [num_edges(graph, row) for row, graph in enumerate(graphs)]
        counts = {"node": node_counts, "edge": edge_counts, "graph": [1] * len(graphs)}
        packed = {name: concatenate(graphs, name, homes[name], counts[homes[name]]) for name in names}
        edge_index = torch.cat([graph.edge_index for graph in graphs], dim=1)
        check_edges(edge_index, node_counts, edge_counts)
        return cls(
            node_ptr=_offsets(torch.tensor(node_counts)),
            edge_ptr=_offsets(torch.tensor(edge_counts)),
            edge_index=edge_index,
            node_fields={name: packed[name] for name in names if homes[name] == "node"},
            edge_fields={name: packed[name] for name in names if homes[name] == "edge"},
            graph_fields={name: packed[name] for name in names if homes[name] == "graph"},
            carries_num_nodes="num_nodes" in graphs[0],
        )

    def __len__(self) -> int:
        return self.node_ptr.numel() - 1

    @property
    def node_counts(self) -> Tensor:
        """(G,) int64, nodes of each graph."""
        return self.node_ptr.diff()

    @property
    def edge_counts(self) -> Tensor:
        """(G,) int64, directed edges of each graph."""
        return self.edge_ptr.diff()

    def take(self, rows: Sequence[int] | Tensor) -> Self:
        """The graphs of these rows, packed anew, in this order; a row may repeat, and none at all is allowed.

        Raises:
            ShapeError: a row that is no graph of these.
        """
        device = self.edge_index.device
        rows = row_numbers(rows, len(self))
        node_ptr = _offsets(self.node_counts[rows])
        edge_ptr = _offsets(self.edge_counts[rows])
        nodes = _spans(self.node_ptr[rows], node_ptr).to(device)
        edges = _spans(self.edge_ptr[rows], edge_ptr).to(device)
        rows = rows.to(device)
        return replace(
            self,
            node_ptr=node_ptr,
            edge_ptr=edge_ptr,
            edge_index=self.edge_index.index_select(1, edges),
            node_fields={name: values.index_select(0, nodes) for name, values in self.node_fields.items()},
            edge_fields={name: values.index_select(0, edges) for name, values in self.edge_fields.items()},
            graph_fields={name: values.index_select(0, rows) for name, values in self.graph_fields.items()},
        )

    def batch(self, rows: Sequence[int] | Tensor) -> Batch:
        """The graphs of these rows as one PyG ``Batch``: ``to_batch`` of :meth:`take`.

        Raises:
            ShapeError: no row, or a row that is no graph of these.
        """
        return self.take(rows).to_batch()

    def to_batch(self) -> Batch:
        """All graphs as one PyG ``Batch``, as ``Batch.from_data_list`` would make it; ``to_data_list()`` works.

        Its fields are these tensors themselves, not copies (those of :meth:`batch` are new).

        Raises:
            ShapeError: there are no graphs.
        """
        if not len(self):
            raise ShapeError("a batch of no graphs cannot be made; give at least one row.")
        device = self.edge_index.device
        batch = Batch()
        batch.edge_index = self.edge_index + _repeat(self.node_ptr[:-1], self.edge_ptr).to(device)
        for name, values in {**self.node_fields, **self.edge_fields, **self.graph_fields}.items():
            batch[name] = values
        batch.batch = _repeat(torch.arange(len(self)), self.node_ptr).to(device)
        batch.ptr = self.node_ptr.to(device)
        if self.carries_num_nodes:
            batch.num_nodes = int(self.node_ptr[-1])
        _make_separable(batch, self)
        return batch


def row_numbers(rows: Sequence[int] | Tensor, num_graphs: int) -> Tensor:
    """``rows`` as (rows,) int64 on the CPU, each checked to lie in 0 to ``num_graphs - 1``.

    Raises:
        ShapeError: rows that are no integers in one dimension, or one out of range.
    """
    numbers = torch.as_tensor(rows).cpu()
    if not numbers.numel():
        return torch.empty(0, dtype=torch.long)
    if numbers.dim() != 1 or numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
        raise ShapeError(
            f"rows must be whole numbers in one dimension, got {numbers.dtype} of shape {tuple(numbers.shape)}; "
            "for a mask pass mask.nonzero().flatten()."
        )
    low, high = (int(end) for end in numbers.aminmax())
    if low < 0 or high >= num_graphs:
        raise ShapeError(f"row {low if low < 0 else high} is not among the {num_graphs} graphs 0 to {num_graphs - 1}.")
    return numbers.long()


def _offsets(counts: Tensor) -> Tensor:
    """(G + 1,) where each of the counted runs begins, and the end of the last."""
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def _repeat(values: Tensor, ptr: Tensor) -> Tensor:
    """One value per run, repeated over the run that ``ptr`` gives it.

    NumPy does it in this thread; torch's repeat_interleave wakes every thread for a few microseconds of work, and waits
    milliseconds for them where the cores are busy.
    """
    return torch.from_numpy(np.repeat(values.numpy(), ptr.diff().numpy()))


def _spans(starts: Tensor, ptr: Tensor) -> Tensor:
    """The positions starts[i], starts[i] + 1, ... of every run i, one run after the other."""
    return _repeat(starts - ptr[:-1], ptr) + torch.arange(int(ptr[-1]))


def _make_separable(batch: Batch, graphs: PackedGraphs) -> None:
    """Leave in the batch what ``Batch.get_example`` and ``to_data_list`` need to take it apart again.

    These attributes are PyG's own business, set by ``Batch.from_data_list``; there is no public way. The tests compare
    the outcome with PyG's for every field.
    """
    ones = torch.arange(len(graphs) + 1)
    batch._num_graphs = len(graphs)  # noqa: SLF001
    batch._slice_dict = (  # noqa: SLF001
        {"edge_index": graphs.edge_ptr}
        | dict.fromkeys(graphs.node_fields, graphs.node_ptr)
        | dict.fromkeys(graphs.edge_fields, graphs.edge_ptr)
        | dict.fromkeys(graphs.graph_fields, ones)
    )
    nothing = torch.zeros(len(graphs), dtype=torch.long)
    batch._inc_dict = dict.fromkeys(batch._slice_dict, nothing) | {"edge_index": graphs.node_ptr[:-1]}  # noqa: SLF001
    if graphs.carries_num_nodes:
        batch._num_nodes = graphs.node_counts.tolist()  # noqa: SLF001
