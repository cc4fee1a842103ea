"""Vowels of synthetic speakers: glottal pulses whose pitch drifts, through resonators at the formants, in noise."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.signal import lfilter
from torch import Tensor

VOWELS = "aeiou"
SAMPLE_RATE = 16_000
# Averages of 33 men, 28 women and 15 children who said hod, head, heed, hawed and who'd: pitch over the five vowels,
# then formants 1 to 3 of each, in Hz. Peterson and Barney 1952, doi:10.1121/1.1906875, table II.
SPEAKERS = (
    (132, ((730, 1090, 2440), (530, 1840, 2480), (270, 2290, 3010), (570, 840, 2410), (300, 870, 2240))),
    (223, ((850, 1220, 2810), (610, 2330, 2990), (310, 2790, 3310), (590, 920, 2710), (370, 950, 2670))),
    (265, ((1030, 1370, 3170), (690, 2610, 3570), (370, 3200, 3730), (680, 1060, 3180), (430, 1170, 3260))),
)
BANDWIDTHS = (60, 90, 150)  # of the formants, in Hz
VOWEL_SECONDS = (0.12, 0.4)
DRIFT, DRIFT_SECONDS = 0.12, 0.3  # deviation of the logarithm of the pitch, and time between its random points
SWELL_SECONDS = 0.1  # between those of the noise
NOISE_DECIBELS = (12, 9)  # how much weaker than the voice it is at such a point: mean and deviation

Samples = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Recording:
    """A stranger says vowel after vowel."""

    signal: Tensor  # (samples,) float32
    vowel: Tensor  # (samples,) its number in VOWELS


def recording(seconds: float, draw: np.random.Generator) -> Recording:
    """A new speaker, vowels of random lengths without pauses, and white noise that swells and fades."""
    pitch, formants = SPEAKERS[draw.integers(len(SPEAKERS))]
    samples = round(seconds * SAMPLE_RATE)
    source = pulses(pitch * draw.normal(1, 0.1), samples, draw)
    length_of_tract = draw.normal(1, 0.05)
    voice, vowel = np.empty(samples), np.empty(samples, dtype=np.int64)
    states: list[Samples] = [np.zeros(2) for _ in BANDWIDTHS]
    start = 0
    while start < samples:
        here = slice(start, start + round(draw.uniform(*VOWEL_SECONDS) * SAMPLE_RATE))
        vowel[here] = chosen = draw.integers(len(VOWELS))
        sound = source[here] * draw.uniform(0.5, 1)
        for place, (formant, width) in enumerate(zip(formants[chosen], BANDWIDTHS, strict=True)):
            hertz = formant / length_of_tract * draw.normal(1, 0.02)
            sound, states[place] = resonated(sound, hertz, width, states[place])
        voice[here] = sound
        start = here.stop
    mean, deviation = NOISE_DECIBELS
    weaker = mean + deviation * curve(SWELL_SECONDS, samples, draw)
    signal = voice / voice.std() + draw.normal(0, 10 ** (-weaker / 20))
    return Recording(torch.from_numpy(signal).float(), torch.from_numpy(vowel))


def curve(seconds: float, samples: int, draw: np.random.Generator) -> Samples:
    """Lines between points that stand ``seconds`` apart, each drawn with mean 0 and deviation 1."""
    time = np.arange(samples) / SAMPLE_RATE
    points = np.arange(0, time[-1] + 2 * seconds, seconds)
    lines: Samples = np.interp(time, points, draw.standard_normal(len(points)))
    return lines


def pulses(pitch: float, samples: int, draw: np.random.Generator) -> Samples:
    """A pulse per period of the glottis, falling by 6 dB an octave, as it does once the lips have radiated it."""
    hertz = pitch * np.exp(DRIFT * curve(DRIFT_SECONDS, samples, draw))
    periods = np.floor(np.cumsum(hertz) / SAMPLE_RATE)
    pulse: Samples = lfilter([1], [1, -0.95], np.diff(periods, prepend=0))
    return pulse


def resonated(sound: Samples, hertz: float, width: float, state: Samples) -> tuple[Samples, Samples]:
    """The sound through a resonator, and its state for what follows. Klatt 1980, doi:10.1121/1.383940, eq. 1 and 2."""
    decay, turn = np.exp(-np.pi * width / SAMPLE_RATE), 2 * np.pi * hertz / SAMPLE_RATE
    back = [1, -2 * decay * np.cos(turn), decay**2]
    heard, after = lfilter([sum(back)], back, sound, zi=state)
    return heard, after
