"""Graphs of other libraries in and out: networkx, node order kept and labels mapped back; SciPy and dense matrices.

In all of them an edge i -> j has sender i and receiver j: j attends to i.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from graphattn.adjacency import Adjacency
from graphattn.csr import check_ends, described
from graphattn.errors import GraphError, ShapeError


def from_networkx(
    graph: "nx.Graph[Any]",
    *,
    node_features: Sequence[str] = (),
    edge_features: Sequence[str] = (),
    fill: float | None = None,
) -> Data:
    """A PyG ``Data`` of a networkx graph, directed or not, multigraph or not.

    Node i is the i-th node of ``graph``; ``data.nodes`` keeps the labels. An undirected edge becomes two, one after the
    other; an undirected self loop stays one. A directed edge u -> v has sender u and receiver v. Parallel edges stay;
    their keys do not.

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
        GraphError: a node or edge lacks an attribute, or has one that is no number, or one too large for float32; the
            message names both.
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
    multigraph: bool = False,
) -> "nx.Graph[Any]":
    """A networkx graph of a PyG ``Data``, with the labels that :func:`from_networkx` kept.

    Args:
        data: ``edge_index`` and ``num_nodes``; labels are 0, 1, ... where ``data.nodes`` is absent.
        nodes: attributes to set, name -> (N, ...).
        edges: attributes to set, name -> (E, ...).
        directed: ``True`` gives a ``DiGraph``; ``False`` a ``Graph``, which joins the two directions of an edge,
            whose attributes are then those of the direction listed last.
        multigraph: gives a ``MultiDiGraph`` or ``MultiGraph``, whose parallel edges have the keys 0, 1, ... in the
            order of ``edge_index``. Undirected, the k-th edge u -> v and the k-th v -> u are one.

    Raises:
        GraphError: an attribute has another number of rows; parallel edges, or nodes of one label, would be merged; an
            edge of a node that is not there.
    """
    kept = getattr(data, "nodes", None)
    labels: Sequence[Hashable] = range(data.num_nodes) if kept is None else kept
    if len(labels) != data.num_nodes:
        raise GraphError(f"data.nodes has {len(labels)} labels, but there are {data.num_nodes} nodes.")
    twice = [label for label, times in Counter(labels).items() if times > 1]
    if twice:
        raise GraphError(f"data.nodes has the label {twice[0]!r} more than once, which networkx would make one node.")
    for row, role in enumerate(("sender", "receiver")):
        check_ends(data.edge_index[row], len(labels), role)
    ends = data.edge_index.T.tolist()
    if not multigraph and len({tuple(pair) for pair in ends}) < len(ends):
        raise GraphError(
            "data has parallel edges, which a networkx DiGraph or Graph would merge; pass multigraph=True to keep them."
        )
    graph = _KINDS[directed, multigraph]()
    graph.add_nodes_from(zip(labels, _attributes(nodes, data.num_nodes, "node"), strict=True))
    seen: Counter[tuple[int, int]] = Counter()
    for (sender, receiver), attributes in zip(ends, _attributes(edges, len(ends), "edge"), strict=True):
        edge = (labels[sender], labels[receiver], *([seen[sender, receiver]] if multigraph else []))
        graph.add_edge(*edge)
        graph.edges[edge].update(attributes)
        seen[sender, receiver] += 1
    return graph


_KINDS: dict[tuple[bool, bool], type["nx.Graph[Any]"]] = {  # by (directed, multigraph)
    (True, False): nx.DiGraph,
    (False, False): nx.Graph,
    (True, True): nx.MultiDiGraph,
    (False, True): nx.MultiGraph,
}


def from_matrix(matrix: Any, *, weights: bool = False) -> Data:
    """A PyG ``Data`` of a square matrix: ``matrix[i, j]`` other than 0 is an edge from node i to node j.

    So it is in networkx and ``scipy.sparse.csgraph``: rows are senders, columns are receivers. Mind that
    :meth:`Adjacency.from_dense` reads a mask as attention does, rows are receivers: the transpose.

    A sparse matrix and its dense form give the same graph: an entry that is stored but 0 is no edge, and entries that a
    COO matrix lists several times are one, their sum, as SciPy reads them. There are no parallel edges. An undirected
    edge is two entries; one on the diagonal is a self loop.

    >>> from_matrix([[0, 1], [0, 0]]).edge_index.tolist()
    [[0], [1]]

    Args:
        matrix: (N, N) sparse array or matrix of SciPy in any format, dense tensor, or what NumPy makes an array of; of
            bools, integers or floats.
        weights: whether ``edge_attr`` shall hold the entries.

    Returns:
        ``edge_index`` (2, E), sorted by sender, then receiver; with ``weights`` float32 ``edge_attr`` (E, 1);
        ``num_nodes``. On the device of a tensor.

    Raises:
        ShapeError: ``matrix`` is not square, or holds no numbers.
        GraphError: an entry is NaN, infinite, or too large or too small for float32; the message says which.
    """
    entries = _sparse(matrix).tocoo()
    with np.errstate(over="ignore"):
        values = entries.data.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(values) | (values == 0))  # those that were 0 are no entries
    if len(bad):
        row, column, value = entries.row[bad[0]], entries.col[bad[0]], entries.data[bad[0]]
        raise GraphError(
            f"matrix[{row}, {column}] is {value}, which is no finite float32 other than 0; write 0 where there is no "
            "edge, a weight where there is one."
        )
    device = matrix.device if isinstance(matrix, Tensor) else None
    ends = np.stack([entries.row, entries.col]).astype(np.int64)
    data = Data(edge_index=torch.from_numpy(ends).to(device), num_nodes=entries.shape[0])
    if weights:
        data.edge_attr = torch.from_numpy(values).to(device)[:, None]
    return data


