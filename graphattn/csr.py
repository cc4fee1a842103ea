"""The record behind an adjacency: a CSR matrix by receiver, what can be read off it, and what it may be made of.

Sizes: ``R`` receivers, ``S`` senders, ``E`` the caller's directed edges, ``G`` graphs of a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, TypeVar, cast

import torch
from torch import Tensor

from graphattn.checks import whole_number
from graphattn.errors import GraphError, ShapeError
from graphattn.patterns import offsets

SMALLEST_RUN = 1024  # entries and receivers of a run, where there are so many
MOST_RUNS = 256
View = TypeVar("View")
ADDED_SELF_LOOP = -1  # edge_id of an entry that with_self_loops() added; no edge of the caller stands behind it


if TYPE_CHECKING:
    from functools import cached_property as _computed_once
else:

    def _computed_once(view: Callable[["CSR"], object]) -> property:
        """Keep a property after its first use, in a form that torch.compile can trace; functools' own is none."""

        def get(self: "CSR") -> object:
            return self.keep(view.__name__, view)

        return property(get, doc=view.__doc__)


@dataclass(frozen=True, eq=False)
class CSR:
    """Receiver ``i`` sees ``col[rowptr[i]:rowptr[i + 1]]``; derived views are computed once and kept."""

    rowptr: Tensor  # (R + 1,) int32 where it fits, never decreasing
    col: Tensor  # (entries,) int32 where it fits, senders in [0, S)
    edge_id: Tensor  # (entries,) int64, the caller's edge behind each entry, or ADDED_SELF_LOOP
    num_senders: int
    num_edges: int  # E: rows that a per-edge term must have
    ptr: Tensor  # (G + 1,) int64, receivers of graph g are ptr[g]:ptr[g + 1]
    sender_ptr: Tensor  # (G + 1,) int64, the same for senders
    _kept: dict[str, object] = field(default_factory=dict, init=False, repr=False)  # derived views, by name

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
        ascends = self.col.diff() > 0
        ends = self.rowptr[1:-1].long() - 1  # the last entry of each row; what follows it belongs to another
        ascends[ends[(ends >= 0) & (ends < len(ascends))]] = True
        if bool(ascends.all()):  # as the rows of every rule are; a sort of all pairs would take many times as long
            return False
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
    def is_causal(self) -> bool:
        """Whether every receiver sees, once each, itself and the senders of its graph before it: a written sequence."""
        if self.num_receivers != self.num_senders or not torch.equal(self.ptr, self.sender_ptr):
            return False
        place = torch.arange(self.num_receivers, device=self.col.device)
        place = place - self.ptr[:-1].repeat_interleave(self.ptr.diff(), output_size=len(place))
        as_many = bool((self.rowptr.diff() == place + 1).all())
        return as_many and bool((self.sender <= self.receiver).all()) and not self.has_parallel_edges

    @_computed_once
    def transpose_slots(self) -> Tensor:
        """(entries,) int64: the entry of this adjacency behind each entry of :attr:`transpose`."""
        return torch.argsort(self.sender, stable=True)

    @_computed_once
    def transpose(self) -> Self:
        """The same pairs by sender: its row ``j`` lists the receivers that see sender ``j``."""
        slots = self.transpose_slots
        return type(self)(
            rowptr=narrow(offsets(torch.bincount(self.sender, minlength=self.num_senders)), limit=self.num_entries),
            col=narrow(self.receiver[slots], limit=self.num_receivers),
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

    def keep(self, name: str, view: Callable[[Self], View]) -> View:
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

    def to(self, device: torch.device | str) -> Self:
        """The same adjacency on another device."""
        tensors = {name: getattr(self, name).to(device) for name in ("rowptr", "col", "edge_id", "ptr", "sender_ptr")}
        return replace(self, **tensors)

    def __repr__(self) -> str:
        sizes = f"{self.num_receivers} receivers, {self.num_senders} senders, {self.num_entries} entries"
        return f"Adjacency({sizes}, {self.num_graphs} graphs)" if self.num_graphs != 1 else f"Adjacency({sizes})"


def narrow(index: Tensor, limit: int) -> Tensor:
    """int32 where indices up to ``limit`` fit, else int64."""
    return index.int() if limit <= torch.iinfo(torch.int32).max else index.long()


def holds_integers(tensor: Tensor) -> bool:
    """Whether ``tensor`` may hold indices; ``bool`` may not."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def described(tensor: Tensor) -> str:
    """A tensor in words of an error."""
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"


def check_ends(ends: Tensor, count: int, role: str) -> None:
    """Refuse an edge whose ``role`` is a node that is not there."""
    outside = (ends < 0) | (ends >= count)
    if bool(outside.any()):
        edge = int(outside.nonzero()[0])
        raise GraphError(f"edge {edge} names {role} {int(ends[edge])}, but there are {count} {role}s, counted from 0.")


def bounds_of(count: int | None, ptr: Tensor | None, count_name: str, name: str) -> Tensor:
    """(G + 1,) boundaries of the sets that a constructor was given by one count, or by ``ptr``."""
    if (count is None) == (ptr is None):
        raise ShapeError(f"give {count_name} for one graph, or {name} for the boundaries of several; one of the two.")
    if ptr is not None:
        count = int(ptr[-1]) if ptr.ndim == 1 and len(ptr) else 0
        return boundaries(ptr, count, name, ptr.device)
    return torch.tensor([0, whole_number(count_name, count, at_least=0)])


def boundaries(ptr: Tensor | None, count: int, name: str, device: torch.device) -> Tensor:
    """(G + 1,) ``ptr`` itself, checked, or the boundaries of one graph of ``count`` nodes."""
    if ptr is None:
        return torch.tensor([0, count], device=device)
    if ptr.ndim != 1 or not holds_integers(ptr):
        raise ShapeError(f"{name} must hold integers of shape (graphs + 1,); got {described(ptr)}.")
    bounds = ptr.long().to(device).clone()  # the caller may use his again
    if len(bounds) < 1 or int(bounds[0]) != 0 or int(bounds[-1]) != count or bool((bounds.diff() < 0).any()):
        raise GraphError(f"{name} must rise from 0 to the {count} nodes and never fall; got {bounds.tolist()[:8]}...")
    return bounds


def check_graph_counts(ptr: Tensor, sender_ptr: Tensor) -> None:
    """Refuse boundaries of different numbers of graphs."""
    if len(ptr) != len(sender_ptr):
        raise GraphError(
            f"ptr bounds {len(ptr) - 1} graphs but sender_ptr {len(sender_ptr) - 1}; give one pair per graph."
        )


def check_same_graphs(sender: Tensor, receiver: Tensor, ptr: Tensor, sender_ptr: Tensor) -> None:
    """Refuse an edge that crosses from one graph into another."""
    check_graph_counts(ptr, sender_ptr)
    if len(ptr) <= 2:
        return
    graph = torch.bucketize(receiver, ptr[1:], right=True)
    crossing = graph != torch.bucketize(sender, sender_ptr[1:], right=True)
    if bool(crossing.any()):
        edge = int(crossing.nonzero()[0])
        raise GraphError(
            f"edge {edge} goes from sender {int(sender[edge])} to receiver {int(receiver[edge])} of another graph."
        )
