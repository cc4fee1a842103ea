"""Positions: attention itself does not know who stands where; what tells it, in sequences, images and graphs.

One sees that without positions a shuffled set gives the same vectors, shuffled, and that with each kind of positions it
does not; a picture of what the positions look like; and a task in which order decides: which of two words comes first.
The full run takes two minutes on two cores. Run: python examples/05_positions.py --output out
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import networkx as nx
import torch
from lesson import COLORS, figure, save, settings, shuffled, table, train
from rdkit.Chem import rdDepictor
from torch import Tensor
from torch.nn import functional

import graphattn as ga
from graphattn.featurize.graph_positions import hop_distance, random_walk
from graphattn.featurize.laplacian import SignInvariant, laplacian
from graphattn.featurize.positions import (
    LearnedPositions,
    pixel_positions,
    positions_in_sets,
    relative_kinds,
    sinusoidal,
)
from graphattn.featurize.vectors import join_sets

IBUPROFEN = "CC(C)Cc1ccc(cc1)C(C)C(=O)O"
WORDS, LONGEST, RADIUS = 20, 12, 3  # the words 0 and 1 are those asked about; of a sentence; of relative positions
IN_CHANNELS: dict[str, int | tuple[int, ...]] = {
    "none": (WORDS,),
    "sinusoidal": WORDS + 16,
    "learned": (WORDS, LONGEST),
    "relative": (WORDS,),
}


@dataclass(frozen=True)
class Seats:
    """Seats of one set, and what says where each is: a vector per seat, a kind per pair of seats, or nothing."""

    of: str
    positions: str
    count: int
    vectors: Tensor | None = None  # (N, P), joined to what sits there
    kinds: Tensor | None = None  # (N * N,), a learned number per kind is added to the score

    @torch.no_grad()
    def outputs(self, x: Tensor) -> Tensor:
        """(N, 8) of one attention layer, where row i of ``x`` (N, 4) sits in seat i and everybody sees everybody."""
        torch.manual_seed(0)
        seated = x if self.vectors is None else torch.cat([x, self.vectors], 1)
        edge_types = None if self.kinds is None else int(self.kinds.max()) + 1
        layer = ga.GraphAttention(seated.shape[1], 8, heads=2, edge_types=edge_types, edge_into=("score",))
        out: Tensor = layer(seated, ga.Adjacency.complete(self.count), self.kinds)
        return out

    def new_vectors(self) -> float:
        """How far, when all change seats, an output is from the nearest that was there before; 0: a permutation."""
        generator = torch.Generator().manual_seed(1)
        x, order = torch.randn(self.count, 4, generator=generator), torch.randperm(self.count, generator=generator)
        before, after = self.outputs(x), self.outputs(x[order])
        return float((after[:, None] - before[None]).abs().amax(-1).amin(1).max())


@dataclass(frozen=True)
class Positions:
    """What came out."""

    new_vectors: dict[tuple[str, str], float]  # by set and kind of positions; see Seats
    accuracies: dict[str, list[float]]  # which of two words comes first; by kind of positions, for each seed


def main(output: Path, *, quick: bool) -> Positions:
    """Shuffle, train, print, draw."""
    torch.manual_seed(0)
    words, images = of_grid("words", torch.arange(LONGEST), LONGEST), of_grid("pixels", pixel_positions(6, 6), (6, 6))
    seats = (*words, *images, *of_molecule(ga.MoleculeFeaturizer()(IBUPROFEN)))
    new_vectors = {(each.of, each.positions): each.new_vectors() for each in seats}
    rows = [
        {"a set of": of, "positions": positions, "shuffled, outputs move by": f"{moved:.1e}"}
        for (of, positions), moved in new_vectors.items()
    ]
    table(rows, "one layer, members shuffled over the seats: distance to the nearest output from before; 0 is the same")

    seeds = 1 if quick else 3
    accuracies = {kind: [which_comes_first(kind, seed, quick=quick) for seed in range(seeds)] for kind in IN_CHANNELS}
    table(
        [{"positions": kind, "accuracy": f"{statistics.mean(found):.1%}"} for kind, found in accuracies.items()],
        f"which of two words comes first, unseen sentences of 2 to {LONGEST} words, chance 50 %; seeds: {seeds}",
    )
    draw(accuracies, output)
    told = min(min(found) for kind, found in accuracies.items() if kind != "none")
    print(
        f"\nWithout positions attention guesses which word comes first ({statistics.mean(accuracies['none']):.1%}); "
        f"with any kind of them it knows ({told:.1%} or more)."
    )
    return Positions(new_vectors, accuracies)


def of_grid(of: str, place: Tensor, longest: int | tuple[int, int]) -> tuple[Seats, ...]:
    """Places (N,) in a row, or rows and columns (N, 2) in an image."""
    count, learned = len(place), LearnedPositions(longest, channels=8)
    return (
        Seats(of, "none", count),
        Seats(of, "sinusoidal", count, sinusoidal(place, channels=8)),
        Seats(of, "learned", count, learned(place).detach()),
        Seats(of, "relative", count, kinds=relative_kinds(ga.Adjacency.complete(count), place, RADIUS)),
    )


def of_molecule(graph: Any) -> tuple[Seats, ...]:
    """Nodes of a graph; everybody sees everybody, so that positions are all that is known of the bonds."""
    count = graph.num_nodes
    bonds = ga.Adjacency.from_edge_index(graph.edge_index, count)
    vectors = laplacian(bonds, count=4)
    return (
        Seats("atoms", "none", count),
        Seats("atoms", "random walk", count, random_walk(bonds, steps=8)),
        Seats("atoms", "Laplacian", count, vectors),
        Seats("atoms", "Laplacian, any sign", count, SignInvariant(count=4, channels=8)(vectors).detach()),
        Seats("atoms", "hops", count, kinds=hop_distance(bonds, ga.Adjacency.complete(count), farthest=6)),
    )


def which_comes_first(kind: str, seed: int, *, quick: bool) -> float:
    """Train one layer of attention on sentences with these positions; the accuracy on unseen ones."""
    sentences, first = make_sentences(1000 if quick else 3000, seed)
    torch.manual_seed(seed)
    network = ga.GraphTransformer(
        IN_CHANNELS[kind],
        out_channels=2,
        channels=16,
        layers=1,
        heads=2,
        readout="mean",
        edge_channels=(2 * RADIUS + 1,) if kind == "relative" else None,
        edge_into=("score",),
    )

    def loss_of(which: Tensor) -> Tensor:
        batch = network_input(kind, [sentences[index] for index in which.tolist()])
        return functional.cross_entropy(network(batch), first[which])

    train(network, lambda: shuffled(len(first), 64), loss_of, epochs=10 if quick else 20, learning_rate=1e-2)
    unseen, answers = make_sentences(1000, seed + 1000)
    with torch.no_grad():
        return float((network(network_input(kind, unseen)).argmax(-1) == answers).float().mean())


def make_sentences(count: int, seed: int) -> tuple[list[Tensor], Tensor]:
    """Sentences of 2 to LONGEST random words, 0 and 1 among them once, and 1 where word 0 comes first."""
    generator = torch.Generator().manual_seed(seed)
    sentences, first = [], []
    for length in torch.randint(2, LONGEST + 1, (count,), generator=generator).tolist():
        sentence = torch.randint(2, WORDS, (length,), generator=generator)
        zero, one = torch.randperm(length, generator=generator)[:2].tolist()
        sentence[zero], sentence[one] = 0, 1
        sentences.append(sentence)
        first.append(int(zero < one))
    return sentences, torch.tensor(first)


def network_input(kind: str, sentences: Sequence[Tensor]) -> SimpleNamespace:
    """Sentences as one batch; every word sees every word of its sentence."""
    word, ptr = join_sets(sentences)
    everybody, place = ga.Adjacency.complete(ptr=ptr), positions_in_sets(ptr)
    x, edge_attr = word[:, None], None
    if kind == "sinusoidal":
        x = torch.cat([functional.one_hot(word, WORDS), sinusoidal(place, channels=16)], 1)
    elif kind == "learned":
        x = torch.stack([word, place], 1)  # the network learns a vector per word and one per place, and adds them
    elif kind == "relative":
        edge_attr = relative_kinds(everybody, place, RADIUS)[:, None]
    return SimpleNamespace(x=x, edge_index=everybody, edge_attr=edge_attr)


def draw(accuracies: dict[str, list[float]], output: Path) -> None:
    """What positions look like, and what they are good for."""
    drawn, axes = figure(4, 2, width=3.9, height=3.6)
    waves, offsets, likeness, bars = axes[0]
    waves.imshow(sinusoidal(torch.arange(64), channels=32).numpy(), aspect="auto", cmap="RdBu", vmin=-1, vmax=1)
    waves.set(title="sinusoidal: a vector per place", xlabel="channel", ylabel="place")
    pairs = relative_kinds(ga.Adjacency.complete(LONGEST), torch.arange(LONGEST), RADIUS).view(LONGEST, LONGEST)
    shown = offsets.imshow(pairs.numpy() - RADIUS, cmap=mpl.colormaps["RdBu"].resampled(2 * RADIUS + 1))
    drawn.colorbar(shown, ax=offsets, shrink=0.8, label="offset, clipped")
    offsets.set(title="relative: a kind per pair", xlabel="sender", ylabel="receiver")
    code = sinusoidal(pixel_positions(16, 16), channels=32)
    likeness.imshow((code @ code[4 * 16 + 10]).view(16, 16).numpy(), cmap="Blues")
    likeness.plot(10, 4, "x", color=COLORS[3], markersize=10)
    likeness.set(title="sinusoidal, 2-D: dot product with x", xlabel="column", ylabel="row", xticks=range(0, 16, 5))
    for place, found in enumerate(accuracies.values()):
        bars.bar(place, statistics.mean(found), color=COLORS[place])
        bars.text(place, statistics.mean(found) + 0.02, f"{statistics.mean(found):.1%}", ha="center")
    bars.axhline(0.5, color="black", linestyle=":", linewidth=1)
    bars.set_xticks(range(len(accuracies)), accuracies)
    bars.set(ylim=(0, 1.12), title="which of two words comes first", ylabel="accuracy (dotted: chance)")
    draw_molecule(drawn, axes[1])
    save(drawn, output, "05_positions.png")


def draw_molecule(drawn: Any, panels: Sequence[Any]) -> None:
    """Ibuprofen, where atoms stand in it as colors; white is 0 where numbers have two signs."""
    featurizer = ga.MoleculeFeaturizer()
    graph, molecule = featurizer(IBUPROFEN), featurizer.molecule(IBUPROFEN)
    bonds, network = ga.Adjacency.from_edge_index(graph.edge_index, graph.num_nodes), ga.to_networkx(graph)
    rdDepictor.Compute2DCoords(molecule)
    place = dict(enumerate(molecule.GetConformer().GetPositions()[:, :2]))
    from_first = hop_distance(bonds, ga.Adjacency.complete(graph.num_nodes), farthest=20)[:: graph.num_nodes]
    first, second = laplacian(bonds, count=2).T
    colors = (
        ("random walk: back home after 4 steps", random_walk(bonds, steps=4)[:, 3], "Blues", 0),
        ("Laplacian, first eigenvector", first, "RdBu", -float(first.abs().max())),
        ("Laplacian, second eigenvector", second, "RdBu", -float(second.abs().max())),
        ("hops from the first atom", from_first, "Blues", 0),
    )
    for panel, (title, values, cmap, lowest) in zip(panels, colors, strict=True):
        nx.draw_networkx_edges(network, place, ax=panel, arrows=False)
        highest = float(values.abs().max())
        atoms = nx.draw_networkx_nodes(
            network, place, ax=panel, node_color=values.tolist(), cmap=cmap, vmin=lowest, vmax=highest, edgecolors="k"
        )
        drawn.colorbar(atoms, ax=panel, location="bottom", shrink=0.8)
        panel.set_aspect("equal", adjustable="datalim")
        panel.set(title=title)
        panel.set_axis_off()


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
