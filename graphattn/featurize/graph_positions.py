"""Where a node stands in its graph: walks that return to it, and hops between nodes.

For eigenvectors see :mod:`graphattn.featurize.laplacian`. Nothing leaks between the graphs of a batch: each node gets
what its graph alone would give it.
"""

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphattn.adjacency import Adjacency
from graphattn.checks import whole_number
from graphattn.errors import GraphError
from graphattn.featurize.graph_matrix import (
    Floats,
    Integers,
    Matrix,
    blocks,
    component_of,
    components,
    dense,
    edge_counts,
    is_dense,
    is_symmetric,
    normalized,
)

WORTH_DENSE = 1 / 8  # share of entries from which dense rows were measured to be faster than sparse ones


def random_walk(adjacency: Adjacency, steps: int) -> Tensor:
    """Probability that a walk from each node is back home after 1, 2, ..., ``steps`` hops.

    Every carbon of benzene gets 0, 1/2, 0, 3/8, 0, 11/32.

    >>> ring = torch.arange(6)
    >>> bonds = torch.cat([torch.stack([ring, (ring + 1) % 6]), torch.stack([(ring + 1) % 6, ring])], 1)
    >>> random_walk(Adjacency.from_edge_index(bonds, 6), steps=4)[0]
    tensor([0.0000, 0.5000, 0.0000, 0.3750])

    Args:
        adjacency: unweighted; a walker takes each of its node's edges, from sender to receiver, with equal chance.
            Parallel edges and self loops are edges like any other.
        steps: at least 1.

    Returns:
        (N, steps), in [0, 1], no unit, in PyTorch's default dtype. Rows of nodes that no edge leaves are zero.

    Raises:
        SettingError: ``steps`` is below 1.
        GraphError: senders and receivers are different sets.

    Source: Dwivedi et al. 2022, arXiv:2110.07875 (RWPE).
    """
    steps = whole_number("steps", steps, at_least=1)
    counts = edge_counts(adjacency)
    step = normalized(counts)  # the walk's own D^-1 A, scaled by D^1/2 on both sides: powers have the same diagonal
    home = np.zeros((adjacency.num_receivers, steps))
    for nodes in components(counts):
        if is_dense(nodes):
            home[nodes] = _returns(dense(step, nodes), steps)
        else:
            inside = nodes[0]
            home[inside] = _returns_by_rows(step[inside][:, inside], steps)
    return torch.from_numpy(np.minimum(home, 1)).to(adjacency.col.device, torch.get_default_dtype())


def _returns(step: Floats, steps: int) -> Floats:
    """(m, n, n) -> (m, n, steps): diagonals of the powers."""
    power = step
    home = [np.diagonal(power, axis1=1, axis2=2)]
    for _ in range(steps - 1):
        power = power @ step
        home.append(np.diagonal(power, axis1=1, axis2=2))
    return np.stack(home, axis=-1)