def to_matrix(graph: Data | Adjacency, *, weights: Tensor | None = None) -> sparse.csr_array:
    """A SciPy matrix of a graph, back from :func:`from_matrix`: entry [i, j] is the edge with sender i and receiver j.

    ``.toarray()`` makes it dense.

    >>> to_matrix(Adjacency.causal(3)).toarray()  # position 0 is seen by all
    array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]])

    Args:
        graph: ``Data`` with ``edge_index`` and ``num_nodes``, or an :class:`Adjacency` of any shape.
        weights: (E,) or (E, 1) numbers that become the entries, such as ``data.edge_attr``; ones where left out, and
            for self loops that ``with_self_loops()`` added.

    Returns:
        (N, N), of an adjacency (S, R).

    Raises:
        GraphError: parallel edges, which would be added up; a weight of 0, which would be no edge; an edge of a node
            that is not there.
        ShapeError: another number of weights.
    """
    if isinstance(graph, Data):
        graph = Adjacency.from_edge_index(graph.edge_index, graph.num_nodes)
    sender, receiver = graph.edge_index().cpu().numpy()
    values = np.ones(len(sender), dtype=np.int64)
    if weights is not None:
        loops = graph.num_entries - graph.num_edges  # added, and last: no edge, so no weight, is behind them
        given = _entries(weights, graph.num_edges)
        values = np.concatenate([given, np.ones(loops, dtype=given.dtype)]) if loops else given
    if (values == 0).any():
        edge = int(np.flatnonzero(values == 0)[0])
        raise GraphError(f"the weight of edge {edge}, {sender[edge]} -> {receiver[edge]}, is 0: no edge in a matrix.")
    made = sparse.csr_array((values, (sender, receiver)), shape=(graph.num_senders, graph.num_receivers))
    if made.nnz < len(sender):
        raise GraphError("the graph has parallel edges, which a matrix would add up; merge them first.")
    return made


def _entries(weights: Tensor, edges: int) -> "np.ndarray[Any, Any]":
    """(E,) values of a dtype that SciPy knows."""
    if weights.shape not in {(edges,), (edges, 1)}:
        raise ShapeError(f"weights are one number per edge, ({edges},) or ({edges}, 1); got {described(weights)}.")
    halved = weights.dtype in {torch.float16, torch.bfloat16}
    values: np.ndarray[Any, Any] = (weights.float() if halved else weights).detach().flatten().cpu().numpy()
    return values


def _sparse(matrix: Any) -> sparse.csr_array:
    """A CSR array of its own that lists every entry but 0 once, row by row, columns ascending."""
    if sparse.issparse(matrix):
        given = matrix
    elif isinstance(matrix, Tensor):
        if matrix.layout != torch.strided:
            raise ShapeError(f"a tensor must be dense here, got one of layout {matrix.layout}; use matrix.to_dense().")
        given = (matrix.double() if matrix.is_floating_point() else matrix).detach().cpu().numpy()
    elif np.ma.isMaskedArray(matrix):
        raise ShapeError("a masked array does not say what a masked entry is; use matrix.filled(0) for no edge.")
    else:
        try:
            given = np.asarray(matrix)
        except ValueError as error:
            raise ShapeError(f"the matrix of a graph is square; these rows are not: {error}.") from error
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ShapeError(
            f"the matrix of a graph is square, a row and a column per node; got shape {tuple(given.shape)}. Where "
            "senders and receivers are different sets, make an Adjacency: from_dense has receivers as rows."
        )
    if given.dtype.kind not in "biuf":
        raise ShapeError(f"the matrix of a graph holds bools, integers or floats; got dtype {given.dtype}.")
    exact = given.astype(np.float64) if given.dtype.kind == "f" else given  # SciPy has no halves
    made = sparse.csr_array(exact, copy=True)
    made.sum_duplicates()
    made.eliminate_zeros()
    return made


def _attributes(columns: Mapping[str, Tensor] | None, rows: int, what: str) -> Iterator[dict[str, Any]]:
    columns = columns or {}
    for name, values in columns.items():
        if values.ndim < 1 or len(values) != rows:
            raise GraphError(f"{what} attribute {name!r} is {described(values)}, but there are {rows} {what}s.")
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
    """A value as float32 numbers; NaN and infinity may be meant."""
    if isinstance(value, Tensor):
        value = (value.double() if value.is_floating_point() else value).detach().cpu().numpy()  # NumPy has no bfloat16
    try:
        found = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise GraphError(f"attribute {feature!r} of {where} is {value!r}, which is no number.") from error
    if found.dtype.kind not in "biuf":
        raise GraphError(f"attribute {feature!r} of {where} is {value!r}, which is no number.")
    with np.errstate(over="ignore"):
        numbers = found.astype(np.float32)
    if (np.isinf(numbers) & np.isfinite(found)).any():
        raise GraphError(f"attribute {feature!r} of {where} is {value!r}, too large for float32; scale it down.")
    listed: list[float] = numbers.flatten().tolist()
    return listed
