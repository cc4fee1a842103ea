"""Attention in plain PyTorch, one row per entry of the adjacency: any device, any dtype, any score."""

import torch
from torch import Tensor

from graphattn.attention.call import AttentionCall, dropout_factor, per_entry
from graphattn.attention.normalizers import normalize_entries
from graphattn.errors import ShapeError


class Sparse:
    """One row per entry. Memory grows with entries x width; runs anywhere, double backward included."""

    name = "sparse"

    def why_not(self, call: AttentionCall) -> str | None:  # noqa: ARG002
        """It can run every call."""
        return None

    def is_fastest(self, call: AttentionCall) -> bool:  # noqa: ARG002 (the protocol's)
        """Of those that run everything."""
        return True

    def __call__(self, call: AttentionCall) -> Tensor:
        """(R, H, Dv), in the query's dtype."""
        adjacency, dtype = call.adjacency, call.compute_dtype()
        weight = entry_weights(call)  # (entries, H)
        if call.dropout:
            weight = weight * dropout_factor(call)
        value = call.value.to(dtype).index_select(0, adjacency.sender)  # (entries, H, Dv)
        if call.edges.value is not None:
            value = value + per_entry(call.edges.value, adjacency).to(dtype)
        mixed = weight[..., None] * value
        out = mixed.new_zeros(adjacency.num_receivers, *mixed.shape[1:])
        index = adjacency.receiver[:, None, None].expand_as(mixed)
        return out.scatter_add(0, index, mixed).to(call.query.dtype)


def entry_weights(call: AttentionCall) -> Tensor:
    """(entries, H) normalized weights, before dropout, in the dtype that sums are done in."""
    return normalize_entries(entry_logits(call), call.adjacency, call.normalizer)


def entry_logits(call: AttentionCall) -> Tensor:
    """(entries, H) score and bias of every entry, in the dtype that sums are done in.

    Raises:
        ShapeError: the score gives something else than one number per entry and head.
    """
    adjacency, dtype = call.adjacency, call.compute_dtype()
    query = call.query.to(dtype).index_select(0, adjacency.receiver)
    key = call.key.to(dtype).index_select(0, adjacency.sender)
    if call.edges.key is not None:
        key = key + per_entry(call.edges.key, adjacency).to(dtype)
    logits = call.score(query, key)
    if logits.shape != query.shape[:-1]:
        raise ShapeError(
            f"the score gave shape {tuple(logits.shape)} for queries and keys of shape {tuple(query.shape)}; "
            f"it must give one number per head, shape {tuple(query.shape[:-1])}."
        )
    return logits if call.bias is None else logits + per_entry(call.bias, adjacency).to(dtype)


def weights_by_edge(call: AttentionCall) -> tuple[Tensor, Tensor]:
    """Weights (E, H) in the caller's edge order, and (R, H) of the self loops added; zero where none was."""
    weight, adjacency = entry_weights(call), call.adjacency
    loops = weight.new_zeros(adjacency.num_receivers, weight.shape[1])
    if adjacency.added is None:
        slots = torch.arange(adjacency.num_entries, device=weight.device)
    else:
        slots, added = (~adjacency.added).nonzero().squeeze(1), adjacency.added.nonzero().squeeze(1)
        loops = loops.index_copy(0, adjacency.receiver[added], weight[added])
    return torch.empty_like(weight[slots]).index_copy(0, adjacency.edge_id[slots], weight[slots]), loops
