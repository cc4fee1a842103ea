"""GraphAttention: the cases that broke other layers, and its refusals."""

from dataclasses import replace

import pytest
import torch
from awkward import AWKWARD_GRAPHS
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import Sequential
from torch_geometric.transforms import AddSelfLoops, Compose, ToUndirected

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import BACKENDS, attend
from graphattn.attention.layer import GraphAttention
from graphattn.attention.scores import Additive, DotProduct
from graphattn.errors import SettingError

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # 0 - 1 - 2
SEVEN_EDGES = torch.tensor([[1, 2, 2, 0, 3, 0, 1], [0, 0, 1, 2, 2, 3, 3]])
EVERY_SCORE = ["dot", "additive", "gat", DotProduct(scale=1.0), Additive(activation="tanh")]


@pytest.mark.parametrize("score", EVERY_SCORE, ids=str)
def test_one_layer_sees_neighbors_only_and_two_see_further(score):
    torch.manual_seed(0)
    layer = GraphAttention(4, 8, heads=2, score=score).double()
    again = GraphAttention(8, 8, heads=2, score=score).double()
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    out = layer(x, PATH)
    changed = x.detach().clone()
    changed[2] += 1
    assert torch.equal(layer(changed, PATH)[0], out[0])
    assert (torch.autograd.grad(out[0].sum(), x, retain_graph=True)[0][2] == 0).all()
    assert (torch.autograd.grad(again(out, PATH)[0].sum(), x)[0][2] != 0).any()


@pytest.mark.parametrize("score", EVERY_SCORE, ids=str)
@pytest.mark.parametrize("backend", [backend.name for backend in BACKENDS])
def test_an_isolated_node_gets_zeros_and_no_nan(score, backend):
    layer = GraphAttention(4, 8, heads=2, score=score, backend=backend)
    x = torch.randn(3, 4, requires_grad=True)
    out = layer(x, torch.tensor([[0, 1], [1, 0]]))
    out.square().sum().backward()
    assert (out[2] == 0).all()
    assert x.grad.isfinite().all()
    assert all(weight.grad.isfinite().all() for weight in layer.parameters() if weight.grad is not None)


@pytest.mark.parametrize("nodes", [1, 5])
def test_a_graph_without_edges_is_an_ordinary_graph(nodes):
    layer = GraphAttention(4, 8, heads=2, edge_dim=3)
    out = layer(torch.randn(nodes, 4), torch.zeros(2, 0, dtype=torch.long), torch.zeros(0, 3))
    assert torch.equal(out, torch.zeros(nodes, 8))


def test_weights_stand_in_the_callers_edge_order_and_added_loops_apart():
    layer = GraphAttention(4, 8, heads=2)
    x = torch.randn(4, 4)
    weights = layer.attention_weights(x, SEVEN_EDGES)
    assert weights.edges.shape == (7, 2)
    assert (weights.self_loops == 0).all()
    sums = torch.zeros(4, 2).index_add(0, SEVEN_EDGES[1], weights.edges)
    torch.testing.assert_close(sums, torch.ones(4, 2))
    adjacency = Adjacency.from_edge_index(SEVEN_EDGES, 4).with_self_loops()
    looped = layer.attention_weights(x, adjacency)
    sums = looped.self_loops.index_add(0, SEVEN_EDGES[1], looped.edges)
    torch.testing.assert_close(sums, torch.ones(4, 2))
    value = layer.project(x, x)[2].view(4, 2, 4)  # by hand: weights times values are the output
    mixed = looped.edges[..., None] * value[SEVEN_EDGES[0]]
    by_hand = (looped.self_loops[..., None] * value).index_add(0, SEVEN_EDGES[1], mixed)
    torch.testing.assert_close(by_hand.flatten(1), layer(x, adjacency))


def test_calling_the_layer_gives_a_tensor_and_no_weights():
    assert type(GraphAttention(4, 8, heads=2)(torch.randn(4, 4), SEVEN_EDGES)) is torch.Tensor


def test_permuting_edges_permutes_weights():
    layer, x, order = GraphAttention(4, 8, heads=2), torch.randn(4, 4), torch.tensor([6, 2, 0, 5, 1, 4, 3])
    weights, permuted = (layer.attention_weights(x, SEVEN_EDGES[:, each]).edges for each in (torch.arange(7), order))
    torch.testing.assert_close(permuted, weights[order])


