"""Graphs of every awkward kind for tests, and what they look like in networkx."""

import hypothesis.strategies as st
import networkx as nx
import torch

from graphattn.adjacency import Adjacency


@st.composite
def adjacencies(draw, largest: int = 7) -> Adjacency:
    """One graph: directed, with self loops, parallel edges and lonely nodes as they come; perhaps without any node."""
    size = draw(st.integers(0, largest))
    node = st.integers(0, max(size - 1, 0))
    edges = draw(st.lists(st.tuples(node, node), max_size=12)) if size else []
    both = draw(st.booleans())
    ends = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    return Adjacency.from_edge_index(torch.cat([ends, ends.flip(0)], 1) if both else ends, size)


def as_networkx(adjacency: Adjacency) -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(adjacency.num_receivers))
    graph.add_edges_from(adjacency.edge_index().T.tolist())
    return graph


def undirected(graph: nx.Graph) -> Adjacency:
    """Nodes as they are numbered; each edge in both directions."""
    ends = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    return Adjacency.from_edge_index(torch.cat([ends, ends.flip(0)], 1), graph.number_of_nodes())


def renumbered(adjacency: Adjacency, order: torch.Tensor) -> Adjacency:
    """Node ``order[i]`` becomes node i; edges keep their order."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    return Adjacency.from_edge_index(place[adjacency.edge_index()], adjacency.num_receivers)
