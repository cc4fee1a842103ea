"""A convolution is a special self-attention: equal layers, and what the larger freedom of attention costs in data.

A k x k convolution is attention with a head for each place of the kernel, whose score depends on the relative position
alone: 0 there, minus infinity elsewhere. First the two layers are compared number by number. With a score that falls
off with the square of the distance, as in Cordonnier et al. 2020, attention comes to a convolution as the score gets
steeper. Then a CNN, attention to near pixels and attention to all, equal in size, learn digits from few images to many:
what a network need not learn, because it is built in, it need not see.

One sees the heads of a 3 x 3 convolution, the way of attention to it, and accuracy over the number of images.
Takes about 10 minutes on two cores. Run: python examples/10_convolution.py --output out
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import digits
import torch
from digits import PixelAttention
from lesson import COLORS, count_parameters, figure, save, settings, table
from torch import Tensor, nn

from graphattn import Adjacency
from graphattn.attention.normalizers import Normalizer
from graphattn.featurize.positions import pixel_positions, relative_kinds
from graphattn.model.convolution import ConvolutionAttention, attention_from_conv2d

HEIGHT, WIDTH = 9, 12
STEEPNESS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "CNN": digits.cnn,
    "3 x 3 attention": lambda: PixelAttention(3),
    "full attention": lambda: PixelAttention(None),
}


@dataclass(frozen=True)
class Results:
    """What came out."""

    differences: dict[tuple[int, Normalizer], float]  # largest between the two layers, by kernel size and normalizer
    from_steep: dict[float, float]  # the same for a quadratic score, by its steepness
    parameters: dict[str, int]  # by network
    accuracy: dict[str, dict[int, Tensor]]  # on held-out images, one number per seed, by network and training images


def main(output: Path, *, quick: bool) -> Results:
    """Compare the layers, then let the networks learn; print and draw."""
    torch.manual_seed(0)
    differences = equal_layers()
    table(
        [
            {"kernel": f"{k} x {k}", "normalizer": how, "largest difference": f"{far:.1e}"}
            for (k, how), far in differences.items()
        ],
        title="torch.nn.Conv2d and attention with the same kernel, 3 channels to 8",
    )
    from_steep = quadratic_differences()
    table(
        [{"steepness": steepness, "largest difference": f"{far:.1e}"} for steepness, far in from_steep.items()],
        title="Attention with the score -steepness x distance^2, and a 3 x 3 convolution that repeats the rim",
    )
    parameters = {name: count_parameters(make()) for name, make in NETWORKS.items()}
    counts, seeds = ((50,), range(2)) if quick else ((50, 100, 200, 400, 800, 1400), range(5))
    accuracy = {name: {count: torch.zeros(len(seeds)) for count in counts} for name in NETWORKS}
    for count in counts:
        for seed in seeds:
            for name, right in learned(count, seed, steps=60 if quick else max(300, count // 2)).items():
                accuracy[name][count][seed] = right
    results = Results(differences, from_steep, parameters, accuracy)
    report(results)
    draw(results, output)
    return results


def equal_layers() -> dict[tuple[int, Normalizer], float]:
    """Largest difference between a convolution and the attention made of it, by kernel size and normalizer."""
    image, differences = torch.randn(3, HEIGHT, WIDTH), {}
    normalizers: tuple[Normalizer, ...] = ("softmax", "relu")
    for size in (3, 5):
        conv = nn.Conv2d(3, 8, size, padding="same")
        for normalizer in normalizers:
            attended = on_image(attention_from_conv2d(conv, normalizer=normalizer), image, size)
            differences[size, normalizer] = float((attended - conv(image)).detach().abs().max())
    return differences


def quadratic_differences() -> dict[float, float]:
    """The same where head h scores a pixel by -steepness times its squared distance from place h of the kernel.

    Where that place lies outside the image, the nearest pixel wins: in the limit the rim is repeated, not zeros.
    """
    conv, image, places = nn.Conv2d(3, 8, 3, padding=1), torch.randn(3, HEIGHT, WIDTH), pixel_positions(3, 3).float()
    layer, differences = attention_from_conv2d(conv), {}
    conv.padding_mode = "replicate"
    assert layer.attention.edge_score is not None
    for steepness in STEEPNESS:
        layer.attention.edge_score.weight.copy_(-steepness * torch.cdist(places, places).square())
        differences[steepness] = float((on_image(layer, image, 3) - conv(image)).detach().abs().max())
    return differences


def grid_and_places(height: int, width: int, size: int) -> tuple[Adjacency, Tensor]:
    """Who sees whom in an image, and which place of the kernel that is."""
    grid = Adjacency.grid(height, width, size=size)
    return grid, relative_kinds(grid, pixel_positions(height, width), radius=size // 2)


def on_image(layer: ConvolutionAttention, image: Tensor, size: int) -> Tensor:
    """(C, height, width) as a set of pixels through attention, and back to an image."""
    _, height, width = image.shape
    out: Tensor = layer(image.flatten(1).T, *grid_and_places(height, width, size))
    return out.T.view(-1, height, width)


def learned(count: int, seed: int, *, steps: int) -> dict[str, float]:
    """Accuracy on held-out images of each network after training on ``count``."""
    training, held_out = digits.split(count, seed=seed)
    right = {}
    for name, make in NETWORKS.items():
        torch.manual_seed(seed)
        network = make()
        digits.fit(network, training, steps=steps)
        right[name] = digits.accuracy(network, held_out)
    return right


def report(results: Results) -> None:
    """The table of accuracies, and what came out in a sentence."""
    rows = [
        {"network": name, "parameters": results.parameters[name]}
        | {f"{count} images": f"{right.mean():.1%} +- {right.std():.1%}" for count, right in of_count.items()}
        for name, of_count in results.accuracy.items()
    ]
    table(rows, title="Held-out images right, mean and standard deviation over seeds")
    cnn = results.accuracy["CNN"]
    ends = sorted({min(cnn), max(cnn)})
    behind = {
        name: ", ".join(f"{100 * float((of[count] - cnn[count]).mean()):+.1f} with {count:,} images" for count in ends)
        for name, of in results.accuracy.items()
        if name != "CNN"
    }
    print(
        "\nThe layers are equal up to rounding. On digits, percentage points from the CNN: "
        + "; ".join(f"{name} {gaps}" for name, gaps in behind.items())
        + "."
    )


def draw(results: Results, output: Path) -> None:
    """The heads of a convolution, the way to it, and the trade."""
    drawn, (heads, steep, trade) = figure(3, width=5, height=4.2)
    draw_heads(heads)
    steep.plot(list(results.from_steep), list(results.from_steep.values()), "o-", color=COLORS[0])
    steep.axhline(results.differences[3, "softmax"], color=COLORS[3], linestyle="--", label="minus infinity elsewhere")
    steep.set(xlabel="steepness of the score", ylabel="largest difference from Conv2d", xscale="log", yscale="log")
    steep.set_title("Attention comes to a convolution")
    steep.legend()
    for (name, of_count), color in zip(results.accuracy.items(), COLORS, strict=False):
        means, spreads = ([float(of(right)) for right in of_count.values()] for of in (torch.mean, torch.std))
        label = f"{name}, {results.parameters[name]:,} parameters"
        trade.errorbar(list(of_count), means, spreads, marker="o", capsize=3, color=color, label=label)
    trade.set(xlabel="training images", ylabel="held-out images right", xscale="log")
    trade.set_xticks(list(results.accuracy["CNN"]), [f"{count:,}" for count in results.accuracy["CNN"]], minor=False)
    trade.minorticks_off()
    trade.set_title("Digits: mean and standard deviation over seeds")
    trade.legend(loc="lower right")
    save(drawn, output, "10_convolution.png")


def draw_heads(axes: Any) -> None:
    """Where each head of a 3 x 3 kernel looks from one pixel on the left rim of an image of 5 x 5."""
    layer, (grid, places) = attention_from_conv2d(nn.Conv2d(1, 1, 3, padding=1)), grid_and_places(5, 5, 3)
    weights = layer.attention.attention_weights(torch.zeros(25, 1), grid, places).edges
    senders, edges = grid.row(10)
    seen = torch.zeros(9, 25).index_copy(1, senders.long(), weights[edges].T).view(3, 3, 5, 5)
    framed = nn.functional.pad(seen, (1, 0, 1, 0), value=torch.nan)
    axes.imshow(framed.transpose(1, 2).reshape(18, 18).numpy(), cmap="Blues", vmin=-0.2, vmax=1)
    for head in range(9):
        axes.text(6 * (head % 3) + 1, 6 * (head // 3) + 3, "o", ha="center", va="center", color=COLORS[3])
    axes.set_axis_off()
    axes.set_title("What nine heads see from the pixel o on the rim")


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
