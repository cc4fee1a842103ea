"""networkx graphs in and out: node order kept, labels mapped back."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphattn.errors import GraphError


def from_networkx(
    graph: "nx.Graph[Any]",
    *,
    node_features: Sequence[str] = (),
    edge_features: Sequence[str] = (),
    fill: float | None = None,
) -> Data:
    """A PyG ``Data`` of a networkx graph, directed or not, multigraph or not.

    Node i is the i-th node of ``graph``; ``data.nodes`` keeps the labels. An undirected edge becomes two, one after the
    other; an undirected self loop stays one. A directed edge u -> v has sender u and receiver v. Parallel edges stay.

    >>> data = from_networkx(nx.path_graph(["a", "c", "b"]))
    >>> data.nodes, data.edge_index.tolist()
    (['a', 'c', 'b'], [[0, 1, 1, 2], [1, 0, 2, 1]])

    Args:
        graph: any networkx graph.
        node_features: attributes that become the columns of ``data.x``: numbers, or sequences of numbers.
        edge_features: attributes that become the columns of ``data.edge_attr``.
        fill: stands in for a missing attribute; without it a missing attribute is an error.

    Returns:
        ``edge_index`` (2, E); where asked for, float32 ``x`` (N, columns) and ``edge_attr`` (E, columns); ``nodes``,
        the labels in order; ``num_nodes``.

    Raises:
        GraphError: a node or edge lacks an attribute, or has one that is no number; the message names both.
    """
    labels = list(graph.nodes)
    place = {label: index for index, label in enumerate(labels)}
    ends, attributes, names = [], [], []
    for source, target, of_edge in graph.edges(data=True):
        both_ways = not graph.is_directed() and source != target
        for pair in ((source, target), (target, source))[: 2 if both_ways else 1]:
            ends.append([place[pair[0]], place[pair[1]]])
            attributes.append(of_edge)
            names.append(f"edge {source!r} - {target!r}")
    data = Data(edge_index=torch.tensor(ends, dtype=torch.long).reshape(-1, 2).T.contiguous(), num_nodes=len(labels))
    data.nodes = labels
    if node_features:
        of_nodes = [graph.nodes[label] for label in labels]
        data.x = _columns(of_nodes, node_features, fill, [f"node {label!r}" for label in labels])
    if edge_features:
        data.edge_attr = _columns(attributes, edge_features, fill, names)
    return data


def to_networkx(
    data: Data,
    *,
    nodes: Mapping[str, Tensor] | None = None,
    edges: Mapping[str, Tensor] | None = None,
    directed: bool = True,
) -> "nx.Graph[Any]":
    """A networkx graph of a PyG ``Data``, with the labels that :func:`from_networkx` kept.

    Args:
        data: ``edge_index`` and ``num_nodes``; labels are 0, 1, ... where ``data.nodes`` is absent.
        nodes: attributes to set, name -> (N, ...).
        edges: attributes to set, name -> (E, ...).
        directed: ``True`` gives a ``DiGraph``; ``False`` a ``Graph``, which joins the two directions of an edge,
            whose attributes are then those of the direction listed last.

    Raises:
        GraphError: an attribute has another number of rows, or parallel edges would be merged.
    """
    kept = getattr(data, "nodes", None)
    labels: Sequence[Hashable] = range(data.num_nodes) if kept is None else kept
    ends = data.edge_index.T.tolist()
    if len(labels) != data.num_nodes:
        raise GraphError(f"data.nodes has {len(labels)} labels, but there are {data.num_nodes} nodes.")
    if len({tuple(pair) for pair in ends}) < len(ends):
        raise GraphError("data has parallel edges, which a networkx DiGraph or Graph would merge; remove them first.")
    graph: nx.Graph[Any] = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(zip(labels, _attributes(nodes, data.num_nodes, "node"), strict=True))
    for (sender, receiver), attributes in zip(ends, _attributes(edges, len(ends), "edge"), strict=True):
        graph.add_edge(labels[sender], labels[receiver], **attributes)
    return graph


def _attributes(columns: Mapping[str, Tensor] | None, rows: int, what: str) -> Iterator[dict[str, Any]]:
    columns = columns or {}
    for name, values in columns.items():
        if len(values) != rows:
            raise GraphError(f"{what} attribute {name!r} has {len(values)} rows, but there are {rows} {what}s.")
    for row in range(rows):
        yield {name: values[row].tolist() for name, values in columns.items()}


def _columns(
    rows: Sequence[Mapping[str, Any]], features: Sequence[str], fill: float | None, names: Sequence[str]
) -> Tensor:
    """(rows, columns) float32: the attributes side by side, each as wide as it is; one column where nobody has it."""
    if isinstance(features, str):
        raise GraphError(f"features are a list of attribute names, got the text {features!r}; write [{features!r}].")
    blocks = []
    for feature in features:
        found = [
            _numbers(row[feature], feature, name) if row.get(feature) is not None else None
            for row, name in zip(rows, names, strict=True)
        ]
        widths = sorted({len(numbers) for numbers in found if numbers is not None}) or [1]
        if len(widths) > 1:
            raise GraphError(
                f"attribute {feature!r} has different lengths, {widths[0]} to {widths[-1]}; make them equal."
            )
        if fill is None and None in found:
            where = names[found.index(None)]
            raise GraphError(
                f"{where} has no attribute {feature!r}; set it, or pass fill= to stand in for missing ones."
            )
        filled = [[fill] * widths[0] if numbers is None else numbers for numbers in found]
        blocks.append(torch.tensor(filled, dtype=torch.float32).reshape(len(rows), widths[0]))
    return torch.cat(blocks, 1)


def _numbers(value: Any, feature: str, where: str) -> list[float]:
    try:
        numbers: list[float] = torch.as_tensor(value, dtype=torch.float32).flatten().tolist()
    except (TypeError, ValueError, RuntimeError) as error:
        raise GraphError(f"attribute {feature!r} of {where} is {value!r}, which is no number.") from error
    return numbers
