"""Attention spelled out one receiver at a time: the truth that every other backend is held to."""

import torch
from torch import Tensor

from graphattn.attention.call import AttentionCall, ByType, PerEdge, dropout_factor
from graphattn.csr import ADDED_SELF_LOOP


class Definition:
    """One receiver at a time, in the words of the formula. Slow on purpose; never optimize it."""

    name = "definition"

    def why_not(self, call: AttentionCall) -> str | None:  # noqa: ARG002
        """It can run every call."""
        return None

    def is_fastest(self, call: AttentionCall) -> bool:  # noqa: ARG002 (the protocol's)
        """Never."""
        return False

    def __call__(self, call: AttentionCall) -> Tensor:
        """(R, H, Dv), in the query's dtype."""
        dtype = call.compute_dtype()
        query, key, value = (tensor.to(dtype) for tensor in (call.query, call.key, call.value))
        kept = dropout_factor(call) if call.dropout else None
        rows = []
        for receiver in range(call.adjacency.num_receivers):
            senders, edges = call.adjacency.row(receiver)
            if len(senders) == 0:
                rows.append(value[senders].sum(0))  # the sum of nothing
                continue
            keys, values = key[senders], value[senders]  # (senders, H, D)
            if call.edges.key is not None:
                keys = keys + _terms_of(call.edges.key, edges, dtype)
            if call.edges.value is not None:
                values = values + _terms_of(call.edges.value, edges, dtype)
            logits = call.score(query[receiver], keys)  # (senders, H)
            if call.bias is not None:
                logits = logits + _terms_of(call.bias, edges, dtype)
            weights = _softmax(logits) if call.normalizer == "softmax" else torch.relu(logits)
            if kept is not None:
                first = int(call.adjacency.rowptr[receiver])
                weights = weights * kept[first : first + len(senders)]
            rows.append((weights[..., None] * values).sum(0))
        out = torch.stack(rows) if rows else value[:0]
        return out.to(call.query.dtype)


def _softmax(logits: Tensor) -> Tensor:
    """Over the senders; a head whose logits are all -inf attends to nothing."""
    nothing = (logits == -torch.inf).all(0)
    return logits.masked_fill(nothing, 0).softmax(0).masked_fill(nothing, 0)


def _terms_of(terms: PerEdge, edges: Tensor, dtype: torch.dtype) -> Tensor:
    table = terms.table if isinstance(terms, ByType) else terms
    rows = []
    for edge in edges.tolist():
        if edge == ADDED_SELF_LOOP:
            rows.append(table.new_zeros(table.shape[1:]))
        else:
            rows.append(table[int(terms.kind[edge]) if isinstance(terms, ByType) else edge])
    return torch.stack(rows).to(dtype)
