"""A sequence out of a set: the digits of a number go in, its words come out, as many as it takes.

An encoder lets the digits look at each other; a decoder writes word by word, and every word looks at the words before
it (causal self-attention) and at the digits (cross-attention, a rectangular adjacency). It learns from 10,000 of the
million numbers below 1,000,000. One sees how many of those that it was never shown it spells without a mistake, with
greedy and with beam search, and in a picture at which digits it looked for each word. The full run takes about a
minute on one core. Run: python examples/12_numbers_to_words.py --output out
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import torch
from lesson import count_parameters, figure, save, settings, shuffled, table, train
from torch import Tensor, nn
from torch.nn import functional

import graphattn as ga
from graphattn.featurize.positions import positions_in_sets
from graphattn.featurize.vectors import Vocabulary, join_sets
from graphattn.model.decoder import next_tokens

BELOW_TWENTY = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
WORDS = Vocabulary(("<start>", "<end>", *BELOW_TWENTY, *TENS, "-", "hundred", "and", "thousand"))
START, END = WORDS.codes(["<start>", "<end>"]).tolist()
LONGEST = 13  # words of 373,373 and its like, hyphens counted
# Drawn by length, because nine of ten numbers have six digits: all of one digit (there is no other zero), half of two
# and of three, and some thousands of each length above.
KNOWN = {1: 10, 2: 45, 3: 450, 4: 2500, 5: 3000, 6: 4000}
KNOWN_QUICK = {1: 10, 2: 45, 3: 450}
SHOWN = (905, 473_905)  # in the picture; not to learn from
CHANNELS, LAYERS, HEADS = 64, 2, 4
BEAMS = 4

Spelling = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some numbers and how they are spelled."""

    digits: SimpleNamespace
    inputs: Tensor  # (M,) words, each number's start first
    targets: Tensor  # (M,) the word that follows each
    ptr: Tensor  # (G + 1,) boundaries of the numbers among the words


@dataclass(frozen=True)
class Row:
    """How well unseen numbers of one kind are spelled."""

    numbers: str
    judged: int
    greedy: float  # share without a mistake
    beam: float


@dataclass(frozen=True)
class Results:
    """A row for uniformly drawn numbers and one per length, and what was written for numbers spelled wrong."""

    rows: tuple[Row, ...]
    mistakes: dict[int, Spelling]


def spelled(number: int) -> Spelling:
    """A number from 0 to 999,999 in British English, word by word; a hyphen counts as a word.

    >>> in_print(spelled(12_021))
    'twelve thousand and twenty-one'
    """
    if number < 20:
        return (BELOW_TWENTY[number],)
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens - 2], *(("-", *spelled(ones)) if ones else ())
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    head, rest = divmod(number, size)
    joint = ("and",) if 0 < rest < 100 else ()
    return *spelled(head), name, *joint, *(spelled(rest) if rest else ())


def in_print(words: Sequence[str]) -> str:
    """The words as one writes them."""
    return " ".join(words).replace(" - ", "-")


def draw_numbers(draw: random.Random, counts: Mapping[int, int], avoided: set[int]) -> dict[int, list[int]]:
    """Different numbers of each length, as many as there are where that is fewer, but for those to be avoided."""
    drawn = {}
    for length, count in counts.items():
        numbers = range(0 if length == 1 else 10 ** (length - 1), 10**length)
        left = [number for number in numbers if number not in avoided]
        drawn[length] = draw.sample(left, min(count, len(left)))
    return drawn


def digits_of(numbers: Sequence[int]) -> SimpleNamespace:
    """``x`` (N, 2), each digit and its place from the right, all numbers side by side; ``ptr`` has their boundaries.

    Every digit may look at every digit of its number.
    """
    digits, ptr = join_sets([torch.tensor([int(digit) for digit in reversed(str(number))]) for number in numbers])
    x = torch.stack([digits, positions_in_sets(ptr)], 1)
    return SimpleNamespace(x=x, ptr=ptr, edge_index=ga.Adjacency.complete(ptr=ptr), edge_attr=None)


def batched(numbers: Sequence[int]) -> Batch:
    """Numbers and their words."""
    words = [WORDS.codes(spelled(number)).tolist() for number in numbers]
    return Batch(digits_of(numbers), *next_tokens(words, START, END))