def test_dropout_only_in_training():
    layer, x = GraphAttention(4, 8, heads=2, dropout=0.5).eval(), torch.randn(4, 4)
    assert torch.equal(layer(x, SEVEN_EDGES), layer(x, SEVEN_EDGES))
    sums = torch.zeros(4, 2).index_add(0, SEVEN_EDGES[1], layer.attention_weights(x, SEVEN_EDGES).edges)
    torch.testing.assert_close(sums, torch.ones(4, 2))
    layer.train()
    assert not torch.equal(layer(x, SEVEN_EDGES), layer(x, SEVEN_EDGES))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_keeps_large_scores_finite(dtype):
    layer = GraphAttention(4, 8, heads=2, score=DotProduct(scale=1.0))
    with torch.no_grad():
        layer.query.weight.mul_(100)
        layer.key.weight.mul_(100)
    x = torch.randn(4, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=dtype):
        out = layer(x, SEVEN_EDGES)
    assert out.dtype == dtype
    out.float().sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


def test_works_in_pygs_sequential_loader_and_transforms():
    model = Sequential(
        "x, edge_index, edge_attr",
        [
            (GraphAttention(3, 8, heads=2, edge_dim=2), "x, edge_index, edge_attr -> x"),
            torch.nn.ReLU(),
            (GraphAttention(8, 4, heads=2, score="gat"), "x, edge_index -> x"),
        ],
    )
    transform = Compose([ToUndirected(), AddSelfLoops(attr="edge_attr", fill_value=0.0)])
    graphs = [
        transform(Data(x=torch.randn(n, 3), edge_index=torch.tensor([[0], [n - 1]]), edge_attr=torch.randn(1, 2)))
        for n in (2, 5, 3)
    ]
    alone = [model(graph.x, graph.edge_index, graph.edge_attr) for graph in graphs]
    batch: Batch = next(iter(DataLoader(graphs, batch_size=3)))
    together = model(batch.x, batch.edge_index, batch.edge_attr)
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-6, atol=1e-6)


def test_edge_types_are_one_learned_vector_per_kind():
    torch.manual_seed(0)
    typed = GraphAttention(4, 8, heads=2, edge_types=3)
    featured = GraphAttention(4, 8, heads=2, edge_dim=3)
    weights = typed.state_dict() | {"edge.weight": typed.edge.weight.detach().T.contiguous()}
    featured.load_state_dict(weights)
    x, kinds = torch.randn(4, 4), torch.tensor([0, 2, 1, 1, 0, 2, 2])
    one_hot = torch.nn.functional.one_hot(kinds, 3).float()
    torch.testing.assert_close(typed(x, SEVEN_EDGES, kinds), featured(x, SEVEN_EDGES, one_hot))


@pytest.mark.parametrize("into", [("score",), ("key", "score"), ("key", "value", "score")])
@pytest.mark.parametrize("score", ["dot", "additive", "gat"])
def test_edges_in_the_score_are_a_bias_per_head(into, score):
    torch.manual_seed(0)
    layer = GraphAttention(4, 8, heads=2, score=score, edge_types=3, edge_into=into)
    x, kinds = torch.randn(4, 4), torch.tensor([0, 2, 1, 1, 0, 2, 2])
    call = layer.attention_call(x, SEVEN_EDGES, kinds)
    assert (call.edges.key is not None, call.edges.value is not None) == ("key" in into, "value" in into)
    by_hand = replace(call, bias=layer.edge_score.weight[kinds])
    torch.testing.assert_close(layer(x, SEVEN_EDGES, kinds), attend(by_hand, "definition").flatten(1))

    featured = GraphAttention(4, 8, heads=2, score=score, edge_dim=3, edge_into=into)
    turned = {name: weight.T if name.startswith("edge") else weight for name, weight in layer.state_dict().items()}
    featured.load_state_dict(turned)
    one_hot = torch.nn.functional.one_hot(kinds, 3).float()
    torch.testing.assert_close(featured(x, SEVEN_EDGES, one_hot), layer(x, SEVEN_EDGES, kinds))


def test_senders_and_receivers_may_be_two_sets():
    layer = GraphAttention((3, 5), 8, heads=2, root_weight=True)
    receivers = torch.randn(2, 5)
    out = layer((torch.randn(4, 3), receivers), torch.tensor([[0, 3], [1, 1]]))
    assert out.shape == (2, 8)
    torch.testing.assert_close(out[0], layer.root(receivers)[0])  # receiver 0 sees nobody


