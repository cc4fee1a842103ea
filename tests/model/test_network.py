"""Block, readouts and network: invariances, several targets, refusals."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from graphattn.adjacency import Adjacency
from graphattn.errors import GraphError, SettingError, ShapeError
from graphattn.model.block import Block
from graphattn.model.config import READOUTS as SINGLE_READOUTS
from graphattn.model.config import NetworkConfig
from graphattn.model.embedding import CodeEmbedding, joint_code
from graphattn.model.network import GraphTransformer, build_network
from graphattn.model.readout import make_readout

NODE_WIDTHS, EDGE_WIDTHS = (5, 3), (3, 2)
READOUTS = (*SINGLE_READOUTS, "attention+sum")


def random_graph(nodes: int, seed: int = 0) -> Data:
    """Codes on nodes and edges; every other pair of neighbors on a path is bonded, both ways."""
    generator = torch.Generator().manual_seed(seed)
    codes = [torch.randint(width, (nodes,), generator=generator) for width in NODE_WIDTHS]
    first = torch.arange(0, max(nodes - 1, 0))
    edge_index = torch.stack([torch.cat([first, first + 1]), torch.cat([first + 1, first])])
    kinds = [torch.randint(width, (len(first),), generator=generator).repeat(2) for width in EDGE_WIDTHS]
    return Data(x=torch.stack(codes, 1), edge_index=edge_index, edge_attr=torch.stack(kinds, 1))


def small_network(readout: str | None = "attention", **more: object) -> GraphTransformer:
    torch.manual_seed(0)
    settings = {"channels": 16, "layers": 2, "heads": 4, "edge_channels": EDGE_WIDTHS, "dropout": 0.2} | more
    return GraphTransformer(NODE_WIDTHS, 3, readout=readout, **settings).eval()


GRAPHS = [random_graph(nodes, seed) for seed, nodes in enumerate([1, 2, 7, 1, 12])]


@pytest.mark.parametrize("readout", READOUTS)
def test_batch_company_and_order_change_nothing(readout):
    network = small_network(readout)
    alone = torch.cat([network(graph) for graph in GRAPHS])
    assert alone.shape == (5, 3)
    assert alone.isfinite().all()
    torch.testing.assert_close(network(Batch.from_data_list(GRAPHS)), alone, rtol=1e-6, atol=1e-6)
    loaded = next(iter(DataLoader(GRAPHS[::-1], batch_size=5)))
    torch.testing.assert_close(network(loaded), alone.flip(0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("readout", [*READOUTS, None])
def test_renumbering_nodes_permutes_node_outputs_and_keeps_graph_outputs(readout):
    network, graph = small_network(readout), GRAPHS[-1]
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    to_new = torch.argsort(order)
    renumbered = Data(x=graph.x[order], edge_index=to_new[graph.edge_index], edge_attr=graph.edge_attr)
    want = network(graph) if readout else network(graph)[order]
    torch.testing.assert_close(network(renumbered), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("readout", READOUTS)
def test_an_empty_graph_in_a_batch_is_an_ordinary_case(readout):
    network = small_network(readout)
    empty = Data(
        x=torch.zeros(0, 2, dtype=torch.long),
        edge_index=torch.zeros(2, 0, dtype=torch.long),
        edge_attr=torch.zeros(0, 2, dtype=torch.long),
    )
    out = network(Batch.from_data_list([GRAPHS[1], empty]))
    assert out.shape == (2, 3)
    assert out.isfinite().all()
    torch.testing.assert_close(out[:1], network(GRAPHS[1]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("readout", ["edge", "bond"])
def test_outputs_of_edges_follow_the_callers_edges(readout):
    network, graph = small_network(readout), GRAPHS[-1]
    out = network(graph)
    assert out.shape == (graph.num_edges, 3)
    order = torch.randperm(graph.num_edges, generator=torch.Generator().manual_seed(1))
    shuffled = Data(x=graph.x, edge_index=graph.edge_index[:, order], edge_attr=graph.edge_attr[order])
    torch.testing.assert_close(network(shuffled), out[order], rtol=1e-5, atol=1e-5)
    there, back = out[: graph.num_edges // 2], out[graph.num_edges // 2 :]  # as random_graph lists them
    assert torch.allclose(there, back, rtol=1e-5, atol=1e-5) == (readout == "bond")
    torch.testing.assert_close(network(Batch.from_data_list([GRAPHS[2], graph]))[GRAPHS[2].num_edges :], out)


@pytest.mark.parametrize("readout", ["edge", "bond"])
def test_added_self_loops_are_no_edges_to_read_out(readout):
    network = GraphTransformer(3, 2, channels=8, layers=1, heads=2, readout=readout).eval()
    x, adjacency = torch.randn(3, 3), Adjacency.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3)
    looped = network(Data(x=x, edge_index=adjacency.with_self_loops()))
    torch.testing.assert_close(looped, network(Data(x=x, edge_index=adjacency)))


def test_adjacencies_that_pyg_did_not_join_are_refused():
    graphs = [Data(x=torch.ones(2, 1), edge_index=Adjacency.complete(2)) for _ in range(2)]
    network = GraphTransformer(1, 2, channels=8, layers=1, heads=2, readout="mean")
    with pytest.raises(ShapeError, match=r"data\.edge_index is a list.*Adjacency\.batch"):
        network(Batch.from_data_list(graphs))


def test_an_adjacency_may_stand_for_edge_index():
    graph = GRAPHS[-1]
    for readout in ("attention", None, "edge"):
        network = small_network(readout)
        adjacency = Adjacency.from_edge_index(graph.edge_index, 12)
        given = Data(x=graph.x, edge_index=adjacency, edge_attr=graph.edge_attr)
        torch.testing.assert_close(network(given), network(graph))
    images = Data(x=torch.rand(24, 1), edge_index=Adjacency.batch([Adjacency.grid(2, 3), Adjacency.grid(6, 3)]))
    network = GraphTransformer(1, 2, channels=8, layers=1, heads=2, readout="mean")
    assert network(images).shape == (2, 2)
    with pytest.raises(ShapeError, match="has 24 senders and 24 receivers, but there are 5 and 5 vectors"):
        network(Data(x=torch.rand(5, 1), edge_index=images.edge_index))


def test_kinds_of_edge_may_enter_the_score_alone():
    network = small_network(edge_into=("score",), normalizer="relu", dropout=0.0)
    assert {name for name, _ in network.named_parameters() if "edge" in name} == {
        "blocks.0.attention.edge_score.weight",
        "blocks.1.attention.edge_score.weight",
    }
    assert network.blocks[0].attention.normalizer == "relu"
    network(GRAPHS[-1]).sum().backward()
    assert network.blocks[0].attention.edge_score.weight.grad.abs().sum() > 0


def test_readouts_by_hand():
    x, ptr = torch.tensor([[1.0, -1.0], [3.0, -5.0], [2.0, 2.0]]), torch.tensor([0, 2, 2, 3])
    want = {"sum": [[4, -6], [0, 0], [2, 2]], "mean": [[2, -3], [0, 0], [2, 2]], "max": [[3, -1], [0, 0], [2, 2]]}
    for name, rows in want.items():
        assert make_readout(name, 2, 1)(x, ptr).tolist() == rows
    with pytest.raises(SettingError, match=r"readout must be sum, mean, max, attention, or several.*got 'median'"):
        make_readout("median", 2, 1)
    with pytest.raises(SettingError, match=r"channels \(6\) must be a multiple of heads \(4\)"):
        make_readout("attention", 6, 4)


def test_attention_readout_is_a_weighted_mean_of_values():
    readout = make_readout("attention", 4, 2)
    x, ptr = torch.randn(5, 4), torch.tensor([0, 3, 5])
    weights = readout.attention_weights(x, ptr).edges
    torch.testing.assert_close(torch.stack([weights[:3].sum(0), weights[3:].sum(0)]), torch.ones(2, 2))
    mixed = weights[..., None] * readout.value(x).view(5, 2, 2)
    torch.testing.assert_close(readout(x, ptr), torch.stack([mixed[:3].sum(0), mixed[3:].sum(0)]).flatten(1))


def test_dropout_only_in_training():
    network, batch = small_network(), Batch.from_data_list(GRAPHS)
    assert torch.equal(network(batch), network(batch))
    network.train()
    assert not torch.equal(network(batch), network(batch))


def test_attention_weights_of_a_network_line_up_with_edges_and_nodes():
    network, batch = small_network(), Batch.from_data_list(GRAPHS)
    weights = network.attention_weights(batch)
    assert len(weights.layers) == 2
    for layer in weights.layers:
        sums = layer.self_loops.index_add(0, batch.edge_index[1], layer.edges)
        torch.testing.assert_close(sums, torch.ones(batch.num_nodes, 4))
    assert weights.readout.shape == (batch.num_nodes, 4)
    assert small_network("sum").attention_weights(batch).readout is None


def test_float_features_and_no_edges_work_too():
    network = GraphTransformer(3, 2, channels=8, layers=1, heads=2, edge_channels=5, readout="mean", score="additive")
    data = Data(x=torch.randn(4, 3), edge_index=torch.tensor([[0, 1], [1, 2]]), edge_attr=torch.randn(2, 5))
    assert network(data).shape == (1, 2)
    bare = GraphTransformer(3, 2, channels=8, layers=1, heads=2, readout=None, self_loops=False)
    assert bare(data).shape == (4, 2)


def test_float_features_that_do_not_fit_are_refused_in_words():
    network = GraphTransformer(3, 2, channels=8, layers=1, heads=2)
    edge_index = torch.tensor([[0], [1]])
    with pytest.raises(ShapeError, match=r"x must have shape \(nodes, 3\); got \(4, 5\)"):
        network(Data(x=torch.randn(4, 5), edge_index=edge_index))
    with pytest.raises(ShapeError, match=r"x is torch\.float16, but the network's weights are torch\.float32"):
        network(Data(x=torch.randn(4, 3).half(), edge_index=edge_index))
    with pytest.raises(SettingError, match="layers must be at least 1, got 0"):
        GraphTransformer(3, 2, layers=0)


def test_the_block_keeps_the_state_of_a_node_that_sees_nobody():
    torch.manual_seed(0)
    block, x = Block(8, 2), torch.randn(3, 8)
    with torch.no_grad():
        block.merge.bias.zero_()
    out = block(x, torch.tensor([[0, 1], [1, 0]]))
    torch.testing.assert_close(out[2], x[2] + block.feed_forward(block.feed_forward_norm(x[2])))


def test_code_embedding_is_a_linear_layer_on_one_hot():
    embedding, codes = CodeEmbedding((4, 3), 6), torch.tensor([[3, 0], [0, 2]])
    one_hot = torch.cat([torch.nn.functional.one_hot(codes[:, 0], 4), torch.nn.functional.one_hot(codes[:, 1], 3)], 1)
    torch.testing.assert_close(embedding(codes), one_hot.float() @ embedding.table)


def test_joint_code_tells_every_combination_apart():
    codes = torch.cartesian_prod(torch.arange(3), torch.arange(2), torch.arange(4))
    assert joint_code(codes, (3, 2, 4)).tolist() == list(range(24))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"x": torch.tensor([[5, 0], [0, 0]])}, GraphError, r"x\[0, 0\] is 5, but its column has codes 0 to 4"),
        ({"x": torch.zeros(2, 3, dtype=torch.long)}, ShapeError, r"x must hold integer codes of shape \(rows, 2\)"),
        ({"x": torch.zeros(2, 2)}, ShapeError, "x must hold integer codes.*got float32"),
        ({"edge_attr": torch.tensor([[0, 2], [0, 0]])}, GraphError, r"edge_attr\[0, 1\] is 2.*codes 0 to 1"),
        ({"edge_attr": None}, ShapeError, "made with edge_channels, but data.edge_attr is None"),
        ({"batch": torch.zeros(2, dtype=torch.long)}, ShapeError, "data has batch but no ptr"),
    ],
)
def test_graphs_that_do_not_fit_are_refused_in_words(change, error, words):
    graph = random_graph(2)
    for name, each in change.items():
        graph[name] = each
    with pytest.raises(error, match=words):
        small_network()(graph)


def test_build_network_follows_its_config():
    config = NetworkConfig(channels=16, layers=3, heads=2, dropout=0.0, readout="sum", self_loops=False)
    network = build_network(config, node_widths=NODE_WIDTHS, edge_widths=EDGE_WIDTHS, out_channels=2)
    assert len(network.blocks) == 3
    assert network(GRAPHS[2]).shape == (1, 2)
    assert network.attention_weights(GRAPHS[2]).layers[0].self_loops.sum() == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"channels": 0}, "channels must be at least 1, got 0"),
        ({"channels": 10, "heads": 4}, r"channels \(10\) must be a multiple of heads \(4\)"),
        ({"channels": 16.0}, "channels must be a whole number, got 16.0"),
        ({"layers": 1.5}, "layers must be a whole number, got 1.5"),
        ({"heads": True}, "heads must be a whole number, got True"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"dropout": float("nan")}, r"dropout must be in \[0, 1\), got nan"),
        ({"dropout": "0.1"}, "dropout must be a number, got '0.1'"),
        ({"readout": None}, "readout must be sum, mean, max, attention, or several .* got None"),
        ({"self_loops": "no"}, "self_loops must be True or False, got 'no'"),
        ({"readout": "sum+sum"}, r"several of them, each once, joined by \+, got 'sum\+sum'"),
        (
            {"readout": "median"},
            "readout must be sum, mean, max, attention, or several of them, each once, joined by \\+, got 'median'",
        ),
    ],
)
def test_impossible_network_settings_are_refused(settings, words):
    with pytest.raises(SettingError, match=words):
        NetworkConfig(**settings)


def test_network_settings_of_numpy_are_kept_as_plain_ones():
    no = np.array([False])[0]
    config = NetworkConfig(channels=np.int64(16), heads=np.int32(2), dropout=np.float32(0.5), self_loops=no)
    assert config == NetworkConfig(channels=16, heads=2, dropout=0.5, self_loops=False)
    assert [type(value) for value in vars(config).values()] == [int, int, int, float, str, bool]
