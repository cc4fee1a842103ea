"""Sound as frames and log-mel spectra: counts, values worked out by hand, and published values of the mel scale."""

import math

import pytest
import torch

from graphattn.errors import SettingError, ShapeError
from graphattn.featurize.sound import frames, hz_to_mel, log_mel, mel_bands, mel_to_hz

RATE = 16_000


@pytest.mark.parametrize(("rate", "window"), [(8000, 200), (16_000, 400), (44_100, 1102), (48_000, 1200)])
def test_one_second_is_100_vectors(rate, window):
    assert frames(torch.zeros(rate), rate).shape == (100, window)
    assert frames(torch.zeros(10 * rate), rate).shape == (1000, window)
    assert log_mel(torch.zeros(rate), rate, channels=20).shape == (100, 20)


def test_frame_k_begins_k_steps_after_the_start_and_zeros_follow_the_end():
    signal = torch.arange(1.0, 12.0)
    cut = frames(signal, 1, window_seconds=4, step_seconds=3)
    assert cut.tolist() == [[1, 2, 3, 4], [4, 5, 6, 7], [7, 8, 9, 10], [10, 11, 0, 0]]
    assert frames(signal[:9], 1, window_seconds=4, step_seconds=3).tolist() == [*cut[:2].tolist(), [7, 8, 9, 0]]
    assert frames(signal, 1, window_seconds=2, step_seconds=5).tolist() == [[1, 2], [6, 7], [11, 0]]
    assert frames(signal[:4], 1, window_seconds=4, step_seconds=4).tolist() == [[1, 2, 3, 4]]


def test_frames_are_a_copy_of_the_signals_dtype():
    signal = torch.ones(RATE, dtype=torch.float64)
    cut = frames(signal, RATE)
    assert cut.dtype == torch.float64
    cut[0] = 7
    assert (signal == 1).all()
    assert (cut[1] == 1).all()
    frames(signal, RATE, window_seconds=0.01)[0] = 7  # frames that lie side by side
    assert (signal == 1).all()


@pytest.mark.parametrize("cut", [frames, log_mel])
@pytest.mark.parametrize(
    ("signal", "words"),
    [
        (
            torch.zeros(2, RATE),
            r"a signal is one channel, \(samples,\); got float32 of shape \(2, 16000\)\. Mix a stereo",
        ),
        (torch.zeros(RATE, dtype=torch.int16), r"float32 or float64; got int16 of shape .* Use signal / 32768"),
        (torch.zeros(RATE, dtype=torch.uint8), r"got uint8 of shape .* Use \(signal\.float\(\) - 128\) / 128"),
        (torch.zeros(RATE, dtype=torch.float16), r"float32 or float64; got float16 of shape .* Use signal\.float\(\)"),
        ([0.0] * RATE, r"a signal is a tensor; got list, use torch\.as_tensor"),
        (torch.zeros(399), r"the signal has 399 samples, 0\.0249375 s, less than one window of 400"),
        (torch.zeros(0), "the signal has 0 samples"),
    ],
)
def test_signals_that_do_not_fit(cut, signal, words):
    with pytest.raises(ShapeError, match=words):
        cut(signal, RATE)


@pytest.mark.parametrize(
    ("rate", "durations", "words"),
    [
        (0, {}, "sample_rate must be a number of samples per second above 0, got 0"),
        (math.nan, {}, "sample_rate must be"),
        (RATE, {"window_seconds": 0}, "window_seconds must be above 0 seconds, got 0"),
        (RATE, {"step_seconds": -0.01}, r"step_seconds must be above 0 seconds, got -0\.01"),
        (22_050, {}, r"step_seconds=0\.01 is 220\.5 samples at 22050 Hz, .*; resample the signal, or take 220 / 22050"),
        (10, {}, r"step_seconds=0\.01 is 0\.1 samples at 10 Hz, which is no whole number; .* take 1 / 10"),
    ],
)
def test_rates_and_durations_that_do_not_fit(rate, durations, words):
    with pytest.raises(SettingError, match=words):
        frames(torch.zeros(RATE), rate, **durations)


def test_the_step_that_the_message_offers_works():
    assert frames(torch.zeros(22_050), 22_050, step_seconds=220 / 22_050).shape == (101, 551)


def test_the_mel_scale_is_slaneys():
    """Values that the documentation of librosa gives for its default scale."""
    hz = torch.tensor([60.0, 110.0, 220.0, 440.0], dtype=torch.float64)
    torch.testing.assert_close(hz_to_mel(hz), torch.tensor([0.9, 1.65, 3.3, 6.6], dtype=torch.float64))
    centers = mel_to_hz(torch.linspace(0, float(hz_to_mel(torch.tensor(11_025.0))), 40, dtype=torch.float64))
    published = torch.tensor([0, 85.317, 170.635, 255.952, 853.173, 938.49, 1024.856, 1119.114, 1222.042, 1334.436])
    torch.testing.assert_close(centers[[0, 1, 2, 3, 10, 11, 12, 13, 14, 15]].float(), published, rtol=1e-5, atol=1e-3)
    assert float(centers[-1]) == pytest.approx(11_025)