@pytest.mark.parametrize("name", AWKWARD_GRAPHS)
def test_every_awkward_graph_trains(name):
    adjacency = AWKWARD_GRAPHS[name]
    layer = GraphAttention(4, 8, heads=2, edge_types=2, score="additive", root_weight=True, output_bias=True)
    senders, receivers = torch.randn(adjacency.num_senders, 4), torch.randn(adjacency.num_receivers, 4)
    out = layer((senders, receivers), adjacency, torch.zeros(adjacency.num_edges, dtype=torch.long))
    out.sum().backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in layer.parameters())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"out_channels": 10, "heads": 4}, r"out_channels \(10\) must be a multiple of heads \(4\)"),
        ({"heads": 0}, r"must be a multiple of heads \(0\)"),
        ({"normalizer": "max"}, "normalizer must be 'softmax' or 'relu', got 'max'"),
        (
            {"edge_dim": 3, "edge_types": 3},
            "edge_dim for float edge features or edge_types for kinds of edge, not both",
        ),
        ({"edge_dim": 0}, "edge_dim must be at least 1, got 0"),
        ({"edge_types": 0}, "edge_types must be at least 1, got 0"),
        ({"edge_into": "key"}, "edge_into must name 'key', 'value', 'score' or several, as a tuple; got 'key'"),
        ({"edge_into": ("query",)}, "edge_into must name"),
        ({"dropout": -0.1}, r"dropout must be in \[0, 1\), got -0.1"),
        ({"score": "cosine"}, "score must be 'dot', 'additive' or a function.*also takes 'gat'.*got 'cosine'"),
    ],
)
def test_impossible_settings_are_refused_at_construction(settings, words):
    with pytest.raises(SettingError, match=words):
        GraphAttention(**({"in_channels": 4, "out_channels": 8} | settings))


@pytest.mark.parametrize(
    ("layer", "arguments", "words"),
    [
        ({}, {"x": torch.ones(4, 3)}, r"x \(senders\) must have shape \(nodes, 4\); got \(4, 3\)"),
        ({}, {"x": torch.ones(4, 4).half()}, r"is torch.float16, but the layer's weights are torch.float32"),
        ({}, {"x": torch.ones(3, 4)}, "edge 4 names sender 3, but there are 3 senders"),
        ({}, {"edge_attr": torch.ones(7, 2)}, "edge_attr is given, but this layer was made without edge_dim"),
        ({"edge_dim": 2}, {}, "this layer was made with edge_dim or edge_types; pass edge_attr"),
        ({"edge_dim": 2}, {"edge_attr": torch.ones(6, 2)}, r"a row of floats per edge, shape \(7, 2\); got.*\(6, 2\)"),
        (
            {"edge_types": 2},
            {"edge_attr": torch.ones(7)},
            r"one integer kind per edge, shape \(7,\); got torch.float32",
        ),
        ({"edge_types": 2}, {"edge_attr": torch.full((7,), 2)}, "edge kinds from 2 to 2, but a table of 2 kinds"),
    ],
)
def test_wrong_inputs_are_refused_in_words(layer, arguments, words):
    module = GraphAttention(4, 8, **layer)
    with pytest.raises(ValueError, match=words):
        module(**({"x": torch.ones(4, 4), "edge_index": SEVEN_EDGES} | arguments))


def test_repr_shows_the_choices():
    assert repr(GraphAttention(4, 8, heads=2)).startswith("GraphAttention(\n  4, 8, heads=2, normalizer='softmax'")


@pytest.mark.parametrize("settings", [{}, {"score": "additive", "tie_key_value": True}])
def test_the_fused_backend_gives_the_layer_equal_gradients(settings):
    """The gradients of its projections are columns of one matrix, which is taken as it is."""
    torch.manual_seed(0)
    layer = GraphAttention(6, 8, 2, **settings, backend="fused_cpu").double()
    x = torch.randn(5, 6, dtype=torch.float64, requires_grad=True)
    edge_index = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 0, 1, 2, 3, 4]])
    weight = torch.randn(5, 8, dtype=torch.float64)
    wanted = [x, *layer.parameters()]
    got = torch.autograd.grad((layer(x, edge_index) * weight).sum(), wanted)
    layer.backend = "sparse"
    want = torch.autograd.grad((layer(x, edge_index) * weight).sum(), wanted)
    for mine, sparse in zip(got, want, strict=True):
        torch.testing.assert_close(mine, sparse, rtol=1e-10, atol=1e-12)
