"""Our layer out of one of PyTorch Geometric's: an outside check on ours, and a way over for its users."""

from typing import Any

import torch
from torch_geometric.nn import GATConv, GATv2Conv, MessagePassing, TransformerConv

from graphattn.attention.layer import GraphAttention
from graphattn.attention.scores import Additive
from graphattn.errors import SettingError


def layer_from_conv(conv: MessagePassing) -> GraphAttention:
    """See :meth:`graphattn.GraphAttention.from_pyg`."""
    if isinstance(conv, TransformerConv):
        layer, weights = _from_transformer(conv)
    elif isinstance(conv, GATv2Conv):
        layer, weights = _from_gatv2(conv)
    elif isinstance(conv, GATConv):
        layer, weights = _from_gat(conv)
    else:
        raise SettingError(f"from_pyg takes a TransformerConv, GATv2Conv or GATConv, got {type(conv).__name__}.")
    layer = layer.to(device=weights["value.weight"].device, dtype=weights["value.weight"].dtype)
    layer.load_state_dict({name: weight.detach() for name, weight in weights.items()})
    return layer.train(conv.training)


def _from_transformer(conv: TransformerConv) -> tuple[GraphAttention, dict[str, torch.Tensor]]:
    _refuse(conv, beta=conv.beta, concat=not conv.concat and conv.heads > 1)
    layer = GraphAttention(
        **_sizes(conv),
        score="dot",
        bias=conv.lin_key.bias is not None,
        root_weight=conv.root_weight,
        dropout=conv.dropout,
    )
    weights = _copied(query=conv.lin_query, key=conv.lin_key, value=conv.lin_value, edge=conv.lin_edge)
    if conv.root_weight:
        weights |= _copied(root=conv.lin_skip)
    return layer, weights


def _from_gatv2(conv: GATv2Conv) -> tuple[GraphAttention, dict[str, torch.Tensor]]:
    _refuse(
        conv,
        share_weights=conv.share_weights,
        residual=conv.residual,
        concat=not conv.concat and conv.heads > 1,
        fill_value=_fills_loops(conv),
    )
    layer = GraphAttention(
        **_sizes(conv),
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


def _from_gat(conv: GATConv) -> tuple[GraphAttention, dict[str, torch.Tensor]]:
    _refuse(
        conv,
        negative_slope=conv.negative_slope != Additive().negative_slope,
        concat=not conv.concat and conv.heads > 1,
        fill_value=_fills_loops(conv),
    )
    layer = GraphAttention(
        **_sizes(conv),
        score="gat",
        edge_into=("key",),
        bias=False,
        root_weight=conv.residual,
        output_bias=conv.bias is not None,
        dropout=conv.dropout,
    )
    value, query = (conv.lin_src, conv.lin_dst) if conv.lin is None else (conv.lin, None)
    weights = _copied(value=value, query=query, edge=conv.lin_edge, root=conv.res)
    weights |= {"gat_sender": conv.att_src[0], "gat_receiver": conv.att_dst[0]}
    if conv.lin_edge is not None:
        weights["gat_edge"] = conv.att_edge[0]
    if conv.bias is not None:
        weights["output_bias"] = conv.bias
    return layer, weights


def _sizes(conv: Any) -> dict[str, Any]:
    return {
        "in_channels": conv.in_channels,
        "out_channels": conv.heads * conv.out_channels,
        "heads": conv.heads,
        "edge_dim": conv.edge_dim,
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
    return conv.edge_dim is not None and conv.add_self_loops and conv.fill_value != 0


def _refuse(conv: Any, **options: bool) -> None:
    options |= {"aggr": conv.aggr not in ("add", "sum"), "flow": conv.flow != "source_to_target"}
    refused = [name for name, used in options.items() if used]
    if refused:
        settings = ", ".join(f"{name}={getattr(conv, name)!r}" for name in refused)
        raise SettingError(
            f"GraphAttention has no counterpart of {settings} of this {type(conv).__name__}; make the conv without."
        )
