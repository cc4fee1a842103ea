"""Attention on padded matrices, one (receivers x senders) block per graph, by PyTorch's own kernel where it can."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from graphattn.adjacency import Adjacency
from graphattn.attention.backends.sparse import entry_logits
from graphattn.attention.call import AttentionCall, dropout_factor, is_plain, per_entry
from graphattn.attention.normalizers import normalize_senders
from graphattn.attention.scores import DotProduct

LARGEST_PADDED = 2**31  # numbers in the largest padded tensor that this backend makes

# Where PyTorch's scaled_dot_product_attention is faster than the fused kernels, forward and backward on one thread of
# an AMD Zen 5 (benchmarks/crossover.py): with 32 channels a head and more from about 0.5 of all pairs on, twice as
# fast at complete graphs of 256 vectors; with 8 channels only at complete graphs of 256 vectors and more, and never
# at graphs of the size of a drug. Every other score, normalizer, dropout and term on the value is faster in the fused.
WIDE_HEAD, DENSE_ENOUGH, LARGE_GRAPH, LARGE_NARROW_GRAPH = 32, 0.6, 64, 256


class Dense:
    """Pads every graph of the batch to the largest. Good where most pairs may attend."""

    name = "dense"

    def why_not(self, call: AttentionCall) -> str | None:
        """Parallel edges, non-finite input and too much padding are declined."""
        adjacency = call.adjacency
        if adjacency.has_parallel_edges:
            return "the adjacency has parallel edges, and a dense matrix has room for one entry per pair"
        receivers, senders = adjacency.largest
        width = 1 if call.edges.value is None else call.value.shape[-1]
        padded = adjacency.num_graphs * receivers * senders * call.heads * width
        if padded > LARGEST_PADDED:
            return (
                f"padding to {receivers} x {senders} in {adjacency.num_graphs} graphs would make {padded:.1e} numbers"
            )
        for name, tensor in (("query", call.query), ("key", call.key), ("value", call.value)):
            if not bool(tensor.isfinite().all()):
                return f"{name} holds NaN or inf, which a masked-out pair would spread"
        return None

    def is_fastest(self, call: AttentionCall) -> bool:
        """Where most pairs of large graphs may attend; how many must depends on the width of a head."""
        adjacency = call.adjacency
        if not _is_scaled_dot_product(call) or call.bias is not None or call.edges.key is not None:
            return False
        if not is_plain(call.query):  # counting pairs is a branch on data, which torch.compile cannot trace
            return False
        if call.query.shape[-1] < WIDE_HEAD:
            return adjacency.largest[0] >= LARGE_NARROW_GRAPH and adjacency.is_complete
        return adjacency.largest[0] >= LARGE_GRAPH and adjacency.density >= DENSE_ENOUGH

    def __call__(self, call: AttentionCall) -> Tensor:
        """(R, H, Dv), in the query's dtype."""
        if call.adjacency.num_entries == 0:  # the sum of nothing, for every receiver
            return call.value[:0].sum(0).repeat(call.adjacency.num_receivers, 1, 1).to(call.query.dtype)
        padding = call.adjacency.keep("padding", Padding.of)
        return _scaled_dot_product(call, padding) if _is_scaled_dot_product(call) else _spelled_out(call, padding)


