"""Two scores and two normalizers on the same input: dot product beside additive, softmax beside ReLU.

One sees four weight matrices of the same five vectors: softmax gives every sender something and each row sums to 1,
ReLU gives exact zeros and no fixed sum; and what happens when the vectors get longer: a dot product grows with the
square of the length, until softmax picks a single sender, an additive score stays within a bound. Takes seconds.
Run: python examples/02_scores.py --output out
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lesson import COLORS, figure, matrix, save, settings, table
from torch import Tensor

import graphattn as ga
from graphattn.attention.normalizers import NORMALIZERS
from graphattn.attention.scores import Score

VECTORS, CHANNELS = 5, 4
LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # what the vectors are multiplied by
SCORES: dict[str, Score] = {"dot product": ga.DotProduct(), "additive": ga.Additive(activation="tanh")}


@dataclass(frozen=True)
class Comparison:
    """What came out, by score ("dot product", "additive") and normalizer ("softmax", "relu")."""

    x: Tensor  # (5, 4), the input
    layers: dict[tuple[str, str], ga.GraphAttention]  # all with the same projections
    scores: dict[str, Tensor]  # (5, 5) receiver, sender
    weights: dict[tuple[str, str], Tensor]  # (5, 5)
    largest_score: dict[str, list[float]]  # for each of LENGTHS, its absolute value
    largest_weight: dict[str, list[float]]  # for each of LENGTHS, of softmax, mean over receivers
    bound: float  # of the additive score: the sum of |a|


def main(output: Path, *, quick: bool) -> Comparison:  # noqa: ARG001 (there is nothing to shorten)
    """Compare, print, draw."""
    torch.manual_seed(4)
    x = torch.randn(VECTORS, CHANNELS)
    layers = make_layers()
    additive = layers["additive", "softmax"].score_vector
    assert additive is not None
    found = Comparison(
        x,
        layers,
        scores={name: scores_of(layers[name, "softmax"], x) for name in SCORES},
        weights={key: weights_of(layer, x) for key, layer in layers.items()},
        largest_score={
            name: [float(scores_of(layers[name, "softmax"], length * x).abs().max()) for length in LENGTHS]
            for name in SCORES
        },
        largest_weight={
            name: [float(weights_of(layers[name, "softmax"], length * x).amax(1).mean()) for length in LENGTHS]
            for name in SCORES
        },
        bound=float(additive.detach().abs().sum()),
    )
    one_pair(layers, x)
    for name, scores in found.scores.items():
        matrix(f"{name}: scores, a row per receiver", scores, digits=2)
    rows = [
        {
            "score": score,
            "normalizer": normalizer,
            "exact zeros": int((weights == 0).sum()),
            "smallest sum of a row": f"{float(weights.sum(1).min()):.3f}",
            "largest sum of a row": f"{float(weights.sum(1).max()):.3f}",
        }
        for (score, normalizer), weights in found.weights.items()
    ]
    table(rows, f"weights that {VECTORS} receivers give to {VECTORS} senders")
    grown = [
        {
            "vectors times": length,
            **{f"largest |score|, {name}": f"{found.largest_score[name][place]:.2f}" for name in SCORES},
            **{f"largest weight, {name}": f"{found.largest_weight[name][place]:.2f}" for name in SCORES},
        }
        for place, length in enumerate(LENGTHS)
    ]
    table(grown, f"longer vectors, weights by softmax; an additive score cannot pass sum |a| = {found.bound:.2f}")
    draw(found, output)
    print(
        "\nSoftmax gives everybody a share of 1; ReLU leaves out whoever scores below 0, and its rows need not sum to "
        "1. Longer vectors raise a dot product without limit, an additive score not."
    )
    return found


def make_layers() -> dict[tuple[str, str], ga.GraphAttention]:
    """A layer of one head for each score and normalizer; queries, keys and values are projected alike in all."""
    layers: dict[tuple[str, str], ga.GraphAttention] = {
        (name, normalizer): ga.GraphAttention(CHANNELS, CHANNELS, 1, score, normalizer, bias=False)
        for name, score in SCORES.items()
        for normalizer in NORMALIZERS
    }
    learned = layers["additive", "softmax"].state_dict()
    for layer in layers.values():
        layer.load_state_dict({name: learned[name] for name in layer.state_dict()})
    return layers


@torch.no_grad()
def scores_of(layer: ga.GraphAttention, x: Tensor) -> Tensor:
    """(receivers, senders): the layer's score of each pair."""
    call = layer.attention_call(x, ga.Adjacency.complete(len(x)))
    return call.score(call.query[:, None], call.key[None])[..., 0]


