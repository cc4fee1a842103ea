"""A window over a recording: what it costs, that it covers what it should, and that it is enough for vowels."""

import pytest
from example_modules import is_picture, load


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    found = load("08_speech").main(folder, quick=True)
    assert is_picture(folder / "08_speech.png")
    return found


def test_a_window_grows_with_the_recording_and_full_attention_with_its_square(results):
    for view, pairs in (("window", lambda frames: 31 * frames - 15 * 16), ("full", lambda frames: frames**2)):
        costs = [cost for cost in results.measured if cost.view == view]
        assert [cost.pairs for cost in costs] == [pairs(cost.frames) for cost in costs]
        assert len(costs) == 2
        assert all(cost.forward_seconds > 0 and cost.both_seconds > 0 for cost in costs)


def test_a_window_over_everything_is_full_attention(results):
    assert results.difference < 1e-6


def test_every_view_learns_to_name_vowels(results):
    assert set(results.accuracy) == {"single frames", "window", "full"}
    assert min(results.accuracy.values()) > 0.4  # of five; with context it takes the full run to pass single frames
