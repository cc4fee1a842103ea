"""One attention, fully described: the record that every backend takes.

Sizes: ``R`` receivers, ``S`` senders, ``E`` the caller's edges, ``K`` kinds of edge, ``H`` heads, ``Dk`` and ``Dv`` the
widths per head of key and value.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from graphattn.adjacency import Adjacency
from graphattn.attention.normalizers import NORMALIZERS, Normalizer
from graphattn.attention.scores import Score
from graphattn.errors import GraphError, SettingError, ShapeError


@dataclass(frozen=True, eq=False)
class ByType:
    """Something per edge that depends on the edge's kind only: a small table, and the row of each edge in it.

    Nothing of size edges x width need exist: molecules have a few dozen kinds of bond.
    """

    table: Tensor  # (K, ...)
    kind: Tensor  # (E,) integers in [0, K)

    def __len__(self) -> int:
        return len(self.kind)


PerEdge = Tensor | ByType  # (E, ...) in the caller's edge order, or by kind of edge


@dataclass(frozen=True, eq=False)
class EdgeTerms:
    """Vectors that an edge adds to the key and to the value of its sender, for its receiver only."""

    key: PerEdge | None = None  # (E, H, Dk) or (K, H, Dk) by type
    value: PerEdge | None = None  # (E, H, Dv) or (K, H, Dv) by type


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """What to compute: ``out[i] = sum_j normalize_j(score(q[i], k[j] + e_k[ij]) + bias[ij]) (v[j] + e_v[ij])``."""

    query: Tensor  # (R, H, Dk)
    key: Tensor  # (S, H, Dk)
    value: Tensor  # (S, H, Dv)
    adjacency: Adjacency
    score: Score
    normalizer: Normalizer = "softmax"
    bias: PerEdge | None = None  # (E, H) or (K, H) by type, added to the score
    edges: EdgeTerms = field(default_factory=EdgeTerms)
    dropout: float = 0.0  # chance that a weight is dropped; the others grow by 1 / (1 - dropout)
    seed: Tensor | None = None  # () int64, decides which weights drop; needed where dropout > 0

    def __post_init__(self) -> None:
        receivers, senders = self.adjacency.num_receivers, self.adjacency.num_senders
        heads, width = self.query.shape[-2:] if self.query.ndim == 3 else (-1, -1)
        for name, tensor, rows in (("query", self.query, receivers), ("key", self.key, senders)):
            if tensor.ndim != 3 or tensor.shape != (rows, heads, width):
                raise ShapeError(
                    f"{name} has shape {tuple(tensor.shape)}, but the adjacency has {receivers} receivers and "
                    f"{senders} senders; query must be (receivers, heads, width) and key (senders, heads, width)."
                )
        if self.value.ndim != 3 or self.value.shape[:2] != (senders, heads):
            raise ShapeError(
                f"value has shape {tuple(self.value.shape)}, but the adjacency has {senders} senders and the query "
                f"{heads} heads; value must be (senders, heads, width)."
            )
        if min(heads, width, self.value.shape[-1]) < 1:
            raise ShapeError(
                f"query has shape {tuple(self.query.shape)} and value {tuple(self.value.shape)}; "
                "there must be at least one head, and one channel in it."
            )
        if self.normalizer not in NORMALIZERS:
            raise SettingError(f"normalizer must be 'softmax' or 'relu', got {self.normalizer!r}.")
        if not 0 <= self.dropout < 1:
            raise SettingError(f"dropout must be in [0, 1), got {self.dropout}.")
        _check_per_edge("bias", self.bias, self.adjacency, (heads,))
        _check_per_edge("edges.key", self.edges.key, self.adjacency, (heads, width))
        _check_per_edge("edges.value", self.edges.value, self.adjacency, (heads, self.value.shape[-1]))

    @property
    def heads(self) -> int:
        """H."""
        return self.query.shape[1]

    def tensors(self) -> list[Tensor]:
        """Everything that it may be differentiated by."""
        terms = [self.bias, self.edges.key, self.edges.value]
        tables = [each.table if isinstance(each, ByType) else each for each in terms if each is not None]
        vector = getattr(self.score, "vector", None)
        return [self.query, self.key, self.value, *tables, *([] if vector is None else [vector])]

    def compute_dtype(self) -> torch.dtype:
        """The dtype to sum in: the query's own, or float32 for half precision."""
        return torch.promote_types(self.query.dtype, torch.float32)


