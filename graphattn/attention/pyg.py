"""Our layer out of one of PyTorch Geometric's: an outside check on ours, and a way over for its users."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.nn import GATConv, GATv2Conv, MessagePassing, TransformerConv

from graphattn.attention.layer import GraphAttention
from graphattn.attention.scores import Additive
from graphattn.errors import GraphattnWarning, SettingError

Made = tuple[GraphAttention, dict[str, torch.Tensor]]  # a layer, and the weights to load into it
Maker = Callable[[Any], Made]


def layer_from_conv(conv: MessagePassing) -> GraphAttention:
    """See :meth:`graphattn.GraphAttention.from_pyg`."""
    makers: dict[type, Maker] = {TransformerConv: _from_transformer, GATv2Conv: _from_gatv2, GATConv: _from_gat}
    if type(conv) not in makers:  # a subclass may compute something else
        raise SettingError(f"from_pyg takes a TransformerConv, GATv2Conv or GATConv, got {type(conv).__name__}.")
    layer, weights = makers[type(conv)](conv)
    if getattr(conv, "add_self_loops", False):
        warnings.warn(
            f"this {type(conv).__name__} adds self loops at every call and a GraphAttention does not; it is equal on "
            "Adjacency.from_edge_index(edge_index, num_nodes).with_self_loops() of a graph without loops of its own.",
            GraphattnWarning,
            stacklevel=3,
        )
    layer = layer.to(device=weights["value.weight"].device, dtype=weights["value.weight"].dtype)
    layer.load_state_dict({name: weight.detach() for name, weight in weights.items()})
    return layer.train(conv.training)


def _from_transformer(conv: TransformerConv) -> Made:
    _refuse(conv, beta=conv.beta, concat=not conv.concat and conv.heads > 1)
    layer = GraphAttention(
        **_sizes(conv, conv.lin_key, conv.lin_query),
        score="dot",
        bias=conv.lin_key.bias is not None,
        root_weight=conv.root_weight,
        dropout=conv.dropout,
    )
    weights = _copied(query=conv.lin_query, key=conv.lin_key, value=conv.lin_value, edge=conv.lin_edge)
    if conv.root_weight:
        weights |= _copied(root=conv.lin_skip)
    return layer, weights


def _from_gatv2(conv: GATv2Conv) -> Made:
    _refuse(
        conv,
        share_weights=conv.share_weights,
        residual=conv.residual,
        concat=not conv.concat and conv.heads > 1,
        fill_value=_fills_loops(conv),
    )
    layer = GraphAttention(
        **_sizes(conv, conv.lin_l, conv.lin_r),
        score=Additive(negative_slope=conv.negative_slope),
        tie_key_value=True,
        edge_into=("key",),
        bias=conv.lin_l.bias is not None,
        output_bias=conv.bias is not None,
        dropout=conv.dropout,
    )
    weights = _copied(query=conv.lin_r, value=conv.lin_l, edge=conv.lin_edge)
    weights["score_vector"] = conv.att[0]
    if conv.bias is not None:
        weights["output_bias"] = conv.bias
    return layer, weights


def _from_gat(conv: GATConv) -> Made:
    _refuse(
        conv,
        negative_slope=conv.negative_slope != Additive().negative_slope,
        concat=not conv.concat and conv.heads > 1,
        fill_value=_fills_loops(conv),
    )
    value, query = (conv.lin_src, conv.lin_dst) if conv.lin is None else (conv.lin, None)
    layer = GraphAttention(
        **_sizes(conv, value, query or value),
        score="gat",
        edge_into=("key",),
        bias=False,
        root_weight=conv.residual,
        output_bias=conv.bias is not None,
        dropout=conv.dropout,
    )
    weights = _copied(value=value, query=query, edge=conv.lin_edge, root=conv.res)
    weights |= {"gat_sender": conv.att_src[0], "gat_receiver": conv.att_dst[0]}
    if conv.lin_edge is not None:
        weights["gat_edge"] = conv.att_edge[0]
    if conv.bias is not None:
        weights["output_bias"] = conv.bias
    return layer, weights


def _sizes(conv: Any, of_senders: Any, of_receivers: Any) -> dict[str, Any]:
    """Sizes by the weights: a lazily made conv says -1 for its own."""
    if any(torch.nn.parameter.is_lazy(weight) for weight in conv.parameters()):
        raise SettingError(f"this {type(conv).__name__} has no weights yet; call it once, so that its sizes are known.")
    senders, receivers = of_senders.weight.shape[1], of_receivers.weight.shape[1]
    return {
        "in_channels": senders if isinstance(conv.in_channels, int) else (senders, receivers),
        "out_channels": conv.heads * conv.out_channels,
        "heads": conv.heads,
        "edge_dim": None if conv.lin_edge is None else conv.lin_edge.weight.shape[1],
    }


def _copied(**modules: Any) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{part}": weight
        for name, module in modules.items()
        if module is not None
        for part, weight in module.named_parameters()
    }


def _fills_loops(conv: Any) -> bool:
    """Whether the loops that the conv adds get edge features of their own; ours get none, which is a fill of 0."""
    no_fill = isinstance(conv.fill_value, int | float) and conv.fill_value == 0
    return conv.edge_dim is not None and conv.add_self_loops and not no_fill


def _refuse(conv: Any, **options: bool) -> None:
    options |= {"aggr": conv.aggr not in ("add", "sum"), "flow": conv.flow != "source_to_target"}
    refused = [name for name, used in options.items() if used]
    if refused:
        settings = ", ".join(f"{name}={getattr(conv, name)!r}" for name in refused)
        raise SettingError(
            f"GraphAttention has no counterpart of {settings} of this {type(conv).__name__}; make the conv without."
        )