def _returns_by_rows(step: Matrix, steps: int) -> Floats:
    """(n, n) sparse -> (n, steps), without ever holding a whole power.

    A walk home in a + b steps goes somewhere in a and comes from there in b: the diagonal of ``S^(a + b)`` is the row
    sum of ``S^a`` times ``(S^T)^b``, entry by entry, and no power beyond half the steps is needed.
    """
    size, symmetric, reverse = step.shape[0], is_symmetric(step), step.T.tocsr()
    reach = np.ones(size)  # at least as many as the nodes that a walk can have reached
    neighbors = ((step + reverse) != 0).astype(np.float64)
    for _ in range((steps + 1) // 2):
        reach = np.minimum(neighbors @ reach, size)
    home, start = np.empty((size, steps)), sparse.eye_array(size, format="csr")
    for rows in blocks(reach):
        there = back = start[rows]
        for number in range(steps):
            if number % 2 == 0:
                there = _onward(there, step)
            else:
                back = there if symmetric else _onward(back, reverse)
            home[rows, number] = _row_products(there, back)
    return home


def _onward(rows: Matrix, step: Matrix) -> Matrix:
    """``rows @ step``, dense from where it is fuller than sparse matrices are good for."""
    after = rows @ step
    if sparse.issparse(after) and after.nnz > WORTH_DENSE * after.shape[0] * after.shape[1]:
        return after.toarray()
    return after


def _row_products(first: Matrix, second: Matrix) -> Floats:
    """The row sums of the product entry by entry, each sparse or dense."""
    if sparse.issparse(second):
        first, second = second, first
    product = first.multiply(second) if sparse.issparse(first) else first * second
    return np.asarray(product.sum(axis=1))


def hop_distance(adjacency: Adjacency, pairs: Adjacency, farthest: int) -> Tensor:
    """How many hops along ``adjacency`` lead from sender to receiver, for every edge of ``pairs``.

    It serves as a kind of edge, 0 to ``farthest + 1``: with a number per kind added to the score, attention among all
    pairs knows the graph.

    >>> path = Adjacency.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=4)
    >>> hop_distance(path, Adjacency.complete(4), farthest=5).view(4, 4)  # a row per receiver
    tensor([[0, 1, 2, 6],
            [1, 0, 1, 6],
            [2, 1, 0, 6],
            [6, 6, 6, 0]])

    Args:
        adjacency: the graph; hops go from sender to receiver.
        pairs: of the same nodes and graphs, such as ``Adjacency.complete(ptr=adjacency.ptr)``.
        farthest: at least 0; a longer way counts as ``farthest``.

    Returns:
        (edges of ``pairs``,) int64 in the caller's order; ``farthest + 1`` where no way leads.

    Raises:
        SettingError: ``farthest`` is below 0.
        GraphError: senders and receivers are different sets, or ``pairs`` is about other nodes or graphs.

    Source: Ying et al. 2021, arXiv:2106.05234, section 3.1.2 (Graphormer's spatial encoding).
    """
    farthest = whole_number("farthest", farthest, at_least=0)
    hop = edge_counts(adjacency).astype(bool)
    if not (torch.equal(pairs.ptr, adjacency.ptr) and torch.equal(pairs.sender_ptr, adjacency.sender_ptr)):
        raise GraphError(f"pairs must be about the nodes and graphs of the adjacency, {adjacency}; got {pairs}.")
    sender, receiver = pairs.edge_index()[:, : pairs.num_edges].cpu().numpy()
    distance = np.full(len(sender), farthest + 1)
    component = component_of(hop)
    linked = np.flatnonzero(component[sender] == component[receiver])  # the only pairs between which a way may lead
    symmetric = is_symmetric(hop)
    if symmetric:
        distance[linked] = farthest
    linked = linked[np.argsort(sender[linked], kind="stable")]
    sources, first = np.unique(sender[linked], return_index=True)
    bounds = [*first, len(linked)]
    for rows in blocks(np.bincount(component)[component[sources]]):
        asked = linked[bounds[rows.start] : bounds[rows.stop]]
        row = np.searchsorted(sources[rows], sender[asked])
        hops = _hops(hop, sources[rows], row, receiver[asked], farthest if symmetric else None)
        found = hops >= 0
        distance[asked[found]] = np.minimum(hops[found], farthest)
    return torch.from_numpy(distance).to(pairs.col.device)


def _hops(hop: Matrix, sources: Integers, row: Integers, target: Integers, most: int | None) -> Integers:
    """Hops from ``sources[row[i]]`` to ``target[i]``; -1 where no way leads, or none of up to ``most`` hops."""
    hops, asked = np.full(len(row), -1), np.arange(len(row))
    reached = newest = sparse.eye_array(hop.shape[0], dtype=bool, format="csr")[sources]
    number = 0
    while True:
        found = np.asarray(newest[row[asked], target[asked]])
        hops[asked[found]] = number
        asked = asked[~found]
        if not len(asked) or not newest.nnz or number == most:
            return hops
        newest = (newest @ hop) > reached
        reached = reached + newest
        number += 1
