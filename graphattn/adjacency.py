"""Who may attend to whom: one frozen record in CSR form, and the ways to make it.

Sizes: ``R`` receivers, ``S`` senders, ``E`` the caller's directed edges, ``G`` graphs of a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar, cast

import torch
from torch import Tensor

from graphattn.errors import GraphError, ShapeError

SMALLEST_RUN = 1024  # entries and receivers of a run, where there are so many
MOST_RUNS = 256
View = TypeVar("View")
ADDED_SELF_LOOP = -1  # edge_id of an entry that with_self_loops() added; no edge of the caller stands behind it


if TYPE_CHECKING:
    from functools import cached_property as _computed_once
else:

    def _computed_once(view: Callable[["Adjacency"], object]) -> property:
        """Keep a property after its first use, in a form that torch.compile can trace; functools' own is none."""

        def get(self: "Adjacency") -> object:
            return self.keep(view.__name__, view)

        return property(get, doc=view.__doc__)


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Who may attend to whom: receiver ``i`` sees ``col[rowptr[i]:rowptr[i + 1]]``.

    Entries are directed: a bond is two. A self loop is an entry like any other; no layer adds or drops one behind the
    caller's back. Parallel edges are separate entries. Within a row, entries keep the caller's order.

    Make one with :meth:`from_edge_index`, :meth:`from_dense`, :meth:`complete` or :meth:`pool`. Derived views
    (:attr:`receiver`, :attr:`transpose`, ...) are computed once and kept.

    >>> path = Adjacency.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> path
    Adjacency(3 receivers, 3 senders, 4 entries)
    >>> path.row(1)
    (tensor([0, 2], dtype=torch.int32), tensor([0, 3]))
    """

    rowptr: Tensor  # (R + 1,) int32 where it fits, never decreasing
    col: Tensor  # (entries,) int32 where it fits, senders in [0, S)
    edge_id: Tensor  # (entries,) int64, the caller's edge behind each entry, or ADDED_SELF_LOOP
    num_senders: int
    num_edges: int  # E: rows that a per-edge term must have
    ptr: Tensor  # (G + 1,) int64, receivers of graph g are ptr[g]:ptr[g + 1]
    sender_ptr: Tensor  # (G + 1,) int64, the same for senders
    _kept: dict[str, object] = field(default_factory=dict, init=False, repr=False)  # derived views, by name

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        *,
        num_senders: int | None = None,
        num_receivers: int | None = None,
        ptr: Tensor | None = None,
        sender_ptr: Tensor | None = None,
    ) -> "Adjacency":
        """Adjacency of PyG's ``edge_index``: row 0 holds senders, row 1 receivers.

        Args:
            edge_index: (2, E) integers.
            num_nodes: senders and receivers alike; or give ``num_senders`` and ``num_receivers``.
            num_senders: S, of a rectangular adjacency.
            num_receivers: R, of a rectangular adjacency.
            ptr: (G + 1,) graph boundaries of the receivers (PyG's ``batch.ptr``); one graph where left out.
            sender_ptr: (G + 1,) graph boundaries of the senders; ``ptr`` where left out.

        Raises:
            ShapeError: ``edge_index`` is not (2, E) integers, or no size is given.
            GraphError: an edge names a node that is not there, or crosses from one graph into another.
        """
        if edge_index.ndim != 2 or edge_index.shape[0] != 2 or not _holds_integers(edge_index):
            raise ShapeError(
                f"edge_index must hold integers of shape (2, E), row 0 senders and row 1 receivers; "
                f"got {_described(edge_index)}."
            )
        senders = num_nodes if num_senders is None else num_senders
        receivers = num_nodes if num_receivers is None else num_receivers
        if senders is None or receivers is None:
            raise ShapeError(
                "give num_nodes, or num_senders and num_receivers: edges alone do not tell how many nodes there are."
            )
        if min(senders, receivers) < 0:
            raise GraphError(f"there cannot be {senders} senders and {receivers} receivers; counts begin at 0.")
        sender, receiver = edge_index.long().contiguous()
        _check_ends(sender, senders, "sender")
        _check_ends(receiver, receivers, "receiver")
        bounds = _boundaries(ptr, receivers, "ptr", receiver.device)
        sender_bounds = bounds if sender_ptr is None and senders == receivers else None
        if sender_bounds is None:
            sender_bounds = _boundaries(sender_ptr, senders, "sender_ptr", receiver.device)
        _check_same_graphs(sender, receiver, bounds, sender_bounds)
        order = torch.argsort(receiver, stable=True)
        return cls(
            rowptr=_narrow(_offsets(torch.bincount(receiver, minlength=receivers)), limit=len(sender)),
            col=_narrow(sender[order], limit=senders),
            edge_id=order,
            num_senders=senders,
            num_edges=len(sender),
            ptr=bounds,
            sender_ptr=sender_bounds,
        )

    @classmethod
    def from_dense(cls, may_attend: Tensor) -> "Adjacency":
        """Adjacency of an (R, S) matrix: ``True``, or any number but 0, means that receiver ``row`` may see ``column``.

        Edges are numbered row by row.

        >>> Adjacency.from_dense(torch.tensor([[True, False, True]])).row(0)
        (tensor([0, 2], dtype=torch.int32), tensor([0, 1]))

        Raises:
            ShapeError: ``may_attend`` is no matrix.
            GraphError: it holds NaN.
        """
        if may_attend.ndim != 2:
            raise ShapeError(f"a dense adjacency is a matrix (receivers, senders); got {_described(may_attend)}.")
        if may_attend.is_floating_point() and bool(may_attend.isnan().any()):
            row, column = may_attend.isnan().nonzero()[0].tolist()
            raise GraphError(f"may_attend[{row}, {column}] is NaN; say True or False for every pair.")
        receiver, sender = may_attend.nonzero(as_tuple=True)
        return cls.from_edge_index(
            torch.stack([sender, receiver]), num_senders=may_attend.shape[1], num_receivers=may_attend.shape[0]
        )

    @classmethod
    def complete(cls, num_nodes: int | None = None, *, ptr: Tensor | None = None) -> "Adjacency":
        """Every pair of one graph, the node itself included: plain self-attention.

        Args:
            num_nodes: of the one graph; left out where ``ptr`` is given.
            ptr: (G + 1,) boundaries of several graphs; pairs stay inside their graph.

        Edges are numbered receiver by receiver, senders ascending.
        """
        if (num_nodes is None) == (ptr is None):
            raise ShapeError("give num_nodes for one graph, or ptr for the boundaries of several; one of the two.")
        if num_nodes is not None and num_nodes < 0:
            raise GraphError(f"num_nodes must be at least 0, got {num_nodes}.")
        bounds = torch.tensor([0, num_nodes]) if ptr is None else ptr.long()
        bounds = _boundaries(bounds, int(bounds[-1]), "ptr", bounds.device)
        sizes = bounds.diff()
        seen = sizes.repeat_interleave(sizes)  # (R,) how many senders each receiver sees
        rowptr = _offsets(seen)
        first = bounds[:-1].repeat_interleave(sizes)  # (R,) first sender of each receiver's graph
        entries = torch.arange(int(rowptr[-1]), device=bounds.device)
        col = entries + (first - rowptr[:-1]).repeat_interleave(seen)
        return cls(
            rowptr=_narrow(rowptr, limit=len(entries)),
            col=_narrow(col, limit=len(seen)),
            edge_id=entries,
            num_senders=len(seen),
            num_edges=len(entries),
            ptr=bounds,
            sender_ptr=bounds,
        )

    @classmethod
    def pool(cls, ptr: Tensor) -> "Adjacency":
        """One seed per graph sees all nodes of its graph: N vectors -> G.

        >>> Adjacency.pool(torch.tensor([0, 2, 2, 5]))
        Adjacency(3 receivers, 5 senders, 5 entries, 3 graphs)
        """
        bounds = _boundaries(ptr, int(ptr[-1]) if ptr.numel() else 0, "ptr", ptr.device)
        nodes = torch.arange(int(bounds[-1]), device=bounds.device)
        return cls(
            rowptr=_narrow(bounds, limit=len(nodes)),
            col=_narrow(nodes, limit=len(nodes)),
            edge_id=nodes,
            num_senders=len(nodes),
            num_edges=len(nodes),
            ptr=torch.arange(len(bounds), device=bounds.device),
            sender_ptr=bounds,
        )

    @property
    def num_receivers(self) -> int:
        """R: rows of the adjacency."""
        return len(self.rowptr) - 1

    @property
    def num_entries(self) -> int:
        """Pairs that may attend: the caller's edges and the self loops added to them."""
        return len(self.col)

    @property
    def num_graphs(self) -> int:
        """G: graphs in the batch."""
        return len(self.ptr) - 1

    @_computed_once
    def receiver(self) -> Tensor:
        """(entries,) int64, the receiver of each entry; never decreasing."""
        rows = torch.arange(self.num_receivers, device=self.col.device)
        return rows.repeat_interleave(self.rowptr.diff().long(), output_size=self.num_entries)

    @_computed_once
    def sender(self) -> Tensor:
        """(entries,) int64: ``col`` in the width that every PyTorch gather takes."""
        return self.col.long()

    @_computed_once
    def added(self) -> Tensor | None:
        """(entries,) bool, ``True`` at the self loops that :meth:`with_self_loops` added; ``None`` without any."""
        return None if self.num_entries == self.num_edges else self.edge_id == ADDED_SELF_LOOP

    @_computed_once
    def has_parallel_edges(self) -> bool:
        """Whether a receiver lists a sender more than once."""
        pair = self.receiver * self.num_senders + self.sender
        return len(torch.unique(pair)) < self.num_entries

    @_computed_once
    def largest(self) -> tuple[int, int]:
        """Receivers and senders of the graph that has the most of them."""
        receivers, senders = (int(ptr.diff().max()) if self.num_graphs else 0 for ptr in (self.ptr, self.sender_ptr))
        return receivers, senders

    @_computed_once
    def density(self) -> float:
        """Entries as a share of all pairs, every graph padded to the largest; 0 where there is no pair."""
        pairs = self.num_graphs * self.largest[0] * self.largest[1]
        return self.num_entries / pairs if pairs else 0.0

    @_computed_once
    def is_complete(self) -> bool:
        """Whether every receiver sees every sender of its graph, once, and all graphs are of one size."""
        return self.density == 1 and not self.has_parallel_edges

    @_computed_once
    def transpose_slots(self) -> Tensor:
        """(entries,) int64: the entry of this adjacency behind each entry of :attr:`transpose`."""
        return torch.argsort(self.sender, stable=True)

    @_computed_once
    def transpose(self) -> "Adjacency":
        """The same pairs by sender: its row ``j`` lists the receivers that see sender ``j``."""
        slots = self.transpose_slots
        return Adjacency(
            rowptr=_narrow(_offsets(torch.bincount(self.sender, minlength=self.num_senders)), limit=self.num_entries),
            col=_narrow(self.receiver[slots], limit=self.num_receivers),
            edge_id=self.edge_id[slots],
            num_senders=self.num_receivers,
            num_edges=self.num_edges,
            ptr=self.sender_ptr,
            sender_ptr=self.ptr,
        )

    @_computed_once
    def runs(self) -> Tensor:
        """(T + 1,) int64: run t is the receivers ``runs[t]`` to ``runs[t + 1]``, with about equally many entries.

        They are the tasks that threads share; how they are cut depends on nothing but the adjacency.
        """
        cost = self.rowptr.long() + torch.arange(self.num_receivers + 1, device=self.col.device)
        whole = int(cost[-1])
        count = min(max(whole // SMALLEST_RUN, 1), MOST_RUNS)
        return torch.searchsorted(cost, torch.arange(count + 1, device=cost.device) * whole // count)

    def keep(self, name: str, view: Callable[["Adjacency"], View]) -> View:
        """``view(self)``, computed at the first call with this name and kept with the adjacency."""
        if name not in self._kept:
            if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
                self._kept[name] = view(self)
            else:
                with torch.inference_mode(mode=False):  # what is made in that mode cannot serve a training later
                    self._kept[name] = view(self)
        return cast("View", self._kept[name])

    def row(self, receiver: int) -> tuple[Tensor, Tensor]:
        """Senders that ``receiver`` may attend to, and the caller's edges behind them."""
        entries = slice(int(self.rowptr[receiver]), int(self.rowptr[receiver + 1]))
        return self.col[entries], self.edge_id[entries]

    def edge_index(self) -> Tensor:
        """(2, E) PyG's ``edge_index`` in the caller's order; self loops added since come last, by node."""
        order = torch.argsort(torch.where(self.edge_id == ADDED_SELF_LOOP, self.num_edges, self.edge_id), stable=True)
        return torch.stack([self.sender[order], self.receiver[order]])

    def with_self_loops(self) -> "Adjacency":
        """Every node sees itself as well: adds an entry, last in its row, to each node that lacks one.

        An added loop has no edge behind it: no bias, no edge term.

        Raises:
            GraphError: senders and receivers are different sets.
        """
        if self.num_receivers != self.num_senders:
            raise GraphError(
                f"self loops need senders and receivers to be one set; "
                f"here are {self.num_senders} senders and {self.num_receivers} receivers."
            )
        lacks = torch.ones(self.num_receivers, dtype=torch.bool, device=self.col.device)
        lacks[self.receiver[self.receiver == self.sender]] = False
        before = _offsets(lacks.long())  # (R + 1,) loops added in rows before each
        rowptr = self.rowptr.long() + before
        total = self.num_entries + int(before[-1])
        place = torch.arange(self.num_entries, device=self.col.device) + before[self.receiver]
        loops = lacks.nonzero().squeeze(1)
        col = torch.empty(total, dtype=self.col.dtype, device=self.col.device)
        col[place], col[rowptr[loops + 1] - 1] = self.col, loops.to(self.col.dtype)
        edge_id = torch.full((total,), ADDED_SELF_LOOP, device=self.col.device)
        edge_id[place] = self.edge_id
        return replace(self, rowptr=_narrow(rowptr, limit=total), col=col, edge_id=edge_id)

    def to(self, device: torch.device | str) -> "Adjacency":
        """The same adjacency on another device."""
        tensors = {name: getattr(self, name).to(device) for name in ("rowptr", "col", "edge_id", "ptr", "sender_ptr")}
        return replace(self, **tensors)

    def __repr__(self) -> str:
        graphs = f", {self.num_graphs} graphs" if self.num_graphs != 1 else ""
        return (
            f"Adjacency({self.num_receivers} receivers, {self.num_senders} senders, {self.num_entries} entries{graphs})"
        )


def as_adjacency(edges: Tensor | Adjacency, *, num_senders: int, num_receivers: int) -> Adjacency:
    """``edges`` itself if it is an :class:`Adjacency` of these sizes, else the adjacency of a PyG ``edge_index``."""
    if not isinstance(edges, Adjacency):
        return Adjacency.from_edge_index(edges, num_senders=num_senders, num_receivers=num_receivers)
    if (edges.num_senders, edges.num_receivers) != (num_senders, num_receivers):
        raise ShapeError(
            f"the adjacency has {edges.num_senders} senders and {edges.num_receivers} receivers, "
            f"but there are {num_senders} and {num_receivers} vectors; build it with those sizes."
        )
    return edges


def _holds_integers(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def _offsets(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _narrow(index: Tensor, limit: int) -> Tensor:
    return index.int() if limit <= torch.iinfo(torch.int32).max else index.long()


def _described(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"


def _check_ends(ends: Tensor, count: int, role: str) -> None:
    outside = (ends < 0) | (ends >= count)
    if bool(outside.any()):
        edge = int(outside.nonzero()[0])
        raise GraphError(f"edge {edge} names {role} {int(ends[edge])}, but there are {count} {role}s, counted from 0.")


def _boundaries(ptr: Tensor | None, count: int, name: str, device: torch.device) -> Tensor:
    if ptr is None:
        return torch.tensor([0, count], device=device)
    bounds = ptr.long().to(device).clone()  # the caller may use his again
    if (
        bounds.ndim != 1
        or len(bounds) < 1
        or int(bounds[0]) != 0
        or int(bounds[-1]) != count
        or bool((bounds.diff() < 0).any())
    ):
        raise GraphError(f"{name} must rise from 0 to the {count} nodes and never fall; got {bounds.tolist()[:8]}...")
    return bounds


def _check_same_graphs(sender: Tensor, receiver: Tensor, ptr: Tensor, sender_ptr: Tensor) -> None:
    if len(ptr) != len(sender_ptr):
        raise GraphError(
            f"ptr bounds {len(ptr) - 1} graphs but sender_ptr {len(sender_ptr) - 1}; give one pair per graph."
        )
    if len(ptr) <= 2:
        return
    graph = torch.bucketize(receiver, ptr[1:], right=True)
    crossing = graph != torch.bucketize(sender, sender_ptr[1:], right=True)
    if bool(crossing.any()):
        edge = int(crossing.nonzero()[0])
        raise GraphError(
            f"edge {edge} goes from sender {int(sender[edge])} to receiver {int(receiver[edge])} of another graph."
        )
