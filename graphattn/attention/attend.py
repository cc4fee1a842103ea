"""Masked attention as a function: which backend runs it, and what it returns."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from graphattn.adjacency import Adjacency
from graphattn.attention.backends.definition import Definition
from graphattn.attention.backends.dense import Dense
from graphattn.attention.backends.fused_cpu.backend import FusedCPU
from graphattn.attention.backends.fused_gpu.backend import FusedGPU
from graphattn.attention.backends.sparse import Sparse, weights_by_edge
from graphattn.attention.call import AttentionCall, EdgeTerms, PerEdge
from graphattn.attention.normalizers import Normalizer
from graphattn.attention.scores import Score, as_score
from graphattn.errors import BackendError


class Backend(Protocol):
    """How a call is computed."""

    name: str

    def why_not(self, call: AttentionCall) -> str | None:
        """``None`` if it can run this call, else what stands against it."""

    def is_fastest(self, call: AttentionCall) -> bool:
        """Whether it was measured to be faster at such a call than all that stand behind it in ``BACKENDS``."""

    def __call__(self, call: AttentionCall) -> Tensor:
        """(R, H, Dv)."""


BACKENDS: tuple[Backend, ...] = (Dense(), FusedCPU(), Sparse(), FusedGPU(), Definition())  # in order of preference


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """Who looked at whom, and how much; before dropout."""

    edges: Tensor  # (E, H) in the caller's edge order
    self_loops: Tensor  # (R, H) of the self loops that with_self_loops() added; zero where none was


def masked_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    adjacency: Adjacency,
    *,
    score: str | Score = "dot",
    normalizer: Normalizer = "softmax",
    bias: PerEdge | None = None,
    edges: EdgeTerms | None = None,
    dropout: float = 0.0,
    backend: str = "auto",
) -> Tensor:
    """Attention in which every receiver sees only the senders that ``adjacency`` lists for it.

    ``out[i] = sum_j normalize_j(score(q[i], k[j] + e_k[ij]) + bias[ij]) (v[j] + e_v[ij])``. A receiver without senders
    gets zeros. A sender that a receiver may not see has no influence on it, not even as NaN.

    >>> one_hot = torch.eye(3)[:, None]                       # 3 nodes, 1 head, width 3
    >>> path = Adjacency.from_dense(torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> masked_attention(one_hot, one_hot, one_hot, path)[1]
    tensor([[0.5000, 0.0000, 0.5000]])

    Args:
        query: (R, H, Dk), one row per receiver.
        key: (S, H, Dk), one row per sender.
        value: (S, H, Dv); Dv may differ from Dk.
        adjacency: R receivers, S senders, E edges.
        score: ``"dot"``, ``"additive"``, or a function of broadcastable queries and keys, (..., H, Dk) -> (..., H).
        normalizer: ``"softmax"`` over a receiver's senders, or ``"relu"``: max(score, 0), not divided by anything.
        bias: added to the score: (E, H) in the caller's edge order, or a :class:`ByType` table (K, H).
        edges: vectors that an edge adds to its sender's key and value.
        dropout: chance that a weight is dropped, in [0, 1). It always applies: pass 0 outside training.
        backend: ``"auto"`` takes the fastest that can; one asked for by name runs or raises.

    Returns:
        (R, H, Dv) in the query's dtype. Half precision is summed in float32.

    Raises:
        ShapeError: sizes do not belong together.
        BackendError: the backend asked for by name cannot run this call, or there is none of that name.

    Source: Vaswani et al. 2017, arXiv:1706.03762; Velickovic et al. 2018, arXiv:1710.10903.
    """
    seed = torch.randint(2**31, (), device=query.device) if dropout else None
    call = AttentionCall(
        query, key, value, adjacency, as_score(score), normalizer, bias, edges or EdgeTerms(), dropout, seed
    )
    return attend(call, backend)


def attend(call: AttentionCall, backend: str = "auto") -> Tensor:
    """Run ``call`` on the backend of that name, or on the fastest that can."""
    if backend == "auto":
        return fastest(call)(call)
    by_name = {each.name: each for each in BACKENDS}
    if backend not in by_name:
        raise BackendError(f"there is no backend {backend!r}; there are auto, {', '.join(by_name)}.")
    objection = by_name[backend].why_not(call)
    if objection is not None:
        raise BackendError(f"backend {backend!r} cannot run this call: {objection}. Use backend='auto'.")
    return by_name[backend](call)


def fastest(call: AttentionCall) -> Backend:
    """The backend that ``"auto"`` takes; ``sparse`` runs everything."""
    return next(each for each in BACKENDS if each.is_fastest(call) and each.why_not(call) is None)


def attention_weights(call: AttentionCall) -> AttentionWeights:
    """The weights that ``call`` gives to the caller's edges, before dropout; a receiver's sum to 1 (softmax)."""
    return AttentionWeights(*weights_by_edge(call))
