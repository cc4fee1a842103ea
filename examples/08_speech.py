"""Truncated self-attention for speech: each frame sees a window; cost grows with the recording, not with its square.

A recording of 10 seconds is a set of 1,000 vectors, one of 10 minutes of 60,000. Time and memory of one layer of
attention over all frames and over windows of +-15 frames are measured as far as 6 GiB go, and foreseen from there; then
both learn to name the vowels of unseen speakers in noise, beside a network that sees single frames. One sees costs,
accuracies, and a picture. The full run takes about 2 minutes on one core.
Run: python examples/08_speech.py --output out
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from lesson import COLORS, figure, save, settings, shuffled, table, train
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from recording_cost import BUDGET_MIB, CHANNELS, HEADS, RADIUS, Cost, adjacency, costs, grown
from torch import Tensor
from torch.nn import functional
from vowels import SAMPLE_RATE, VOWELS, recording

import graphattn as ga
from graphattn.featurize.positions import positions_in_sets, relative_kinds
from graphattn.featurize.sound import log_mel
from graphattn.featurize.vectors import join_sets

MELS = 40
WINDOW_SECONDS, STEP_SECONDS = 0.025, 0.010

Labeled = tuple[Tensor, Tensor]  # (frames, MELS) log-mel spectrum, (frames,) vowel at the middle of each frame
View = Callable[[Tensor], ga.Adjacency]  # from the boundaries of several recordings

VIEWS: dict[str, View] = {
    "single frames": lambda ptr: ga.Adjacency.window(radius=0, ptr=ptr),
    "window": lambda ptr: ga.Adjacency.window(radius=RADIUS, ptr=ptr),
    "full": lambda ptr: ga.Adjacency.complete(ptr=ptr),
}


@dataclass(frozen=True)
class Plan:
    """How much is measured and learned."""

    lengths: tuple[int, ...]  # of recordings, in frames
    rounds: int  # of each measurement; the median counts
    recordings: int  # to learn from, of 2 seconds each
    epochs: int
    strangers: int  # recordings to judge by


FULL = Plan((1000, 2000, 4000, 8000, 15_000, 30_000, 60_000), rounds=5, recordings=320, epochs=12, strangers=100)
QUICK = Plan((500, 3000), rounds=3, recordings=32, epochs=4, strangers=16)


@dataclass(frozen=True)
class Results:
    """What came out."""

    measured: tuple[Cost, ...]
    expected: tuple[Cost, ...]  # of full attention where it passes the budget
    difference: float  # the largest, between full attention and a window that covers the sequence
    accuracy: dict[str, float]  # by view: share of frames of unseen recordings


def largest_difference(frames: int) -> float:
    """Between full attention and a window that reaches from the first frame to the last, on the same layer."""
    torch.manual_seed(0)
    layer, x = ga.GraphAttention(CHANNELS, CHANNELS, HEADS), torch.randn(frames, CHANNELS)
    covering = ga.Adjacency.window(frames, radius=frames - 1)
    with torch.no_grad():
        return float((layer(x, adjacency("full", frames)) - layer(x, covering)).abs().max())


def labeled(draw: np.random.Generator) -> Labeled:
    """A recording of 2 seconds as frames, 25 ms long, one every 10 ms, and the vowel in the middle of each."""
    made = recording(2.0, draw)
    spectrum = log_mel(made.signal, SAMPLE_RATE, MELS, window_seconds=WINDOW_SECONDS, step_seconds=STEP_SECONDS)
    middle = (torch.arange(len(spectrum)) * STEP_SECONDS + WINDOW_SECONDS / 2) * SAMPLE_RATE
    return spectrum, made.vowel[middle.long().clamp(max=len(made.vowel) - 1)]


def batched(recordings: Sequence[Labeled], view: View) -> tuple[SimpleNamespace, Tensor]:
    """What a network reads of several recordings, and the vowels. Relative positions are kinds of edges."""
    x, ptr = join_sets([spectrum for spectrum, _ in recordings])
    seen = view(ptr)
    kinds = relative_kinds(seen, positions_in_sets(ptr), RADIUS)[:, None]
    return SimpleNamespace(x=x, edge_index=seen, edge_attr=kinds), torch.cat([vowel for _, vowel in recordings])


def standardized(recordings: Sequence[Labeled], like: Sequence[Labeled]) -> list[Labeled]:
    """Every band of the spectrum with mean 0 and deviation 1 over the frames of ``like``."""
    frames = torch.cat([spectrum for spectrum, _ in like])
    return [((spectrum - frames.mean(0)) / frames.std(0), vowel) for spectrum, vowel in recordings]


def learned(view: View, known: Sequence[Labeled], epochs: int) -> ga.GraphTransformer:
    """The same network for every view: two blocks, and a number per head and relative position added to the scores."""
    torch.manual_seed(0)
    network = ga.GraphTransformer(
        MELS,
        len(VOWELS),
        channels=CHANNELS,
        layers=2,
        heads=HEADS,
        edge_channels=[2 * RADIUS + 1],
        edge_into=("score",),
        readout=None,
    )
    batches = [batched([known[each] for each in chosen.tolist()], view) for chosen in shuffled(len(known), 8)]

    def loss_of(batch: tuple[SimpleNamespace, Tensor]) -> Tensor:
        return functional.cross_entropy(network(batch[0]), batch[1])

    train(network, lambda: (batches[each] for each in torch.randperm(len(batches)).tolist()), loss_of, epochs=epochs)
    return network


def named(strangers: Sequence[Labeled], heard: Sequence[Labeled], view: View, epochs: int) -> Tensor:
    """The vowels that a network which learned from ``heard`` names in the frames of strangers."""
    known, unseen = standardized(heard, heard), standardized(strangers, heard)
    network = learned(view, known, epochs)
    batch, _ = batched(unseen, view)
    with torch.no_grad():
        vowels: Tensor = network(batch).argmax(-1)
    return vowels


def main(output: Path, *, quick: bool) -> Results:
    """Measure, learn, print and draw."""
    plan = QUICK if quick else FULL
    measured = costs(plan.lengths, rounds=plan.rounds)
    window, full = ([each for each in measured if each.view == view] for view in ("window", "full"))
    expected = [grown(full[-2], full[-1], frames) for frames in plan.lengths[len(full) :]]
    report(measured, expected)
    difference = largest_difference(plan.lengths[0])
    print(f"\nA window over all {plan.lengths[0]} frames and full attention differ by at most {difference:.1e}.")
    draw = np.random.default_rng(0)
    heard = [labeled(draw) for _ in range(plan.recordings)]
    strangers = [labeled(draw) for _ in range(plan.strangers)]
    vowel = torch.cat([vowel for _, vowel in strangers])
    said = {name: named(strangers, heard, view, plan.epochs) for name, view in VIEWS.items()}
    accuracy = {name: float((vowels == vowel).float().mean()) for name, vowels in said.items()}
    table(
        [{"a frame sees": name, "frames named right": f"{share:.1%}"} for name, share in accuracy.items()],
        f"The vowels {', '.join(VOWELS)} of {len(strangers)} unseen speakers",
    )
    drawn, ((sound, duration), (labels, memory)) = figure(2, 2, width=7, height=3.4)
    draw_recording(sound, strangers[0][0])
    draw_vowels(labels, {name: vowels[: len(strangers[0][1])] for name, vowels in {"truth": vowel, **said}.items()})
    for axes, of, unit, title in (
        (duration, "both_seconds", "seconds", "CPU time, forward and backward"),
        (memory, "peak_mib", "MiB", "Memory, adjacency included"),
    ):
        draw_costs(axes, of, window, full, expected)
        axes.set(title=title, xlabel="frames (100 a second)", ylabel=unit)
    save(drawn, output, "08_speech.png")
    slower, slower_full = (each[-1].both_seconds / each[0].both_seconds for each in (window, [*full, *expected]))
    print(
        f"A recording {plan.lengths[-1] / plan.lengths[0]:.0f} times as long takes a window {slower:.0f} times as "
        f"long, full attention {slower_full:.0f} times."
    )
    return Results(tuple(measured), tuple(expected), difference, accuracy)


def report(measured: Sequence[Cost], expected: Sequence[Cost]) -> None:
    """Print the costs."""
    rows = [
        {
            "sees": each.view,
            "frames": each.frames,
            "minutes": round(each.frames * STEP_SECONDS / 60, 2),
            "pairs": f"{each.pairs:,}",
            "adjacency (s)": f"{each.build_seconds:.4f}",
            "forward (s)": f"{each.forward_seconds:.4f}",
            "with backward (s)": f"{each.both_seconds:.4f}",
            "memory (MiB)": f"{each.peak_mib:,.1f}",
            "": "expected, not measured" if each in expected else "",
        }
        for each in [*measured, *expected]
    ]
    title = f"Attention, {CHANNELS} channels and {HEADS} heads, CPU time; full is measured up to {BUDGET_MIB} MiB"
    table(rows, title)


def draw_recording(axes: Axes, spectrum: Tensor) -> None:
    """The spectrum of a recording, low bands below."""
    extent = (0, len(spectrum) * STEP_SECONDS, 0, MELS)
    axes.imshow(spectrum.T.numpy(), origin="lower", aspect="auto", extent=extent, cmap="magma")
    axes.set(title="An unseen speaker, log-mel spectrum", ylabel="band", xlabel="seconds")


def draw_vowels(axes: Axes, rows: dict[str, Tensor]) -> None:
    """A row of colors for the truth and for each network, over the same time."""
    image = torch.stack(list(rows.values())).numpy()
    axes.imshow(
        image,
        aspect="auto",
        extent=(0, image.shape[1] * STEP_SECONDS, len(rows), 0),
        cmap=ListedColormap(COLORS[: len(VOWELS)]),
        vmin=0,
        vmax=len(VOWELS) - 1,
        interpolation="nearest",
    )
    axes.set_yticks([place + 0.5 for place in range(len(rows))], list(rows))
    axes.set(title="Vowels, true and named", xlabel="seconds")
    handles = [Patch(color=color, label=vowel) for color, vowel in zip(COLORS, VOWELS, strict=False)]
    axes.legend(handles=handles, ncols=len(VOWELS), loc="upper center", bbox_to_anchor=(0.5, -0.18))


def draw_costs(axes: Axes, of: str, window: Sequence[Cost], full: Sequence[Cost], expected: Sequence[Cost]) -> None:
    """One cost of both views by the length of the recording; dashed where it was not measured."""
    for label, points, style, color in (
        ("full", full, "o-", COLORS[3]),
        (f"window of +-{RADIUS}", window, "o-", COLORS[0]),
        ("full, expected", [full[-1], *expected], "--", COLORS[3]),
    ):
        axes.loglog(
            [each.frames for each in points], [getattr(each, of) for each in points], style, color=color, label=label
        )
    axes.grid(alpha=0.3)
    axes.legend()


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