class Speller(nn.Module):
    """Digits to words: an encoder of the set and a decoder of the sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = ga.GraphTransformer(
            (10, len(KNOWN)), CHANNELS, channels=CHANNELS, layers=LAYERS, heads=HEADS, readout=None
        )
        self.decoder = ga.SequenceDecoder(len(WORDS), channels=CHANNELS, layers=LAYERS, heads=HEADS, longest=LONGEST)

    def forward(self, batch: Batch) -> Tensor:
        """(M, words) scores of the word that follows each."""
        out: Tensor = self.decoder(batch.inputs, batch.ptr, self.encoder(batch.digits), batch.digits.ptr)
        return out

    @torch.no_grad()
    def write(self, numbers: Sequence[int], beams: int = 1) -> list[Spelling]:
        """Spell the numbers."""
        digits = digits_of(numbers)
        written = self.decoder.generate(self.encoder(digits), digits.ptr, start=START, end=END, beams=beams)
        return [tuple(WORDS.words(each.tokens)) for each in written]

    @torch.no_grad()
    def looks(self, number: int) -> Tensor:
        """(words and the end, digits) how much each word looks at each digit, from left to right, mean of the heads."""
        batch = batched([number])
        memory = self.encoder(batch.digits)
        last = self.decoder.cross_attention_weights(batch.inputs, batch.ptr, memory, batch.digits.ptr)[-1]
        return last.edges.mean(1).view(-1, len(str(number))).flip(1)


def learn(network: Speller, known: Sequence[int], epochs: int) -> None:
    """Train on the known numbers."""

    def epoch() -> list[Batch]:
        return [batched([known[row] for row in rows.tolist()]) for rows in shuffled(len(known), 64)]

    def loss_of(batch: Batch) -> Tensor:
        return functional.cross_entropy(network(batch), batch.targets)

    train(network, epoch, loss_of, epochs=epochs, learning_rate=3e-3)


def judge(network: Speller, unseen: Mapping[str, Sequence[int]]) -> Results:
    """Spell unseen numbers of several kinds by greedy and by beam search."""
    rows: list[Row] = []
    mistakes: dict[int, Spelling] = {}
    for name, numbers in unseen.items():
        greedy, beam = (dict(zip(numbers, network.write(numbers, beams), strict=True)) for beams in (1, BEAMS))
        mistakes |= {number: words for number, words in greedy.items() if words != spelled(number)}
        shares = (sum(words == spelled(number) for number, words in each.items()) for each in (greedy, beam))
        rows.append(Row(name, len(numbers), *(right / len(numbers) for right in shares)))
    return Results(tuple(rows), mistakes)


def report(results: Results) -> None:
    """Print how many are right, and the mistakes."""
    table(
        [
            {
                "numbers": row.numbers,
                "judged": row.judged,
                "greedy": f"{row.greedy:.2%}",
                f"{BEAMS} beams": f"{row.beam:.2%}",
            }
            for row in results.rows
        ],
        "Unseen numbers spelled without a mistake",
    )
    count = len(results.mistakes)
    print(f"\nmistakes of greedy search: {count or 'none'}{', of which ten:' if count > 10 else ''}")
    for number, words in list(results.mistakes.items())[:10]:
        print(f"{number:>9,}  {in_print(words)}  instead of  {in_print(spelled(number))}")


def picture(network: Speller, output: Path) -> None:
    """At which digits the last cross-attention looked for each word."""
    drawn, panels = figure(len(SHOWN), width=4, height=5)
    for axes, number in zip(panels, SHOWN, strict=True):
        looked, digits = network.looks(number), str(number)
        shades = axes.imshow(looked.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.set(xticks=range(len(digits)), xticklabels=list(digits), xlabel="digit of the number")
        axes.set(yticks=range(len(looked)), yticklabels=[*spelled(number), "(end)"], title=f"{number:,}")
    panels[0].set_ylabel("word that comes next")
    drawn.colorbar(shades, ax=panels[-1], label="attention, mean of the heads")
    save(drawn, output, "12_numbers_to_words.png")


def main(output: Path, *, quick: bool) -> Results:
    """Train, spell unseen numbers, print and draw."""
    torch.manual_seed(0)
    draw = random.Random(0)  # noqa: S311 (numbers to spell, no secrets)
    counts = KNOWN_QUICK if quick else KNOWN
    by_length = draw_numbers(draw, counts, {*SHOWN})
    known = [number for numbers in by_length.values() for number in numbers]
    network, below = Speller(), 10 ** max(counts)
    lengths = ", ".join(f"{len(numbers):,} of length {length}" for length, numbers in by_length.items())
    print(f"{len(known):,} numbers to learn from, {lengths}; {count_parameters(network):,} parameters")
    learn(network, known, epochs=12)

    avoided = {*known}
    at_random = draw.sample([number for number in range(below) if number not in avoided], 250 if quick else 5000)
    unseen = draw_numbers(draw, dict.fromkeys(counts, 150 if quick else 1000), avoided)
    kinds = {f"{length} digits": numbers for length, numbers in unseen.items() if numbers}
    results = judge(network, {f"any below {below:,}": at_random, **kinds})
    for number, words in zip(at_random[:5], network.write(at_random[:5]), strict=True):
        print(f"{number:>9,}  {in_print(words)}")
    report(results)
    picture(network, output)
    print(
        f"Shown {len(known) / below:.0%} of the numbers, it spells {results.rows[0].greedy:.2%} of the others right: "
        "it has learned what each digit says in its place, and which words the digits after it call for."
    )
    return results


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
