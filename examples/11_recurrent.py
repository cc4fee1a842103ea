"""Attention against a recurrent network: which inputs reach which outputs, and what a long sequence costs.

A GRU hands one state from step to step: an output knows its left only, and each step waits for the one before. In
attention every output looks for itself: at all, at its left (causal) or at its neighbors (window), as the adjacency
says, and nobody waits. One sees how much outputs change with inputs, as matrices, and the time per sequence by length:
layers of one width, adjacencies built beforehand.

Takes about 2 minutes on two cores, and 6 GB of memory. Run: python examples/11_recurrent.py --output out
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
from lesson import COLORS, figure, save, settings, table
from torch import Tensor, nn
from torch.autograd.functional import jacobian

from graphattn import Adjacency, GraphAttention

CHANNELS, HEADS, RADIUS = 128, 4, 15  # of the layers that are timed
PASSES = ("forward", "forward and backward")
Layer = Callable[[Tensor], Tensor]  # (L, channels) -> (L, channels)


@dataclass(frozen=True)
class Results:
    """What came out, by layer."""

    gradients: dict[str, Tensor]  # (L, L) largest |d output row / d input column| over channels
    seconds: dict[str, dict[str, dict[int, float]]]  # per sequence: by pass, layer and length


def main(output: Path, *, quick: bool) -> Results:
    """Look at the gradients, take the time; print and draw."""
    torch.manual_seed(0)
    gradients = {name: gradient(layer, torch.randn(24, 8)) for name, layer in layers(24, 8, heads=2, radius=3).items()}
    table([{"layer": name} | shares(seen > 0) for name, seen in gradients.items()], title="Inputs that reach an output")
    lengths = (128, 256) if quick else (128, 256, 512, 1024, 2048, 4096, 8192)
    seconds: dict[str, dict[str, dict[int, float]]] = {which: {name: {} for name in gradients} for which in PASSES}
    for length in lengths:
        for (which, name), taken in timed(length, rounds=3 if quick else 7).items():
            seconds[which][name][length] = taken
    for which, of_pass in seconds.items():
        rows = [
            {"layer": name} | {f"{length:,}": f"{1000 * taken:.1f}" for length, taken in of_layer.items()}
            for name, of_layer in of_pass.items()
        ]
        table(rows, title=f"Milliseconds per sequence by length, {which}, {torch.get_num_threads()} threads")
    draw(gradients, seconds, output)
    long = lengths[-1]
    print(f"\nA GRU's steps wait for each other, attention waits for nobody. Against the GRU, on {long:,} vectors,")
    for which, of_pass in seconds.items():
        ratios = {name: of_pass["GRU"][long] / of_layer[long] for name, of_layer in of_pass.items() if name != "GRU"}
        print(f"  {which}: " + ", ".join(f"{name} is {ratio:.1f} times as fast" for name, ratio in ratios.items()))
    return Results(gradients, seconds)


def layers(length: int, channels: int, *, heads: int, radius: int) -> dict[str, Layer]:
    """A GRU, and attention of the same width on three adjacencies of a sequence."""
    recurrent = nn.GRU(channels, channels)
    adjacencies = {
        "full attention": Adjacency.complete(length),
        "causal attention": Adjacency.causal(length),
        "window attention": Adjacency.window(length, radius=radius),
    }

    def attending(adjacency: Adjacency) -> Layer:
        layer = GraphAttention(channels, channels, heads)
        return lambda x: layer(x, adjacency)

    return {"GRU": lambda x: recurrent(x)[0]} | {name: attending(each) for name, each in adjacencies.items()}


def gradient(layer: Layer, x: Tensor) -> Tensor:
    """(L, L): how much output ``row`` changes with input ``column``, the largest over pairs of channels."""
    changes: Tensor = jacobian(layer, x)  # type: ignore[no-untyped-call]  # (L, channels, L, channels)
    return changes.abs().amax((1, 3))


def shares(seen: Tensor) -> dict[str, str]:
    """Share of (output, input) pairs with the input to the left, the same and to the right that are connected."""
    place = torch.arange(len(seen))
    offset = place - place[:, None]
    sides = {"left of it": offset < 0, "at its place": offset == 0, "right of it": offset > 0}
    return {side: f"{float(seen[pairs].float().mean()):.0%}" for side, pairs in sides.items()}


def timed(length: int, *, rounds: int) -> dict[tuple[str, str], float]:
    """Median seconds of each pass of each layer; the layers take turns, so that a busy moment hits all alike."""
    of_length, x = layers(length, CHANNELS, heads=HEADS, radius=RADIUS), torch.randn(length, CHANNELS)
    given, upstream = x.clone().requires_grad_(), torch.randn(length, CHANNELS)

    def forward(layer: Layer) -> None:
        with torch.no_grad():
            layer(x)

    def both(layer: Layer) -> None:
        torch.autograd.backward(layer(given), upstream)

    taken: dict[tuple[str, str], list[float]] = {(which, name): [] for which in PASSES for name in of_length}
    for number in range(rounds + 1):
        for which, run in zip(PASSES, (forward, both), strict=True):
            for name, layer in of_length.items():
                start = time.perf_counter()
                run(layer)
                if number:  # the first round compiles and warms up
                    taken[which, name].append(time.perf_counter() - start)
    return {key: median(each) for key, each in taken.items()}


def draw(gradients: dict[str, Tensor], seconds: dict[str, dict[str, dict[int, float]]], output: Path) -> None:
    """Reach on top, time below."""
    drawn, axes = figure(4, 2, width=3.4, height=3.4)
    for place, (name, size) in zip(axes[0], gradients.items(), strict=True):
        scale = size.log10().masked_fill(size == 0, torch.nan)
        mappable = place.imshow(scale.numpy(), cmap="viridis", vmin=-6, vmax=0)
        place.set(title=name, xlabel="input")
    axes[0, 0].set_ylabel("output")
    drawn.colorbar(mappable, ax=axes[0], label="log10 of the gradient; white: none")
    below = axes[1, 0].get_gridspec()
    for place in axes[1]:
        place.remove()
    for which, columns in zip(PASSES, (slice(0, 2), slice(2, 4)), strict=True):
        draw_times(drawn.add_subplot(below[1, columns]), seconds[which], which)
    save(drawn, output, "11_recurrent.png")


def draw_times(place: Any, seconds: dict[str, dict[int, float]], which: str) -> None:
    """Time over length, both on logarithmic axes."""
    for (name, of_layer), color in zip(seconds.items(), COLORS, strict=False):
        place.plot(list(of_layer), [1000 * taken for taken in of_layer.values()], "o-", color=color, label=name)
    place.set(xscale="log", yscale="log", xlabel="vectors in the sequence", ylabel="milliseconds", title=which)
    lengths = list(seconds["GRU"])
    place.set_xticks(lengths, [f"{length:,}" for length in lengths])
    place.minorticks_off()
    place.legend(loc="upper left")


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
