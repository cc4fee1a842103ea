"""Graphs on which attention goes wrong elsewhere, and random calls on them."""

import torch
from torch import Tensor

from graphattn.adjacency import Adjacency
from graphattn.attention.attend import Backend
from graphattn.attention.call import AttentionCall, ByType, EdgeTerms
from graphattn.attention.scores import Additive, DotProduct, Score

HEADS, KEY_WIDTH, VALUE_WIDTH, KINDS = 2, 3, 4, 3


def graph(edges: list[tuple[int, int]], num_nodes: int, ptr: list[int] | None = None) -> Adjacency:
    """Edges as (sender, receiver)."""
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    return Adjacency.from_edge_index(edge_index, num_nodes, ptr=None if ptr is None else torch.tensor(ptr))


RING = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3)]

AWKWARD_GRAPHS = {
    "no node at all": graph([], 0),
    "one lonely node": graph([], 1),
    "one node with a self loop": graph([(0, 0)], 1),
    "a bond": graph([(0, 1), (1, 0)], 2),
    "one-way edge": graph([(1, 0)], 2),
    "self loop among edges": graph([(0, 0), (1, 0), (0, 1), (2, 2)], 3),
    "star": graph([(leaf, 0) for leaf in range(1, 9)] + [(0, leaf) for leaf in range(1, 9)], 9),
    "lonely node beside a ring": graph(RING, 5),
    "parallel edges": graph([(0, 1), (0, 1), (1, 0), (2, 1), (0, 1)], 3),
    "edges in no order": graph([(1, 0), (2, 0), (2, 1), (0, 2), (3, 2), (0, 3), (1, 3)], 4),
    "two sizes in one batch": graph([*RING, (4, 5), (5, 4)], 6, ptr=[0, 4, 6]),
    "empty graph inside a batch": graph([(0, 1), (1, 0), (2, 3)], 4, ptr=[0, 2, 2, 4]),
    "empty last graph": graph([(0, 1), (1, 0)], 2, ptr=[0, 2, 2]),
    "self loops added": graph([(0, 1), (1, 1), (2, 1)], 4).with_self_loops(),
    "only added self loops": graph([], 3).with_self_loops(),
    "complete": Adjacency.complete(4),
    "complete, two graphs": Adjacency.complete(ptr=torch.tensor([0, 3, 3, 5])),
    "rectangular": Adjacency.from_edge_index(
        torch.tensor([[0, 4, 2, 2], [1, 1, 0, 1]]), num_senders=5, num_receivers=3
    ),
    "pool": Adjacency.pool(torch.tensor([0, 3, 3, 4])),
    "windows of two sequences": Adjacency.window(ptr=torch.tensor([0, 5, 6]), radius=1),
    "causal, three sequences": Adjacency.causal(ptr=torch.tensor([0, 4, 4, 6])),
    "cross, two sets": Adjacency.cross(ptr=torch.tensor([0, 2, 3]), sender_ptr=torch.tensor([0, 1, 4])),
    "union, causal and a star": Adjacency.causal(4).union(graph([(3, 0), (0, 2), (3, 1)], 4)),
}

SCORES: dict[str, Score] = {
    "dot": DotProduct(),
    "dot, scale 1": DotProduct(scale=1.0),
    "additive, leaky relu": Additive(vector=torch.linspace(-1, 2, HEADS * KEY_WIDTH).view(HEADS, -1).double()),
    "additive, tanh": Additive(activation="tanh", vector=torch.linspace(-1, 2, 6).view(HEADS, -1).double()),
}

EDGE_TERMS = ("nothing", "bias", "key", "value", "everything", "everything by type")


def random_call(
    adjacency: Adjacency,
    score: Score = SCORES["dot"],
    normalizer: str = "softmax",
    terms: str = "nothing",
    *,
    dropout: float = 0.0,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> AttentionCall:
    """A call whose every input wants a gradient."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    edges, typed = adjacency.num_edges, terms == "everything by type"
    kind = torch.randint(KINDS, (edges,), generator=generator)

    def per_edge(name: str, *shape: int) -> Tensor | ByType | None:
        if typed:
            return ByType(random(KINDS, *shape), kind)
        return random(edges, *shape) if terms in (name, "everything") else None

    return AttentionCall(
        query=random(adjacency.num_receivers, HEADS, KEY_WIDTH),
        key=random(adjacency.num_senders, HEADS, KEY_WIDTH),
        value=random(adjacency.num_senders, HEADS, VALUE_WIDTH),
        adjacency=adjacency,
        score=score,
        normalizer=normalizer,
        bias=per_edge("bias", HEADS),
        edges=EdgeTerms(per_edge("key", HEADS, KEY_WIDTH), per_edge("value", HEADS, VALUE_WIDTH)),
        dropout=dropout,
        seed=torch.tensor(1234) if dropout else None,
    )


def inputs_of(call: AttentionCall) -> dict[str, Tensor]:
    """Every tensor of a call that takes a gradient, by name."""
    named = {
        "query": call.query,
        "key": call.key,
        "value": call.value,
        "bias": call.bias,
        "edges.key": call.edges.key,
        "edges.value": call.edges.value,
    }
    return {name: each.table if isinstance(each, ByType) else each for name, each in named.items() if each is not None}


def value_and_gradients(backend: Backend, call: AttentionCall) -> dict[str, Tensor]:
    """The output, and the gradient of a fixed random projection of it for every input."""
    out = backend(call)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64).to(out.dtype)
    inputs = inputs_of(call)
    if not out.requires_grad:  # no receiver at all
        return {"output": out, **{name: torch.zeros_like(each) for name, each in inputs.items()}}
    gradients = torch.autograd.grad((out * weights).sum(), list(inputs.values()), allow_unused=True)
    zeros = (
        torch.zeros_like(each) if grad is None else grad for each, grad in zip(inputs.values(), gradients, strict=True)
    )
    return {"output": out.detach(), **dict(zip(inputs, zeros, strict=True))}
