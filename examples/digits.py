"""What two examples share: scikit-learn's handwritten digits as sets of 64 pixel vectors, and networks that read them.

The images are from Alpaydin and Kaynak 1998, "Optical Recognition of Handwritten Digits", UCI Machine Learning
Repository.
"""

from dataclasses import dataclass
from functools import cache, partial
from types import SimpleNamespace

import torch
from lesson import shuffled, train
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn import functional

from graphattn import Adjacency, GraphTransformer
from graphattn.featurize.positions import pixel_positions, relative_kinds, sinusoidal

SIDE = 8  # rows and columns of an image
PIXELS = SIDE * SIDE
POSITION_CHANNELS = 16
BATCH = 50  # images per step
FARTHEST = 3  # pixels in a row or column; a pixel that sees all tells the places of nearer ones only


@dataclass(frozen=True, eq=False)
class Digits:
    """Images (N, 64), gray values row by row, standardized, and the digit that each shows (N,)."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        """N."""
        return len(self.labels)


def split(training: int, *, seed: int, held_out: int = 397) -> tuple[Digits, Digits]:
    """``training`` images to learn from and ``held_out`` others, each with all digits in equal shares."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(
        images, labels, train_size=training, test_size=held_out, stratify=labels, random_state=seed
    )
    learned, others, *digits = (torch.as_tensor(part) for part in parts)
    deviation, mean = torch.std_mean(learned)
    first, second = (
        Digits(((given - mean) / deviation).float(), shown)
        for given, shown in zip((learned, others), digits, strict=True)
    )
    return first, second


@cache
def neighborhood(size: int | None, images: int) -> tuple[Adjacency, Tensor]:
    """Who sees whom in a batch: the size x size pixels around, or with ``None`` all; and where each seen one stands."""
    if size is None:
        adjacency, radius = Adjacency.complete(ptr=torch.arange(images + 1) * PIXELS), FARTHEST
    else:
        adjacency, radius = Adjacency.batch([Adjacency.grid(SIDE, SIDE, size=size)] * images), size // 2
    return adjacency, relative_kinds(adjacency, pixel_positions(SIDE, SIDE).repeat(images, 1), radius)


class PixelAttention(nn.Module):
    """A GraphTransformer on pixels: (N, 64) images -> (N, 10).

    Args:
        size: each pixel attends to the ``size`` x ``size`` around it; ``None`` to all 64.
    """

    def __init__(self, size: int | None) -> None:
        super().__init__()
        self.size = size
        side = 2 * FARTHEST + 1 if size is None else size
        self.network = GraphTransformer(
            1 + POSITION_CHANNELS,
            10,
            channels=32,
            layers=2,
            heads=4,
            readout="max",
            edge_channels=(side * side,),
            edge_into=("score",),
        )

    def data(self, images: Tensor) -> SimpleNamespace:
        """What the network reads: gray value and position of each pixel, and where those stand that it sees."""
        adjacency, kinds = neighborhood(self.size, len(images))
        places = sinusoidal(pixel_positions(SIDE, SIDE), POSITION_CHANNELS, base=100).repeat(len(images), 1)
        x = torch.cat([images.reshape(-1, 1), places], 1)
        return SimpleNamespace(x=x, edge_index=adjacency, edge_attr=kinds[:, None])

    def forward(self, images: Tensor) -> Tensor:
        """(N, 64) -> (N, 10)."""
        out: Tensor = self.network(self.data(images))
        return out


def cnn() -> nn.Module:
    """A small convolutional network with about as many parameters: (N, 64) images -> (N, 10)."""
    channels = 25
    wide = 2 * channels
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE, SIDE)),
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, wide, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(wide * 4, 10),
    )


def fit(network: nn.Module, digits: Digits, *, steps: int) -> None:
    """Train for about ``steps`` batches of 50 images; one recipe for every network."""
    batches = -(-len(digits) // BATCH)

    def loss_of(rows: Tensor) -> Tensor:
        return functional.cross_entropy(network(digits.images[rows]), digits.labels[rows])

    train(
        network,
        partial(shuffled, len(digits), BATCH),
        loss_of,
        epochs=max(1, round(steps / batches)),
        learning_rate=5e-3,
    )


def guesses(network: nn.Module, digits: Digits) -> Tensor:
    """(N,) the digit that ``network`` reads in each image."""
    with torch.no_grad():
        scores: Tensor = network(digits.images)
    return scores.argmax(-1)


def accuracy(network: nn.Module, digits: Digits) -> float:
    """Share of images that ``network`` reads right."""
    return float((guesses(network, digits) == digits.labels).float().mean())
