"""What is read out of the vectors of the nodes: one vector per graph, or one per edge.

A readout of graphs takes ``x`` (N, channels) and ``ptr`` (G + 1,), the graphs' boundaries, and gives (G, channels). A
graph without nodes reads as zeros.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import AttentionWeights, attend, attention_weights
from graphattn.attention.call import AttentionCall
from graphattn.attention.scores import DotProduct
from graphattn.errors import SettingError
from graphattn.model.config import readout_parts


class SumReadout(nn.Module):
    """The sum over a graph's nodes: grows with the graph, as an extensive property does."""

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """(N, channels) -> (G, channels)."""
        graph = Adjacency.pool(ptr).receiver[:, None].expand_as(x)
        return x.new_zeros(len(ptr) - 1, x.shape[1]).scatter_add(0, graph, x)


class MeanReadout(SumReadout):
    """The mean over a graph's nodes."""

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """(N, channels) -> (G, channels)."""
        return super().forward(x, ptr) / ptr.diff().clamp_min(1)[:, None]


class MaxReadout(nn.Module):
    """The largest value of each channel over a graph's nodes."""

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """(N, channels) -> (G, channels)."""
        graph = Adjacency.pool(ptr).receiver[:, None].expand_as(x)
        rows = x.new_zeros(len(ptr) - 1, x.shape[1])
        return rows.scatter_reduce(0, graph, x, "amax", include_self=False)


class AttentionReadout(nn.Module):
    """Attention pooling: one learned seed per graph attends to all nodes of the graph, a rectangular adjacency.

    Source: Lee et al. 2019, arXiv:1810.00825, eq. 11: pooling by multihead attention, here with one seed and without
    their feed-forward part, residual and norm.
    """

    def __init__(self, channels: int, heads: int = 8, *, backend: str = "auto") -> None:
        super().__init__()
        if channels % heads:
            raise SettingError(f"channels ({channels}) must be a multiple of heads ({heads}).")
        self.heads, self.backend = heads, backend
        self.seed = nn.Parameter(torch.empty(heads, channels // heads))
        self.key = nn.Linear(channels, channels)
        self.value = nn.Linear(channels, channels)
        nn.init.xavier_uniform_(self.seed)

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """(N, channels) -> (G, channels)."""
        return attend(self._call(x, ptr), self.backend).flatten(1)

    def attention_weights(self, x: Tensor, ptr: Tensor) -> AttentionWeights:
        """``edges`` (N, heads): how much each node is looked at; a graph's sum to 1."""
        return attention_weights(self._call(x, ptr))

    def _call(self, x: Tensor, ptr: Tensor) -> AttentionCall:
        per_head = (self.heads, self.seed.shape[1])
        key, value = (layer(x).view(len(x), *per_head) for layer in (self.key, self.value))
        query = self.seed.to(key.dtype).expand(len(ptr) - 1, *per_head)
        return AttentionCall(query, key, value, Adjacency.pool(ptr), DotProduct())


class EdgeReadout(nn.Module):
    """One vector per edge, or per any pair of nodes, from the vectors of its two ends.

    Args:
        channels: width of the ends' vectors, and of the pair's.
        both_ways: whether a pair reads the same in both directions, as a chemical bond does; else the sender is told
            from the receiver.
    """

    def __init__(self, channels: int, *, both_ways: bool) -> None:
        super().__init__()
        self.both_ways = both_ways
        self.merge = nn.Linear(2 * channels, channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """(N, channels) and (2, E) senders and receivers -> (E, channels)."""
        sender, receiver = x[edge_index[0]], x[edge_index[1]]
        ends = (sender + receiver, sender * receiver) if self.both_ways else (sender, receiver)
        merged: Tensor = self.merge(torch.cat(ends, -1))
        return merged


class JointReadout(nn.Module):
    """Several readouts side by side, joined and projected back to one width."""

    def __init__(self, channels: int, readouts: Sequence[nn.Module]) -> None:
        super().__init__()
        self.readouts = nn.ModuleList(readouts)
        self.merge = nn.Linear(channels * len(readouts), channels)

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """(N, channels) -> (G, channels)."""
        merged: Tensor = self.merge(torch.cat([readout(x, ptr) for readout in self.readouts], -1))
        return merged


def make_readout(readout: str, channels: int, heads: int, backend: str = "auto") -> nn.Module:
    """The readout of that name, or several of graphs joined by ``+``."""
    if readout in ("edge", "bond"):
        return EdgeReadout(channels, both_ways=readout == "bond")
    plain: dict[str, type[nn.Module]] = {"sum": SumReadout, "mean": MeanReadout, "max": MaxReadout}
    parts = [
        AttentionReadout(channels, heads, backend=backend) if part == "attention" else plain[part]()
        for part in readout_parts(readout)
    ]
    return parts[0] if len(parts) == 1 else JointReadout(channels, parts)


def attention_part(readout: nn.Module) -> AttentionReadout | None:
    """The attention pooling in a readout, if there is one."""
    return next((module for module in readout.modules() if isinstance(module, AttentionReadout)), None)
