"""Depth: attention, then fully connected, repeated; each repetition sees one hop farther along the graph.

Attention mixes the set; the fully connected part works on each vector alone: gradients show both. Then networks of 1 to
6 blocks chase pointers: every node of a ring is asked the colors of the nodes 0 to 6 steps ahead, and sees its two
neighbors only. One sees accuracy by depth and hops, and a picture of both. The full run takes about a minute on one
core. Run: python examples/07_depth.py --output out
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from lesson import count_parameters, figure, matrix, save, settings, table, train
from torch import Tensor
from torch.nn import functional

import graphattn as ga

COLORS_OF_NODES, RING = 4, 16  # a ring is longer than twice the hops: there is no shorter way round
NEXT, PREVIOUS = 0, 1  # kinds of edge


@dataclass(frozen=True)
class Plan:
    """How much is trained."""

    depths: range
    most_hops: int
    epochs: int  # of 40 batches, never the same
    rings: int  # in a batch
    channels: int


FULL = Plan(depths=range(1, 7), most_hops=6, epochs=10, rings=32, channels=64)
QUICK = Plan(depths=range(1, 3), most_hops=4, epochs=3, rings=16, channels=32)


@dataclass(frozen=True, eq=False)
class Rings:
    """Rings of nodes with random numbers and colors: what a network reads, and what it is asked."""

    x: Tensor  # (N, 1) color
    edge_index: ga.Adjacency  # every node sees the next and the previous
    edge_attr: Tensor  # (E, 1) which of them
    ahead: Tensor  # (N, hops + 1) color of the node 0, 1, ... steps ahead


@dataclass(frozen=True, eq=False)
class Results:
    """Who influences whom within a block, and how far a stack of them sees."""

    attention: Tensor  # (6, 6) largest gradient of output ``row`` by input ``column``
    feed_forward: Tensor  # (6, 6) the same of the fully connected part
    reach: tuple[int, ...]  # by depth: the most hops away that an input has a gradient
    accuracy: Tensor  # (depths, hops + 1)


def rings(count: int, most_hops: int, generator: torch.Generator) -> Rings:
    """Rings of ``RING`` nodes, with the colors up to ``most_hops`` steps ahead of each."""
    nodes = count * RING
    order = torch.rand(count, RING, generator=generator).argsort(1) + torch.arange(count)[:, None] * RING
    here, following = order.flatten(), order.roll(-1, 1).flatten()
    edges = torch.stack([torch.cat([following, here]), torch.cat([here, following])])  # senders, receivers
    color = torch.randint(COLORS_OF_NODES, (nodes,), generator=generator)
    ahead = torch.empty(nodes, most_hops + 1, dtype=torch.long)
    for hops in range(most_hops + 1):
        ahead[here, hops] = color[order.roll(-hops, 1).flatten()]
    return Rings(
        color[:, None],
        ga.Adjacency.from_edge_index(edges, nodes, ptr=torch.arange(count + 1) * RING),
        torch.tensor([NEXT, PREVIOUS]).repeat_interleave(nodes)[:, None],
        ahead,
    )


def influence(of: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """(N, N): the largest gradient of a number of output ``row`` by one of input ``column``; 0 is no influence."""
    gradients = torch.autograd.functional.jacobian(of, x)  # type: ignore[no-untyped-call]  # (N, outputs, N, inputs)
    assert isinstance(gradients, Tensor)
    return gradients.abs().amax((1, 3))


def parts_of_a_block() -> tuple[Tensor, Tensor]:
    """Influence among six vectors by attention over all of them, and by the fully connected part."""
    block, x, everyone = ga.Block(16, heads=4), torch.randn(6, 16), ga.Adjacency.complete(6)
    return influence(lambda x: block.attention(x, everyone), x), influence(block.feed_forward, x)


def reach(depth: int) -> int:
    """How many hops away on a ring lies the farthest vector that influences a node through ``depth`` blocks."""
    ring = torch.arange(RING)
    both_ways = torch.stack([torch.cat([ring, ring.roll(-1)]), torch.cat([ring.roll(-1), ring])])
    adjacency = ga.Adjacency.from_edge_index(both_ways, RING)
    blocks = [ga.Block(8, heads=2) for _ in range(depth)]

    def stacked(x: Tensor) -> Tensor:
        for block in blocks:
            x = block(x, adjacency)
        return x

    hops = torch.minimum(ring, RING - ring)  # from node 0
    return int(hops[influence(stacked, torch.randn(RING, 8))[0] > 0].max())


def learned(depth: int, plan: Plan) -> tuple[int, Tensor]:
    """Parameters of a network of that depth, and its accuracy on new rings by hops."""
    torch.manual_seed(0)
    questions = plan.most_hops + 1
    network = ga.GraphTransformer(
        [COLORS_OF_NODES],
        questions * COLORS_OF_NODES,
        channels=plan.channels,
        layers=depth,
        heads=4,
        edge_channels=[2],
        readout=None,
    )
    generator = torch.Generator().manual_seed(1)

    def loss_of(batch: Rings) -> Tensor:
        return functional.cross_entropy(network(batch).view(-1, COLORS_OF_NODES), batch.ahead.flatten())

    def batches() -> list[Rings]:
        return [rings(plan.rings, plan.most_hops, generator) for _ in range(40)]

    train(network, batches, loss_of, epochs=plan.epochs, learning_rate=4e-3)
    unseen = rings(300, plan.most_hops, torch.Generator().manual_seed(2))
    with torch.no_grad():
        named = network(unseen).view(-1, questions, COLORS_OF_NODES).argmax(-1)
    return count_parameters(network), (named == unseen.ahead).float().mean(0)


def main(output: Path, *, quick: bool) -> Results:
    """Show what the parts of a block do, train by depth, print and draw."""
    plan = QUICK if quick else FULL
    torch.manual_seed(0)
    attention, feed_forward = parts_of_a_block()
    matrix("Attention: largest gradient of output (row) by input (column)", attention)
    matrix("Fully connected part: the same", feed_forward)
    reaches, shares, rows = [], [], []
    for depth in plan.depths:
        parameters, accuracy = learned(depth, plan)
        reaches.append(reach(depth))
        shares.append(accuracy)
        by_hops = {f"{hops} hops": f"{share:.1%}" for hops, share in enumerate(accuracy.tolist())}
        rows.append({"blocks": depth, "parameters": parameters, "sees": f"{reaches[-1]} hops", **by_hops})
    table(rows, f"Share of {COLORS_OF_NODES} colors named right, by the hops to the node that has it")
    results = Results(attention, feed_forward, tuple(reaches), torch.stack(shares))
    picture(results, plan, output)
    print("A block lets a node see one hop farther; what lies beyond its depth a network can only guess.")
    return results


def picture(results: Results, plan: Plan, output: Path) -> None:
    """The influence within the two parts of a block, and accuracy by depth and hops."""
    drawn, (first, second, third) = figure(3)
    for axes, values, title in (
        (first, results.attention, "Attention mixes the set"),
        (second, results.feed_forward, "Fully connected: each vector alone"),
    ):
        axes.imshow(values.numpy(), cmap="Blues", vmin=0)
        axes.set(title=title, xlabel="input vector", ylabel="output vector")
    drawn.colorbar(
        third.imshow(results.accuracy.numpy(), cmap="viridis", vmin=1 / COLORS_OF_NODES, vmax=1), label="share right"
    )
    third.set(title="Color of the node some hops ahead", xlabel="hops", ylabel="blocks")
    third.set_yticks(range(len(plan.depths)), [str(depth) for depth in plan.depths])
    for row, shares in enumerate(results.accuracy.tolist()):
        for hops, share in enumerate(shares):
            third.text(hops, row, f"{share:.0%}", ha="center", va="center", color="black" if share > 0.7 else "white")
    save(drawn, output, "07_depth.png")


if __name__ == "__main__":
    given = settings(__doc__)
    main(given.output, quick=given.quick)
