"""Several heads: two of them by hand, equal to the layer, and a task that two heads learn and one does not.

Everybody in a group has a name, a friend, a rival and a mood; asked is whether the friend is glad and whether the rival
is, two kinds of relation that matter at once. One sees that two heads answer, and that one head of the same total
width, with as many learned numbers, does not: it looks at one of the two and guesses about the other. The full run
takes two minutes on two cores. Run: python examples/03_heads.py --output out
"""

import statistics
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from lesson import COLORS, count_parameters, figure, matrix, save, settings, shuffled, table, train
from torch import Tensor, nn
from torch.nn import functional

import graphattn as ga

INPUTS = torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
# Per head, 4 channels to 2.
QUERY = torch.tensor([[[1.0, 0], [0, 1], [0, 0], [1, 0]], [[0, 1], [1, 0], [1, 0], [0, 0]]])
KEY = torch.tensor([[[0.0, 1], [1, 0], [0, 0], [0, 1]], [[1, 0], [0, 0], [0, 1], [0, 1]]])
VALUE = torch.tensor([[[1.0, 0], [0, 2], [0, 1], [1, 0]], [[0, 3], [1, 0], [1, 1], [0, 1]]])
MERGE = torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1]])  # both heads' outputs to 4 channels

MEMBERS, NAME, CHANNELS = 8, 8, 32  # of a group; width of a name; of the network
HEADS = (1, 2)


@dataclass(frozen=True)
class Heads:
    """What came out."""

    by_hand: Tensor  # (3, 4), two heads joined and projected
    by_layer: Tensor  # the same by GraphAttention and a linear layer
    parameters: dict[int, int]  # learned numbers of the network with so many heads
    accuracies: dict[int, list[float]]  # share of members about whom both answers are right, for each seed


@dataclass(frozen=True)
class Groups:
    """G groups of MEMBERS each."""

    x: Tensor  # (G, MEMBERS, 3 NAME + 1): name, friend's name, rival's name, mood
    friend: Tensor  # (G, MEMBERS), place of each member's friend
    rival: Tensor
    label: Tensor  # 0 to 3: friend glad counts 2, rival glad 1

    def network_input(self, which: Tensor) -> SimpleNamespace:
        """Some of the groups as one batch; everybody sees everybody of their group."""
        everybody = ga.Adjacency.complete(ptr=torch.arange(len(which) + 1) * MEMBERS)
        return SimpleNamespace(x=self.x[which].flatten(0, 1), edge_index=everybody, edge_attr=None)


def main(output: Path, *, quick: bool) -> Heads:
    """Two heads by hand; one head against two on the task; draw."""
    by_hand, by_layer = two_heads_by_hand(), two_heads_by_layer()
    matrix("the same by GraphAttention with two heads, and a linear layer", by_layer)

    seeds, epochs = (1, 6) if quick else (5, 20)
    examples, unseen = (2500 if quick else 4096), make_groups(500, seed=1000)
    accuracies: dict[int, list[float]] = {heads: [] for heads in HEADS}
    networks = {}
    for seed in range(seeds):
        groups = make_groups(examples, seed)
        for heads in HEADS:
            networks[heads] = learned(groups, heads, seed, epochs)
            accuracies[heads].append(accuracy(networks[heads], unseen))
    parameters = {heads: count_parameters(network) for heads, network in networks.items()}
    rows = [
        {
            "heads": heads,
            "channels per head": CHANNELS // heads,
            "parameters": parameters[heads],
            "accuracy": f"{statistics.mean(accuracies[heads]):.1%}",
            "lowest": f"{min(accuracies[heads]):.1%}",
            "highest": f"{max(accuracies[heads]):.1%}",
        }
        for heads in HEADS
    ]
    table(rows, f"is the friend glad, and is the rival? Both right, on unseen groups, chance 25 %; seeds: {seeds}")
    draw(networks, accuracies, unseen, output)
    print(
        f"\nTwo heads answer both questions about {statistics.mean(accuracies[2]):.1%} of the members, one head of the "
        f"same total width about {statistics.mean(accuracies[1]):.1%}; who knows one answer and guesses the other is "
        "right about 50 %."
    )
    return Heads(by_hand, by_layer, parameters, accuracies)


def two_heads_by_hand() -> Tensor:
    """Each head attends with projections of its own; outputs are joined and projected."""
    outputs = []
    for head in range(2):
        query, key, value = (INPUTS @ of_heads[head] for of_heads in (QUERY, KEY, VALUE))
        weights = (query @ key.T / 2**0.5).softmax(-1)
        outputs.append(weights @ value)
        matrix(f"head {head + 1}: scores Q K^T", query @ key.T, digits=0)
        matrix(f"head {head + 1}: weights softmax(Q K^T / sqrt 2)", weights)
        matrix(f"head {head + 1}: outputs", outputs[head])
    joined = torch.cat(outputs, -1)
    matrix("outputs of both heads joined", joined)
    matrix("joined and projected", joined @ MERGE)
    return joined @ MERGE


