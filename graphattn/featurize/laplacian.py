"""Where a node stands in its graph: eigenvectors of the graph Laplacian, and a network that does not mind their signs.

Each connected component of each graph is worked on by itself, and gets what it alone would get.
"""

import numpy as np
import torch
from scipy import sparse
from scipy.sparse import csgraph, linalg
from torch import Tensor, nn

from graphattn.adjacency import Adjacency
from graphattn.checks import whole_number
from graphattn.csr import described
from graphattn.errors import ShapeError
from graphattn.featurize.graph_matrix import Floats, Matrix, components, dense, edge_counts, is_dense, normalized

VANISHING = 1e-6  # relative; far above rounding errors of eigenvectors, far below what tells two graphs apart
BESIDE_ZERO = 1e-6  # added to the Laplacian, which is singular, so that it can be factorized
AFFORDABLE = 5e10  # multiplications of a factorization: such as of a grid of 500 x 500


def laplacian(adjacency: Adjacency, count: int) -> Tensor:
    """Eigenvectors of the normalized Laplacian ``I - D^-1/2 A D^-1/2`` with its smallest eigenvalues but 0.

    Each has length 1 over its component. Its sign is the one that makes the sum of the cubes of its numbers positive,
    so that renumbering the nodes renumbers the rows. Two things that no rule settles depend on the numbering of nodes:
    where the numbers come in pairs of opposite sign, as mostly when the graph is its own mirror image, the first node
    whose number is not 0 gets a positive one; and eigenvectors that share their eigenvalue are one choice of many.
    :class:`SignInvariant` answers the first.

    >>> star = Adjacency.from_edge_index(torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]]), num_nodes=5)
    >>> laplacian(star, count=4)[:, 2:]
    tensor([[ 0.7071,  0.0000],
            [-0.4082,  0.0000],
            [-0.4082,  0.0000],
            [-0.4082,  0.0000],
            [ 0.0000,  0.0000]])

    Args:
        adjacency: N nodes. An edge in one direction counts as in both; parallel edges weigh as many as there are, in
            the direction that has more; self loops count in A and D.
        count: at least 1.

    Returns:
        (N, count) in PyTorch's default dtype, by ascending eigenvalue. A component of n nodes has n - 1 such
        eigenvectors; columns past them are zero.

    Raises:
        SettingError: ``count`` is below 1.
        GraphError: senders and receivers are different sets.

    Source: Dwivedi et al. 2020, arXiv:2003.00982 (Laplacian positional encodings).
    """
    count = whole_number("count", count, at_least=1)
    counts = edge_counts(adjacency)
    near = normalized(counts.maximum(counts.T))
    out = np.zeros((adjacency.num_receivers, count))
    for nodes in components(near):
        wanted = min(count, nodes.shape[1] - 1)  # 0 is an eigenvalue of every component, once
        if is_dense(nodes) or 4 * count > nodes.shape[1]:
            vectors = np.linalg.eigh(np.eye(nodes.shape[1]) - dense(near, nodes)).eigenvectors
        else:
            vectors = _first_vectors(near[nodes[0]][:, nodes[0]], wanted + 1)[None]
        out[nodes, :wanted] = _signed(vectors[..., 1 : wanted + 1])
    return torch.from_numpy(out).to(adjacency.col.device, torch.get_default_dtype())


def _first_vectors(near: Matrix, count: int) -> Floats:
    """(n, n) sparse D^-1/2 A D^-1/2 -> (n, count) eigenvectors, by ascending eigenvalue of the Laplacian.

    Where the smallest eigenvalues crowd near 0, as in long and thin graphs, the Laplacian has a sparse factorization,
    and inverse iteration is quick. Where there is none, as in densely linked graphs, they lie apart, and Lanczos
    iteration on the matrix itself is.
    """
    operator = near
    if _factorization_cost(near) <= AFFORDABLE:
        shifted = ((1 + BESIDE_ZERO) * sparse.eye_array(near.shape[0]) - near).tocsc()
        symmetric = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        operator = linalg.LinearOperator(near.shape, linalg.splu(shifted, **symmetric).solve, dtype=np.float64)
    start, tried = np.random.default_rng(0).standard_normal(near.shape[0]), min(4 * count, near.shape[0])
    values, vectors = linalg.eigsh(operator, count, which="LA", v0=start, ncv=tried, rng=0)
    return np.asarray(vectors[:, np.argsort(-values)])


def _factorization_cost(near: Matrix) -> float:
    """Multiplications that factorize the Laplacian, at most: the row widths in reverse Cuthill-McKee order, squared."""
    size = near.shape[0]
    place = np.empty(size, dtype=np.int64)
    place[csgraph.reverse_cuthill_mckee(near, symmetric_mode=True)] = np.arange(size)
    entries, width = near.tocoo(), np.zeros(size)
    np.maximum.at(width, place[entries.row], place[entries.row] - place[entries.col])
    return float((width**2).sum())


def _signed(vectors: Floats) -> Floats:
    """(m, n, c): each column times 1 or -1, by the rule of :func:`laplacian`."""
    size = np.abs(vectors)
    cubes = (vectors**3).sum(axis=1, keepdims=True)
    first = (size > VANISHING * size.max(axis=1, keepdims=True)).argmax(axis=1)[:, None]
    by_cubes = np.abs(cubes) > VANISHING * (size**3).sum(axis=1, keepdims=True)
    return vectors * np.where(np.where(by_cubes, cubes, np.take_along_axis(vectors, first, axis=1)) < 0, -1, 1)


class SignInvariant(nn.Module):
    """``rho(phi(v1) + phi(-v1), phi(v2) + phi(-v2), ...)``: the same output whichever signs the eigenvectors have.

    phi and rho are networks of two layers. phi reads one number at a time, so that of each column remains how large a
    node's number is, and not on which side of zero it lies.

    >>> vectors, network = torch.randn(5, 3), SignInvariant(count=3, channels=8)
    >>> torch.equal(network(vectors), network(vectors * torch.tensor([1, -1, -1])))
    True

    Args:
        count: eigenvectors.
        channels: width of the output.
        hidden: width of phi's output and inside.

    Raises:
        SettingError: a number is below 1.

    Source: Lim et al. 2022, arXiv:2202.13013 (SignNet); weights begin as in He et al. 2015, arXiv:1502.01852.
    """

    def __init__(self, count: int, channels: int, hidden: int = 32) -> None:
        super().__init__()
        sizes = {"count": count, "channels": channels, "hidden": hidden}
        self.count, channels, hidden = (whole_number(name, size, at_least=1) for name, size in sizes.items())
        self.phi = nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.rho = nn.Sequential(nn.Linear(self.count * hidden, hidden), nn.ReLU(), nn.Linear(hidden, channels))
        for layer in (*self.phi, *self.rho):
            if isinstance(layer, nn.Linear):  # PyTorch's own start would drown the small numbers of eigenvectors
                nn.init.kaiming_normal_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """(N, count) -> (N, channels).

        Raises:
            ShapeError: ``vectors`` has another number of columns.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.count:
            raise ShapeError(f"vectors must be of shape (nodes, {self.count}); got {described(vectors)}.")
        number = vectors[..., None]
        out: Tensor = self.rho((self.phi(number) + self.phi(-number)).flatten(1))
        return out
