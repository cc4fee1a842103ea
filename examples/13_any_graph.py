"""Any graph: a networkx graph in, a class per node out, drawn with attention as edge thickness.

First graphs of all kinds go through one layer: with names for nodes, directed, with parallel edges and self loops, as
sparse and as dense matrices. Then Zachary's karate club splits in two: from the final side of four members and the
friendships alone, the network says which side the other thirty took. The full run takes some seconds.
Run: python examples/13_any_graph.py --output out
"""

from pathlib import Path
from typing import Any

import networkx as nx
import torch
from lesson import COLORS, figure, save, settings, table
from scipy import sparse
from torch import Tensor
from torch.nn import functional
from torch_geometric.data import Data

import graphattn as ga

KNOWN = (0, 1, 32, 33)  # the instructor, the officer and the best friend of each
SIDES = (COLORS[1], COLORS[5])


def main(output: Path, *, quick: bool) -> float:  # noqa: ARG001 (there is nothing to shorten)
    """Show graphs of all kinds, learn the sides, print, draw; returns the accuracy on the unknown members."""
    report(forms())
    missing_attribute()
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
    print(
        f"\nThe karate club: told the side of {len(KNOWN)} members, right about {accuracy:.0%} of the other "
        f"{int(unknown.sum())}"
    )

    draw(ga.to_networkx(data, edges={"attention": attention}), guess, truth, output)
    return accuracy


def forms() -> dict[str, Data]:
    """Friends of Ann as graphs of all kinds; the first four are one graph."""
    friends = nx.Graph([("Ann", "Bo"), ("Bo", "Cy"), ("Cy", "Ann"), ("Cy", "Di")])
    matrix = nx.to_scipy_sparse_array(friends)
    calls: nx.MultiDiGraph[str] = nx.MultiDiGraph([("Ann", "Bo"), ("Ann", "Bo"), ("Bo", "Cy"), ("Di", "Di")])
    pairs = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    return {
        "networkx, names for nodes": ga.from_networkx(friends),
        "SciPy, sparse": ga.from_matrix(sparse.coo_array(matrix)),
        "NumPy, dense": ga.from_matrix(matrix.toarray()),
        "PyG": Data(edge_index=torch.tensor(pairs).T, num_nodes=4),
        "networkx, directed": ga.from_networkx(nx.DiGraph(friends.edges)),
        "networkx, parallel edges and a self loop": ga.from_networkx(calls),
    }


def attended(graph: Data) -> Tensor:
    """(N, 4) one layer of attention on the nodes' numbers, the same for every graph."""
    torch.manual_seed(0)
    layer = ga.GraphAttention(4, 4, heads=2)
    with torch.no_grad():
        out: Tensor = layer(torch.eye(graph.num_nodes), graph.edge_index)
    return out


def report(graphs: dict[str, Data]) -> None:
    """Print what each graph became, and how far its outputs are from those of the first."""
    first = attended(next(iter(graphs.values())))
    rows = []
    for name, graph in graphs.items():
        seen, _ = ga.Adjacency.from_edge_index(graph.edge_index, graph.num_nodes).row(2)
        rows.append(
            {
                "graph": name,
                "nodes": ", ".join(map(str, getattr(graph, "nodes", range(graph.num_nodes)))),
                "directed edges": graph.num_edges,
                "node 2 sees": ", ".join(map(str, sorted(seen.tolist()))),
                "outputs differ by": f"{float((attended(graph) - first).abs().max()):.0e}",
            }
        )
    table(rows, "One layer of attention on graphs of all kinds")


def missing_attribute() -> None:
    """What is said where a node lacks what is asked for."""
    graph = nx.Graph([("Ann", "Bo")])
    graph.nodes["Ann"]["age"] = 30
    try:
        ga.from_networkx(graph, node_features=["age"])
    except ga.GraphattnError as refusal:
        print(f"\nOf a graph in which Bo has no age: {refusal}")
    filled = ga.from_networkx(graph, node_features=["age"], fill=0)
    print(f"With fill=0 the ages are {filled.x.flatten().tolist()}.")


def draw(graph: "nx.Graph[Any]", guess: Tensor, truth: Tensor, output: Path) -> None:
    """Color: the side guessed. Square: its side was told. Red rim: wrong. Thickness: attention along an edge."""
    place = nx.spring_layout(graph.to_undirected(), seed=4, k=0.35)
    drawn, axes = figure(width=8, height=6)
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
            node_color=[SIDES[int(guess[member])] for member in members],
            edgecolors=["black" if guess[member] == truth[member] else "red" for member in members],
            linewidths=[1 if guess[member] == truth[member] else 3 for member in members],
        )
    nx.draw_networkx_labels(graph, place, ax=axes, font_size=8)
    axes.set_title(
        "Karate club: side guessed (color), told (square), wrong (red rim), attention of layer 1 (thickness)"
    )
    axes.set_axis_off()
    save(drawn, output, "karate_club.png")


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
