"""How the scores that a receiver gave become weights: softmax over its senders, or ReLU.

Both come in two layouts: one row per entry of an adjacency, and a padded axis of senders.
"""

from typing import Literal

import torch
from torch import Tensor

from graphattn.adjacency import Adjacency

Normalizer = Literal["softmax", "relu"]
NORMALIZERS: tuple[Normalizer, ...] = ("softmax", "relu")


def normalize_entries(logits: Tensor, adjacency: Adjacency, normalizer: Normalizer) -> Tensor:
    """Weights of (entries, H) logits, normalized within each receiver.

    The row's maximum is subtracted first, so that large scores do not overflow. An entry of -inf weighs nothing, and a
    row with nothing else attends to nothing. ReLU is max(logit, 0), not divided by anything.
    """
    if normalizer == "relu":
        return torch.relu(logits)
    index = adjacency.receiver[:, None].expand_as(logits)
    rows = logits.new_full((adjacency.num_receivers, logits.shape[1]), -torch.inf)
    top = rows.scatter_reduce(0, index, logits.detach(), "amax")
    top = torch.where(top == -torch.inf, 0, top)
    exponential = torch.exp(logits - top.gather(0, index))
    total = torch.zeros_like(rows).scatter_add(0, index, exponential)
    return exponential / torch.where(total == 0, 1, total).gather(0, index)


def normalize_senders(logits: Tensor, may_attend: Tensor, normalizer: Normalizer) -> Tensor:
    """The same for (..., S, H) logits; where ``may_attend`` (..., S, 1) is ``False``, the weight is 0."""
    if normalizer == "relu":
        return torch.relu(logits).masked_fill(~may_attend, 0)
    logits = logits.masked_fill(~may_attend, -torch.inf)
    top = logits.detach().amax(-2, keepdim=True)
    exponential = torch.exp(logits - torch.where(top == -torch.inf, 0, top))
    total = exponential.sum(-2, keepdim=True)
    return exponential / torch.where(total == 0, 1, total)