@torch.no_grad()
def one_pair(layers: dict[tuple[str, str], ga.GraphAttention], x: Tensor) -> None:
    """Print both scores of the first receiver and the first sender, step by step."""
    call = layers["additive", "softmax"].attention_call(x, ga.Adjacency.complete(len(x)))
    query, key, vector = call.query[0, 0], call.key[0, 0], layers["additive", "softmax"].score_vector
    assert vector is not None
    steps = {
        "query q = W_q x_1": query,
        "key k = W_k x_1": key,
        "q k": query * key,
        "tanh(q + k)": (query + key).tanh(),
        "learned vector a": vector[0],
        "a tanh(q + k)": vector[0] * (query + key).tanh(),
    }
    rows = [
        {"channel by channel": name, **{str(channel): f"{number:.3f}" for channel, number in enumerate(row.tolist())}}
        for name, row in steps.items()
    ]
    table(rows, "what the first vector makes of itself")
    print(f"dot product: the sum of q k over sqrt({CHANNELS}): {float((query * key).sum()) / CHANNELS**0.5:.3f}")
    print(f"additive: the sum of a tanh(q + k): {float((vector[0] * (query + key).tanh()).sum()):.3f}")


@torch.no_grad()
def weights_of(layer: ga.GraphAttention, x: Tensor) -> Tensor:
    """(receivers, senders): the layer's weight of each pair."""
    return layer.attention_weights(x, ga.Adjacency.complete(len(x))).edges.view(len(x), len(x))


def draw(found: Comparison, output: Path) -> None:
    """Four weight matrices, and what longer vectors do."""
    drawn, axes = figure(3, 2, width=4.2, height=3.7)
    for row, name in enumerate(SCORES):
        for column, normalizer in enumerate(NORMALIZERS):
            heat_map(axes[row, column], found.weights[name, normalizer], f"{name}, {normalizer}")
    for name, color in zip(SCORES, COLORS, strict=False):
        axes[0, 2].plot(LENGTHS, found.largest_score[name], "o-", color=color, label=name)
        axes[1, 2].plot(LENGTHS, found.largest_weight[name], "o-", color=color, label=name)
    axes[0, 2].axhline(found.bound, color="gray", linestyle=":", label="sum |a|, the bound of additive")
    axes[0, 2].set(yscale="log", ylabel="largest |score|", title="longer vectors: scores")
    axes[1, 2].axhline(1 / VECTORS, color="gray", linestyle=":", label="all alike")
    axes[1, 2].set(ylim=(0, 1.05), ylabel="largest weight of a receiver", title="longer vectors: softmax weights")
    for panel in axes[:, 2]:
        panel.set_xscale("log", base=2)
        panel.set(xlabel="vectors times", xticks=LENGTHS)
        panel.set_xticklabels([f"{length:g}" for length in LENGTHS])
        panel.legend(fontsize=8)
    save(drawn, output, "02_scores.png")


def heat_map(panel: Any, weights: Tensor, title: str) -> None:
    """A weight matrix with its numbers; an exact zero is an empty white cell."""
    panel.imshow(weights.where(weights > 0, torch.nan).numpy(), cmap="Blues", vmin=0, vmax=1.3 * float(weights.max()))
    for receiver, row in enumerate(weights.tolist()):
        for sender, weight in enumerate(row):
            panel.text(sender, receiver, f"{weight:.2f}" if weight else "0", ha="center", va="center", fontsize=9)
    panel.set(title=title, xlabel="sender", ylabel="receiver")
    panel.set_xticks(range(VECTORS), range(1, VECTORS + 1))
    panel.set_yticks(range(VECTORS), range(1, VECTORS + 1))


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
