"""Any graph: a networkx graph in, a class per node out, drawn with attention as edge thickness.

Zachary's karate club split in two. From the final side of four members and the friendships alone, the network says
which side the other thirty took. Run: python examples/13_any_graph.py --output out
"""

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # draw to a file, with or without a screen

import matplotlib.pyplot as plt
import networkx as nx
import torch
from torch.nn import functional

import graphattn as ga

KNOWN = (0, 1, 32, 33)  # the instructor, the officer and the best friend of each
COLORS = ("#e69f00", "#56b4e9")  # Okabe and Ito's, told apart by every kind of eye


def main(output: Path) -> float:
    """Train, print the accuracy on the unknown members, draw; returns the accuracy."""
    torch.manual_seed(0)
    club = nx.karate_club_graph()
    data = ga.from_networkx(club)
    data.x = torch.eye(data.num_nodes)  # all a member has is a name
    sides = sorted({club.nodes[member]["club"] for member in data.nodes})
    truth = torch.tensor([sides.index(club.nodes[member]["club"]) for member in data.nodes])

    network = ga.GraphTransformer(34, out_channels=2, channels=16, layers=2, heads=4, readout=None, dropout=0.2)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    for _ in range(100):
        network.train()
        loss = functional.cross_entropy(network(data)[list(KNOWN)], truth[list(KNOWN)])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()

    network.eval()
    with torch.no_grad():
        guess = network(data).argmax(-1)
        attention = network.attention_weights(data).layers[0].edges.mean(-1)
    unknown = torch.ones(data.num_nodes, dtype=torch.bool)
    unknown[list(KNOWN)] = False
    accuracy = float((guess == truth)[unknown].float().mean())
    print(f"told the side of {len(KNOWN)} members, right about {accuracy:.0%} of the other {int(unknown.sum())}")

    output.mkdir(parents=True, exist_ok=True)
    draw(ga.to_networkx(data, edges={"attention": attention}), guess, truth, output / "karate_club.png")
    print(f"drawn in {output / 'karate_club.png'}")
    return accuracy


def draw(graph: "nx.Graph[Any]", guess: torch.Tensor, truth: torch.Tensor, path: Path) -> None:
    """Color: the side guessed. Square: its side was told. Red rim: wrong. Thickness: attention along an edge."""
    place = nx.spring_layout(graph.to_undirected(), seed=4, k=0.35)
    figure, axes = plt.subplots(figsize=(8, 6), layout="constrained")
    widths = [8 * graph.edges[edge]["attention"] for edge in graph.edges]
    nx.draw_networkx_edges(
        graph,
        place,
        ax=axes,
        width=widths,
        edge_color="#00000055",
        arrows=True,
        arrowsize=6,
        connectionstyle="arc3,rad=0.12",
    )
    for shape, members in (("s", KNOWN), ("o", [member for member in graph if member not in KNOWN])):
        nx.draw_networkx_nodes(
            graph,
            place,
            ax=axes,
            nodelist=list(members),
            node_shape=shape,
            node_color=[COLORS[int(guess[member])] for member in members],
            edgecolors=["black" if guess[member] == truth[member] else "red" for member in members],
            linewidths=[1 if guess[member] == truth[member] else 3 for member in members],
        )
    nx.draw_networkx_labels(graph, place, ax=axes, font_size=8)
    axes.set_title(
        "Karate club: side guessed (color), told (square), wrong (red rim), attention of layer 1 (thickness)"
    )
    axes.set_axis_off()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=Path("out"), help="folder for the picture")
    main(parser.parse_args().output)
