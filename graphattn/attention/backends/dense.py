"""Attention on padded matrices, one (receivers x senders) block per graph, by PyTorch's own kernel where it can."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from graphattn.attention.backends.sparse import entry_logits
from graphattn.attention.call import AttentionCall, ByType, dropout_factor, is_plain, per_entry
from graphattn.attention.normalizers import normalize_senders
from graphattn.attention.scores import DotProduct
from graphattn.csr import CSR

LARGEST_PADDED = 2**31  # numbers in the largest padded tensor that this backend makes

# Where PyTorch's scaled_dot_product_attention was measured to be faster than the fused kernels, forward and backward on
# an AMD Zen 5 (benchmarks/crossover.py). At complete graphs, which need no mask: with 32 channels a head from 64
# vectors on (2.8 times at 1024), with fewer from about 1024 on. With a mask, the more pairs it lets through, the
# sooner: with 32 channels and more, where they times the vectors reach a size (1.0 to 2.5 times). Written sequences of
# about one length need no mask: from 512 positions on, where they times the channels reach a size (1.1 to 3.7 times). A
# score, a normalizer, dropout, a bias and edge terms are faster in the fused kernels.
WIDE_HEAD, LARGE_GRAPH, LARGE_NARROW_GRAPH = 32, 64, 1024
LONG_SEQUENCE, LARGE_SEQUENCE, EQUAL_SEQUENCES = 512, 2**14, 0.45  # positions; times channels; share of pairs
WORTH_A_MASK = {0.8: 4500, 0.58: 2**14, 0.5: 2**15}  # share of pairs that attend: vectors x channels of a head


class Dense:
    """Pads every graph of the batch to the largest. Good where most pairs may attend."""

    name = "dense"

    def why_not(self, call: AttentionCall) -> str | None:
        """Parallel edges, too much padding, and numbers or scores that may not be finite are declined."""
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
        sizes = {name: _largest_number(getattr(call, name)) for name in ("query", "key", "value")}
        for name, size in sizes.items():
            if not math.isfinite(size):
                return f"{name} holds NaN or inf, which a masked-out pair would spread"
        bias = call.bias.table if isinstance(call.bias, ByType) else call.bias
        if bias is not None and bool(bias.isnan().any()):
            return "bias holds NaN, which PyTorch's attention does not hand on to all that it should reach"
        if isinstance(call.score, DotProduct):
            width = call.query.shape[-1]
            score = sizes["query"] * sizes["key"] * width * max(1.0, abs(call.score.factor(width)))
            if score > torch.finfo(call.compute_dtype()).max:
                return "a masked-out pair might have a score that overflows, which it would spread"
        return None

    def is_fastest(self, call: AttentionCall) -> bool:
        """Where most pairs of large graphs may attend, and nothing else is asked for."""
        if not _is_scaled_dot_product(call) or call.bias is not None or call.edges.key is not None:
            return False
        if not all(is_plain(tensor) for tensor in call.tensors()):  # counting pairs is a branch on data
            return False
        width = call.query.shape[-1]
        if width != call.value.shape[-1] or call.query.dtype != call.compute_dtype():
            return False
        nodes, is_wide = min(call.adjacency.largest), width >= WIDE_HEAD
        if call.adjacency.is_complete:
            return nodes >= (LARGE_GRAPH if is_wide else LARGE_NARROW_GRAPH)
        density = call.adjacency.density
        is_large = nodes >= LONG_SEQUENCE and nodes * width >= LARGE_SEQUENCE
        if is_large and density >= EQUAL_SEQUENCES and call.adjacency.is_causal:
            return True
        return is_wide and any(density >= share and nodes * width >= size for share, size in WORTH_A_MASK.items())

    def __call__(self, call: AttentionCall) -> Tensor:
        """(R, H, Dv), in the query's dtype."""
        if call.adjacency.num_entries == 0:  # the sum of nothing, for every receiver
            return call.value[:0].sum(0).repeat(call.adjacency.num_receivers, 1, 1).to(call.query.dtype)
        padding = call.adjacency.keep("padding", Padding.of)
        return _scaled_dot_product(call, padding) if _is_scaled_dot_product(call) else _spelled_out(call, padding)


@dataclass(frozen=True, eq=False)
class Padding:
    """Where the nodes of a batch stand in padded blocks; ``Rm`` and ``Sm`` are the largest graph's sizes."""

    receiver: tuple[Tensor, Tensor]  # (R,) graph, and place in it
    sender: tuple[Tensor, Tensor]  # (S,) the same
    shape: tuple[int, int, int]  # (G, Rm, Sm)

    @classmethod
    def of(cls, adjacency: CSR) -> "Padding":
        """The padding that the graph boundaries of ``adjacency`` ask for."""
        return cls(_places(adjacency.ptr), _places(adjacency.sender_ptr), (adjacency.num_graphs, *adjacency.largest))

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


def _pairs(adjacency: CSR) -> tuple[Tensor, Tensor, Tensor]:
    """(entries,) graph, receiver's place and sender's place of each entry in padded blocks."""
    padding = adjacency.keep("padding", Padding.of)
    graph, row = (place[adjacency.receiver] for place in padding.receiver)
    return graph, row, padding.sender[1][adjacency.sender]


