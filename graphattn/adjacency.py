"""Who may attend to whom: one frozen record in CSR form, and the ways to make it.

Sizes: ``R`` receivers, ``S`` senders, ``E`` the caller's directed edges, ``G`` graphs of a batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor

from graphattn.checks import whole_number
from graphattn.csr import (
    ADDED_SELF_LOOP,
    CSR,
    boundaries,
    bounds_of,
    check_ends,
    check_graph_counts,
    check_same_graphs,
    described,
    holds_integers,
    narrow,
)
from graphattn.errors import GraphError, ShapeError
from graphattn.patterns import Rows, cross_rows, grid_rows, hop_rows, offsets, window_rows


@dataclass(frozen=True, eq=False, repr=False)
class Adjacency(CSR):
    """Who may attend to whom: receiver ``i`` sees ``col[rowptr[i]:rowptr[i + 1]]``.

    Entries are directed: a bond is two. A self loop is an entry like any other; no layer adds or drops one behind the
    caller's back. Parallel edges are separate entries. Within a row, entries keep the caller's order.

    Make one of your own edges with :meth:`from_edge_index` or :meth:`from_dense`, or by a rule: :meth:`complete`,
    :meth:`window`, :meth:`causal`, :meth:`grid`, :meth:`pool`, :meth:`cross`; out of others with :meth:`batch`,
    :meth:`union`, :meth:`k_hop` and :meth:`with_self_loops`. The edges of a rule are numbered receiver by receiver,
    senders ascending. Derived views (:attr:`receiver`, :attr:`transpose`, ...) are computed once and kept.

    >>> path = Adjacency.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> path
    Adjacency(3 receivers, 3 senders, 4 entries)
    >>> path.row(1)
    (tensor([0, 2], dtype=torch.int32), tensor([0, 3]))
    """

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
        if edge_index.ndim != 2 or edge_index.shape[0] != 2 or not holds_integers(edge_index):
            raise ShapeError(
                f"edge_index must hold integers of shape (2, E), row 0 senders and row 1 receivers; "
                f"got {described(edge_index)}."
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
        check_ends(sender, senders, "sender")
        check_ends(receiver, receivers, "receiver")
        bounds = boundaries(ptr, receivers, "ptr", receiver.device)
        sender_bounds = bounds if sender_ptr is None and senders == receivers else None
        if sender_bounds is None:
            sender_bounds = boundaries(sender_ptr, senders, "sender_ptr", receiver.device)
        check_same_graphs(sender, receiver, bounds, sender_bounds)
        order = torch.argsort(receiver, stable=True)
        return cls(
            rowptr=narrow(offsets(torch.bincount(receiver, minlength=receivers)), limit=len(sender)),
            col=narrow(sender[order], limit=senders),
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
            raise ShapeError(f"a dense adjacency is a matrix (receivers, senders); got {described(may_attend)}.")
        if (may_attend.is_floating_point() or may_attend.is_complex()) and bool(may_attend.isnan().any()):
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
        """
        bounds = bounds_of(num_nodes, ptr, "num_nodes", "ptr")
        return cls._of_rows(cross_rows(bounds, bounds), bounds, bounds)

    @classmethod
    def window(cls, num_nodes: int | None = None, *, radius: int, ptr: Tensor | None = None) -> "Adjacency":
        """Every position sees those at most ``radius`` away, itself included: truncated self-attention.

        >>> Adjacency.window(5, radius=1).row(0)
        (tensor([0, 1], dtype=torch.int32), tensor([0, 1]))

        Args:
            num_nodes: positions of the one sequence; left out where ``ptr`` is given.
            radius: at least 0; from the length on, the same as :meth:`complete`.
            ptr: (G + 1,) boundaries of several sequences.

        Raises:
            SettingError: ``radius`` is below 0 or no whole number.

        Source: Povey et al. 2018, "A time-restricted self-attention layer for ASR", ICASSP, for speech.
        """
        radius = whole_number("radius", radius, at_least=0)
        bounds = bounds_of(num_nodes, ptr, "num_nodes", "ptr")
        return cls._of_rows(window_rows(bounds, radius, radius), bounds, bounds)

    @classmethod
    def causal(cls, num_nodes: int | None = None, *, ptr: Tensor | None = None) -> "Adjacency":
        """Every position sees those up to itself, as an output that is written word by word must.

        >>> Adjacency.causal(3).row(1)
        (tensor([0, 1], dtype=torch.int32), tensor([1, 2]))

        Args:
            num_nodes: positions of the one sequence; left out where ``ptr`` is given.
            ptr: (G + 1,) boundaries of several sequences.

        Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3.
        """
        bounds = bounds_of(num_nodes, ptr, "num_nodes", "ptr")
        return cls._of_rows(window_rows(bounds, None, 0), bounds, bounds)

    @classmethod
    def grid(cls, height: int, width: int, *, size: int | tuple[int, int] = 3) -> "Adjacency":
        """Every pixel sees the ``size`` x ``size`` pixels around it: the receptive field of a convolution.

        Pixels are counted row by row; past the rim there are none.

        >>> Adjacency.grid(3, 3).row(0)
        (tensor([0, 1, 3, 4], dtype=torch.int32), tensor([0, 1, 2, 3]))

        Args:
            height: rows of the image.
            width: columns of the image.
            size: an odd number, or two: rows and columns.

        Raises:
            SettingError: ``size`` is even, below 1, or not one or two whole numbers.

        Source: Cordonnier et al. 2020, arXiv:1911.03584.
        """
        sides = tuple(size) if isinstance(size, Sequence) else (size, size)
        rows = grid_rows(height, width, sides)
        bounds = torch.tensor([0, len(rows[0]) - 1])
        return cls._of_rows(rows, bounds, bounds)

    @classmethod
    def pool(cls, ptr: Tensor) -> "Adjacency":
        """One seed per graph sees all nodes of its graph: N vectors -> G.

        >>> Adjacency.pool(torch.tensor([0, 2, 2, 5]))
        Adjacency(3 receivers, 5 senders, 5 entries, 3 graphs)
        """
        return cls.cross(ptr=torch.arange(max(len(ptr), 1), device=ptr.device), sender_ptr=ptr)

    @classmethod
    def cross(
        cls,
        num_receivers: int | None = None,
        num_senders: int | None = None,
        *,
        ptr: Tensor | None = None,
        sender_ptr: Tensor | None = None,
    ) -> "Adjacency":
        """Every receiver sees every sender of its graph, two sets: cross-attention, N vectors -> M.

        >>> Adjacency.cross(2, 3)
        Adjacency(2 receivers, 3 senders, 6 entries)

        Args:
            num_receivers: M, of the one graph; left out where ``ptr`` is given.
            num_senders: N, of the one graph; left out where ``sender_ptr`` is given.
            ptr: (G + 1,) boundaries of several sets of receivers.
            sender_ptr: (G + 1,) boundaries of as many sets of senders.
        """
        bounds = bounds_of(num_receivers, ptr, "num_receivers", "ptr")
        sender_bounds = bounds_of(num_senders, sender_ptr, "num_senders", "sender_ptr")
        check_graph_counts(bounds, sender_bounds)
        return cls._of_rows(cross_rows(bounds, sender_bounds), bounds, sender_bounds)

    @classmethod
    def batch(cls, adjacencies: "Sequence[Adjacency]") -> "Adjacency":
        """Several side by side: nodes, edges and graphs of each come after those of the one before.

        >>> Adjacency.batch([Adjacency.grid(8, 8), Adjacency.grid(4, 4)])
        Adjacency(80 receivers, 80 senders, 584 entries, 2 graphs)

        Raises:
            GraphError: there is none.
        """
        if not adjacencies:
            raise GraphError("a batch needs at least one adjacency; got none.")

        def joined(starts: Iterable[Tensor], sizes: Iterable[int]) -> Tensor:
            """The parts one after another, each raised by what lies before it."""
            return torch.cat(
                [part + before for part, before in zip(starts, accumulate(sizes, initial=0), strict=False)]
            )

        def bounds(name: str) -> Tensor:
            parts = [getattr(each, name).long() for each in adjacencies]
            inner = joined((part[:-1] for part in parts), (int(part[-1]) for part in parts))
            return torch.cat([inner, inner.new_tensor([sum(int(part[-1]) for part in parts)])])

        entries, edges, senders = (
            [getattr(each, name) for each in adjacencies] for name in ("num_entries", "num_edges", "num_senders")
        )
        edge_id = joined((each.edge_id for each in adjacencies), edges)
        added = torch.cat([each.edge_id == ADDED_SELF_LOOP for each in adjacencies])
        return cls(
            rowptr=narrow(bounds("rowptr"), limit=sum(entries)),
            col=narrow(joined((each.col.long() for each in adjacencies), senders), limit=sum(senders)),
            edge_id=edge_id.masked_fill(added, ADDED_SELF_LOOP),
            num_senders=sum(senders),
            num_edges=sum(edges),
            ptr=bounds("ptr"),
            sender_ptr=bounds("sender_ptr"),
        )

    @classmethod
    def _of_rows(cls, rows: Rows, ptr: Tensor, sender_ptr: Tensor) -> "Adjacency":
        """The adjacency of CSR rows, whose entries are its edges."""
        rowptr, col = rows
        return cls(
            rowptr=narrow(rowptr, limit=len(col)),
            col=narrow(col, limit=int(sender_ptr[-1])),
            edge_id=torch.arange(len(col), device=col.device),
            num_senders=int(sender_ptr[-1]),
            num_edges=len(col),
            ptr=ptr,
            sender_ptr=sender_ptr,
        )

    def with_self_loops(self) -> "Adjacency":
        """Every node sees itself as well: adds an entry, last in its row, to each node that lacks one.

        An added loop has no edge behind it: no bias, no edge term.

        Raises:
            GraphError: senders and receivers are different sets.
        """
        self._check_one_set("self loops")
        lacks = torch.ones(self.num_receivers, dtype=torch.bool, device=self.col.device)
        lacks[self.receiver[self.receiver == self.sender]] = False
        before = offsets(lacks.long())  # (R + 1,) loops added in rows before each
        rowptr = self.rowptr.long() + before
        total = self.num_entries + int(before[-1])
        place = torch.arange(self.num_entries, device=self.col.device) + before[self.receiver]
        loops = lacks.nonzero().squeeze(1)
        col = torch.empty(total, dtype=self.col.dtype, device=self.col.device)
        col[place], col[rowptr[loops + 1] - 1] = self.col, loops.to(self.col.dtype)
        edge_id = torch.full((total,), ADDED_SELF_LOOP, device=self.col.device)
        edge_id[place] = self.edge_id
        return replace(self, rowptr=narrow(rowptr, limit=total), col=col, edge_id=edge_id)

    def union(self, other: "Adjacency") -> "Adjacency":
        """The pairs of either. Edges keep their number; those that only ``other`` has follow, in its order.

        A pair of both is listed as often as here; self loops that ``other.with_self_loops()`` added are left out.

        >>> window, first_word = Adjacency.window(6, radius=1), Adjacency.from_edge_index(torch.tensor([[0], [5]]), 6)
        >>> window.union(first_word).row(5)
        (tensor([4, 5, 0], dtype=torch.int32), tensor([14, 15, 16]))

        Raises:
            GraphError: the two are not about the same nodes, or not about the same graphs of a batch.
        """
        if self.num_senders != other.num_senders or not all(
            torch.equal(getattr(self, name), getattr(other, name)) for name in ("ptr", "sender_ptr")
        ):
            raise GraphError(f"a union needs the same senders, receivers and graphs in both; got {self} and {other}.")
        theirs = torch.argsort(other.edge_id, stable=True)[other.num_entries - other.num_edges :]  # no added loops
        pair = other.receiver[theirs] * self.num_senders + other.sender[theirs]
        new = theirs[~torch.isin(pair, self.receiver * self.num_senders + self.sender)]
        receiver = torch.cat([self.receiver, other.receiver[new]])
        edge_id = torch.cat([self.edge_id, self.num_edges + torch.arange(len(new), device=new.device)])
        order = torch.argsort(receiver, stable=True)
        return replace(
            self,
            rowptr=narrow(offsets(torch.bincount(receiver, minlength=self.num_receivers)), limit=len(order)),
            col=torch.cat([self.col, other.col[new]])[order],
            edge_id=edge_id[order],
            num_edges=self.num_edges + len(new),
        )

    def k_hop(self, hops: int) -> "Adjacency":
        """Every node sees those from which at most ``hops`` edges, one after another, lead to it; itself too, by none.

        >>> ring = torch.arange(6)
        >>> bonds = Adjacency.from_edge_index(torch.stack([ring, (ring + 1) % 6]), 6)
        >>> bonds.k_hop(2).row(0)
        (tensor([0, 4, 5], dtype=torch.int32), tensor([0, 1, 2]))

        Args:
            hops: at least 0.

        Raises:
            SettingError: ``hops`` is below 0 or no whole number.
            GraphError: senders and receivers are different sets.
        """
        hops = whole_number("hops", hops, at_least=0)
        self._check_one_set("hops")
        return self._of_rows(hop_rows(self.rowptr, self.col, hops), self.ptr, self.sender_ptr)

    def _check_one_set(self, what: str) -> None:
        if self.num_receivers != self.num_senders or not torch.equal(self.ptr, self.sender_ptr):
            raise GraphError(
                f"{what} need senders and receivers to be one set; here are {self.num_senders} senders and "
                f"{self.num_receivers} receivers, in graphs that end at {self.sender_ptr[1:].tolist()[:8]} and "
                f"{self.ptr[1:].tolist()[:8]}."
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
