"""The graphs that attention is timed on: molecules and citations out of public data, the others made by a seed."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from public_data import public_file
from torch import Tensor

from graphattn import Adjacency, MoleculeFeaturizer
from graphattn.data.pickled_arrays import read_lists
from graphattn.data.table import read_table


@dataclass(frozen=True, eq=False)
class Graph:
    """Edges as PyG has them, and where the graphs of a batch begin."""

    edge_index: Tensor  # (2, E) int64, (sender, receiver)
    ptr: Tensor  # (G + 1,) int64

    @property
    def num_nodes(self) -> int:
        """Nodes of the whole batch."""
        return int(self.ptr[-1])

    @property
    def num_edges(self) -> int:
        """Directed edges."""
        return self.edge_index.shape[1]

    @cached_property
    def largest(self) -> int:
        """Nodes of the largest graph."""
        return int(self.ptr.diff().max())

    @cached_property
    def largest_degree(self) -> int:
        """Edges that meet at one node, of one direction."""
        return max(int(torch.bincount(ends).max()) for ends in self.edge_index)

    @cached_property
    def batch(self) -> Tensor:
        """(N,) the graph of each node."""
        return torch.arange(len(self.ptr) - 1).repeat_interleave(self.ptr.diff())

    @cached_property
    def adjacency(self) -> Adjacency:
        """Ready to attend forward and backward; the layers of a model share it."""
        return self._timed_adjacency[0]

    @property
    def adjacency_ms(self) -> float:
        """What making it took."""
        return self._timed_adjacency[1]

    @cached_property
    def _timed_adjacency(self) -> tuple[Adjacency, float]:
        times = []
        for _ in range(5 if self.num_edges < 10**6 else 1):
            begun = time.perf_counter()
            adjacency = Adjacency.from_edge_index(self.edge_index, self.num_nodes, ptr=self.ptr)
            _ = adjacency.runs, adjacency.transpose.runs  # views that are computed at first use and kept
            times.append((time.perf_counter() - begun) * 1e3)
        return adjacency, statistics.median(times)


@dataclass(frozen=True)
class Case:
    """A graph by name; made when it is wanted."""

    name: str
    what: str
    make: Callable[[], Graph]
    huge: bool = False  # too large for most contestants: each runs in a process of its own, under a memory cap


def molecules(file: str, count: int, smallest: int = 1, largest: int = 10**6) -> Graph:
    """The first ``count`` of a seeded permutation of the molecules in ``file`` that have so many atoms.

    Raises:
        FileNotFoundError: the public file is not at hand.
        ValueError: it has too few such molecules.
    """
    smiles = read_table(public_file(file)).column("smiles")
    parts: list[Tensor] = []
    featurizer, ptr = MoleculeFeaturizer(), [0]
    for row in np.random.default_rng(0).permutation(len(smiles)):
        if len(parts) == count:
            break
        found, _ = featurizer.rows([smiles[row]])
        if found[0] is not None and smallest <= found[0].num_nodes <= largest:
            parts.append(found[0].edge_index + ptr[-1])
            ptr.append(ptr[-1] + found[0].num_nodes)
    if len(parts) < count:
        raise ValueError(f"{file} has {len(parts)} molecules of {smallest} to {largest} atoms; {count} are wanted")
    return Graph(torch.cat(parts, 1), torch.tensor(ptr))


def cora() -> Graph:
    """The citations of Cora, both ways, without loops and repetitions."""
    lists = read_lists(public_file("graphs/planetoid/ind.cora.graph"))
    pairs = [(one, other) for one, others in lists.items() for other in others]
    ends = np.array(pairs).T
    return _both_ways(ends[0], ends[1], num_nodes=int(ends.max()) + 1)


def power_law(num_nodes: int, num_edges: int, seed: int = 0) -> Graph:
    """Preferential attachment: each new node links to earlier ones by their degree; nodes are numbered at random.

    A link's end is the node at a random earlier place in the list of all ends, which holds each node as often as it has
    links. Loops and repetitions are dropped, so that there are slightly fewer directed edges than ``num_edges``.

    Source: Barabasi and Albert 1999, doi:10.1126/science.286.5439.509; the list of ends: Batagelj and Brandes 2005,
    doi:10.1103/PhysRevE.71.036113.
    """
    rng, links = np.random.default_rng(seed), num_edges // 2
    first = np.arange(links) * num_nodes // links  # the newer end of each link; place 2k of the list
    place = rng.integers(0, 2 * np.arange(links) + 1)  # where the other end, place 2k + 1, is copied from
    while (odd := place % 2 == 1).any():
        place[odd] = place[place[odd] // 2]
    names = rng.permutation(num_nodes)
    return _both_ways(names[first], names[first[place // 2]], num_nodes)


def window(num_frames: int, reach: int) -> Graph:
    """Every frame sees those at most ``reach`` before and after it, and itself."""
    frame, offset = np.meshgrid(np.arange(num_frames), np.arange(-reach, reach + 1), indexing="ij")
    inside = (frame + offset >= 0) & (frame + offset < num_frames)
    edge_index = torch.from_numpy(np.stack([(frame + offset)[inside], frame[inside]]))
    return Graph(edge_index, torch.tensor([0, num_frames]))


def complete(num_vectors: int) -> Graph:
    """Every vector sees all."""
    return window(num_vectors, num_vectors - 1)


def _both_ways(one: np.ndarray, other: np.ndarray, num_nodes: int) -> Graph:
    """Each pair in both directions, once, sorted by sender as PyG's ``coalesce`` leaves them."""
    linked = one != other
    low, high = np.minimum(one, other)[linked], np.maximum(one, other)[linked]
    pairs = np.unique(low * num_nodes + high)
    low, high = pairs // num_nodes, pairs % num_nodes
    both = np.sort(np.concatenate([pairs, high * num_nodes + low]))
    return Graph(torch.from_numpy(np.stack([both // num_nodes, both % num_nodes])), torch.tensor([0, num_nodes]))


LIPOPHILICITY, PEPTIDES = "molnet/Lipophilicity.csv", "molnet/peptides_functional.csv.gz"
CASES = (
    Case("molecules-32", "32 drug-like molecules (Lipophilicity)", partial(molecules, LIPOPHILICITY, 32)),
    Case("molecules-256", "256 drug-like molecules (Lipophilicity)", partial(molecules, LIPOPHILICITY, 256)),
    Case("peptides-64", "64 peptides of 150 to 440 atoms", partial(molecules, PEPTIDES, 64, 150, 440)),
    Case("citations", "the citation graph Cora", cora),
    Case("power-law", "a power-law graph of 170,000 nodes", partial(power_law, 170_000, 1_200_000)),
    Case("window", "a window of +-15 over 10,000 frames", partial(window, 10_000, 15)),
    Case("full", "full attention over 512 vectors", partial(complete, 512)),
    Case("huge", "a power-law graph of 1,000,000 nodes", partial(power_law, 1_000_000, 20_000_000), huge=True),
)
QUICK = (Case("small-window", "a window of +-3 over 300 frames", partial(window, 300, 3)),)
GROWTH = tuple(  # 8 edges a node
    Case(f"growth-1e{power}", f"a power-law graph of 10^{power} edges", partial(power_law, 10**power // 8, 10**power))
    for power in (4, 5, 6, 7)
)
BY_NAME = {case.name: case for case in (*CASES, *QUICK, *GROWTH)}
