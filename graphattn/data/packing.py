"""The border where a list of PyG graphs comes in: whether and how they can be packed together.

A graph is named in messages by its place in the list, counted from 0.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphattn.errors import GraphError, ShapeError

# Names that PyG numbers or concatenates in its own way (Data.__inc__, Data.__cat_dim__, collate): no field's name.
_TAKEN_WORDS = ("index", "batch")  # anywhere in a name
_TAKEN_NAMES = ("face", "ptr", "num_nodes")


def homes_of_fields(
    node_fields: Sequence[str], edge_fields: Sequence[str], graph_fields: Sequence[str]
) -> dict[str, str]:
    """What each named field belongs to: "node", "edge" or "graph"."""
    homes: dict[str, str] = {}
    for home, names in (("node", node_fields), ("edge", edge_fields), ("graph", graph_fields)):
        for name in names:
            if homes.setdefault(name, home) != home:
                raise GraphError(f"field {name!r} is named for the {homes[name]}s and for the {home}s; name it once.")
            if name in _TAKEN_NAMES or any(word in name for word in _TAKEN_WORDS):
                raise GraphError(
                    f"field {name!r} cannot be packed: PyG batches attributes called {_listed(_TAKEN_NAMES)} or with "
                    f"{_listed(_TAKEN_WORDS)} in their name by rules of its own; rename it."
                )
    return homes


def check_graphs(graphs: Sequence[Data], homes: Mapping[str, str]) -> None:
    """All are plain ``Data`` with one set of attributes, each of which has a home: node, edge or graph."""
    if not graphs:
        raise GraphError("no graphs to pack; give at least one.")
    names = None
    for row, graph in enumerate(graphs):
        if type(graph) is not Data:
            raise GraphError(
                f"graph {row} is a {type(graph).__qualname__}, not a torch_geometric.data.Data itself "
                "(a subclass may batch by rules of its own); take a Batch apart with to_data_list()."
            )
        here = set(graph.keys())
        names = here if names is None else names
        if here != names:
            raise GraphError(
                f"graph {row} has attributes {_listed(here)} but graph 0 has {_listed(names)}; all must have the same."
            )
    unknown = sorted(set(graphs[0].keys()) - homes.keys() - {"edge_index", "num_nodes"})
    if unknown:
        raise GraphError(
            f"the graphs have attributes that nobody said what to do with: {_listed(unknown)}. Name each in "
            "node_fields=, edge_fields= or graph_fields=, or delete it from the graphs."
        )
    if "edge_index" not in graphs[0]:
        raise GraphError("the graphs have no edge_index; a graph without edges has one of shape (2, 0).")


def num_nodes(graph: Data, row: int, node_fields: Iterable[str]) -> int:
    """Nodes of one graph: what it says itself, else the rows of its first node field."""
    if "num_nodes" in graph:
        return int(graph.num_nodes)
    for name in node_fields:
        if name in graph and isinstance(graph[name], Tensor) and graph[name].dim():
            return len(graph[name])
    raise GraphError(f"graph {row} does not say how many nodes it has; give it x or num_nodes.")


def num_edges(graph: Data, row: int) -> int:
    """Edges of one graph, whose edge_index has been looked at."""
    edge_index = graph.edge_index
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or len(edge_index) != 2:
        raise ShapeError(f"graph {row}: edge_index must be a tensor of shape (2, E), got {_described(edge_index)}.")
    if edge_index.dtype != torch.long:
        raise ShapeError(f"graph {row}: edge_index must be int64, got {edge_index.dtype}; use edge_index.long().")
    return edge_index.shape[1]


def concatenate(graphs: Sequence[Data], name: str, home: str, counts: Sequence[int]) -> Tensor:
    """One attribute of all graphs in one tensor, after its kind and sizes have been looked at."""
    values: list[Tensor] = []
    for row, (graph, count) in enumerate(zip(graphs, counts, strict=True)):
        value = graph[name]
        if not isinstance(value, Tensor) or value.layout != torch.strided:
            raise ShapeError(f"graph {row}: {name} must be a dense tensor, got {_described(value)}.")
        if value.dim() == 0 and home == "graph":
            value = value.reshape(1)
        if value.dim() == 0 or len(value) != count:
            there = "one row, shape (1, ...)" if home == "graph" else f"one row for each of its {count} {home}s"
            raise ShapeError(f"graph {row}: {name} must have {there}, got {_described(value)}.")
        values.append(value)
        if value.dtype != values[0].dtype or value.shape[1:] != values[0].shape[1:]:
            raise ShapeError(
                f"graph {row}: {name} is {_described(value)} but that of graph 0 is {_described(values[0])}; "
                "only the number of rows may differ."
            )
    return torch.cat(values)


def check_edges(edge_index: Tensor, node_counts: Sequence[int], edge_counts: Sequence[int]) -> None:
    """Every edge joins nodes of its own graph."""
    limits = torch.tensor(node_counts).repeat_interleave(torch.tensor(edge_counts)).to(edge_index.device)
    wrong = ((edge_index < 0) | (edge_index >= limits)).any(0)
    if wrong.any():
        edge = int(wrong.nonzero()[0])
        row = int(torch.bucketize(edge, torch.tensor(edge_counts).cumsum(0), right=True))
        sender, receiver = edge_index[:, edge].tolist()
        raise GraphError(
            f"graph {row}: an edge joins node {sender} to node {receiver}, "
            f"but its {node_counts[row]} nodes are numbered from 0."
        )


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        layout = "" if value.layout == torch.strided else f"{value.layout} "
        return f"{layout}{value.dtype} of shape {tuple(value.shape)}".replace("torch.", "")
    return f"a {type(value).__name__}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names)) or "none"
