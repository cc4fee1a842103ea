"""A graph as a SciPy matrix, and the parts it falls into: what positions in a graph are computed from.

Sizes: ``N`` nodes of the whole batch, ``n`` nodes of a component, ``m`` components of one size.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from graphattn.adjacency import Adjacency
from graphattn.errors import GraphError

Matrix = Any  # scipy.sparse.csr_array; SciPy has no types of its own
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DENSE_ENTRIES = 2**18  # of a stack of dense matrices: a component of up to 512 nodes, or more that are smaller
BLOCK_ENTRIES = 2**22  # of a block of rows, sparse or dense


def edge_counts(adjacency: Adjacency) -> Matrix:
    """(N, N) how many edges lead from node ``row`` to node ``column``; self loops count like any other.

    Raises:
        GraphError: senders and receivers are different sets.
    """
    if not torch.equal(adjacency.ptr, adjacency.sender_ptr):
        raise GraphError(f"positions in a graph need senders and receivers to be one set; got {adjacency}.")
    sender, receiver = (ends.cpu().numpy() for ends in (adjacency.sender, adjacency.receiver))
    size = (adjacency.num_receivers, adjacency.num_receivers)
    return sparse.coo_array((np.ones(len(sender)), (sender, receiver)), size).tocsr()


def normalized(counts: Matrix) -> Matrix:
    """D^-1/2 A D^-1/2, D the row sums of A; rows and columns without a sum are zero."""
    leaving = counts.sum(axis=1)
    root = np.divide(1, np.sqrt(leaving), out=np.zeros_like(leaving), where=leaving > 0)
    entries = counts.tocoo()
    scaled = entries.data * (root[entries.row] * root[entries.col])  # equal for (i, j) and (j, i), to the bit
    return sparse.coo_array((scaled, (entries.row, entries.col)), counts.shape).tocsr()


def is_symmetric(matrix: Matrix) -> bool:
    """Whether every edge has one in return."""
    return bool((matrix != matrix.T).nnz == 0)


def component_of(matrix: Matrix) -> Integers:
    """(N,) the number of each node's component, edges taken in both directions."""
    return np.asarray(csgraph.connected_components(matrix, directed=False)[1], dtype=np.int64)


def components(matrix: Matrix) -> Iterator[Integers]:
    """(m, n) nodes of m components of n nodes each; m is 1 where they are too large to be dense matrices together.

    What a component's nodes are, and in which order, does not depend on what else is in the batch.
    """
    component = component_of(matrix)
    nodes, sizes = np.argsort(component, kind="stable"), np.bincount(component)
    first = np.cumsum(sizes) - sizes
    for size in np.unique(sizes):
        of_size = nodes[first[sizes == size][:, None] + np.arange(size)]
        together = max(DENSE_ENTRIES // size**2, 1)
        yield from (of_size[start : start + together] for start in range(0, len(of_size), together))


def is_dense(nodes: Integers) -> bool:
    """Whether :func:`components` gave these to be worked on as dense matrices."""
    return int(nodes.shape[1]) ** 2 <= DENSE_ENTRIES


def dense(matrix: Matrix, nodes: Integers) -> Floats:
    """(m, n) nodes -> (m, n, n) the dense matrix of each component."""
    size = nodes.shape[1]
    place = np.empty(matrix.shape[0], dtype=np.int64)
    place[nodes] = np.arange(size)
    rows = matrix[nodes.ravel()].tocoo()
    out = np.zeros((*nodes.shape, size))
    out[rows.row // size, rows.row % size, place[rows.col]] = rows.data
    return out


def blocks(cost: NDArray[np.number[Any]]) -> Iterator[slice]:
    """Runs of rows that hold about ``BLOCK_ENTRIES`` entries together; ``cost`` bounds the entries of each row."""
    run = np.cumsum(cost, dtype=np.float64) // BLOCK_ENTRIES
    bounds = [0, *(np.flatnonzero(np.diff(run)) + 1).tolist(), len(run)]
    yield from (slice(start, end) for start, end in pairwise(bounds) if start < end)
