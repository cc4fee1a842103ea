"""What float edge features cost a layer: beside kinds of edge, which need no row per edge, and beside PyG's layer.

python benchmarks/edge_features.py               # 256 drug-like molecules, 16 numbers an edge, widths 64 to 256
"""

import argparse
import statistics
from collections.abc import Sequence

import torch
from attention_cases import BY_NAME
from attention_contestants import EDGE_DIM, HEADS, KINDS, Contestant
from attention_measure import interleaved, median_ratio
from machine import machine
from torch_geometric.nn import TransformerConv

from graphattn import GraphAttention


def main(words: Sequence[str] | None = None) -> None:
    """Time the three layers side by side at each width."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--case", choices=BY_NAME, default="molecules-256")
    parser.add_argument("--widths", type=int, nargs="+", default=(64, 128, 256))
    arguments = parser.parse_args(words)
    torch.manual_seed(0)
    graph = BY_NAME[arguments.case].make()
    kind, features = torch.randint(KINDS, (graph.num_edges,)), torch.randn(graph.num_edges, EDGE_DIM)
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(f"{'width':>6}  {'':14}{'kinds ms':>10}{'floats ms':>11}{'PyG ms':>10}{'kinds x':>9}{'PyG x':>8}")
    for width in arguments.widths:
        x, grad = torch.randn(graph.num_nodes, width, requires_grad=True), torch.randn(graph.num_nodes, width)
        conv = TransformerConv(width, width // HEADS, HEADS, edge_dim=EDGE_DIM, root_weight=False)
        kinds, floats = GraphAttention(width, width, HEADS, edge_types=KINDS), GraphAttention.from_pyg(conv)
        with torch.no_grad():
            own, theirs = floats(x, graph.adjacency, features), conv(x, graph.edge_index, features)
        torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-4)
        runs = {
            "kinds": lambda layer=kinds, x=x: layer(x, graph.adjacency, kind),
            "floats": lambda layer=floats, x=x: layer(x, graph.adjacency, features),
            "PyG": lambda layer=conv, x=x: layer(x, graph.edge_index, features),
        }
        weights = [weight for layer in (kinds, floats, conv) for weight in layer.parameters()]
        leaves = {"x": x, **{str(number): weight for number, weight in enumerate(weights)}}
        contestants = [Contestant(name, "layer", run, leaves, grad) for name, run in runs.items()]
        times = interleaved(contestants, arguments.rounds)
        for part in ("forward", "both"):
            of_kinds, of_floats, of_pyg = (getattr(own, part) for own in times)
            medians = (statistics.median(own) * 1e3 for own in (of_kinds, of_floats, of_pyg))
            ratios = median_ratio(of_floats, of_kinds), median_ratio(of_pyg, of_floats)
            cells = "{:10.2f}{:11.2f}{:10.2f}{:9.2f}{:8.2f}".format(*medians, *ratios)
            print(f"{width:6}  {'forward' if part == 'forward' else 'fwd+bwd':14}{cells}")
    print(f"Medians of {arguments.rounds} interleaved rounds; kinds x: floats / kinds; PyG x: PyG / floats.")


if __name__ == "__main__":
    main()
