"""A label per vector: "I saw a saw", where only the words before tell the verb from the noun.

A fully connected network that is given one word at a time must tag both "saw" alike. Given the words up to r places
away as well, it knows what lies within r, and grows with r. Self-attention sees the whole sentence with the parameters
it has. One sees the tags, accuracies and sizes of all of them, and a picture. The full run takes about half a minute on
one core. Run: python examples/06_tagging.py --output out
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import torch
from lesson import COLORS, count_parameters, figure, save, settings, shuffled, table, train
from torch import Tensor, nn
from torch.nn import functional

import graphattn as ga
from graphattn.featurize.positions import positions_in_sets, sinusoidal
from graphattn.featurize.vectors import Vocabulary, join_sets

SUBJECTS, ARTICLES = ("I", "we", "you", "they"), ("a", "the", "my", "this")
FILLERS = ("early", "late", "fast", "hard", "daily", "weekly", "hourly", "right")  # adverbs, and adjectives
VERBS_OR_NOUNS = ("saw", "duck", "watch", "plan", "cook", "play", "book", "fish", "drum", "iron")
TAGS = ("pronoun", "article", "adverb", "adjective", "verb", "noun")
WORDS = Vocabulary((*SUBJECTS, *ARTICLES, *FILLERS, *VERBS_OR_NOUNS))
MOST_FILLERS = 7  # so the deciding word stands 1 to 8 words before the verb or noun
RADII = (0, 1, 2, 4, 8)
HIDDEN, POSITION_CHANNELS = 64, 32
SAW, SAW_TAGS = ("I", "saw", "a", "saw"), ("pronoun", "verb", "article", "noun")

Tagged = tuple[tuple[str, ...], tuple[str, ...]]  # the words of a sentence and their tags


@dataclass(frozen=True, eq=False)
class Batch:
    """Several sentences."""

    words: Tensor  # (N, codes) one-hot
    ptr: Tensor  # (G + 1,)
    tags: Tensor  # (N,)
    distance: Tensor  # (N,) how far before a verb or noun the word stands that decides; 0 at other words
    everyone: ga.Adjacency  # every word sees its whole sentence


@dataclass(frozen=True)
class Row:
    """What one network does on sentences it has not seen."""

    network: str
    radius: int | None  # None: the whole sentence
    parameters: int
    verbs_and_nouns: float  # share of them with the right tag
    by_distance: tuple[float, ...]  # the same where the deciding word is 1, 2, ... words before


@dataclass(frozen=True)
class Results:
    """A row per network, and how each tags "I saw a saw"."""

    rows: tuple[Row, ...]
    saw: dict[str, tuple[str, ...]]


def sentence(draw: random.Random) -> Tagged:
    """Two to four phrases: a subject with its verb or an article with its noun, with fillers between."""
    words: list[str] = []
    tags: list[str] = []
    for _ in range(draw.randint(2, 4)):
        first, kinds = draw.choice(
            ((SUBJECTS, ("pronoun", "adverb", "verb")), (ARTICLES, ("article", "adjective", "noun")))
        )
        fillers = draw.choices(FILLERS, k=draw.randint(0, MOST_FILLERS))
        words += [draw.choice(first), *fillers, draw.choice(VERBS_OR_NOUNS)]
        tags += [kinds[0], *[kinds[1]] * len(fillers), kinds[2]]
    return tuple(words), tuple(tags)


def sentences(count: int, *, seed: int, known: Sequence[Tagged] = ()) -> list[Tagged]:
    """Different sentences that are not among the known ones, nor the famous one."""
    draw = random.Random(seed)  # noqa: S311 (sentences, no secrets)
    taken = {words for words, _ in known} | {SAW}
    made: dict[tuple[str, ...], Tagged] = {}
    while len(made) < count:
        words, tags = sentence(draw)
        if words not in taken:
            made[words] = (words, tags)
    return list(made.values())


def batched(tagged: Sequence[Tagged]) -> Batch:
    """Sentences side by side, padded nowhere."""
    words, ptr = join_sets([WORDS.one_hot(words) for words, _ in tagged])
    tags = [TAGS.index(tag) for _, tags in tagged for tag in tags]
    distance, since = [], 0
    for tag in tags:
        since = 0 if tag < TAGS.index("adverb") else since + 1
        distance.append(since if tag >= TAGS.index("verb") else 0)
    return Batch(words, ptr, torch.tensor(tags), torch.tensor(distance), ga.Adjacency.complete(ptr=ptr))


class OnWindow(nn.Module):
    """Fully connected, on a word joined with those up to ``radius`` before and after; past the ends stand zeros."""

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius
        joined = (2 * radius + 1) * len(WORDS)
        self.layers = nn.Sequential(nn.Linear(joined, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, len(TAGS)))

    def forward(self, batch: Batch) -> Tensor:
        """(N, tags)."""
        around = (0, 0, self.radius, self.radius)
        joined = [
            functional.pad(words, around).unfold(0, 2 * self.radius + 1, 1).flatten(1)
            for words in torch.split(batch.words, batch.ptr.diff().tolist())
        ]
        out: Tensor = self.layers(torch.cat(joined))
        return out


class OnSentence(nn.Module):
    """One layer of self-attention over the sentence, on words joined with their positions."""

    def __init__(self) -> None:
        super().__init__()
        width = len(WORDS) + POSITION_CHANNELS
        self.network = ga.GraphTransformer(width, len(TAGS), channels=32, layers=1, heads=4, readout=None)

    def forward(self, batch: Batch) -> Tensor:
        """(N, tags)."""
        position = sinusoidal(positions_in_sets(batch.ptr), POSITION_CHANNELS)
        x = torch.cat([batch.words, position], -1)
        out: Tensor = self.network(SimpleNamespace(x=x, edge_index=batch.everyone, edge_attr=None))
        return out


def contestants() -> dict[str, nn.Module]:
    """The networks by name, from the narrowest to the widest view."""
    on_windows = {f"window of +-{radius}" if radius else "single words": OnWindow(radius) for radius in RADII}
    return {**on_windows, "self-attention": OnSentence()}


def judged(name: str, network: nn.Module, unseen: Batch) -> Row:
    """How often a trained network is right, by the distance of the deciding word."""
    with torch.no_grad():
        right = network(unseen).argmax(-1) == unseen.tags

    def share(where: Tensor) -> float:
        return float(right[where].float().mean())

    by_distance = tuple(share(unseen.distance == distance) for distance in range(1, MOST_FILLERS + 2))
    radius = network.radius if isinstance(network, OnWindow) else None
    return Row(name, radius, count_parameters(network), share(unseen.distance > 0), by_distance)


def report(rows: Sequence[Row], famous: dict[str, tuple[str, ...]]) -> None:
    """Print the tags of the famous sentence, then accuracies and sizes."""
    places = [f"{place + 1}: {word}" for place, word in enumerate(SAW)]
    tagged = {"truth": SAW_TAGS, **famous}
    table(
        [{"": name, **dict(zip(places, tags, strict=True))} for name, tags in tagged.items()],
        "A sentence that no network was shown",
    )
    table(
        [
            {
                "network": row.network,
                "parameters": row.parameters,
                "right": f"{row.verbs_and_nouns:.1%}",
                **{f"at {place}": f"{share:.0%}" for place, share in enumerate(row.by_distance, start=1)},
            }
            for row in rows
        ],
        "Verbs and nouns of unseen sentences: share tagged right, by how many words before stands the one that decides",
    )


def picture(rows: Sequence[Row], output: Path) -> None:
    """Accuracy and parameters by the window's radius, and accuracy by the distance of the deciding word."""
    drawn, (accuracy, size, reach) = figure(3)
    windows = [row for row in rows if row.radius is not None]
    (attention,) = (row for row in rows if row.radius is None)
    radii = [row.radius for row in windows]
    for axes, of in ((accuracy, "verbs_and_nouns"), (size, "parameters")):
        axes.plot(radii, [getattr(row, of) for row in windows], "o-", color=COLORS[0], label="fully connected, window")
        axes.axhline(getattr(attention, of), color=COLORS[3], label="self-attention")
        axes.set(xlabel="radius of the window (words)", xticks=radii)
    accuracy.axhline(0.5, color="gray", linestyle=":", label="guessing")
    accuracy.legend(loc="lower right")
    size.legend(loc="upper left")
    accuracy.set(title="Verbs and nouns tagged right", ylabel="share", ylim=(0.4, 1.03))
    size.set(title="What it costs", ylabel="parameters", ylim=(0, None))
    places = range(1, MOST_FILLERS + 2)
    for row, color in zip(windows, COLORS, strict=False):
        reach.plot(places, row.by_distance, "o-", color=color, label=row.network)
    reach.plot(places, attention.by_distance, "k--", label=attention.network)
    reach.set(title="By the distance of the deciding word", xlabel="words before", ylabel="share", ylim=(0.4, 1.03))
    reach.legend()
    save(drawn, output, "06_tagging.png")


def main(output: Path, *, quick: bool) -> Results:
    """Train all, tag, print and draw."""
    known = sentences(600 if quick else 2500, seed=0)
    unseen = batched(sentences(300 if quick else 2000, seed=1, known=known))
    famous = batched([(SAW, SAW_TAGS)])
    torch.manual_seed(0)
    batches = [batched([known[each] for each in chosen.tolist()]) for chosen in shuffled(len(known), 50)]
    rows: list[Row] = []
    tagged: dict[str, tuple[str, ...]] = {}
    for name, network in contestants().items():

        def loss_of(batch: Batch, network: nn.Module = network) -> Tensor:
            return functional.cross_entropy(network(batch), batch.tags)

        def epoch() -> list[Batch]:
            return [batches[each] for each in torch.randperm(len(batches)).tolist()]

        train(network, epoch, loss_of, epochs=15, learning_rate=4e-3)
        rows.append(judged(name, network, unseen))
        tagged[name] = tuple(TAGS[tag] for tag in network(famous).argmax(-1).tolist())
    report(rows, tagged)
    picture(rows, output)
    print("A window is right as far as it reaches, and needs more parameters to reach farther; attention needs none.")
    return Results(tuple(rows), tagged)


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
