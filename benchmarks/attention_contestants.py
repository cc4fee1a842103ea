"""Who computes attention in how many ways, all from the same weights, and the check that they compute the same.

Weights are those of PyG's layer of that score; ours takes them over by ``GraphAttention.from_pyg``, so that the two are
one function. The truth is our layer in float64 by the definition, or on larger graphs by the ``sparse`` backend.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import torch
from attention_cases import Graph
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GATConv, GATv2Conv, MessagePassing, TransformerConv
from torch_geometric.utils import to_dense_batch

from graphattn import Additive, Adjacency, ByType, EdgeTerms, GraphAttention, masked_attention
from graphattn.attention.call import AttentionCall, PerEdge
from graphattn.attention.projection import linear

HEADS, KINDS, EDGE_DIM = 8, 12, 16  # PyG reads the kinds of edge through an embedding of width EDGE_DIM
OURS = ("auto", "fused_cpu", "sparse", "dense")
SCORES = ("dot", "additive", "gat")
LEVELS = ("layer", "core")  # projections included; query, key and value given
PYG = {"dot": "PyG TransformerConv", "additive": "PyG GATv2Conv", "gat": "PyG GATConv"}
BARE = "bare projection"  # by nn.Linear
OWN = "own projection"  # the same product, as our layer takes it
MOST_PAIRS = 2**27  # of the graphs padded to the largest, for PyTorch's own padded attention
MOST_PADDED = 2**26  # numbers in the largest padded tensor, where every score is spelled out: 256 MiB in float32
ALLOWED_ERROR = 1e-5  # of float32 against float64, by the largest number of the tensor
ROUNDING = 2**-24  # of float32; a hub's sum, taken one by one, may be off by so much for each of its edges
BY_DEFINITION = 1000  # receivers; of more the sparse backend is the truth
MOST_CHECKED = 5 * 10**7  # entries x width; of more a sample of receivers is checked
NEAR_ZERO = 1e-5  # a sum so near to LeakyReLU's kink has one slope in float64 and by rounding another in float32


class WrongAnswer(Exception):  # noqa: N818  (the words that the benchmark is known for)
    """A contestant computes something else; it is not timed."""


class Declined(Exception):  # noqa: N818  (no error: it is told beside the results)
    """A contestant cannot run this, or would not fit into the memory."""


@dataclass(frozen=True, eq=False)
class Contestant:
    """One way to compute, and the gradient and leaves to differentiate it with."""

    name: str
    level: str
    run: Callable[[], Tensor]
    leaves: Mapping[str, Tensor]
    grad: Tensor

    def forward(self) -> Tensor:
        """The output alone."""
        with torch.no_grad():
            return self.run()

    def clear(self) -> None:
        """Forget gradients."""
        for leaf in self.leaves.values():
            leaf.grad = None

    def forward_backward(self) -> None:
        """The output and all gradients."""
        torch.autograd.backward(self.run(), self.grad)


@dataclass(frozen=True, eq=False)
class Problem:
    """What all contestants are asked: one layer of a score and a width on one graph."""

    graph: Graph
    width: int
    score: str
    edges: bool
    x: Tensor = field(init=False)  # (N, width)
    grad: Tensor = field(init=False)  # (N, width) of the output
    kind: Tensor | None = field(init=False)  # (E,)
    embedding: nn.Embedding | None = field(init=False)
    conv: MessagePassing = field(init=False)

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        size = (self.graph.num_nodes, self.width)
        options = {"heads": HEADS, "edge_dim": EDGE_DIM if self.edges else None}
        conv = {
            "dot": partial(TransformerConv, root_weight=False),
            "additive": partial(GATv2Conv, add_self_loops=False),
            "gat": partial(GATConv, add_self_loops=False),
        }[self.score](self.width, self.width // HEADS, **options)
        with torch.no_grad():
            for weight in conv.parameters():  # biases begin at 0, where a fault in them would not show
                weight.add_(0.1 * torch.randn_like(weight))
        made = {
            "x": torch.randn(size, requires_grad=True),
            "grad": torch.randn(size),
            "kind": torch.randint(KINDS, (self.graph.num_edges,)) if self.edges else None,
            "embedding": nn.Embedding(KINDS, EDGE_DIM) if self.edges else None,
            "conv": conv,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @cached_property
    def layer(self) -> GraphAttention:
        """Ours, equal to ``conv``: what that makes of each kind of edge is a row of the table here."""
        layer = GraphAttention.from_pyg(self.conv)
        if self.embedding is None:
            return layer
        weights = layer.state_dict()
        weights["edge.weight"] = (self.embedding.weight @ weights["edge.weight"].T).detach()
        typed = GraphAttention(
            self.width,
            self.width,
            HEADS,
            self.score,
            tie_key_value=layer.tie_key_value,
            edge_types=KINDS,
            edge_into=layer.edge_into,
            bias=layer.value.bias is not None,
            output_bias=layer.output_bias is not None,
        )
        typed.load_state_dict(weights)
        return typed

    @cached_property
    def call(self) -> AttentionCall:
        """Query, key, value and edge terms as leaves: what the core of the layer is given."""
        with torch.no_grad():
            call = self.layer.attention_call(self.x, self.graph.adjacency, self.kind)
        return _on_leaves(call, torch.float32)

    def contestants(
        self, levels: Sequence[str] = LEVELS, ours: Sequence[str] = OURS
    ) -> Iterator[tuple[str, str, Contestant | Declined]]:
        """Level, name, and the contestant or why it takes no part."""
        of_ours, padded = [f"ours {backend}" for backend in ours], ["padded SDPA"] if self.score == "dot" else []
        names = {"layer": [*of_ours, self.pyg, *padded, BARE, OWN], "core": [*of_ours, *padded]}
        for level, name in [(each, name) for each in levels for name in names[each]]:
            try:
                yield level, name, self.contestant(level, name)
            except Declined as why:
                yield level, name, why

    @property
    def pyg(self) -> str:
        """PyG's layer of this score."""
        return PYG[self.score]

    def contestant(self, level: str, name: str) -> Contestant:
        """The contestant of that name.

        Raises:
            Declined: it cannot take part.
        """
        who, _, backend = name.partition(" ")
        if level == "core":
            return self._core(backend) if who == "ours" else self._padded_core()
        if who == "ours":
            return self._ours(backend)
        return {"PyG": self._pyg, "padded": self._padded_layer, "bare": self._bare, "own": self._own}[who]()

    def _ours(self, backend: str) -> Contestant:
        self._check_padding(backend)
        layer, adjacency = with_backend(self.layer, backend), self.graph.adjacency
        leaves = {"x": self.x, **dict(layer.named_parameters())}
        return Contestant(f"ours {backend}", "layer", lambda: layer(self.x, adjacency, self.kind), leaves, self.grad)

    def _pyg(self) -> Contestant:
        conv, embedding, kind, edge_index = self.conv, self.embedding, self.kind, self.graph.edge_index
        leaves = {"x": self.x, **{f"conv.{name}": weight for name, weight in conv.named_parameters()}}
        if embedding is None or kind is None:
            return Contestant(self.pyg, "layer", lambda: conv(self.x, edge_index), leaves, self.grad)
        leaves["conv.embedding"] = embedding.weight
        return Contestant(self.pyg, "layer", lambda: conv(self.x, edge_index, embedding(kind)), leaves, self.grad)

    def _bare(self) -> Contestant:
        projections = {"dot": 3, "additive": 2, "gat": 1}[self.score]
        bare = nn.Linear(self.width, projections * self.width, bias=self.score != "gat")
        leaves = {"x": self.x, **dict(bare.named_parameters())}
        return Contestant(BARE, "layer", lambda: bare(self.x), leaves, self.grad.repeat(1, projections))

    def _own(self) -> Contestant:
        bare = self._bare()
        x, weight, bias = bare.leaves["x"], bare.leaves["weight"], bare.leaves.get("bias")
        return replace(bare, name=OWN, run=lambda: linear(x, weight, bias))

    def _core(self, backend: str) -> Contestant:
        self._check_padding(backend)
        call = self.call
        return Contestant(f"ours {backend}", "core", lambda: attended(call, backend), _leaves(call), self._core_grad)

    def _padded_layer(self) -> Contestant:
        attend, layer = self._padded(), self.layer
        parts = [part for part in (layer.query, layer.key, layer.value) if part is not None]
        weight = torch.cat([part.weight for part in parts]).detach().requires_grad_()
        bias = torch.cat([part.bias for part in parts]).detach().requires_grad_()

        def run() -> Tensor:
            return attend(functional.linear(self.x, weight, bias).view(-1, 3, HEADS, self.width // HEADS)).flatten(1)

        return Contestant("padded SDPA", "layer", run, {"x": self.x, "packed": weight, "biases": bias}, self.grad)

    def _padded_core(self) -> Contestant:
        attend, call = self._padded(), self.call

        def run() -> Tensor:
            return attend(torch.stack([call.query, call.key, call.value], 1))

        return Contestant("padded SDPA", "core", run, _leaves(call), self._core_grad)

    def _padded(self) -> Callable[[Tensor], Tensor]:
        """Attention of (N, 3, H, D) query, key and value by PyTorch, padded to the largest graph; masks made before."""
        if self.edges:
            raise Declined("an edge term on the value has no place in scaled_dot_product_attention")
        self._check_padding("SDPA")
        batch, largest, edge_index = self.graph.batch, self.graph.largest, self.graph.edge_index
        size = len(self.graph.ptr) - 1
        place = torch.arange(self.graph.num_nodes) - self.graph.ptr[batch]
        mask = torch.zeros(size, 1, largest, largest, dtype=torch.bool)
        mask[batch[edge_index[1]], 0, place[edge_index[1]], place[edge_index[0]]] = True
        alone = ~mask.any(-1, keepdim=True)  # sees nobody: may see all, and its result is zeroed
        mask |= alone

        def attend(query_key_value: Tensor) -> Tensor:
            padded, real = to_dense_batch(query_key_value, batch, max_num_nodes=largest, batch_size=size)
            query, key, value = padded.permute(2, 0, 3, 1, 4)  # (G, H, largest, D) each
            out = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            return out.masked_fill(alone, 0).transpose(1, 2)[real]

        return attend

    def _check_padding(self, backend: str) -> None:
        """Raises Declined where padding would fill the memory or take minutes."""
        pairs = (len(self.graph.ptr) - 1) * self.graph.largest**2
        spelled_out = backend == "dense" and (self.edges or self.score != "dot")
        numbers = pairs * (self.width if self.edges and self.score == "dot" else HEADS) if spelled_out else pairs
        if backend in ("dense", "SDPA") and numbers > (MOST_PADDED if spelled_out else MOST_PAIRS):
            raise Declined(f"padded to {numbers:.1e} numbers, it would fill the memory or take minutes")

    @cached_property
    def _core_grad(self) -> Tensor:
        return self.grad.view(-1, HEADS, self.width // HEADS)

    @cached_property
    def sample(self) -> Tensor:
        """Receivers that are checked: all where that is affordable, else as many, evenly from first to last.

        Left out are those with a sum at LeakyReLU's kink, where rounding alone decides on the gradient.
        """
        nodes, cost = self.graph.num_nodes, self.graph.num_edges * self.width
        count = nodes if cost <= MOST_CHECKED else max(2, nodes * MOST_CHECKED // cost)
        sample = torch.linspace(0, nodes - 1, count, dtype=torch.float64).long()
        return sample if self.score == "dot" else sample[~self._at_the_kink(sample)]

    @torch.no_grad()
    def _at_the_kink(self, sample: Tensor) -> Tensor:
        """Which receivers of ``sample``, (R,), have a sum of query, key and edge term so near to 0."""
        adjacency, kind = self._part(sample)
        term = self.call.edges.key
        query, key = self.call.query[sample], self.call.key
        found = torch.zeros(len(sample), dtype=torch.bool)
        for start in range(0, adjacency.num_entries, 100_000):  # of 25 MiB at width 64
            entry = slice(start, start + 100_000)
            receiver = adjacency.receiver[entry]
            total = query[receiver] + key[adjacency.sender[entry]]
            if term is not None and kind is not None:
                total += _table(term)[kind[adjacency.edge_id[entry]]]
            found[receiver[(total.abs() < NEAR_ZERO).flatten(1).any(1)]] = True
        return found

    def error(self, contestant: Contestant) -> float:
        """The largest error of output and gradients, each by the largest number of its tensor."""
        truth = self.layer_truth if contestant.level == "layer" else self.core_truth
        grad = torch.zeros_like(contestant.grad).index_copy_(0, self.sample, contestant.grad[self.sample])
        contestant.clear()
        out = contestant.run()
        torch.autograd.backward(out, grad)
        found = {"output": out.detach()[self.sample]}
        found |= {name: leaf.grad for name, leaf in contestant.leaves.items() if leaf.grad is not None}
        contestant.clear()
        return largest_error(found, truth)

    def check(self, contestant: Contestant) -> float | None:
        """The error; None for the projections, which compute less.

        Raises:
            WrongAnswer: the error is more than rounding explains.
        """
        if contestant.name in (BARE, OWN):
            return None
        error = self.error(contestant)
        allowed = ALLOWED_ERROR + ROUNDING * self.graph.largest_degree
        if not error <= allowed:  # NaN is wrong
            raise WrongAnswer(
                f"{contestant.name} ({contestant.level}, {self.score}, width {self.width}, "
                f"{'with' if self.edges else 'without'} edge features): error {error:.1e}, at most {allowed:.1e} "
                f"is allowed; nothing is timed."
            )
        return error

    @cached_property
    def layer_truth(self) -> dict[str, Tensor]:
        """In float64: the layer's output at the sampled receivers, and the gradients."""
        adjacency, kind = self._sampled
        layer = with_backend(copy.deepcopy(self.layer).double(), _truthful(adjacency))
        layer.zero_grad()
        x = self.x.detach().double().requires_grad_()
        out = layer(x if len(self.sample) == len(x) else (x, x[self.sample]), adjacency, kind)
        torch.autograd.backward(out, self.grad[self.sample].double())
        return {"output": out.detach(), **_grads({"x": x, **dict(layer.named_parameters())})}

    @cached_property
    def core_truth(self) -> dict[str, Tensor]:
        """The same of the core."""
        adjacency, kind = self._sampled
        call = _on_leaves(self.call, torch.float64)
        terms = (call.edges.key, call.edges.value)
        edges = [None if term is None or kind is None else ByType(_table(term), kind) for term in terms]
        sampled = AttentionCall(
            call.query[self.sample], call.key, call.value, adjacency, call.score, edges=EdgeTerms(*edges)
        )
        out = attended(sampled, _truthful(adjacency))
        torch.autograd.backward(out, self._core_grad[self.sample].double())
        return {"output": out.detach(), **_grads(_leaves(call))}

    @cached_property
    def _sampled(self) -> tuple[Adjacency, Tensor | None]:
        """The sampled receivers' part of the adjacency, and the kinds of its edges."""
        return self._part(self.sample)

    def _part(self, sample: Tensor) -> tuple[Adjacency, Tensor | None]:
        if len(sample) == self.graph.num_nodes:
            return self.graph.adjacency, self.kind
        number = torch.full((self.graph.num_nodes,), -1)
        number[sample] = torch.arange(len(sample))
        sender, receiver = self.graph.edge_index[0], number[self.graph.edge_index[1]]
        seen = receiver >= 0
        adjacency = Adjacency.from_edge_index(
            torch.stack([sender[seen], receiver[seen]]),
            num_senders=self.graph.num_nodes,
            num_receivers=len(sample),
        )
        return adjacency, None if self.kind is None else self.kind[seen]


def with_backend(layer: GraphAttention, backend: str) -> GraphAttention:
    """The same layer, weights shared, on another backend."""
    twin = copy.copy(layer)
    twin.backend = backend
    return twin


def attended(call: AttentionCall, backend: str) -> Tensor:
    """``call`` by the public function."""
    return masked_attention(
        call.query, call.key, call.value, call.adjacency, score=call.score, edges=call.edges, backend=backend
    )


def _truthful(adjacency: Adjacency) -> str:
    return "definition" if adjacency.num_receivers <= BY_DEFINITION else "sparse"


def _on_leaves(call: AttentionCall, dtype: torch.dtype) -> AttentionCall:
    """The call on new leaves; what was one tensor stays one."""
    made: dict[int, Tensor] = {}

    def leaf(tensor: Tensor) -> Tensor:
        return made.setdefault(
            tensor.data_ptr(),
            tensor.detach().to(dtype, copy=True, memory_format=torch.contiguous_format).requires_grad_(),
        )

    def term(terms: PerEdge | None) -> ByType | None:
        return ByType(leaf(_table(terms)), terms.kind) if isinstance(terms, ByType) else None

    score = call.score
    if isinstance(score, Additive) and score.vector is not None:
        score = replace(score, vector=leaf(score.vector))
    edges = EdgeTerms(term(call.edges.key), term(call.edges.value))
    return AttentionCall(leaf(call.query), leaf(call.key), leaf(call.value), call.adjacency, score, edges=edges)


def _table(terms: PerEdge) -> Tensor:
    return terms.table if isinstance(terms, ByType) else terms


def _leaves(call: AttentionCall) -> dict[str, Tensor]:
    named = {
        "query": call.query,
        "key": call.key,
        "value": call.value,
        "vector": call.score.vector if isinstance(call.score, Additive) else None,
        "key term": None if call.edges.key is None else _table(call.edges.key),
        "value term": None if call.edges.value is None else _table(call.edges.value),
    }
    return {name: leaf for name, leaf in named.items() if leaf is not None}


def _grads(leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}


def largest_error(found: Mapping[str, Tensor], truth: Mapping[str, Tensor]) -> float:
    """Over the tensors in both: the largest error, by the largest number of that tensor of the truth.

    A tensor that is zero but for rounding, such as the gradient of a key's bias under softmax, is measured by the
    largest number of all.
    """
    sizes = {name: float(true.abs().max()) for name, true in truth.items()}
    most = max(sizes.values())
    errors = [
        float((found[name].double() - true).abs().max()) / (sizes[name] if sizes[name] > 1e-9 * most else most)
        for name, true in truth.items()
        if name in found
    ]
    return max(errors, key=lambda error: (error != error, error))  # noqa: PLR0124  (NaN is the worst)