@torch.no_grad()
def two_heads_by_layer() -> Tensor:
    """One layer holds the projections of all heads, one head's channels after another's, a row per channel."""
    layer, merge = ga.GraphAttention(4, 4, heads=2, bias=False), nn.Linear(4, 4, bias=False)
    weights = {"query": QUERY, "key": KEY, "value": VALUE}
    layer.load_state_dict({f"{name}.weight": torch.cat([*heads], -1).T for name, heads in weights.items()})
    merge.load_state_dict({"weight": MERGE.T})
    out: Tensor = merge(layer(INPUTS, ga.Adjacency.complete(3)))
    return out


def make_groups(count: int, seed: int) -> Groups:
    """Names are random directions, new in every group; a mood is at least 0.1 from 0, above is glad."""
    generator = torch.Generator().manual_seed(seed)
    names = functional.normalize(torch.randn(count, MEMBERS, NAME, generator=generator), dim=-1)
    mood = torch.empty(count, MEMBERS).uniform_(-0.9, 0.9, generator=generator)
    mood += 0.1 * mood.sign()
    preference = torch.rand(count, MEMBERS, MEMBERS, generator=generator)
    preference.diagonal(dim1=1, dim2=2).fill_(-1)  # nobody is their own friend or rival
    friend, rival = preference.topk(2).indices.unbind(-1)
    group = torch.arange(count)[:, None]
    x = torch.cat([names, names[group, friend], names[group, rival], mood[..., None]], -1)
    return Groups(x, friend, rival, 2 * (mood[group, friend] > 0).long() + (mood[group, rival] > 0).long())


def learned(groups: Groups, heads: int, seed: int, epochs: int) -> ga.GraphTransformer:
    """One layer of attention and one feed-forward part."""
    torch.manual_seed(seed)
    network = ga.GraphTransformer(3 * NAME + 1, out_channels=4, channels=CHANNELS, layers=1, heads=heads, readout=None)

    def loss_of(which: Tensor) -> Tensor:
        return functional.cross_entropy(network(groups.network_input(which)), groups.label[which].flatten())

    train(network, lambda: shuffled(len(groups.x), 64), loss_of, epochs=epochs, learning_rate=5e-3)
    return network


@torch.no_grad()
def accuracy(network: ga.GraphTransformer, groups: Groups) -> float:
    """Share of members about whom both answers are right."""
    guess = network(groups.network_input(torch.arange(len(groups.x)))).argmax(-1)
    return float((guess == groups.label.flatten()).float().mean())


@torch.no_grad()
def draw(
    networks: dict[int, ga.GraphTransformer], accuracies: dict[int, list[float]], unseen: Groups, output: Path
) -> None:
    """Accuracy by number of heads; whom each head looks at in one unseen group."""
    drawn, axes = figure(4, width=3.9, height=4.1)
    for place, heads in enumerate(HEADS):
        mean = statistics.mean(accuracies[heads])
        low, high = mean - min(accuracies[heads]), max(accuracies[heads]) - mean
        axes[0].bar(place, mean, yerr=[[low], [high]], capsize=6, color=COLORS[place], width=0.6)
        axes[0].text(place, mean + 0.03, f"{mean:.1%}", ha="center")
    axes[0].axhline(0.25, color="black", linestyle=":", linewidth=1)
    axes[0].text(0.5, 0.265, "chance", ha="center", fontsize=9)
    axes[0].set(ylim=(0, 1.12), ylabel="both answers right", xlabel="heads (same total width)", xticks=range(2))
    axes[0].set(xticklabels=HEADS, title=f"{len(accuracies[1])} seeds, lowest to highest")
    panel = iter(axes[1:])
    for heads, network in networks.items():
        weights = network.attention_weights(unseen.network_input(torch.tensor([0]))).layers[0].edges
        for head in range(heads):
            title = "the only head" if heads == 1 else f"head {head + 1} of 2"
            who_looks(next(panel), weights[:, head].view(MEMBERS, MEMBERS), unseen, title)
    save(drawn, output, "03_heads.png")


def who_looks(axes: Any, weights: Tensor, groups: Groups, title: str) -> None:
    """The weights in the first group, everybody's friend and rival marked."""
    axes.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=1.4)
    for receiver in range(MEMBERS):
        for sender, letter in ((int(groups.friend[0, receiver]), "F"), (int(groups.rival[0, receiver]), "R")):
            axes.text(sender, receiver, letter, ha="center", va="center", fontsize=9)
    axes.set(title=f"{title} (F friend, R rival)", xlabel="looked at", ylabel="who looks")


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
