"""Greedy and beam search over hand-made probabilities: what they find, when they stop, how they break ties."""

import math
from itertools import product

import pytest
import torch

from graphattn.errors import SettingError, ShapeError
from graphattn.model.generation import Decoded, beam_search

START, END = 9, 0


class Written:
    """A scorer that knows what is written: ``probabilities(set, tokens)`` gives those of the token after them."""

    def __init__(self, probabilities, end=END):
        self.probabilities, self.end, self.prefixes, self.asked = probabilities, end, None, []

    def __call__(self, tokens, parents, sets):
        if self.prefixes is None:
            assert tokens.tolist() == [START] * len(tokens)
            assert parents.tolist() == sets.tolist() == list(range(len(tokens)))
            self.prefixes = [()] * len(tokens)
        else:
            self.prefixes = [
                (*self.prefixes[parent], token) for parent, token in zip(parents, tokens.tolist(), strict=True)
            ]
        assert bool((sets.diff() >= 0).all())
        assert all(self.end not in tokens for tokens in self.prefixes)  # nothing is written on past its end
        assert len(set(zip(sets.tolist(), self.prefixes, strict=True))) == len(sets)
        self.asked.append(sets.tolist())
        rows = [self.probabilities(which, tokens) for which, tokens in zip(sets.tolist(), self.prefixes, strict=True)]
        return torch.tensor(rows, dtype=torch.float64).log().view(len(rows), -1)


def search(probabilities, num_sets=1, **settings):
    settings = {"start": START, "end": END, "longest": 5} | settings
    return beam_search(Written(probabilities, settings["end"]), num_sets, **settings)


def table(rows):
    """Probabilities from a dictionary by what is written; where nothing stands, the end is certain."""
    certain = [1.0, *[0.0] * (len(next(iter(rows.values()))) - 1)]
    return lambda _, tokens: rows.get(tokens, certain)


