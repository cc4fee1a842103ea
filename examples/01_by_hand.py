"""Self-attention by hand: three vectors, every step as a small table, then the same from the layer, by every backend.

One sees the score of every pair, what softmax makes of it, the mixture of values that comes out, and that all outputs
come at once from a few matrix products. Takes seconds. Run: python examples/01_by_hand.py --output out
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from lesson import figure, matrix, save, settings, table
from torch import Tensor

import graphattn as ga
from graphattn.attention.attend import BACKENDS

INPUTS = torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]])
KEY = torch.tensor([[0.0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]])
QUERY = torch.tensor([[1.0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]])
VALUE = torch.tensor([[0.0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]])
SET_WEIGHTS = torch.tensor([[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]])  # who looks at whom, decided by hand


@dataclass(frozen=True)
class ByHand:
    """What came out; every matrix is (3, 3)."""

    scores: Tensor  # receiver, sender
    outputs: Tensor  # worked out one receiver after another
    outputs_at_once: Tensor  # by matrix products
    outputs_of_set_weights: Tensor  # where SET_WEIGHTS stand in for the softmax
    layer: dict[str, Tensor]  # outputs by backend
    set_weights_by_relu: dict[str, Tensor]
    set_weights_by_softmax: dict[str, Tensor]


def main(output: Path, *, quick: bool) -> ByHand:  # noqa: ARG001 (there is nothing to shorten)
    """Print every step, compare the layer with it, draw."""
    query, key, value = INPUTS @ QUERY, INPUTS @ KEY, INPUTS @ VALUE
    for name, rows in (("inputs X", INPUTS), ("queries Q", query), ("keys K", key), ("values V", value)):
        matrix(f"{name}, a row per vector", rows, digits=0)
    outputs = torch.stack([one_output(which, query[which], key, value) for which in range(3)])

    scores = query @ key.T
    weights = scores.softmax(-1)
    matrix("all scores at once, Q K^T", scores, digits=0)
    matrix("all weights at once, softmax(Q K^T)", weights)
    matrix("all outputs at once, softmax(Q K^T) V", weights @ value)
    matrix("weights set by hand instead", SET_WEIGHTS, digits=1)
    matrix("their outputs, one matrix product", SET_WEIGHTS @ value, digits=1)

    found = ByHand(
        scores,
        outputs,
        weights @ value,
        SET_WEIGHTS @ value,
        {backend: by_layer(backend, device) for backend, device in runnable()},
        {backend: by_set_weights(value, "relu", backend, device) for backend, device in runnable()},
        {backend: by_set_weights(value, "softmax", backend, device) for backend, device in runnable()},
    )
    differences = [
        {
            "backend": backend,
            "layer": largest_difference(found.layer[backend], outputs),
            "weights set, relu": largest_difference(found.set_weights_by_relu[backend], SET_WEIGHTS @ value),
            "weights set, softmax": largest_difference(found.set_weights_by_softmax[backend], SET_WEIGHTS @ value),
        }
        for backend in found.layer
    ]
    table(differences, "GraphAttention and masked_attention: largest difference from the outputs above")
    draw(query, key, value, weights, output)
    furthest = max(float((found.layer[backend] - outputs).abs().max()) for backend in found.layer)
    print(
        f"\nBy all {len(differences)} backends that run here, the layer is within {furthest:.0e} of the three vectors "
        "worked out by hand."
    )
    return found


def one_output(which: int, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One output vector, printed step by step: compare with every key, make weights of the scores, mix the values."""
    scores = torch.stack([query @ key for key in keys])
    weights = scores.exp() / scores.exp().sum()
    parts = torch.stack([weight * value for weight, value in zip(weights, values, strict=True)])
    rows = [
        {
            "sender": sender + 1,
            "score": f"{scores[sender]:.0f}",
            "weight": f"{weights[sender]:.4f}",
            "value": line(values[sender], digits=0),
            "weight x value": line(parts[sender]),
        }
        for sender in range(3)
    ]
    table(rows, f"output {which + 1}: query {line(query, digits=0)} compared with the key of every vector")
    print(f"the last column summed: {line(parts.sum(0))}")
    return parts.sum(0)


