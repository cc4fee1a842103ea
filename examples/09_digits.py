"""An image is a set of pixel vectors: digits read by full attention, by attention between near pixels, and by a CNN.

Each of the 64 pixels of an 8 x 8 image is a vector: its gray value and its place. With every pair as adjacency a pixel
sees the whole image in one step; with the k x k grid it sees what a convolution sees, at a fraction of the pairs. The
networks have about as many parameters and the same training. The picture shows six held-out digits, and below
each how much its pixels are looked at in the last block, first where all are seen, then where the nearest are.

Takes 2 to 3 minutes on two cores. Run: python examples/09_digits.py --output out
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import digits
import torch
from digits import SIDE, Digits, PixelAttention
from lesson import count_parameters, figure, save, settings, table
from torch import Tensor, nn

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "full attention": lambda: PixelAttention(None),
    "3 x 3 attention": lambda: PixelAttention(3),
    "5 x 5 attention": lambda: PixelAttention(5),
    "CNN": digits.cnn,
}


@dataclass(frozen=True)
class Result:
    """What came out for one network."""

    parameters: int
    pairs: int | None  # of pixels that attend, per image
    accuracy: float  # on held-out images
    seconds: float  # of training


def main(output: Path, *, quick: bool) -> dict[str, Result]:
    """Train each network, print how it does on held-out images, draw where two of them look."""
    training, held_out = digits.split(1400, seed=0)
    results, trained = {}, {}
    for name, make in NETWORKS.items():
        torch.manual_seed(0)
        trained[name] = network = make()
        start = time.perf_counter()
        digits.fit(network, training, steps=84 if quick else 1500)
        seconds = time.perf_counter() - start
        pairs = digits.neighborhood(network.size, 1)[0].num_entries if isinstance(network, PixelAttention) else None
        results[name] = Result(count_parameters(network), pairs, digits.accuracy(network, held_out), seconds)
    table(
        [
            {
                "network": name,
                "parameters": each.parameters,
                "pairs of pixels per image": each.pairs or "-",
                "held-out images right": f"{each.accuracy:.1%}",
                "seconds": f"{each.seconds:.0f}",
            }
            for name, each in results.items()
        ],
        title=f"Trained on {len(training)} images, tested on {len(held_out)} others",
    )
    draw({name: trained[name] for name in list(NETWORKS)[:2]}, held_out, output)
    worst, best = (choose(results, key=lambda name: results[name].accuracy) for choose in (min, max))
    print(
        f"\nEvery network reads at least {results[worst].accuracy:.1%} of the held-out images right ({worst}), the "
        f"best {results[best].accuracy:.1%} ({best})."
    )
    return results


def looked_at(network: PixelAttention, images: Tensor) -> Tensor:
    """(N, 8, 8): attention that each pixel receives in the last block, from all pixels and heads; 1 on average."""
    adjacency, _ = digits.neighborhood(network.size, len(images))
    with torch.no_grad():
        weights = network.network.attention_weights(network.data(images)).layers[-1].edges.mean(-1)
    return weights.new_zeros(images.numel()).index_add(0, adjacency.edge_index()[0], weights).view(-1, SIDE, SIDE)


def draw(networks: dict[str, nn.Module], held_out: Digits, output: Path) -> None:
    """Digits on top, and how much their pixels are looked at, one row per network."""
    shown = torch.stack([(held_out.labels == digit).nonzero()[0, 0] for digit in (0, 2, 3, 4, 6, 8)])
    images = held_out.images[shown]
    drawn, axes = figure(len(shown), 1 + len(networks), width=1.7, height=1.8)
    rows = {"the image": images.view(-1, SIDE, SIDE)}
    for name, network in networks.items():
        assert isinstance(network, PixelAttention)
        rows[name] = looked_at(network, images)
    for row, (name, maps) in zip(axes, rows.items(), strict=True):
        for place, values in zip(row, maps, strict=True):
            look = (
                {"cmap": "gray_r"} if name == "the image" else {"cmap": "viridis", "vmin": 0, "vmax": float(maps.max())}
            )
            mappable = place.imshow(values.numpy(), **look)
            place.set(xticks=[], yticks=[])
        row[0].set_ylabel(name)
        if name != "the image":
            drawn.colorbar(mappable, ax=row, label="attention received", shrink=0.9)
    for place, digit in zip(axes[0], held_out.labels[shown].tolist(), strict=True):
        place.set_title(f"a {digit}")
    save(drawn, output, "09_digits.png")


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
