"""One storey of a network: attention mixes the set, the feed-forward part works on each vector."""

from collections.abc import Sequence

from torch import Tensor, nn

from graphattn.adjacency import Adjacency
from graphattn.attention.layer import GraphAttention
from graphattn.attention.normalizers import Normalizer
from graphattn.attention.scores import Score


class Block(nn.Module):
    """norm, attention, residual, norm, feed-forward, residual.

    Pre-norm: Xiong et al. 2020, arXiv:2002.04745. The residual keeps the state of a node that sees nobody.

    Args:
        channels: width of a node's vector, in and out.
        heads: attention heads; divides ``channels``.
        score: see :class:`GraphAttention`.
        normalizer: ``"softmax"`` or ``"relu"``.
        edge_dim: width of float edge features.
        edge_types: number of kinds of edge.
        edge_into: where edges enter; see :class:`GraphAttention`.
        dropout: on attention weights and on both residual branches.
        expansion: width of the feed-forward part's hidden layer, in multiples of ``channels``.
        backend: see :func:`graphattn.masked_attention`.
    """

    def __init__(
        self,
        channels: int,
        heads: int = 8,
        *,
        score: str | Score = "dot",
        normalizer: Normalizer = "softmax",
        edge_dim: int | None = None,
        edge_types: int | None = None,
        edge_into: Sequence[str] = ("key", "value"),
        dropout: float = 0.0,
        expansion: int = 2,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(channels)
        self.attention = GraphAttention(
            channels,
            channels,
            heads,
            score,
            normalizer,
            edge_dim=edge_dim,
            edge_types=edge_types,
            edge_into=edge_into,
            dropout=dropout,
            backend=backend,
        )
        self.merge = nn.Linear(channels, channels)
        self.feed_forward_norm = nn.LayerNorm(channels)
        self.feed_forward = feed_forward(channels, expansion, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor | Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """(N, channels) -> (N, channels)."""
        attended = self.attention(self.attention_norm(x), edge_index, edge_attr)
        x = x + self.dropout(self.merge(attended))
        out: Tensor = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return out


def feed_forward(channels: int, expansion: int, dropout: float) -> nn.Sequential:
    """What works on each vector by itself: (., channels) -> (., channels), through ``expansion`` times the width."""
    return nn.Sequential(
        nn.Linear(channels, expansion * channels),
        nn.GELU(),
        nn.Dropout(dropout),
        nn.Linear(expansion * channels, channels),
    )
