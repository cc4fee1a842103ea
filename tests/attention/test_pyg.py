"""PyTorch Geometric's own layers as an outside check: same weights, same outputs, same gradients."""

import copy

import pytest
import torch
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, TransformerConv

from graphattn.adjacency import Adjacency
from graphattn.attention.layer import GraphAttention
from graphattn.errors import GraphattnWarning, SettingError

IN, OUT, HEADS, EDGE_DIM = 6, 4, 3, 5
CONVS = {
    "TransformerConv": lambda **more: TransformerConv(IN, OUT, heads=HEADS, **more),
    "TransformerConv, no root": lambda **more: TransformerConv(IN, OUT, heads=HEADS, root_weight=False, **more),
    "TransformerConv, no bias": lambda **more: TransformerConv(IN, OUT, heads=HEADS, bias=False, **more),
    "TransformerConv, one head, mean": lambda **more: TransformerConv(IN, OUT, concat=False, **more),
    "GATv2Conv": lambda **more: GATv2Conv(IN, OUT, heads=HEADS, add_self_loops=False, **more),
    "GATv2Conv, no bias": lambda **more: GATv2Conv(IN, OUT, heads=HEADS, add_self_loops=False, bias=False, **more),
    "GATv2Conv, slope": lambda **more: GATv2Conv(
        IN, OUT, heads=HEADS, add_self_loops=False, negative_slope=0.4, **more
    ),
    "GATConv": lambda **more: GATConv(IN, OUT, heads=HEADS, add_self_loops=False, **more),
    "GATConv, residual": lambda **more: GATConv(IN, OUT, heads=HEADS, add_self_loops=False, residual=True, **more),
    "GATConv, no bias": lambda **more: GATConv(IN, OUT, heads=HEADS, add_self_loops=False, bias=False, **more),
}


def random_graph(nodes: int = 9, edges: int = 30) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(nodes, IN, generator=generator)
    edge_index = torch.randint(nodes - 1, (2, edges), generator=generator)  # the last node is isolated
    return x, edge_index, torch.randn(edges, EDGE_DIM, generator=generator)


