"""Positions: without them a permutation, with each kind of them not; and the task in which order decides."""

import pytest
import torch
from example_modules import is_picture, load

WITH_POSITIONS = {
    ("words", "sinusoidal"),
    ("words", "learned"),
    ("words", "relative"),
    ("pixels", "sinusoidal"),
    ("pixels", "learned"),
    ("pixels", "relative"),
    ("atoms", "random walk"),
    ("atoms", "Laplacian"),
    ("atoms", "Laplacian, any sign"),
    ("atoms", "hops"),
}
WITHOUT = {("words", "none"), ("pixels", "none"), ("atoms", "none")}


def test_positions_end_the_permutation_and_tell_which_comes_first(tmp_path):
    found = load("05_positions").main(tmp_path, quick=True)
    assert set(found.new_vectors) == WITH_POSITIONS | WITHOUT
    assert all(found.new_vectors[which] < 1e-5 for which in WITHOUT)
    assert all(found.new_vectors[which] > 5e-4 for which in WITH_POSITIONS)
    assert 0.42 <= found.accuracies.pop("none")[0] <= 0.58
    assert set(found.accuracies) == {"sinusoidal", "learned", "relative"}
    assert all(accuracy >= 0.85 for (accuracy,) in found.accuracies.values())
    assert is_picture(tmp_path / "05_positions.png")


@pytest.mark.parametrize("count", [1, 2, 30])
def test_without_positions_outputs_follow_their_vectors(count):
    seats = load("05_positions").Seats("words", "none", count)
    x, order = torch.randn(count, 4), torch.randperm(count)
    torch.testing.assert_close(seats.outputs(x[order]), seats.outputs(x)[order])
    assert seats.new_vectors() < 1e-5


def test_a_sentence_holds_both_words_once_and_the_label_is_their_order():
    module = load("05_positions")
    sentences, first = module.make_sentences(300, seed=2)
    for sentence, zero_first in zip(sentences, first.tolist(), strict=True):
        assert 2 <= len(sentence) <= module.LONGEST
        words = sentence.tolist()
        assert words.count(0) == words.count(1) == 1
        assert zero_first == (words.index(0) < words.index(1))
    assert 0.4 < first.float().mean() < 0.6