@dataclass(frozen=True, eq=False)
class Padding:
    """Where nodes and entries of a batch stand in padded blocks; ``Rm`` and ``Sm`` are the largest graph's sizes."""

    receiver: tuple[Tensor, Tensor]  # (R,) graph, and place in it
    sender: tuple[Tensor, Tensor]  # (S,) the same
    entry: tuple[Tensor, Tensor, Tensor]  # (entries,) graph, receiver's place, sender's place
    shape: tuple[int, int, int]  # (G, Rm, Sm)

    @classmethod
    def of(cls, adjacency: Adjacency) -> "Padding":
        """The padding that the graph boundaries of ``adjacency`` ask for."""
        receiver, sender = _places(adjacency.ptr), _places(adjacency.sender_ptr)
        graph, row = (place[adjacency.receiver] for place in receiver)
        shape = (adjacency.num_graphs, *adjacency.largest)
        return cls(receiver, sender, (graph, row, sender[1][adjacency.sender]), shape)

    @cached_property
    def may_attend(self) -> Tensor:
        """(G, Rm, Sm) bool, ``True`` where an entry stands."""
        return self.pairs(torch.ones_like(self.entry[0], dtype=torch.bool))

    def receivers(self, rows: Tensor) -> Tensor:
        """(R, ...) -> (G, Rm, ...), zero where no receiver stands."""
        if len(rows) == self.shape[0] * self.shape[1]:  # graphs of one size: nothing to fill up
            return rows.view(self.shape[0], self.shape[1], *rows.shape[1:])
        return rows.new_zeros(self.shape[0], self.shape[1], *rows.shape[1:]).index_put(self.receiver, rows)

    def senders(self, rows: Tensor) -> Tensor:
        """(S, ...) -> (G, Sm, ...), zero where no sender stands."""
        if len(rows) == self.shape[0] * self.shape[2]:
            return rows.view(self.shape[0], self.shape[2], *rows.shape[1:])
        return rows.new_zeros(self.shape[0], self.shape[2], *rows.shape[1:]).index_put(self.sender, rows)

    def rows(self, padded: Tensor) -> Tensor:
        """(G, Rm, ...) -> (R, ...): the receivers out of their padding."""
        filled = len(self.receiver[0]) == self.shape[0] * self.shape[1]
        return padded.flatten(0, 1) if filled else padded[self.receiver]

    def pairs(self, rows: Tensor) -> Tensor:
        """(entries, ...) -> (G, Rm, Sm, ...), zero (``False``) where no entry stands."""
        return rows.new_zeros(*self.shape, *rows.shape[1:]).index_put(self.entry, rows)


def _is_scaled_dot_product(call: AttentionCall) -> bool:
    return (
        isinstance(call.score, DotProduct)
        and call.normalizer == "softmax"
        and call.edges.value is None
        and not call.dropout
    )


def _scaled_dot_product(call: AttentionCall, padding: Padding) -> Tensor:
    """softmax(q.k scale + bias) v by PyTorch; a term that an edge adds to its key is the bias q.e scale."""
    assert isinstance(call.score, DotProduct)
    adjacency, scale = call.adjacency, call.score.factor(call.query.shape[-1])
    alone, mask, dtype = None, None, call.query.dtype
    if not adjacency.is_complete:
        alone = ~padding.may_attend.any(-1, keepdim=True)  # rows that see nobody: let them see anything, then zero them
        mask = (padding.may_attend | alone)[:, None]
    bias = None if call.bias is None else per_entry(call.bias, adjacency).to(call.compute_dtype())
    if call.edges.key is not None:
        terms = per_entry(call.edges.key, adjacency).to(call.compute_dtype())
        from_key = (call.query.to(terms.dtype).index_select(0, adjacency.receiver) * terms).sum(-1) * scale
        bias = from_key if bias is None else bias + from_key
    if bias is not None:  # in half precision a bias may overflow: then everything is computed in float32
        dtype = bias.dtype
        by_pair = padding.pairs(bias).permute(0, 3, 1, 2)  # (G, H, Rm, Sm)
        mask = by_pair if mask is None else by_pair.masked_fill(~mask, -torch.inf)
    query = padding.receivers(call.query.to(dtype))
    key, value = (padding.senders(rows.to(dtype)) for rows in (call.key, call.value))
    out = functional.scaled_dot_product_attention(
        query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), attn_mask=mask, scale=scale
    )
    if alone is not None:
        out = out.masked_fill(alone[:, None], 0)
    return padding.rows(out.transpose(1, 2)).to(call.query.dtype)


def _spelled_out(call: AttentionCall, padding: Padding) -> Tensor:
    """Every score, normalizer, edge term and dropout. Only entries are scored: padding has no score to derive."""
    adjacency, dtype = call.adjacency, call.compute_dtype()
    weight = normalize_senders(padding.pairs(entry_logits(call)), padding.may_attend[..., None], call.normalizer)
    if call.dropout:
        weight = weight * padding.pairs(dropout_factor(call))
    value = padding.senders(call.value.to(dtype))
    out = torch.einsum("grsh,gshd->grhd", weight, value)
    if call.edges.value is not None:
        terms = padding.pairs(per_entry(call.edges.value, adjacency).to(dtype))  # (G, Rm, Sm, H, Dv)
        out = out + torch.einsum("grsh,grshd->grhd", weight, terms)
    return padding.rows(out).to(call.query.dtype)


def _places(ptr: Tensor) -> tuple[Tensor, Tensor]:
    sizes = ptr.diff()
    graph = torch.arange(len(sizes), device=ptr.device).repeat_interleave(sizes)
    return graph, torch.arange(len(graph), device=ptr.device) - ptr[graph]
