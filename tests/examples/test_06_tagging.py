"""Tagging: what single words, windows and the whole sentence can tell."""

from itertools import pairwise

import pytest
import torch
from example_modules import is_picture, load


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("tagging")


@pytest.fixture(scope="module")
def results(output):
    return load("06_tagging").main(output, quick=True)


def test_only_single_words_are_tagged_alike_wherever_they_stand(results):
    first, second = (results.saw["single words"][place] for place in (1, 3))
    assert first == second
    assert results.saw["window of +-1"] == results.saw["self-attention"] == ("pronoun", "verb", "article", "noun")


def test_a_window_is_right_as_far_as_it_reaches(results):
    windows = [row for row in results.rows if row.radius is not None]
    assert [row.radius for row in windows] == [0, 1, 2, 4, 8]
    for row in windows:
        assert all(share > 0.85 for share in row.by_distance[: row.radius])
        assert all(share < 0.7 for share in row.by_distance[row.radius :])


def test_attention_is_right_at_every_distance(results):
    attention = results.rows[-1]
    assert attention.radius is None
    assert min(attention.by_distance) > 0.7
    assert attention.verbs_and_nouns > 0.85


def test_only_windows_grow_to_see_farther(results):
    *windows, attention = results.rows
    per_radius = {
        (wide.parameters - narrow.parameters) / (wide.radius - narrow.radius) for narrow, wide in pairwise(windows)
    }
    assert len(per_radius) == 1  # as many for each word more on both sides
    assert windows[-2].parameters > attention.parameters  # half as wide as the farthest word asks for


def test_it_is_drawn(results, output):
    assert results.rows
    assert is_picture(output / "06_tagging.png")


def test_a_word_beyond_the_window_changes_nothing_and_attention_sees_it():
    tagging = load("06_tagging")
    sentence = tagging.batched([(("we", "late", "late", "late", "saw"), ("pronoun", *["adverb"] * 3, "verb"))])
    other = tagging.batched([(("my", "late", "late", "late", "saw"), ("article", *["adjective"] * 3, "noun"))])
    for radius, sees in ((3, False), (4, True)):
        network = tagging.OnWindow(radius)
        assert torch.equal(network(sentence)[-1], network(other)[-1]) is not sees
    network = tagging.OnSentence()
    assert not torch.equal(network(sentence)[-1], network(other)[-1])


def test_sentences_are_new_and_know_how_far_the_deciding_word_stands():
    tagging = load("06_tagging")
    known = tagging.sentences(500, seed=1)
    unseen = tagging.sentences(500, seed=1, known=known)
    words = {words for words, _ in known}
    assert len(words) == 500
    assert not words & {words for words, _ in unseen}
    assert tagging.SAW not in words
    batch = tagging.batched(
        [(tagging.SAW, tagging.SAW_TAGS), (("the", "right", "duck"), ("article", "adjective", "noun"))]
    )
    assert batch.distance.tolist() == [0, 1, 0, 1, 0, 0, 2]
    assert batch.ptr.tolist() == [0, 4, 7]
