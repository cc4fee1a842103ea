"""A call taken apart for the fused kernels: the tensors that it is differentiated by, and all the rest of it."""

from dataclasses import dataclass, replace

from torch import Tensor

from graphattn.adjacency import Adjacency
from graphattn.attention.call import AttentionCall, ByType, EdgeTerms, PerEdge
from graphattn.attention.normalizers import Normalizer
from graphattn.attention.scores import Additive, DotProduct
from graphattn.errors import SettingError

# query, key, value (None: the key is the value), terms of key and value (None: the key's is the value's), bias, vector
Inputs = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor | None, Tensor | None]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a call is besides its numbers."""

    adjacency: Adjacency
    score: DotProduct | Additive  # its scale in numbers, and without its vector
    normalizer: Normalizer
    key_kind: Tensor | None  # (E,) int64 where a term is by type
    value_kind: Tensor | None
    bias_kind: Tensor | None
    one_term: bool  # one table, read by one kind, serves key and value
    dropout: float
    seed: Tensor | None

    @staticmethod
    def of(call: AttentionCall) -> tuple["Plan", Inputs]:
        """The call's plan and its numbers.

        Raises:
            SettingError: dropout without a seed.
        """
        if call.dropout and call.seed is None:
            raise SettingError("dropout needs a seed that decides which weights drop.")
        vector: Tensor | None = None
        score = call.score
        if isinstance(score, DotProduct):
            score = DotProduct(score.factor(call.query.shape[-1]))
        else:
            assert isinstance(score, Additive)
            if score.vector is not None:
                vector = score.vector.expand(call.query.shape[1:])  # one for all heads may be given
            score = replace(score, vector=None)
        key_term, value_term = _table(call.edges.key), _table(call.edges.value)
        key_kind, value_kind = _kind(call.edges.key), _kind(call.edges.value)
        one_term = key_term is not None and key_term is value_term and key_kind is value_kind
        plan = Plan(
            adjacency=call.adjacency,
            score=score,
            normalizer=call.normalizer,
            key_kind=None if key_kind is None else key_kind.long(),
            value_kind=None if value_kind is None else value_kind.long(),
            bias_kind=call.bias.kind.long() if isinstance(call.bias, ByType) else None,
            one_term=one_term,
            dropout=call.dropout,
            seed=None if call.seed is None else call.seed.to(call.query.device),
        )
        value = None if call.value is call.key else call.value
        return plan, (
            call.query,
            call.key,
            value,
            key_term,
            None if one_term else value_term,
            _table(call.bias),
            vector,
        )

    def indices(self) -> list[Tensor]:
        """What says where numbers lie: saved for backward, so that PyTorch refuses it if somebody changed one since."""
        adjacency = self.adjacency
        found = (adjacency.rowptr, adjacency.col, adjacency.edge_id, self.key_kind, self.value_kind, self.bias_kind)
        return [each for each in (*found, self.seed) if each is not None and not each.is_inference()]

    def call(self, inputs: Inputs) -> AttentionCall:
        """The call that this and its numbers are."""
        query, key, value, key_term, value_term, bias, vector = inputs
        if self.one_term:
            value_term = key_term
        return AttentionCall(
            query=query,
            key=key,
            value=key if value is None else value,
            adjacency=self.adjacency,
            score=replace(self.score, vector=vector) if isinstance(self.score, Additive) else self.score,
            normalizer=self.normalizer,
            bias=_term(bias, self.bias_kind),
            edges=EdgeTerms(_term(key_term, self.key_kind), _term(value_term, self.value_kind)),
            dropout=self.dropout,
            seed=self.seed,
        )


def _table(terms: PerEdge | None) -> Tensor | None:
    return terms.table if isinstance(terms, ByType) else terms


def _kind(terms: PerEdge | None) -> Tensor | None:
    return terms.kind if isinstance(terms, ByType) else None


def _term(table: Tensor | None, kind: Tensor | None) -> PerEdge | None:
    return table if table is None or kind is None else ByType(table, kind)
