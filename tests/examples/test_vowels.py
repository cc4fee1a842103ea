"""Vowels of synthetic speakers: their pitch, their formants, their labels."""

import numpy as np
import pytest
import torch
import vowels


@pytest.mark.parametrize("hertz", [300, 1090, 2440])
def test_a_resonator_is_loudest_at_its_frequency(hertz):
    impulse = np.zeros(vowels.SAMPLE_RATE)
    impulse[0] = 1
    heard, _ = vowels.resonated(impulse, hertz, 90, np.zeros(2))
    gain = np.abs(np.fft.rfft(heard))  # of every whole Hz
    assert gain.argmax() == pytest.approx(hertz, abs=10)
    assert gain[0] == pytest.approx(1)  # Klatt's resonator passes what does not change
    assert (gain > gain.max() / np.sqrt(2)).sum() == pytest.approx(90, abs=5)  # as wide as it was told


def test_a_resonator_goes_on_where_it_stopped():
    sound = np.random.default_rng(0).normal(size=1000)
    whole, _ = vowels.resonated(sound, 500, 60, np.zeros(2))
    first, state = vowels.resonated(sound[:400], 500, 60, np.zeros(2))
    second, _ = vowels.resonated(sound[400:], 500, 60, state)
    np.testing.assert_allclose(np.concatenate([first, second]), whole)


def test_there_is_a_pulse_per_period_and_the_pitch_drifts():
    source = vowels.pulses(200, 10 * vowels.SAMPLE_RATE, np.random.default_rng(0))
    (starts,) = np.nonzero(np.diff(source, prepend=0) > 0.5)
    assert len(starts) == pytest.approx(2000, rel=0.1)
    pitch = vowels.SAMPLE_RATE / np.diff(starts)
    assert 0.05 < np.log(pitch).std() < 0.15


def test_recordings_repeat_by_seed_and_differ_by_speaker():
    first, again, other = (vowels.recording(1.0, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(first.signal, again.signal)
    assert torch.equal(first.vowel, again.vowel)
    assert not torch.equal(first.signal, other.signal)
    assert first.signal.dtype == torch.float32
    assert first.signal.shape == first.vowel.shape == (vowels.SAMPLE_RATE,)


def test_vowels_last_between_the_shortest_and_the_longest_time():
    said = vowels.recording(20.0, np.random.default_rng(0)).vowel
    assert said.unique().tolist() == [0, 1, 2, 3, 4]
    changes = torch.cat([torch.tensor([0]), said.diff().nonzero().flatten() + 1])
    assert changes.diff().min() >= 0.12 * vowels.SAMPLE_RATE - 1


@pytest.mark.parametrize("speaker", range(3))
def test_every_vowel_of_a_speaker_has_its_own_formants_in_rising_order(speaker):
    pitch, formants = vowels.SPEAKERS[speaker]
    assert len(set(formants)) == len(vowels.VOWELS) == 5
    assert all(pitch < low < middle < high < vowels.SAMPLE_RATE / 2 for low, middle, high in formants)


def test_noise_is_about_as_strong_as_it_is_told(monkeypatch):
    voice = {}
    for mean in (0, 20):
        monkeypatch.setattr(vowels, "NOISE_DECIBELS", (mean, 0))
        voice[mean] = vowels.recording(5.0, np.random.default_rng(2)).signal
    assert voice[0].var() == pytest.approx(2, rel=0.05)  # as strong as the voice
    assert voice[20].var() == pytest.approx(1.01, rel=0.05)