def drawn(num_tokens):
    """Probabilities of every set after every beginning, drawn once for each."""

    def probabilities(which, tokens):
        seed = 1 + which + 100 * sum((token + 1) * (num_tokens + 1) ** place for place, token in enumerate(tokens))
        return (
            torch.rand(num_tokens, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
            .softmax(0)
            .tolist()
        )

    return probabilities


def log_probability(probabilities, which, tokens, *, finished=True):
    path = [*tokens, END] if finished else tokens
    return sum(math.log(probabilities(which, tuple(path[:place]))[token]) for place, token in enumerate(path))


def best_of_all(probabilities, which, num_tokens, longest, alpha=0.0):
    """The tokens of the best finished sequence, by trying all of them."""
    others = [token for token in range(num_tokens) if token != END]
    every = (tokens for length in range(longest + 1) for tokens in product(others, repeat=length))
    return max(
        every, key=lambda tokens: log_probability(probabilities, which, tokens) / ((6 + len(tokens)) / 6) ** alpha
    )


# Token 1 is the likelier first one, but what follows it is spread; after token 2 the end is all but certain.
GARDEN_PATH = table({(): [0.1, 0.5, 0.4], (1,): [0.4, 0.3, 0.3], (2,): [0.9, 0.05, 0.05]})


def test_greedy_takes_the_likeliest_token_and_a_beam_finds_the_likelier_sequence():
    (greedy,), (beam,) = search(GARDEN_PATH), search(GARDEN_PATH, beams=2)
    assert (greedy.tokens, greedy.finished) == ((1,), True)
    assert greedy.log_probability == pytest.approx(math.log(0.5 * 0.4), abs=1e-12)
    assert (beam.tokens, beam.finished) == ((2,), True)
    assert beam.log_probability == pytest.approx(math.log(0.4 * 0.9), abs=1e-12)


def test_one_beam_is_greedy_search():
    probabilities = drawn(4)
    for which, result in enumerate(search(probabilities, 40, longest=3)):
        tokens, token = [], None
        while token != END and len(tokens) <= 3:
            row = probabilities(which, tuple(tokens))
            token = row.index(max(row))
            tokens.append(token)
        finished = tokens[-1] == END
        want = tuple(tokens[:-1])
        assert (result.tokens, result.finished) == (want, finished)
        assert result.log_probability == pytest.approx(log_probability(probabilities, which, want, finished=finished))


@pytest.mark.parametrize("alpha", [0.0, 0.7, 3.0])
def test_enough_beams_find_the_best_of_all_sequences(alpha):
    probabilities = drawn(3)
    results = search(probabilities, 30, longest=3, beams=27, length_penalty=alpha)
    for which, result in enumerate(results):
        want = best_of_all(probabilities, which, 3, 3, alpha)
        assert (result.tokens, result.finished) == (want, True)
        assert result.log_probability == pytest.approx(log_probability(probabilities, which, want), abs=1e-12)
    assert len({result.tokens for result in results}) > 1


def test_few_beams_find_sequences_no_better_than_the_best_and_together_better_than_greedy():
    probabilities = drawn(3)
    totals = []
    for beams in (1, 2, 27):
        results = search(probabilities, 60, longest=3, beams=beams)
        found = [result.log_probability if result.finished else -math.inf for result in results]
        best = [log_probability(probabilities, which, best_of_all(probabilities, which, 3, 3)) for which in range(60)]
        assert all(each <= top + 1e-12 for each, top in zip(found, best, strict=True))
        totals.append(sum(each > top - 1e-12 for each, top in zip(found, best, strict=True)))
    assert totals[0] < totals[1] < totals[2] == 60


def test_every_set_has_the_result_that_it_has_alone():
    probabilities = drawn(4)
    together = search(probabilities, 12, longest=4, beams=3)
    for which, result in enumerate(together):
        assert search(lambda _, tokens, which=which: probabilities(which, tokens), 1, longest=4, beams=3) == [result]


def test_a_beam_stays_full_though_sequences_of_it_end():
    scorer = Written(table({(): [0.4, 0.3, 0.2, 0.1], **{(token,): [0.1, 0.3, 0.3, 0.3] for token in (1, 2, 3)}}))
    beam_search(scorer, 1, start=START, end=END, longest=2, beams=3, length_penalty=9.0)
    assert [len(sets) for sets in scorer.asked] == [1, 3, 3]


def test_a_finished_set_is_not_asked_about_again():
    def after_some(which, tokens):
        return [1.0, 0.0] if len(tokens) == (2, 0, 1)[which] else [0.1, 0.9]

    scorer = Written(after_some)
    results = beam_search(scorer, 3, start=START, end=END, longest=5)
    assert [len(result.tokens) for result in results] == [2, 0, 1]
    assert scorer.asked == [[0, 1, 2], [0, 2], [0]]


def test_a_beam_stops_when_nothing_that_is_written_can_become_better():
    scorer = Written(table({(): [0.6, 0.4], (1,): [0.1, 0.9]}))
    assert beam_search(scorer, 1, start=START, end=END, longest=50, beams=4)[0].tokens == ()
    assert len(scorer.asked) == 1
    assert len(search(table({(): [0.6, 0.4], (1,): [0.1, 0.9]}), beams=4, length_penalty=9.0)[0].tokens) == 2


def test_the_length_limit_cuts_and_says_so():
    never = [0.05, 0.95]
    (cut,) = search(lambda *_: never, longest=3)
    assert (cut.tokens, cut.finished) == ((1, 1, 1), False)
    assert cut.log_probability == pytest.approx(3 * math.log(0.95), abs=1e-12)
    (nothing,) = search(lambda *_: never, longest=0)
    assert nothing == Decoded((), 0.0, finished=False)
    exactly = table({(1,) * length: never for length in range(3)})  # the end comes after the third token
    (full,) = search(exactly, longest=3)
    assert (full.tokens, full.finished) == ((1, 1, 1), True)
    (short,) = search(exactly, longest=2)
    assert (short.tokens, short.finished) == ((1, 1), False)


def test_what_is_finished_goes_before_what_was_cut():
    unlikely_end = table({(1,) * length: [0.1, 0.9] for length in range(10)})
    (result,) = search(unlikely_end, longest=2, beams=2)
    assert (result.tokens, result.finished) == ((), True)
    assert result.log_probability == pytest.approx(math.log(0.1), abs=1e-12)


@pytest.mark.parametrize(("alpha", "want"), [(0.0, ()), (1.0, (1,)), (2.0, (1,)), (3.0, (1, 1))])
def test_length_penalty_favors_longer_sequences(alpha, want):
    rows = table({(): [0.4, 0.6], (1,): [0.6, 0.4]})
    probability = {(): 0.4, (1,): 0.36, (1, 1): 0.24}
    by_hand = {each: math.log(total) / ((6 + len(each)) / 6) ** alpha for each, total in probability.items()}
    assert max(by_hand, key=by_hand.get) == want
    (result,) = search(rows, beams=3, length_penalty=alpha)
    assert (result.tokens, result.finished) == (want, True)
    assert result.log_probability == pytest.approx(math.log(probability[want]), abs=1e-12)  # the penalty is not in it


@pytest.mark.parametrize("beams", [1, 2, 5])
def test_of_equal_ones_the_smaller_token_and_the_shorter_sequence_are_taken(beams):
    even = lambda *_: [0.25] * 4  # noqa: E731
    (result,) = search(even, longest=2, beams=beams)
    assert (result.tokens, result.finished) == ((), True)
    (result,) = search(even, longest=2, end=3)
    assert (result.tokens, result.finished) == ((0, 0), False)
    shorter = table({(): [0.25, 0.5, 0.25], (1,): [0.5, 0.25, 0.25]})  # 0.25, and 0.5 * 0.5 after token 1
    assert search(shorter, beams=beams + 1)[0].tokens == ()
    of_two = table({(): [0.0, 0.5, 0.5], (1,): [1.0, 0.0, 0.0], (2,): [1.0, 0.0, 0.0]})
    assert search(of_two, beams=beams)[0].tokens == (1,)


def test_a_set_whose_scores_are_nan_says_so_and_leaves_the_others_alone():
    def second_is_broken(which, tokens):
        return [math.nan] * 3 if which == 1 else GARDEN_PATH(which, tokens)

    first, broken, third = search(second_is_broken, 3, beams=2)
    assert first == third == search(GARDEN_PATH, beams=2)[0]
    assert not broken.finished
    assert math.isnan(broken.log_probability)


def test_no_sets_and_a_vocabulary_of_the_end_alone():
    assert search(GARDEN_PATH, 0) == []
    assert search(lambda *_: [1.0], 2, beams=3) == [Decoded((), 0.0, finished=True)] * 2


def test_scores_in_half_precision_are_summed_in_float32():
    logits = torch.tensor([0.1, 2.0, 1.0], dtype=torch.float16)
    (result,) = beam_search(lambda tokens, *_: logits.expand(len(tokens), 3), 1, start=START, end=END, longest=100)
    assert result.tokens == (1,) * 100
    assert result.log_probability == pytest.approx(100 * float(logits.double().log_softmax(0)[1]), rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beams": 0}, "beams must be at least 1, got 0"),
        ({"longest": -1}, "longest must be at least 0, got -1"),
        ({"length_penalty": -0.5}, r"length_penalty must be in \[0, 10\), got -0.5"),
        ({"length_penalty": 10}, r"length_penalty must be in \[0, 10\), got 10"),
        ({"end": 1.5}, "end must be a whole number, got 1.5"),
        ({"end": -1}, "end must be at least 0, got -1"),
        ({"end": 3}, "end must be one of the 3 tokens that are scored, from 0; got 3"),
    ],
)
def test_settings_out_of_range_are_refused(settings, words):
    with pytest.raises(SettingError, match=words):
        search(GARDEN_PATH, **settings)


def test_a_scorer_of_other_rows_is_refused():
    with pytest.raises(ShapeError, match=r"asked about 1 sequences .* got float32 of shape \(2, 3\)"):
        beam_search(lambda tokens, *_: torch.zeros(2 * len(tokens), 3), 1, start=0, end=2, longest=2)
