"""The layer: projections around one masked attention, called like PyTorch Geometric's."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from graphattn.adjacency import Adjacency, as_adjacency
from graphattn.attention.attend import AttentionWeights, attend, attention_weights
from graphattn.attention.call import AttentionCall, ByType, EdgeTerms, PerEdge, is_plain
from graphattn.attention.normalizers import NORMALIZERS, Normalizer
from graphattn.attention.projection import linear
from graphattn.attention.scores import Additive, Score, as_score
from graphattn.errors import SettingError, ShapeError

if TYPE_CHECKING:
    from torch_geometric.nn import MessagePassing

Pair = tuple[Tensor, Tensor]


class GraphAttention(nn.Module):
    """Multi-head attention along the edges of a graph; a drop-in among PyTorch Geometric's convolutions.

    Only attends: no self loop is added, no residual, no norm, no output projection (``Block`` adds them).

    >>> layer = GraphAttention(in_channels=3, out_channels=8, heads=2)
    >>> layer(torch.ones(4, 3), torch.tensor([[0, 1], [1, 2]])).shape
    torch.Size([4, 8])

    Args:
        in_channels: width of ``x``; a pair (senders, receivers) where theirs differ.
        out_channels: whole width of the output, all heads together; a multiple of ``heads``.
        heads: H.
        score: ``"dot"`` (scaled dot product), ``"additive"`` (GATv2: LeakyReLU 0.2, a learned vector), ``"gat"`` (GAT,
            whose score has width 1 and whose value is the one projection), or a score object such as
            ``DotProduct(scale=1.0)`` or ``Additive(activation="tanh")``, or your own function of query and key. An
            ``Additive`` learns its vector, from the given one where there is one.
        normalizer: ``"softmax"`` or ``"relu"``.
        tie_key_value: key and value are one projection (as in GATv2).
        edge_dim: width of float edge features (E, edge_dim), projected without bias.
        edge_types: number of kinds of edge; ``edge_attr`` then holds one integer per edge, and the layer a table.
        edge_into: where edges enter: one or more of ``"key"``, ``"value"`` and ``"score"``. One projection serves key
            and value, as in PyG; another gives the number per head that is added to the score, such as a bias by
            relative position (T5) or by hops (Graphormer).
        bias: whether the projections of query, key, value (and root) have a bias.
        root_weight: adds a projection of the receiver itself to the output.
        output_bias: adds a bias to the output.
        dropout: chance that an attention weight is dropped in training.
        backend: how to compute; see :func:`graphattn.masked_attention`.

    Raises:
        SettingError: widths and heads do not fit, or settings exclude each other.

    Source: Vaswani et al. 2017, arXiv:1706.03762; Shi et al. 2021, arXiv:2009.03509 (edges in key and value); Raffel et
    al. 2020, arXiv:1910.10683, section 2.1, and Ying et al. 2021, arXiv:2106.05234, eq. 6 (edges in the score); Brody
    et al. 2022, arXiv:2105.14491 (additive); Velickovic et al. 2018, arXiv:1710.10903 (gat).
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        heads: int = 8,
        score: str | Score = "dot",
        normalizer: Normalizer = "softmax",
        *,
        tie_key_value: bool = False,
        edge_dim: int | None = None,
        edge_types: int | None = None,
        edge_into: Sequence[str] = ("key", "value"),
        bias: bool = True,
        root_weight: bool = False,
        output_bias: bool = False,
        dropout: float = 0.0,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        _check_widths(out_channels, heads)
        _check_edge_settings(edge_dim, edge_types, edge_into)
        if normalizer not in NORMALIZERS:
            raise SettingError(f"normalizer must be 'softmax' or 'relu', got {normalizer!r}.")
        if not 0 <= dropout < 1:
            raise SettingError(f"dropout must be in [0, 1), got {dropout}.")
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.normalizer, self.tie_key_value, self.backend = normalizer, tie_key_value, backend
        self.edge_dim, self.edge_types, self.edge_into = edge_dim, edge_types, tuple(edge_into)
        self.dropout = nn.Dropout(dropout)
        senders, receivers = in_channels if isinstance(in_channels, tuple) else (in_channels, in_channels)
        gat, per_head = score == "gat", (heads, out_channels // heads)
        self.score = Additive() if isinstance(score, str) and gat else as_score(score)
        self.value = nn.Linear(senders, out_channels, bias=bias)
        self.query = None if gat and isinstance(in_channels, int) else nn.Linear(receivers, out_channels, bias=bias)
        self.key = None if gat or tie_key_value else nn.Linear(senders, out_channels, bias=bias)
        into_vectors = set(edge_into) & {"key", "value"}
        self.edge = _edge_projection(edge_dim, edge_types, out_channels) if into_vectors else None
        self.edge_score = _edge_projection(edge_dim, edge_types, heads) if "score" in edge_into else None
        # The learned vectors of a score: one for additive; for gat one each for sender, receiver and edge.
        self.score_vector = (
            nn.Parameter(torch.empty(per_head)) if isinstance(self.score, Additive) and not gat else None
        )
        self.gat_sender = nn.Parameter(torch.empty(per_head)) if gat else None
        self.gat_receiver = nn.Parameter(torch.empty(per_head)) if gat else None
        self.gat_edge = nn.Parameter(torch.empty(per_head)) if gat and self.edge is not None else None
        self.root = nn.Linear(receivers, out_channels, bias=bias) if root_weight else None
        self.output_bias = nn.Parameter(torch.empty(out_channels)) if output_bias else None
        self.reset_parameters()

    @staticmethod
    def from_pyg(conv: "MessagePassing") -> "GraphAttention":
        """The equal layer of a PyG ``TransformerConv``, ``GATv2Conv`` or ``GATConv``, weights copied.

        A conv that adds self loops (PyG's default for ``GATConv`` and ``GATv2Conv``) first removes those of the graph;
        it equals this layer on ``Adjacency.with_self_loops()`` of a graph without loops of its own.

        Warns:
            GraphattnWarning: the conv adds self loops, which this layer leaves to you.

        Raises:
            SettingError: the conv uses an option that this layer does not have; the message names it.
        """
        from graphattn.attention.pyg import layer_from_conv  # noqa: PLC0415  (it imports this file)

        return layer_from_conv(conv)

    def reset_parameters(self) -> None:
        """Glorot-uniform projections and score vectors, zero biases (Glorot and Bengio 2010)."""
        for module in (self.value, self.query, self.key, self.edge, self.edge_score, self.root):
            if module is not None:
                nn.init.xavier_uniform_(module.weight)
                if isinstance(module, nn.Linear) and module.bias is not None:
                    nn.init.zeros_(module.bias)
        for vector in (self.score_vector, self.gat_sender, self.gat_receiver, self.gat_edge):
            if vector is not None:
                nn.init.xavier_uniform_(vector)
        if self.score_vector is not None and isinstance(self.score, Additive) and self.score.vector is not None:
            with torch.no_grad():
                self.score_vector.copy_(self.score.vector)
        if self.output_bias is not None:
            nn.init.zeros_(self.output_bias)

    def forward(self, x: Tensor | Pair, edge_index: Tensor | Adjacency, edge_attr: Tensor | None = None) -> Tensor:
        """Attend along the edges.

        Args:
            x: (N, in_channels), or a pair (senders (S, .), receivers (R, .)).
            edge_index: (2, E) integers (sender, receiver) as in PyG, or an :class:`Adjacency`.
            edge_attr: (E, edge_dim) floats, or with ``edge_types`` (E,) integers.

        Returns:
            (N, out_channels), or (R, out_channels) for a pair.
        """
        call = self.attention_call(x, edge_index, edge_attr)
        out = attend(call, self.backend).flatten(1)
        if self.root is not None:
            out = out + self.root(x[1] if isinstance(x, tuple) else x)
        return out if self.output_bias is None else out + self.output_bias

    def attention_weights(
        self, x: Tensor | Pair, edge_index: Tensor | Adjacency, edge_attr: Tensor | None = None
    ) -> AttentionWeights:
        """The weights behind ``layer(x, edge_index, edge_attr)``, before dropout: per edge, and per self loop added."""
        return attention_weights(self.attention_call(x, edge_index, edge_attr))

    def attention_call(
        self, x: Tensor | Pair, edge_index: Tensor | Adjacency, edge_attr: Tensor | None = None
    ) -> AttentionCall:
        """The projections: what :func:`graphattn.attention.attend.attend` computes for this input."""
        senders, receivers = x if isinstance(x, tuple) else (x, x)
        self._check_vectors(senders, receivers)
        adjacency = as_adjacency(edge_index, num_senders=len(senders), num_receivers=len(receivers))
        per_head = (self.heads, self.out_channels // self.heads)
        parts = self.project(senders, receivers)
        views = {part: part.view(len(part), *per_head) for part in dict.fromkeys(parts)}  # one projection, one view
        query, key, value = (views[part] for part in parts)
        self._check_edges(edge_attr, adjacency)
        edges, bias = self.edge_terms(edge_attr), self.edge_bias(edge_attr)
        score = self.score
        if self.gat_sender is not None and self.gat_receiver is not None:
            query, key = (
                (query * self.gat_receiver).sum(-1, keepdim=True),
                (key * self.gat_sender).sum(-1, keepdim=True),
            )
        elif isinstance(score, Additive):
            score = replace(score, vector=self.score_vector)
        dropout = self.dropout.p if self.training else 0.0
        seed = torch.randint(2**31, (), device=query.device) if dropout else None
        return AttentionCall(query, key, value, adjacency, score, self.normalizer, bias, edges, dropout, seed)

    def project(self, senders: Tensor, receivers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value, (., out_channels) each; one matrix product where all come from the same vectors."""
        key_layer, query_layer = (self.value if part is None else part for part in (self.key, self.query))
        if senders is not receivers:
            return query_layer(receivers), key_layer(senders), self.value(senders)
        layers = list(dict.fromkeys([query_layer, key_layer, self.value]))
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if self.value.bias is None else torch.cat([layer.bias for layer in layers])
        matrix = linear(senders, weight, bias)
        split = _columns if is_plain(matrix) else torch.chunk
        parts = split(matrix, len(layers), -1)
        of_layer = dict(zip(layers, parts, strict=True))
        return of_layer[query_layer], of_layer[key_layer], of_layer[self.value]

    def edge_terms(self, edge_attr: Tensor | None) -> EdgeTerms:
        """What each edge adds to the key and the value of its sender: one projection for both."""
        if self.edge is None or edge_attr is None:
            return EdgeTerms()
        rows = self.edge.weight if self.edge_types is not None else self.edge(edge_attr)
        value = rows.view(len(rows), self.heads, self.out_channels // self.heads)
        key = value if self.gat_edge is None else (value * self.gat_edge).sum(-1, keepdim=True)
        terms = {"key": self._per_edge(key, edge_attr), "value": self._per_edge(value, edge_attr)}
        return EdgeTerms(*(each if name in self.edge_into else None for name, each in terms.items()))

    def edge_bias(self, edge_attr: Tensor | None) -> PerEdge | None:
        """What each edge adds to the scores, a number per head."""
        if self.edge_score is None or edge_attr is None:
            return None
        rows = self.edge_score.weight if self.edge_types is not None else self.edge_score(edge_attr)
        return self._per_edge(rows, edge_attr)

    def _per_edge(self, rows: Tensor, edge_attr: Tensor) -> PerEdge:
        return rows if self.edge_types is None else ByType(rows, edge_attr)

    def _check_edges(self, edge_attr: Tensor | None, adjacency: Adjacency) -> None:
        typed = self.edge_types is not None
        takes_edges = typed or self.edge_dim is not None
        if takes_edges and edge_attr is None:
            raise ShapeError("this layer was made with edge_dim or edge_types; pass edge_attr, one row per edge.")
        if edge_attr is None:
            return
        if not takes_edges:
            raise ShapeError("edge_attr is given, but this layer was made without edge_dim and edge_types.")
        shape = (adjacency.num_edges,) if typed else (adjacency.num_edges, self.edge_dim)
        if edge_attr.shape != shape or edge_attr.is_floating_point() == typed:
            raise ShapeError(
                f"edge_attr must hold {'one integer kind' if typed else 'a row of floats'} per edge, shape {shape}; "
                f"got {edge_attr.dtype} of shape {tuple(edge_attr.shape)}."
            )

    def _check_vectors(self, senders: Tensor, receivers: Tensor) -> None:
        wanted = self.in_channels if isinstance(self.in_channels, tuple) else (self.in_channels, self.in_channels)
        for role, x, width in (("senders", senders, wanted[0]), ("receivers", receivers, wanted[1])):
            if x.ndim != 2 or x.shape[1] != width:
                raise ShapeError(f"x ({role}) must have shape (nodes, {width}); got {tuple(x.shape)}.")
            if x.dtype != self.value.weight.dtype and not torch.is_autocast_enabled(x.device.type):
                raise ShapeError(
                    f"x ({role}) is {x.dtype}, but the layer's weights are {self.value.weight.dtype}; "
                    f"convert one of them, for example x.to(layer.value.weight.dtype)."
                )

    def extra_repr(self) -> str:
        """Sizes and choices that the children do not show."""
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}, normalizer={self.normalizer!r}"


class _Columns(torch.autograd.Function):
    """``torch.chunk`` by columns; its backward takes gradients as they are where they are columns of one matrix.

    The fused kernels give such gradients.
    """

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, count: int, axis: int) -> tuple[Tensor, ...]:  # noqa: ARG004
        return matrix.chunk(count, axis)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:  # noqa: ARG004
        first, width = grads[0], grads[0].shape[-1]
        side_by_side = not torch.is_grad_enabled() and all(
            grad.stride() == (width * len(grads), 1)
            and grad.data_ptr() == first.data_ptr() + place * width * first.element_size()
            for place, grad in enumerate(grads)
        )
        if side_by_side:
            return first.as_strided((len(first), width * len(grads)), first.stride()), None, None
        return torch.cat(grads, -1), None, None


_columns: Callable[[Tensor, int, int], tuple[Tensor, ...]] = _Columns.apply


def _edge_projection(edge_dim: int | None, edge_types: int | None, channels: int) -> nn.Linear | nn.Embedding | None:
    if edge_dim is not None:
        return nn.Linear(edge_dim, channels, bias=False)
    return None if edge_types is None else nn.Embedding(edge_types, channels)


def _check_widths(out_channels: int, heads: int) -> None:
    if heads < 1 or out_channels < 1 or out_channels % heads:
        raise SettingError(
            f"out_channels ({out_channels}) must be a multiple of heads ({heads}): every head gets an equal share."
        )


def _check_edge_settings(edge_dim: int | None, edge_types: int | None, edge_into: Sequence[str]) -> None:
    if edge_dim is not None and edge_types is not None:
        raise SettingError("give edge_dim for float edge features or edge_types for kinds of edge, not both.")
    for name, size in (("edge_dim", edge_dim), ("edge_types", edge_types)):
        if size is not None and size < 1:
            raise SettingError(f"{name} must be at least 1, got {size}; leave it out where edges carry nothing.")
    if isinstance(edge_into, str) or not edge_into or not set(edge_into) <= {"key", "value", "score"}:
        raise SettingError(f"edge_into must name 'key', 'value', 'score' or several, as a tuple; got {edge_into!r}.")
