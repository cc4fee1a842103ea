"""Speech: what windows cost, and what they still tell."""

import math

import numpy as np
import pytest
import torch
from example_modules import is_picture, load

import graphattn as ga


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("speech")


@pytest.fixture(scope="module")
def results(output):
    return load("08_speech").main(output, quick=True)


@pytest.fixture(scope="module")
def measured(results):
    return {(each.view, each.frames): each for each in results.measured}


def test_pairs_of_a_window_grow_with_the_recording_and_all_pairs_with_its_square(measured):
    assert set(measured) == {(view, frames) for view in ("window", "full") for frames in (500, 3000)}
    for (view, frames), cost in measured.items():
        assert cost.pairs == (frames**2 if view == "full" else 31 * frames - 15 * 16)  # both ends lack 1 + ... + 15


def test_everything_was_timed(measured):
    for cost in measured.values():
        assert min(cost.build_seconds, cost.forward_seconds, cost.both_seconds) > 0


def test_memory_of_all_pairs_grows_faster(measured):
    if math.isnan(measured["full", 500].peak_mib):
        pytest.skip("this system does not tell the most memory of a process in /proc")
    assert measured["full", 3000].peak_mib > 3 * measured["full", 500].peak_mib
    assert measured["full", 3000].peak_mib > 5 * measured["window", 3000].peak_mib > 0


def test_frames_are_named_far_better_than_by_chance(results):
    assert set(results.accuracy) == {"single frames", "window", "full"}
    assert min(results.accuracy.values()) > 0.5  # of five vowels


def test_it_is_drawn(results, output):
    assert results.difference <= 1e-6
    assert is_picture(output / "08_speech.png")


@pytest.mark.parametrize("backend", ["dense", "fused_cpu", "sparse"])
@pytest.mark.parametrize("radius", [99, 250])
def test_a_window_that_covers_the_recording_is_full_attention(backend, radius):
    torch.manual_seed(0)
    layer, x = ga.GraphAttention(64, 64, heads=4, backend=backend), torch.randn(100, 64)
    definition = ga.GraphAttention(64, 64, heads=4, backend="definition")
    definition.load_state_dict(layer.state_dict())
    full, window = definition(x, ga.Adjacency.complete(100)), layer(x, ga.Adjacency.window(100, radius=radius))
    assert (full - window).abs().max() <= 1e-6
    narrower = layer(x, ga.Adjacency.window(100, radius=98))
    assert (full - narrower)[[0, 99]].abs().amax(1).min() > 1e-6  # the ends do not see each other
    assert (full - narrower)[1:99].abs().max() <= 1e-6


def test_a_network_names_the_same_vowels_through_a_window_that_covers_the_recording():
    speech = load("08_speech")
    draw = np.random.default_rng(3)
    known = [speech.labeled(draw) for _ in range(4)]
    network = speech.learned(speech.VIEWS["full"], known, epochs=1)
    full, vowel = speech.batched(known, speech.VIEWS["full"])
    window, _ = speech.batched(known, lambda ptr: ga.Adjacency.window(radius=200, ptr=ptr))
    narrow, _ = speech.batched(known, speech.VIEWS["window"])
    assert len(vowel) == 4 * 200
    torch.testing.assert_close(network(full), network(window), rtol=0, atol=1e-6)
    assert (network(full) - network(narrow)).abs().max() > 1e-3


def test_a_frame_has_the_vowel_of_its_middle():
    speech = load("08_speech")
    spectrum, vowel = speech.labeled(np.random.default_rng(7))
    said = speech.recording(2.0, np.random.default_rng(7))
    assert spectrum.shape == (200, speech.MELS)
    assert torch.equal(vowel[:198], said.vowel[200::160][:198])  # 12.5 ms after the start of every 10 ms
    assert len(vowel.unique()) > 2


def test_bands_are_standardized_by_the_recordings_to_learn_from():
    speech = load("08_speech")
    draw = np.random.default_rng(0)
    heard, strangers = ([speech.labeled(draw) for _ in range(3)] for _ in range(2))
    frames = torch.cat([spectrum for spectrum, _ in speech.standardized(heard, heard)])
    torch.testing.assert_close(frames.mean(0), torch.zeros(speech.MELS), rtol=0, atol=1e-4)
    torch.testing.assert_close(frames.std(0), torch.ones(speech.MELS), rtol=0, atol=1e-4)
    other = torch.cat([spectrum for spectrum, _ in speech.standardized(strangers, heard)])
    assert other.mean(0).abs().max() > 1e-2