def _in_blocks(rows: Tensor, adjacency: CSR) -> Tensor:
    """(entries, ...) -> (G, Rm, Sm, ...), zero (``False``) where no entry stands."""
    shape = adjacency.keep("padding", Padding.of).shape
    return rows.new_zeros(*shape, *rows.shape[1:]).index_put(adjacency.keep("pairs", _pairs), rows)


def _may_attend(adjacency: CSR) -> Tensor:
    """(G, Rm, Sm) bool, ``True`` where an entry stands."""
    return _in_blocks(torch.ones(adjacency.num_entries, dtype=torch.bool, device=adjacency.col.device), adjacency)


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
    has_bias = call.bias is not None or call.edges.key is not None
    is_causal = adjacency.is_causal and not has_bias  # PyTorch's kernel then skips what comes later
    if not adjacency.is_complete and not is_causal:
        may_attend = adjacency.keep("may_attend", _may_attend)
        alone = ~may_attend.any(-1, keepdim=True)  # rows that see nobody: let them see anything, then zero them
        mask = (may_attend | alone)[:, None]
    bias = None if call.bias is None else per_entry(call.bias, adjacency).to(call.compute_dtype())
    if call.edges.key is not None:
        terms = per_entry(call.edges.key, adjacency).to(call.compute_dtype())
        from_key = (call.query.to(terms.dtype).index_select(0, adjacency.receiver) * terms).sum(-1) * scale
        bias = from_key if bias is None else bias + from_key
    if bias is not None:  # in half precision a bias may overflow: then everything is computed in float32
        dtype = bias.dtype
        by_pair = _in_blocks(bias, adjacency).permute(0, 3, 1, 2)  # (G, H, Rm, Sm)
        mask = by_pair if mask is None else by_pair.masked_fill(~mask, -torch.inf)
    query = padding.receivers(call.query.to(dtype))
    key, value = (padding.senders(rows.to(dtype)) for rows in (call.key, call.value))
    query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    if is_plain(call.query) and (mask is None or not mask.requires_grad):
        out: Tensor = _Attention.apply(query, key, value, mask, is_causal, scale)  # type: ignore[no-untyped-call]
    else:
        out = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=is_causal, scale=scale
        )
    if alone is not None:
        out = out.masked_fill(alone[:, None], 0)
    return padding.rows(out.transpose(1, 2)).to(call.query.dtype)


class _Attention(torch.autograd.Function):
    """PyTorch's attention, differentiable twice: its fastest kernel on a CPU is not."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        is_causal: bool,  # noqa: FBT001 (autograd hands on no keywords)
        scale: float,
    ) -> Tensor:
        q, k, v = (each.detach().requires_grad_(each.requires_grad) for each in (query, key, value))
        with torch.set_grad_enabled(any(ctx.needs_input_grad)):
            out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal, scale=scale)
        ctx.save_for_backward(query, key, value, mask)
        ctx.rows, ctx.out, ctx.is_causal, ctx.scale = (q, k, v), out, is_causal, scale
        return out.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, mask = ctx.saved_tensors
        rows, out = ctx.rows, ctx.out
        if torch.is_grad_enabled():  # somebody will differentiate the gradient: compute it in a way that can be
            rows = (q, k, v)
            with sdpa_kernel(SDPBackend.MATH):
                out = functional.scaled_dot_product_attention(
                    q, k, v, attn_mask=mask, is_causal=ctx.is_causal, scale=ctx.scale
                )
        wanted = [each for each, is_wanted in zip(rows, ctx.needs_input_grad, strict=False) if is_wanted]
        grads = iter(torch.autograd.grad(out, wanted, grad, retain_graph=True, create_graph=torch.is_grad_enabled()))
        return *(next(grads) if is_wanted else None for is_wanted in ctx.needs_input_grad[:3]), None, None, None


def _spelled_out(call: AttentionCall, padding: Padding) -> Tensor:
    """Every score, normalizer, edge term and dropout. Only entries are scored: padding has no score to derive."""
    adjacency, dtype = call.adjacency, call.compute_dtype()
    may_attend = adjacency.keep("may_attend", _may_attend)
    weight = normalize_senders(_in_blocks(entry_logits(call), adjacency), may_attend[..., None], call.normalizer)
    if call.dropout:
        weight = weight * _in_blocks(dropout_factor(call), adjacency)
    value = padding.senders(call.value.to(dtype))
    out = torch.einsum("grsh,gshd->grhd", weight, value)
    if call.edges.value is not None:
        terms = _in_blocks(per_entry(call.edges.value, adjacency).to(dtype), adjacency)  # (G, Rm, Sm, H, Dv)
        out = out + torch.einsum("grsh,grshd->grhd", weight, terms)
    return padding.rows(out).to(call.query.dtype)


def _largest_number(tensor: Tensor) -> float:
    return float(tensor.detach().abs().amax()) if tensor.numel() else 0.0


def _places(ptr: Tensor) -> tuple[Tensor, Tensor]:
    sizes = ptr.diff()
    graph = torch.arange(len(sizes), device=ptr.device).repeat_interleave(sizes)
    return graph, torch.arange(len(graph), device=ptr.device) - ptr[graph]
