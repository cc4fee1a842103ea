"""A whole network: embed, blocks, readout, head."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from graphattn.adjacency import Adjacency, as_adjacency
from graphattn.attention.attend import AttentionWeights
from graphattn.attention.normalizers import Normalizer
from graphattn.attention.scores import Score
from graphattn.errors import SettingError, ShapeError
from graphattn.model.block import Block
from graphattn.model.config import NetworkConfig
from graphattn.model.embedding import CodeEmbedding, FloatEmbedding, joint_code
from graphattn.model.readout import EdgeReadout, attention_part, make_readout


class Graphs(Protocol):
    """What a network reads of a PyG ``Data`` or ``Batch``; ``ptr`` is absent on a single graph.

    Where ``edge_index`` is an :class:`graphattn.Adjacency`, that knows the graphs.
    """

    x: Tensor
    edge_index: Tensor | Adjacency
    edge_attr: Tensor | None


@dataclass(frozen=True, eq=False)
class NetworkWeights:
    """What a network attended to on a batch."""

    layers: tuple[AttentionWeights, ...]  # one per block: edges (E, H) in the caller's order, self_loops (N, H)
    readout: Tensor | None  # (N, H), sums to 1 over a graph; None without an attention readout


class GraphTransformer(nn.Module):
    """Node vectors through blocks of attention along the graph's edges; one output row per graph, per node or per edge.

    >>> import torch
    >>> from torch_geometric.data import Data
    >>> network = GraphTransformer(in_channels=3, out_channels=2, channels=16, layers=2, heads=4, readout="mean")
    >>> network(Data(x=torch.ones(4, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))).shape
    torch.Size([1, 2])

    Args:
        in_channels: width of float node features, or the number of codes in each column of integer ones.
        out_channels: T, columns of the output.
        channels: width of a node's vector inside.
        layers: number of blocks.
        heads: attention heads per block; divides ``channels``.
        edge_channels: the same for ``edge_attr``; ``None`` leaves it out. Columns of integer codes are joined to one
            kind of edge, for which every block learns a vector.
        readout: ``"sum"``, ``"mean"``, ``"max"``, ``"attention"``, or several joined by ``+``, for a row of outputs per
            graph; ``None`` for one per node; ``"edge"`` for one per edge in the order of ``edge_index``, ``"bond"`` for
            one that is the same in both directions.
        score: see :class:`GraphAttention`.
        normalizer: ``"softmax"`` or ``"relu"``.
        edge_into: where edges enter attention; see :class:`GraphAttention`.
        self_loops: whether every node attends to itself as well.
        dropout: on attention weights and on residual branches.
        backend: see :func:`graphattn.masked_attention`.
    """

    def __init__(
        self,
        in_channels: int | Sequence[int],
        out_channels: int,
        *,
        channels: int = 128,
        layers: int = 4,
        heads: int = 8,
        edge_channels: int | Sequence[int] | None = None,
        readout: str | None = "attention",
        score: str | Score = "dot",
        normalizer: Normalizer = "softmax",
        edge_into: Sequence[str] = ("key", "value"),
        self_loops: bool = True,
        dropout: float = 0.0,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        if layers < 1:
            raise SettingError(f"layers must be at least 1, got {layers}")
        self.self_loops, self.takes_edges = self_loops, edge_channels is not None
        self.embed = (
            FloatEmbedding(in_channels, channels)
            if isinstance(in_channels, int)
            else CodeEmbedding(in_channels, channels)
        )
        self.edge_widths = None if edge_channels is None or isinstance(edge_channels, int) else tuple(edge_channels)
        self.blocks = nn.ModuleList(
            Block(
                channels,
                heads,
                score=score,
                normalizer=normalizer,
                edge_into=edge_into,
                edge_dim=edge_channels if isinstance(edge_channels, int) else None,
                edge_types=None if self.edge_widths is None else math.prod(self.edge_widths),
                dropout=dropout,
                backend=backend,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(channels)
        self.readout = None if readout is None else make_readout(readout, channels, heads, backend)
        self.head = nn.Sequential(nn.Linear(channels, channels), nn.GELU(), nn.Linear(channels, out_channels))

    def forward(self, data: Graphs) -> Tensor:
        """(G, out_channels); (N, out_channels) without a readout, (E, out_channels) with one of edges."""
        adjacency, edge_attr = self.adjacency(data), self.edge_features(data)
        x = self.embed(data.x)
        for block in self.blocks:
            x = block(x, adjacency, edge_attr)
        x = self.norm(x)
        if isinstance(self.readout, EdgeReadout):
            given = data.edge_index
            x = self.readout(x, given.edge_index()[:, : given.num_edges] if isinstance(given, Adjacency) else given)
        elif self.readout is not None:
            x = self.readout(x, adjacency.ptr)
        out: Tensor = self.head(x)
        return out

    def attention_weights(self, data: Graphs) -> NetworkWeights:
        """Who looked at whom in every block, and at which nodes the readout looked."""
        adjacency, edge_attr = self.adjacency(data), self.edge_features(data)
        x, layers = self.embed(data.x), []
        for block in self.blocks:
            assert isinstance(block, Block)
            layers.append(block.attention.attention_weights(block.attention_norm(x), adjacency, edge_attr))
            x = block(x, adjacency, edge_attr)
        pooling = None if self.readout is None else attention_part(self.readout)
        readout = None if pooling is None else pooling.attention_weights(self.norm(x), adjacency.ptr).edges
        return NetworkWeights(tuple(layers), readout)

    def adjacency(self, data: Graphs) -> Adjacency:
        """Who may attend to whom in ``data``; shared by all blocks."""
        if isinstance(data.edge_index, list):
            raise ShapeError(
                "data.edge_index is a list, as PyG's Batch leaves what it cannot join; make it Adjacency.batch(list)."
            )
        if isinstance(data.edge_index, Adjacency):
            adjacency = as_adjacency(data.edge_index, num_senders=len(data.x), num_receivers=len(data.x))
            return adjacency.keep("with_self_loops", Adjacency.with_self_loops) if self.self_loops else adjacency
        ptr = getattr(data, "ptr", None)
        if ptr is None and getattr(data, "batch", None) is not None:
            raise ShapeError("data has batch but no ptr, so empty graphs cannot be told; make it with PyG's Batch.")
        adjacency = Adjacency.from_edge_index(data.edge_index, len(data.x), ptr=ptr)
        return adjacency.with_self_loops() if self.self_loops else adjacency

    def edge_features(self, data: Graphs) -> Tensor | None:
        """What the blocks get for ``data.edge_attr``: floats as they are, columns of codes as one kind per edge."""
        if not self.takes_edges:
            return None
        if data.edge_attr is None:
            raise ShapeError("this network was made with edge_channels, but data.edge_attr is None.")
        return data.edge_attr if self.edge_widths is None else joint_code(data.edge_attr, self.edge_widths)


def build_network(
    config: NetworkConfig, *, node_widths: Sequence[int], edge_widths: Sequence[int], out_channels: int
) -> GraphTransformer:
    """The network that ``config`` describes, for graphs whose columns of codes have these widths."""
    return GraphTransformer(
        in_channels=node_widths,
        out_channels=out_channels,
        channels=config.channels,
        layers=config.layers,
        heads=config.heads,
        edge_channels=edge_widths,
        readout=config.readout,
        self_loops=config.self_loops,
        dropout=config.dropout,
    )