def is_plain(tensor: Tensor) -> bool:
    """Whether a kernel may read the memory of ``tensor`` and differentiate backward.

    Not while ``torch.compile`` or ``torch.jit`` trace, not under the transforms of ``torch.func`` and in other tensors
    that have no memory of their own, and not in forward-mode differentiation.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return False
    if type(tensor) not in (Tensor, nn.Parameter) or tensor.is_neg():  # numbers whose sign is still to be turned
        return False
    if forward_ad.unpack_dual(tensor).tangent is not None:  # type: ignore[no-untyped-call]
        return False
    try:
        tensor.data_ptr()
    except RuntimeError:
        return False
    return True


def per_entry(terms: PerEdge, adjacency: Adjacency) -> Tensor:
    """(entries, ...) the term of each entry; zero for self loops that no edge stands behind."""
    edge_id, added = adjacency.edge_id, adjacency.added
    if added is not None:
        edge_id = edge_id.masked_fill(added, 0)
        if len(terms) == 0:  # only added loops: nothing to read a term from
            table = terms.table if isinstance(terms, ByType) else terms
            return table.new_zeros((adjacency.num_entries, *table.shape[1:]))
    if isinstance(terms, ByType):
        rows = terms.table.index_select(0, terms.kind.long().index_select(0, edge_id))
    else:
        rows = terms.index_select(0, edge_id)
    if added is None:
        return rows
    return rows.masked_fill(added.reshape(-1, *[1] * (rows.ndim - 1)), 0)


def dropout_factor(call: AttentionCall) -> Tensor:
    """(entries, H) what each weight is multiplied by: 0 where it drops, else 1 / (1 - dropout).

    A counter-based generator: the same seed, entry and head always decide alike, in every backend and in backward, and
    nothing is stored. The mixing is the 32-bit finalizer of MurmurHash3 (Appleby 2011, public domain), applied twice.
    """
    if call.seed is None:
        raise SettingError("dropout needs a seed that decides which weights drop.")
    entries = torch.arange(call.adjacency.num_entries, device=call.query.device)
    heads = torch.arange(call.heads, device=call.query.device)
    mixed = _mix(_mix(entries[:, None] * call.heads + heads) ^ (call.seed & 0xFFFFFFFF))
    keep = mixed >= drop_below(call.dropout)
    return keep.to(call.compute_dtype()) / (1 - call.dropout)


def drop_below(dropout: float) -> int:
    """A weight drops where its random word is below this."""
    return min(round(dropout * 2**32), 2**32 - 1)


def _mix(word: Tensor) -> Tensor:
    word = word & 0xFFFFFFFF
    for shift, multiplier in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        word = ((word ^ (word >> shift)) * multiplier) & 0xFFFFFFFF
    return word ^ (word >> 16)


def _check_per_edge(name: str, terms: PerEdge | None, adjacency: Adjacency, shape: tuple[int, ...]) -> None:
    if terms is None:
        return
    table = terms.table if isinstance(terms, ByType) else terms
    if len(terms) != adjacency.num_edges:
        raise ShapeError(
            f"{name} has {len(terms)} rows but the adjacency has {adjacency.num_edges} edges; pass one row per edge."
        )
    if isinstance(terms, ByType) and terms.kind.ndim != 1:
        raise ShapeError(f"{name} has kinds of edge of shape {tuple(terms.kind.shape)}; pass one kind per edge, (E,).")
    if table.shape[1:] != shape:
        raise ShapeError(f"{name} has rows of shape {tuple(table.shape[1:])}, but heads and widths here want {shape}.")
    if isinstance(terms, ByType) and terms.kind.is_floating_point():
        raise ShapeError(f"{name} has kinds of edge in {terms.kind.dtype}; a kind is an integer, a row of the table.")
    if isinstance(terms, ByType) and len(terms) and not torch.compiler.is_compiling():
        low, high = (int(end) for end in torch.aminmax(terms.kind))
        if low < 0 or high >= len(table):
            raise GraphError(f"{name} has edge kinds from {low} to {high}, but a table of {len(table)} kinds, from 0.")