def outputs_and_gradients(module, inputs: dict[str, torch.Tensor], edge_index, parameters: dict[str, torch.Tensor]):
    leaves = {name: each.clone().requires_grad_() for name, each in inputs.items()}
    out = module(**leaves, edge_index=edge_index)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.dtype)
    wanted = list(leaves.values()) + list(parameters.values())
    return out, dict(zip([*leaves, *parameters], torch.autograd.grad((out * weights).sum(), wanted), strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("with_edges", [False, True], ids=["bare", "edge features"])
@pytest.mark.parametrize("name", CONVS)
def test_equal_to_pyg_with_the_same_weights(name, with_edges, dtype):
    torch.manual_seed(0)
    conv = CONVS[name](**({"edge_dim": EDGE_DIM} if with_edges else {})).to(dtype)
    with torch.no_grad():
        for weight in conv.parameters():
            weight.add_(0.1 * torch.randn_like(weight))  # biases start at zero; move them
    layer = GraphAttention.from_pyg(conv)
    x, edge_index, edge_attr = random_graph()
    inputs = {"x": x.to(dtype)} | ({"edge_attr": edge_attr.to(dtype)} if with_edges else {})
    out, gradients = outputs_and_gradients(layer, inputs, edge_index, shared_parameters(layer, conv)[0])
    want, wanted = outputs_and_gradients(conv, inputs, edge_index, shared_parameters(layer, conv)[1])
    torch.testing.assert_close(out, want, rtol=1e-6, atol=1e-6)
    for each in gradients:
        torch.testing.assert_close(gradients[each], wanted[each].reshape(gradients[each].shape), rtol=1e-5, atol=1e-5)


def shared_parameters(layer, conv) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Our parameters and PyG's, paired by the weights that from_pyg copied: equal values, one to one."""
    ours, theirs = dict(layer.named_parameters()), list(conv.parameters())
    paired = {}
    for name, weight in ours.items():
        match = [
            each
            for each in theirs
            if each.numel() == weight.numel() and torch.equal(each.reshape(weight.shape), weight)
        ]
        assert len(match) == 1, f"{name} has {len(match)} counterparts"
        paired[name] = match[0]
    return ours, paired


def converted(conv) -> GraphAttention:
    with pytest.warns(GraphattnWarning, match="adds self loops at every call and a GraphAttention does not"):
        return GraphAttention.from_pyg(conv)


@pytest.mark.parametrize("conv", [GATConv, GATv2Conv])
def test_added_self_loops_are_those_of_with_self_loops(conv):
    torch.manual_seed(0)
    theirs = conv(IN, OUT, heads=HEADS, add_self_loops=True)
    x, edge_index, _ = random_graph()
    adjacency = Adjacency.from_edge_index(edge_index[:, edge_index[0] != edge_index[1]], len(x)).with_self_loops()
    torch.testing.assert_close(converted(theirs)(x, adjacency), theirs(x, edge_index), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("conv", [GATConv, GATv2Conv])
def test_added_self_loops_with_edge_features_filled_with_zero(conv):
    torch.manual_seed(0)
    theirs = conv(IN, OUT, heads=HEADS, edge_dim=EDGE_DIM, add_self_loops=True, fill_value=0.0)
    x, edge_index, edge_attr = random_graph()
    apart = edge_index[0] != edge_index[1]
    adjacency = Adjacency.from_edge_index(edge_index[:, apart], len(x)).with_self_loops()
    got = converted(theirs)(x, adjacency, edge_attr[apart])
    torch.testing.assert_close(got, theirs(x, edge_index, edge_attr), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("conv", [TransformerConv, GATConv, GATv2Conv])
def test_equal_on_two_sets_of_vectors(conv):
    torch.manual_seed(0)
    more = {} if conv is TransformerConv else {"add_self_loops": False}
    theirs = conv((IN, 4), OUT, heads=HEADS, **more)
    pair = (torch.randn(5, IN), torch.randn(3, 4))
    edge_index = torch.tensor([[0, 4, 2, 2], [1, 1, 0, 1]])
    got = GraphAttention.from_pyg(theirs)(pair, edge_index)
    torch.testing.assert_close(got, theirs(pair, edge_index), rtol=1e-6, atol=1e-6)


def test_attention_weights_equal_pygs():
    conv = GATv2Conv(IN, OUT, heads=HEADS, add_self_loops=False)
    x, edge_index, _ = random_graph()
    _, (_, weights) = conv(x, edge_index, return_attention_weights=True)
    torch.testing.assert_close(GraphAttention.from_pyg(conv).attention_weights(x, edge_index).edges, weights)


def test_the_copy_stands_on_its_own():
    conv = TransformerConv(IN, OUT, heads=HEADS).eval()
    layer, before = GraphAttention.from_pyg(conv), copy.deepcopy(conv.state_dict())
    assert not layer.training
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
    assert all(torch.equal(weight, before[name]) for name, weight in conv.state_dict().items())


def test_a_lazily_made_conv_is_taken_once_it_has_weights():
    conv = TransformerConv(-1, OUT, heads=HEADS)
    with pytest.raises(SettingError, match="this TransformerConv has no weights yet; call it once"):
        GraphAttention.from_pyg(conv)
    x, edge_index, _ = random_graph()
    want = conv(x, edge_index)
    torch.testing.assert_close(GraphAttention.from_pyg(conv)(x, edge_index), want, rtol=1e-6, atol=1e-6)


class OwnMessage(GATConv):
    """May compute anything."""


@pytest.mark.parametrize(
    ("conv", "words"),
    [
        (TransformerConv(IN, OUT, heads=HEADS, beta=True), "no counterpart of beta=True of this TransformerConv"),
        (TransformerConv(IN, OUT, heads=HEADS, concat=False), "concat=False"),
        (TransformerConv(IN, OUT, aggr="max"), "aggr='max'"),
        (TransformerConv(IN, OUT, flow="target_to_source"), "flow='target_to_source'"),
        (GATv2Conv(IN, OUT, share_weights=True), "share_weights=True of this GATv2Conv"),
        (GATv2Conv(IN, OUT, residual=True), "residual=True"),
        (GATv2Conv(IN, OUT, edge_dim=2), "fill_value='mean'"),
        (GATConv(IN, OUT, negative_slope=0.3), "negative_slope=0.3 of this GATConv"),
        (GATConv(IN, OUT, edge_dim=2), "fill_value='mean'"),
        (GATConv(IN, OUT, edge_dim=2, fill_value=torch.zeros(2)), "fill_value=tensor"),
        (OwnMessage(IN, OUT), "takes a TransformerConv, GATv2Conv or GATConv, got OwnMessage"),
        (GCNConv(IN, OUT), "takes a TransformerConv, GATv2Conv or GATConv, got GCNConv"),
    ],
)
def test_options_without_a_counterpart_are_refused_by_name(conv, words):
    with pytest.raises(SettingError, match=words):
        GraphAttention.from_pyg(conv)
