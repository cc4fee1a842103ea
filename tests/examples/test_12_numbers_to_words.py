"""Numbers in words: the spelling by hand, and a small network that writes numbers it was not shown."""

import random

import pytest
from example_modules import is_picture, load

BY_HAND = {
    0: "zero",
    5: "five",
    10: "ten",
    19: "nineteen",
    20: "twenty",
    21: "twenty-one",
    40: "forty",
    90: "ninety",
    100: "one hundred",
    101: "one hundred and one",
    110: "one hundred and ten",
    305: "three hundred and five",
    999: "nine hundred and ninety-nine",
    1000: "one thousand",
    1001: "one thousand and one",
    1100: "one thousand one hundred",
    12_345: "twelve thousand three hundred and forty-five",
    100_000: "one hundred thousand",
    100_020: "one hundred thousand and twenty",
    310_018: "three hundred and ten thousand and eighteen",
    999_999: "nine hundred and ninety-nine thousand nine hundred and ninety-nine",
}


@pytest.mark.parametrize(("number", "words"), BY_HAND.items())
def test_spelled_by_hand(number, words):
    example = load("12_numbers_to_words")
    assert example.in_print(example.spelled(number)) == words


def test_every_spelling_fits_the_network():
    example = load("12_numbers_to_words")
    spellings = [example.spelled(number) for number in range(1000)]
    assert len(set(spellings)) == 1000  # no two numbers are spelled alike
    assert {word for words in spellings for word in words} | {"thousand"} == set(example.WORDS.known[2:])
    assert len(example.spelled(373_373)) == example.LONGEST == 2 * max(map(len, spellings)) + 1


def test_numbers_are_drawn_by_length_and_none_is_learned_twice():
    example = load("12_numbers_to_words")
    drawn = example.draw_numbers(random.Random(0), example.KNOWN, {*example.SHOWN})  # noqa: S311 (no secret)
    numbers = [number for of_length in drawn.values() for number in of_length]
    assert len({*numbers}) == len(numbers) == sum(example.KNOWN.values()) <= 20_000
    assert sorted(drawn[1]) == [*range(10)]
    assert all(len(str(number)) == length for length, of_length in drawn.items() for number in of_length)
    unseen = example.draw_numbers(random.Random(1), {1: 5, 2: 100}, {*numbers})  # noqa: S311 (no secret)
    assert unseen[1] == []  # all are known
    assert {*unseen[2]} == {*range(10, 100)} - {*numbers}


def test_unseen_numbers_are_spelled(tmp_path):
    results = load("12_numbers_to_words").main(tmp_path, quick=True)
    everything, two, three = results.rows
    assert (everything.numbers, two.numbers, three.numbers) == ("any below 1,000", "2 digits", "3 digits")
    assert (everything.judged, two.judged, three.judged) == (250, 45, 150)
    assert min(everything.greedy, everything.beam) > 0.7  # a guess is right once in a thousand
    assert all(words != load("12_numbers_to_words").spelled(number) for number, words in results.mistakes.items())
    assert len(results.mistakes) >= round((1 - everything.greedy) * 250)
    assert is_picture(tmp_path / "12_numbers_to_words.png")


def test_looks_are_the_weights_of_a_number_on_its_own_digits():
    example = load("12_numbers_to_words")
    looked = example.Speller().looks(4081)
    assert looked.shape == (len(example.spelled(4081)) + 1, 4)  # "four thousand and eighty-one", and the end
    assert looked.sum(1).tolist() == pytest.approx([1.0] * len(looked))