def test_the_mel_scale_goes_back_and_forth():
    hz = torch.linspace(0, 24_000, 1001, dtype=torch.float64)
    torch.testing.assert_close(mel_to_hz(hz_to_mel(hz)), hz)
    assert (hz_to_mel(hz).diff() > 0).all()


def test_bands_are_triangles_of_area_one():
    bands = mel_bands(40, 16_384, RATE)  # frequencies so close that sums are areas
    assert bands.shape == (40, 8193)
    torch.testing.assert_close(bands.sum(1) * RATE / 16_384, torch.ones(40, dtype=torch.float64), rtol=1e-4, atol=0)
    centers = bands.argmax(1) * RATE / 16_384
    edges = mel_to_hz(torch.linspace(0, float(hz_to_mel(torch.tensor(8000.0))), 42, dtype=torch.float64))
    assert (centers - edges[1:-1]).abs().max() < RATE / 16_384
    touched = [(band > 0).nonzero().flatten()[[0, -1]] * RATE / 16_384 for band in bands]
    assert all(
        edges[place] <= low and high <= edges[place + 2]
        for place, (low, high) in enumerate(ends.tolist() for ends in touched)
    )


def test_bands_stay_within_their_range():
    bands = mel_bands(10, 512, RATE, lowest_hz=1000, highest_hz=3000)
    frequency = torch.arange(257) * RATE / 512
    assert bands[:, (frequency <= 1000) | (frequency >= 3000)].max() < 1e-12 < bands.amax(1).min()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"channels": 0}, "channels must be at least 1, got 0"),
        ({"channels": 8, "highest_hz": 9000}, "within 0 and 8000 Hz, half the sample rate, .*; got 0 to 9000 Hz"),
        ({"channels": 8, "lowest_hz": -1}, "got -1 to 8000 Hz"),
        ({"channels": 8, "lowest_hz": 500, "highest_hz": 500}, "got 500 to 500 Hz"),
        ({"channels": 200}, r"band 0, 0\.0 to .* Hz, lies between two of the transform's frequencies, 31\.2 Hz apart"),
    ],
)
def test_bands_that_cannot_be(settings, words):
    with pytest.raises(SettingError, match=words):
        log_mel(torch.zeros(RATE), RATE, **settings)
    with pytest.raises(SettingError, match=r"floor must be above 0, .*; got 0"):
        log_mel(torch.zeros(RATE), RATE, floor=0)
    for floor in (1e-50, math.inf, math.nan):  # what float32 has no number for
        with pytest.raises(SettingError, match=r"a number that torch\.float32 holds, 1\.2e-38 or more"):
            log_mel(torch.zeros(RATE), RATE, floor=floor)
    assert log_mel(torch.zeros(RATE).double(), RATE, floor=1e-50).isfinite().all()
    with pytest.raises(SettingError, match="fft_size must be at least 2, got 0"):
        mel_bands(2, 0, RATE)
    with pytest.raises(SettingError, match=r"channels must be a whole number, got 20\.0"):
        mel_bands(20.0, 512, RATE)


@pytest.mark.parametrize("hz", [300.0, 1000.0, 3000.0, 6000.0])
def test_a_tone_is_loudest_in_its_own_band(hz):
    tone = (2 * math.pi * hz * torch.arange(RATE) / RATE).sin()
    loudest = log_mel(tone, RATE)[:-3].argmax(1)  # the last frames reach past the end
    edges = mel_to_hz(torch.linspace(0, float(hz_to_mel(torch.tensor(8000.0))), 82, dtype=torch.float64))
    assert (edges[loudest] <= hz).all()
    assert (hz <= edges[loudest + 2]).all()


def test_the_spectrum_of_a_frame_by_definition():
    """One frame: Hann window, Fourier sum, power and bands, written out."""
    signal = torch.randn(400, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    n = torch.arange(400, dtype=torch.float64)
    weighted = signal * (0.5 - 0.5 * (2 * math.pi * n / 400).cos())
    angle = 2 * math.pi * torch.arange(257, dtype=torch.float64)[:, None] * n / 512
    power = (weighted * angle.cos()).sum(1) ** 2 + (weighted * angle.sin()).sum(1) ** 2
    expected = (mel_bands(80, 512, RATE) @ power).log()
    torch.testing.assert_close(log_mel(signal, RATE, step_seconds=0.025), expected[None])


def test_ten_times_louder_adds_the_log_of_a_hundred_and_silence_is_the_floor():
    signal = torch.randn(RATE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(log_mel(10 * signal, RATE), log_mel(signal, RATE) + math.log(100))
    assert (log_mel(torch.zeros(RATE), RATE) == torch.tensor(1e-10).log()).all()
    assert (log_mel(torch.zeros(RATE), RATE, floor=1.0) == 0).all()
    assert log_mel(signal, RATE).dtype == torch.float64
    assert log_mel(signal.float(), RATE).dtype == torch.float32