def line(vector: Tensor, digits: int = 4) -> str:
    """A vector in one line."""
    return "[" + " ".join(f"{number:.{digits}f}" for number in vector.tolist()) + "]"


def runnable() -> list[tuple[str, str]]:
    """Every backend that can run here, with the device it runs on."""
    found: list[tuple[str, str]] = []
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        everybody, layer = ga.Adjacency.complete(3).to(device), ga.GraphAttention(4, 3, heads=1).to(device)
        call = layer.attention_call(INPUTS.to(device), everybody)
        done = {backend for backend, _ in found}
        found += [(each.name, device) for each in BACKENDS if each.name not in done and each.why_not(call) is None]
    return found


@torch.no_grad()
def by_layer(backend: str, device: str) -> Tensor:
    """The layer with these weights; it keeps a projection as PyTorch does, a row per output channel."""
    layer = ga.GraphAttention(4, 3, heads=1, score=ga.DotProduct(scale=1.0), bias=False, backend=backend)
    layer.load_state_dict({"query.weight": QUERY.T, "key.weight": KEY.T, "value.weight": VALUE.T})
    out: Tensor = layer.to(device)(INPUTS.to(device), ga.Adjacency.complete(3).to(device))
    return out.cpu()


def by_set_weights(value: Tensor, normalizer: Literal["relu", "softmax"], backend: str, device: str) -> Tensor:
    """Queries and keys of zeros, so that the bias of a pair is all of its score: the weight, or for softmax its log.

    ReLU hands the weights on as they are; softmax makes them out of their logarithms, and nothing out of log 0.
    """
    bias = SET_WEIGHTS if normalizer == "relu" else SET_WEIGHTS.log()
    out = ga.masked_attention(
        torch.zeros(3, 1, 3, device=device),
        torch.zeros(3, 1, 3, device=device),
        value[:, None].to(device),  # one head
        ga.Adjacency.complete(3).to(device),
        normalizer=normalizer,
        bias=bias.reshape(9, 1).to(device),  # its edges are numbered receiver by receiver
        backend=backend,
    )
    return out[:, 0].cpu()


def largest_difference(found: Tensor, wanted: Tensor) -> str:
    """As text; 0 where the two are the same bits."""
    return f"{float((found - wanted).abs().max()):.1e}"


def draw(query: Tensor, key: Tensor, value: Tensor, weights: Tensor, output: Path) -> None:
    """The matrices in the order of the steps."""
    drawn, axes = figure(4, 2, width=3.2, height=2.9)
    panels = (
        ("inputs $X$", INPUTS, 0),
        ("queries $Q = X W_q$", query, 0),
        ("keys $K = X W_k$", key, 0),
        ("values $V = X W_v$", value, 0),
        ("scores $Q K^T$", query @ key.T, 0),
        ("weights $A = $softmax$(Q K^T)$", weights, 4),
        ("outputs $A V$", weights @ value, 4),
        ("outputs of weights set by hand", SET_WEIGHTS @ value, 1),
    )
    for panel, (title, values, digits) in zip(axes.flat, panels, strict=True):
        numbers(panel, title, values, digits)
    for panel in (axes[1, 0], axes[1, 1]):
        panel.set(xlabel="sender", ylabel="receiver")
        panel.set_xticks(range(3), range(1, 4))
        panel.set_yticks(range(3), range(1, 4))
    drawn.suptitle("Self-attention of three vectors, step by step")
    save(drawn, output, "01_by_hand.png")


def numbers(panel: Any, title: str, values: Tensor, digits: int) -> None:
    """A small matrix with its numbers in its cells."""
    panel.imshow(values.numpy(), cmap="Blues", vmin=0, vmax=1.6 * float(values.max()))
    for row, of_row in enumerate(values.tolist()):
        for column, number in enumerate(of_row):
            panel.text(column, row, f"{number:.{digits}f}", ha="center", va="center")
    panel.set(title=title, xticks=[], yticks=[])


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
