"""Words, sounds, pictures, graphs and molecules are sets of vectors, and one layer takes sets of any size, unpadded.

One sees seven kinds of vectors as matrices: words as one-hot and as learned vectors, frames of sound, gray and colored
pixels, the nodes of a graph, the atoms of a molecule. Three sets of each kind, of different sizes, go through attention
as one batch, and each set alone gives the same. Takes seconds. Run: python examples/04_vector_sets.py --output out
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import torch
from lesson import COLORS, figure, save, settings, table
from sklearn.datasets import load_digits, load_sample_image
from torch import Tensor

import graphattn as ga
from graphattn.featurize.sound import log_mel
from graphattn.featurize.vectors import Vocabulary, join_sets, one_hot_columns, pixels
from graphattn.model.embedding import CodeEmbedding

SENTENCES = ("I saw a saw", "the cat saw the dog on the mat", "a zebra sat")
KNOWN = Vocabulary.of(sentence.split() for sentence in SENTENCES[:2])  # "zebra" and "sat" came later
SAMPLE_RATE = 16_000  # Hz
SECONDS = (1.0, 0.5, 0.3)
MOLECULES = ("CCO", "CC(=O)Oc1ccccc1C(=O)O", "Cn1c(=O)c2c(ncn2C)n(C)c1=O")  # ethanol, aspirin, caffeine
GRAPHS = (nx.petersen_graph(), nx.karate_club_graph(), nx.florentine_families_graph())


@dataclass(frozen=True)
class Kind:
    """Sets of one kind: the vectors of each, and who may look at whom in it."""

    name: str
    sets: tuple[Tensor, ...]  # (size, channels) each
    adjacencies: tuple[ga.Adjacency, ...]
    channels: tuple[str, ...] = ()  # their names, where they are few

    def layer(self) -> ga.GraphAttention:
        """The one layer that all sets of this kind go through."""
        torch.manual_seed(0)
        return ga.GraphAttention(self.sets[0].shape[1], out_channels=16, heads=4)

    @torch.no_grad()
    def together(self) -> Tensor:
        """(all vectors, 16): all sets in one batch, one after another."""
        x, _ = join_sets(self.sets)
        out: Tensor = self.layer()(x, ga.Adjacency.batch(self.adjacencies))
        return out

    @torch.no_grad()
    def alone(self) -> Tensor:
        """(all vectors, 16): each set by itself."""
        layer = self.layer()
        return torch.cat([layer(x, adjacency) for x, adjacency in zip(self.sets, self.adjacencies, strict=True)])


def main(output: Path, *, quick: bool) -> dict[str, Kind]:  # noqa: ARG001 (there is nothing to shorten)
    """Make the sets, run them together and alone, print, draw; returns the sets by kind."""
    kinds = (*words(), sounds(), gray_pixels(), colored_pixels(), graphs(), molecules())
    rows = []
    for kind in kinds:
        x, ptr = join_sets(kind.sets)
        difference = (kind.together() - kind.alone()).abs().max() / kind.alone().abs().max()
        sizes = ptr.diff()
        rows.append(
            {
                "kind": kind.name,
                "sizes": " ".join(map(str, sizes.tolist())),
                "channels": x.shape[1],
                "vectors": len(x),
                "if padded": len(sizes) * int(sizes.max()),
                "alone differs by": f"{float(difference):.1e}",
            }
        )
    table(rows, "one batch of three sets each; the last column is a share of the largest output")
    for sentence in SENTENCES:
        print(f"{sentence!r}: {KNOWN.words(KNOWN.codes(sentence.split()))}")
    draw(kinds, output)
    print("\nWhatever becomes a set of vectors goes through the same attention, in sets of any size, padded nowhere.")
    return {kind.name: kind for kind in kinds}


def every_pair(name: str, sets: Sequence[Tensor], channels: tuple[str, ...] = ()) -> Kind:
    """Sets in which everybody sees everybody."""
    return Kind(name, tuple(sets), tuple(ga.Adjacency.complete(len(each)) for each in sets), channels)


def words() -> tuple[Kind, Kind]:
    """Words as one-hot vectors, and as vectors of a table that is learned: the first times the table is the second."""
    torch.manual_seed(0)
    table_of_vectors = CodeEmbedding((len(KNOWN),), channels=8)
    split = [sentence.split() for sentence in SENTENCES]
    return (
        every_pair("words, one-hot", [KNOWN.one_hot(each) for each in split]),
        every_pair("words, embedded", [table_of_vectors(KNOWN.codes(each)[:, None]).detach() for each in split]),
    )


def sounds() -> Kind:
    """Three sounds: a rising tone, a buzz of 20 harmonics, noise; a vector per 10 ms."""
    generator = torch.Generator().manual_seed(0)
    time = [torch.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE for seconds in SECONDS]
    rising = (2 * math.pi * (200 * time[0] + 1500 * time[0] ** 2)).sin()
    buzz = sum(((2 * math.pi * 150 * harmonic * time[1]).sin() / harmonic for harmonic in range(1, 21)), 0 * time[1])
    noise = torch.randn(len(time[2]), generator=generator)
    return every_pair("sound, log-mel", [log_mel(each, SAMPLE_RATE, channels=40) for each in (rising, buzz, noise)])


def gray_pixels() -> Kind:
    """Handwritten digits, cropped to different sizes: one number per pixel."""
    images = load_digits().images[:3].astype("float32") / 16
    pieces = images[0], images[1][:, 2:7], images[2][1:7]
    return every_pair("pixels, gray", [pixels(piece) for piece in pieces], ("gray",))


def colored_pixels() -> Kind:
    """Pieces of a photograph: red, green and blue of each pixel."""
    photograph = load_sample_image("flower.jpg")[::16, ::16]  # (27, 40, 3)
    pieces = (photograph[6:18, 14:30], photograph[:8, :8], photograph[10:15, 20:26])
    return every_pair("pixels, RGB", [pixels(piece) for piece in pieces], ("red", "green", "blue"))


def graphs() -> Kind:
    """Nodes of networks, described by four measures; they see their neighbors."""
    measures: dict[str, Any] = {
        "degree": nx.degree_centrality,
        "closeness": nx.closeness_centrality,
        "betweenness": nx.betweenness_centrality,
        "clustering": nx.clustering,
    }
    data = []
    for graph in GRAPHS:
        for name, measure in measures.items():
            nx.set_node_attributes(graph, measure(graph), name)
        data.append(ga.from_networkx(graph, node_features=list(measures)))
    return Kind(
        "nodes of a graph",
        tuple(each.x for each in data),
        tuple(ga.Adjacency.from_edge_index(each.edge_index, each.num_nodes) for each in data),
        tuple(measures),
    )


def molecules() -> Kind:
    """Atoms as one-hot vectors of element, charge, ring and so on; they see those they are bonded to."""
    featurizer = ga.MoleculeFeaturizer()
    data, widths = [featurizer(smiles) for smiles in MOLECULES], [column.width for column in featurizer.node_columns]
    return Kind(
        "atoms, one-hot",
        tuple(one_hot_columns(each.x, widths) for each in data),
        tuple(ga.Adjacency.from_edge_index(each.edge_index, each.num_nodes) for each in data),
    )


def draw(kinds: Sequence[Kind], output: Path) -> None:
    """Each kind as a matrix of a row per vector, lines between sets; and what padding would have cost."""
    drawn, axes = figure(4, 2, width=3.8, height=4.2)
    for panel, kind in zip(axes.flat, kinds, strict=False):
        x, ptr = join_sets(kind.sets)
        panel.imshow(x.numpy(), aspect="auto", cmap="Blues", interpolation="nearest")
        for end in ptr[1:-1].tolist():
            panel.axhline(end - 0.5, color=COLORS[3], linewidth=1.5)
        panel.set(title=f"{kind.name}: {len(x)} x {x.shape[1]}", xlabel="channel", ylabel="vectors of three sets")
        if kind.channels:
            panel.set_xticks(range(len(kind.channels)), kind.channels, rotation=20 if len(kind.channels) > 3 else 0)
            panel.set(xlabel="")
    for panel in axes.flat[:2]:
        labels_of_words(panel)
    cost(axes.flat[-1], kinds)
    save(drawn, output, "04_vector_sets.png")


def labels_of_words(panel: Any) -> None:
    """Each row is a word."""
    spoken = " ".join(SENTENCES).split()
    panel.set_yticks(range(len(spoken)), spoken)
    panel.set(ylabel="")


def cost(panel: Any, kinds: Sequence[Kind]) -> None:
    """Vectors in the batch, beside what it would hold if all sets were padded to the longest."""
    for row, kind in enumerate(kinds):
        sizes = [len(each) for each in kind.sets]
        padded = len(sizes) * max(sizes) / sum(sizes)
        panel.barh(row, padded, color=COLORS[1])
        panel.barh(row, 1, color=COLORS[0])
        panel.text(padded + 0.03, row, f"{padded:.1f} x", va="center", fontsize=9)
    panel.set_yticks(range(len(kinds)), [kind.name for kind in kinds])
    panel.invert_yaxis()
    panel.set(title="rows: joined (blue), padded (orange)", xlabel="rows / vectors", xlim=(0, 2.9))


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
