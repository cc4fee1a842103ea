"""One storey of a decoder: what is written so far mixes, looks at the set, and each position digests what it saw.

Sizes: ``N`` vectors of all sets, ``M`` positions of all sequences.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import AttentionWeights, attend
from graphattn.attention.call import AttentionCall
from graphattn.attention.layer import GraphAttention
from graphattn.attention.normalizers import Normalizer
from graphattn.model.block import feed_forward

# What sums over a set are multiplied by before they join a position's vector. Added as they are, tens of vectors drown
# the rest of it, and the norm that follows hardly tells 29 of them from 30. Of six small decoders trained to write how
# many equal vectors there are, 0 to 30, all made no mistake in the end with this factor, and none did so without it.
SUM_SCALE = 0.1


@dataclass(frozen=True, eq=False)
class Kept:
    """What a block keeps of all positions written so far and of the sets: keys and values, projected once."""

    key: Tensor  # (positions, channels)
    value: Tensor
    memory_key: Tensor  # (N, channels)
    memory_value: Tensor


class DecoderBlock(nn.Module):
    """norm, causal self-attention, residual; norm, cross-attention, residual; norm, feed-forward, residual.

    Pre-norm, as :class:`Block`; the vectors of the set are taken as they come.

    Args:
        channels: width of a position's vector, in and out.
        heads: attention heads of either kind; divides ``channels``.
        memory_channels: width of the set's vectors; ``channels`` where left out.
        cross_normalizer: ``"softmax"`` gives means over the set. ``"relu"`` gives sums, which grow with the set: a
            decoder that has to count, such as the atoms of a molecule, needs them. They enter times ``SUM_SCALE``.
        dropout: on attention weights and on residual branches.
        expansion: width of the feed-forward part's hidden layer, in multiples of ``channels``.
        backend: see :func:`graphattn.masked_attention`.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1; Xiong et al. 2020, arXiv:2002.04745 (pre-norm).
    """

    def __init__(
        self,
        channels: int,
        heads: int = 8,
        *,
        memory_channels: int | None = None,
        cross_normalizer: Normalizer = "softmax",
        dropout: float = 0.0,
        expansion: int = 2,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.channels = channels
        self.memory_channels = channels if memory_channels is None else memory_channels
        self.self_norm = nn.LayerNorm(channels)
        self.self_attention = GraphAttention(channels, channels, heads, dropout=dropout, backend=backend)
        self.self_merge = nn.Linear(channels, channels)
        self.cross_norm = nn.LayerNorm(channels)
        self.cross_attention = GraphAttention(
            (self.memory_channels, channels),
            channels,
            heads,
            normalizer=cross_normalizer,
            dropout=dropout,
            backend=backend,
        )
        self.cross_scale = SUM_SCALE if cross_normalizer == "relu" else 1.0
        self.cross_merge = nn.Linear(channels, channels)
        self.feed_forward_norm = nn.LayerNorm(channels)
        self.feed_forward = feed_forward(channels, expansion, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor, causal: Adjacency, cross: Adjacency) -> Tensor:
        """All positions at once.

        Args:
            x: (M, channels) positions.
            memory: (N, memory_channels) vectors of the sets.
            causal: which position sees which; see ``Adjacency.causal``.
            cross: which position sees which vector of the sets; see ``Adjacency.cross``.

        Returns:
            (M, channels).
        """
        x = self._about_itself(x, causal)
        attended = self.cross_attention((memory, self.cross_norm(x)), cross)
        x = x + self.dropout(self.cross_merge(self.cross_scale * attended))
        out: Tensor = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return out

    def cross_attention_weights(
        self, x: Tensor, memory: Tensor, causal: Adjacency, cross: Adjacency
    ) -> AttentionWeights:
        """How much each position looks at each vector of its set, before dropout, for the input of :meth:`forward`."""
        x = self._about_itself(x, causal)
        return self.cross_attention.attention_weights((memory, self.cross_norm(x)), cross)

    def _about_itself(self, x: Tensor, causal: Adjacency) -> Tensor:
        """After the first of the three parts."""
        out: Tensor = x + self.dropout(self.self_merge(self.self_attention(self.self_norm(x), causal)))
        return out

    def begin(self, memory: Tensor) -> Kept:
        """What :meth:`write` needs before the first positions."""
        _, key, value = self.cross_attention.project(memory, memory.new_empty(0, self.channels))
        return Kept(key[:0], value[:0], key, value)

    def write(self, x: Tensor, kept: Kept, own: Adjacency, cross: Adjacency) -> tuple[Tensor, Kept]:
        """More positions of the sequences, in evaluation mode; :meth:`forward` on whole sequences gives the same.

        Args:
            x: (rows, channels) the new positions.
            kept: of the positions before.
            own: which new position sees which of those kept and, numbered after them, of the new.
            cross: which new position sees which vector of the sets.

        Returns:
            (rows, channels), and what to keep for the next positions.
        """
        normed = self.self_norm(x)
        query, key, value = self.self_attention.project(normed, normed)
        key, value = torch.cat([kept.key, key]), torch.cat([kept.value, value])
        attended = _attend(self.self_attention, query, key, value, own)
        x = x + self.self_merge(attended)
        query, _, _ = self.cross_attention.project(x.new_empty(0, self.memory_channels), self.cross_norm(x))
        attended = _attend(self.cross_attention, query, kept.memory_key, kept.memory_value, cross)
        x = x + self.cross_merge(self.cross_scale * attended)
        x = x + self.feed_forward(self.feed_forward_norm(x))
        return x, Kept(key, value, kept.memory_key, kept.memory_value)


def _attend(layer: GraphAttention, query: Tensor, key: Tensor, value: Tensor, adjacency: Adjacency) -> Tensor:
    """The layer on vectors that it has projected already, (., channels) each."""
    query, key, value = (
        part.view(len(part), layer.heads, layer.out_channels // layer.heads) for part in (query, key, value)
    )
    call = AttentionCall(query, key, value, adjacency, layer.score, layer.normalizer)
    return attend(call, layer.backend).flatten(1)
