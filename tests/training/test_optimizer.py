"""AdamW: which weights decay, and a state that comes back to the same bits."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import Linear
from toy_graphs import toy_network

from graphattn.errors import TrainingError
from graphattn.model.config import NetworkConfig
from graphattn.model.network import build_network
from graphattn.training.config import TrainingConfig
from graphattn.training.optimizer import (
    decaying_parameters,
    make_optimizer,
    optimizer_tensors,
    restore_optimizer,
)


def test_only_matrices_that_multiply_decay():
    assert decaying_parameters(toy_network()) == {"hidden.weight", "head.weight"}


def test_tables_are_spared_even_where_they_are_shared_with_a_layer():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(4, 9, bias=False)
            self.table = nn.Embedding(9, 4)
            self.table.weight = self.out.weight
            self.bag = nn.EmbeddingBag(9, 4)

    assert decaying_parameters(Tied()) == set()


def test_other_layers_follow_from_what_they_call_a_weight():
    attention = nn.ModuleDict({"attention": nn.MultiheadAttention(4, 2), "rnn": nn.GRU(4, 4), "pyg": Linear(4, 4)})
    assert decaying_parameters(attention) == {
        "attention.in_proj_weight",
        "attention.out_proj.weight",
        "rnn.weight_ih_l0",
        "rnn.weight_hh_l0",
        "pyg.weight",
    }


def test_the_networks_own_tables_and_seeds_are_spared():
    network = build_network(NetworkConfig(layers=1), node_widths=[9, 4], edge_widths=[5, 3], out_channels=1)
    spared = {name for name, parameter in network.named_parameters() if parameter.dim() >= 2}
    spared -= decaying_parameters(network)
    assert spared == {"embed.table", "blocks.0.attention.edge.weight", "readout.readouts.0.seed"}


def test_the_groups_hold_every_trainable_parameter_once():
    network = toy_network()
    network.hidden.weight.requires_grad_(False)
    decay, spared = make_optimizer(network, TrainingConfig(weight_decay=0.3)).param_groups
    assert (decay["weight_decay"], spared["weight_decay"]) == (0.3, 0.0)
    assert [id(parameter) for parameter in decay["params"]] == [id(network.head.weight)]
    wanted = {id(p) for name, p in network.named_parameters() if name not in {"head.weight", "hidden.weight"}}
    assert {id(parameter) for parameter in spared["params"]} == wanted


def test_weight_decay_moves_matrices_and_nothing_else():
    network = toy_network()
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    optimizer = make_optimizer(network, TrainingConfig(weight_decay=0.5, learning_rate=0.1))
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in network.named_parameters():
        wanted = before[name] * (1 - 0.1 * 0.5) if name in {"hidden.weight", "head.weight"} else before[name]
        torch.testing.assert_close(parameter.detach(), wanted)


def test_a_network_without_trainable_parameters_is_refused():
    network = toy_network().requires_grad_(requires_grad=False)
    with pytest.raises(TrainingError, match="no parameter with requires_grad=True, so there is nothing to train"):
        make_optimizer(network, TrainingConfig())


def test_the_state_comes_back_to_the_same_bits():
    def step(network, optimizer, seed):
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in network.named_parameters():
            parameter.grad = None if name == "norm.bias" else torch.randn(parameter.shape, generator=generator)
        optimizer.step()

    one, other = toy_network(), toy_network(seed=1)
    first, second = make_optimizer(one, TrainingConfig()), make_optimizer(other, TrainingConfig())
    step(one, first, seed=1)
    saved = {name: tensor.clone() for name, tensor in optimizer_tensors(first, one).items()}
    assert "exp_avg.head.weight" in saved
    assert "exp_avg.norm.bias" not in saved  # it never had a gradient
    other.load_state_dict(one.state_dict())
    restore_optimizer(second, other, saved)
    for seed in (2, 3):
        step(one, first, seed)
        step(other, second, seed)
    assert all(torch.equal(one.state_dict()[name], tensor) for name, tensor in other.state_dict().items())
