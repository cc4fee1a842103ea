"""Writing sequences token by token: greedy and beam search over whatever scores the next token.

Sizes: ``G`` sets to write a sequence for, ``S`` of them still writing, ``B`` beams: sequences of a set written at once.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from graphattn.checks import number_from_0, whole_number
from graphattn.csr import described
from graphattn.errors import SettingError, ShapeError


@dataclass(frozen=True, slots=True)
class Decoded:
    """A sequence as it was written, without the tokens that mark its start and end."""

    tokens: tuple[int, ...]
    log_probability: float  # natural logarithm, summed over the tokens and, where it was written, the end
    finished: bool  # whether the end was written; else the limit of length cut the sequence off


class Scorer(Protocol):
    """What a search asks: scores of the next token for each of the sequences that are being written."""

    def __call__(self, tokens: Tensor, parents: Tensor, sets: Tensor) -> Tensor:
        """Unnormalized log-probabilities of the next token.

        Args:
            tokens: (rows,) the token that each sequence was just given; the start token at the first call.
            parents: (rows,) which sequence of the call before each continues; at the first call, an empty one per set.
            sets: (rows,) the set that each is written for, never decreasing.

        Returns:
            (rows, num_tokens).
        """


@dataclass(frozen=True, eq=False)
class _Running:
    """The sequences that are being written: equally many of every set, all of one length, the best of a set first."""

    sets: Tensor  # (S,) which of the G
    written: Tensor  # (S, B, length), the start token first
    total: Tensor  # (S, B) log-probability so far
    parents: Tensor  # (S, B) row of the call before that each continues

    @staticmethod
    def beginning(num_sets: int, start: int, device: torch.device | str) -> "_Running":
        """One empty sequence per set."""
        sets = torch.arange(num_sets, device=device)
        written = torch.full((num_sets, 1, 1), start, device=device)
        return _Running(sets, written, torch.zeros(num_sets, 1, device=device), sets[:, None])

    def scores(self, score_next: Scorer) -> Tensor:
        """(S, B, num_tokens) log-probability of each sequence with each token after it."""
        sets = self.sets.repeat_interleave(self.total.shape[1])
        logits = score_next(self.written[..., -1].flatten(), self.parents.flatten(), sets)
        if logits.ndim != 2 or len(logits) != len(sets):
            raise ShapeError(
                f"score_next was asked about {len(sets)} sequences and must return a row of scores for each; got "
                f"{described(logits)}."
            )
        following = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
        return self.total[..., None] + following.view(*self.total.shape, -1)

    def continued(self, chosen: "_Candidates", going: Tensor) -> "_Running":
        """The chosen continuations, of the sets that go on: ``going`` (S,) bool."""
        width = self.total.shape[1]
        before = self.written.gather(1, chosen.beam[..., None].expand(-1, -1, self.written.shape[2]))
        written = torch.cat([before, chosen.token[..., None]], -1)
        parents = torch.arange(len(self.sets), device=self.sets.device)[:, None] * width + chosen.beam
        return _Running(*(part[going] for part in (self.sets, written, chosen.total, parents)))

    def decoded(self, row: int, beam: int, total: Tensor, *, finished: bool) -> Decoded:
        """One of the sequences as a result."""
        return Decoded(tuple(self.written[row, beam, 1:].tolist()), float(total), finished)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Ways to go on, best first: which sequence of a set, with which token; each (S, candidates)."""

    total: Tensor
    beam: Tensor
    token: Tensor

    @staticmethod
    def ranked(scores: Tensor, most: int) -> "_Candidates":
        """The best ``most`` of (S, B, num_tokens); of equal ones, those of the better sequence, then smaller tokens."""
        total, place = scores.flatten(1).sort(dim=1, descending=True, stable=True)
        total, place = total[:, :most], place[:, :most]
        return _Candidates(total, place // scores.shape[2], place % scores.shape[2])

    def unended(self, end: int, most: int) -> "_Candidates":
        """The best ``most`` that do not end."""
        order = (self.token == end).int().argsort(dim=1, stable=True)[:, :most]
        return _Candidates(*(part.gather(1, order) for part in (self.total, self.beam, self.token)))

    def best_end(self, end: int, most: int) -> tuple[Tensor, Tensor, Tensor]:
        """Of each set, the best that ends: total, beam, and whether one is among the best ``most``; (S,) each."""
        ends = self.token[:, :most] == end
        first = ends.int().argmax(1, keepdim=True)
        return self.total.gather(1, first)[:, 0], self.beam.gather(1, first)[:, 0], ends.any(1)


class _Finished:
    """The best finished sequence of each set."""

    def __init__(self, num_sets: int, alpha: float, device: torch.device | str) -> None:
        self.found: dict[int, Decoded] = {}
        self.alpha = alpha
        self.rank = torch.full((num_sets,), -torch.inf, device=device)  # log-probability over length penalty

    def take(self, running: _Running, ending: tuple[Tensor, Tensor, Tensor], length: int) -> None:
        """Keep the sequences that end now where they are better than what is kept."""
        total, beam, ends = ending
        rank = self.ranked(total, length)
        self.rank = self.rank.to(rank.dtype)
        better = ends & (rank > self.rank[running.sets])
        self.rank[running.sets[better]] = rank[better]
        for row in better.nonzero().flatten().tolist():
            found = running.decoded(row, int(beam[row]), total[row], finished=True)
            self.found[int(running.sets[row])] = found

    def may_improve(self, sets: Tensor, total: Tensor, longest: int) -> Tensor:
        """Whether sequences with these totals could still become better than what is kept; by then at the longest."""
        return ~(self.rank[sets] >= self.ranked(total, longest))

    def ranked(self, total: Tensor, length: int) -> Tensor:
        """Log-probabilities of sequences of a length as they are compared: Wu et al. 2016, arXiv:1609.08144, eq. 14."""
        penalty: float = ((5 + length) / 6) ** self.alpha
        return total / penalty


def beam_search(
    score_next: Scorer,
    num_sets: int,
    *,
    start: int,
    end: int,
    longest: int,
    beams: int = 1,
    length_penalty: float = 0.0,
    device: torch.device | str = "cpu",
) -> list[Decoded]:
    """The most probable sequence for each set, as far as a search finds it.

    Of all ways to continue the sequences of a set by a token, those among the best ``beams`` that end are finished, and
    the best ``beams`` that do not end are written on. A set is done as soon as nothing that is being written can
    become better than what is finished. One beam, without length penalty, is greedy search: always the most probable
    token. As many beams as there are candidates at every step find the most probable of all sequences; in between, more
    beams mostly, but not always, find a better one. What is finished goes before what the limit cut off. Of equal
    candidates the one comes first that continues the better sequence, then the smaller token; of equal finished
    sequences the shorter.

    Args:
        score_next: scores of the next token.
        num_sets: G.
        start: the token before the first.
        end: the token after the last.
        longest: most tokens of a sequence, start and end not counted.
        beams: sequences of a set that are written at once.
        length_penalty: alpha of Wu et al., in [0, 10): log-probabilities of finished sequences are compared after
            division by ``((5 + n) / 6) ** alpha``, where n counts tokens and the end; 0 compares them as they are,
            larger numbers favor longer sequences.
        device: where the scorer wants its arguments.

    Returns:
        G results.

    Raises:
        SettingError: a setting is out of its range, or ``end`` is none of the tokens that are scored.
        ShapeError: the scorer returns another number of rows than it was asked about.

    Source: Wu et al. 2016, arXiv:1609.08144, section 7 and eq. 14, without their coverage penalty and pruning.
    """
    end, num_sets = whole_number("end", end, at_least=0), whole_number("num_sets", num_sets, at_least=0)
    longest, beams = whole_number("longest", longest, at_least=0), whole_number("beams", beams, at_least=1)
    finished = _Finished(num_sets, number_from_0("length_penalty", length_penalty, below=10), device)
    running = _Running.beginning(num_sets, start, device)
    for length in range(1, longest + 2):  # of what may be finished now, its end counted
        if not len(running.sets):
            break
        scores = running.scores(score_next)
        width, num_tokens = scores.shape[1:]
        if end >= num_tokens:
            raise SettingError(f"end must be one of the {num_tokens} tokens that are scored, from 0; got {end}.")
        candidates = _Candidates.ranked(scores, beams + width)
        finished.take(running, candidates.best_end(end, beams), length)
        chosen = candidates.unended(end, min(beams, width * (num_tokens - 1)))
        if length > longest or not chosen.total.shape[1]:
            break
        running = running.continued(chosen, finished.may_improve(running.sets, chosen.total[:, 0], longest + 1))
    cut = {
        which: running.decoded(row, 0, running.total[row, 0], finished=False)
        for row, which in enumerate(running.sets.tolist())
    }
    return [finished.found.get(which) or cut[which] for which in range(num_sets)]
