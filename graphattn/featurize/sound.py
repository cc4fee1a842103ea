"""Sound as vectors: short overlapping frames of a signal, and their log-mel spectra.

One second is 100 vectors: a window of 25 ms begins every 10 ms.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from graphattn.checks import whole_number
from graphattn.csr import described
from graphattn.errors import SettingError, ShapeError


def frames(signal: Tensor, sample_rate: float, *, window_seconds: float = 0.025, step_seconds: float = 0.010) -> Tensor:
    """Cut a signal into overlapping frames: frame k begins k steps after the start.

    Every step that has begun has its frame, so one second of 10 ms steps gives 100; the last frames reach past the end
    of the signal, where they are filled with zeros.

    >>> frames(torch.ones(16_000), sample_rate=16_000).shape
    torch.Size([100, 400])

    Args:
        signal: (samples,), one channel, float32 or float64.
        sample_rate: samples per second.
        window_seconds: length of a frame, rounded to whole samples.
        step_seconds: from the start of one frame to the start of the next; a whole number of samples, for else the
            frames would drift against the clock.

    Returns:
        (frames, samples of a window), frames = samples / step, rounded up.

    Raises:
        ShapeError: the signal has several channels, is not floating point, or is shorter than one window.
        SettingError: a duration or the rate is not above 0, or a step is not a whole number of samples.
    """
    window, step = _whole_window(window_seconds, sample_rate), _whole_step(step_seconds, sample_rate)
    _check_signal(signal, window, sample_rate)
    count = math.ceil(len(signal) / step)
    padded = functional.pad(signal, (0, (count - 1) * step + window - len(signal)))
    return padded.unfold(0, window, step).contiguous()


def log_mel(
    signal: Tensor,
    sample_rate: float,
    channels: int = 80,
    *,
    window_seconds: float = 0.025,
    step_seconds: float = 0.010,
    lowest_hz: float = 0.0,
    highest_hz: float | None = None,
    floor: float = 1e-10,
) -> Tensor:
    """The spectrum of each frame as an ear divides it: log of the power in bands that widen with their frequency.

    Each frame (see :func:`frames`) is weighted by a periodic Hann window, padded with zeros to a power of two, and
    Fourier transformed; its power spectrum is summed over the bands of :func:`mel_bands`.

    >>> log_mel(torch.ones(16_000), sample_rate=16_000).shape
    torch.Size([100, 80])

    Args:
        signal: (samples,), one channel, float32 or float64.
        sample_rate: samples per second.
        channels: number of bands.
        window_seconds: length of a frame.
        step_seconds: from the start of one frame to the start of the next.
        lowest_hz: where the first band begins.
        highest_hz: where the last band ends; half the sample rate where left out.
        floor: power below which silence is all the same, above 0.

    Returns:
        (frames, channels), natural logarithm of the power.

    Raises:
        ShapeError: see :func:`frames`.
        SettingError: see :func:`frames` and :func:`mel_bands`; ``floor`` is not above 0, or not in the signal's dtype.

    Source: Davis and Mermelstein 1980, doi:10.1109/TASSP.1980.1163420.
    """
    cut = frames(signal, sample_rate, window_seconds=window_seconds, step_seconds=step_seconds)
    smallest = torch.finfo(signal.dtype).tiny
    if not smallest <= floor < math.inf:
        raise SettingError(
            f"floor must be above 0, for the logarithm of 0 is no number, and a number that {signal.dtype} holds, "
            f"{smallest:.1e} or more; got {floor}."
        )
    window = cut.shape[1]
    fft_size = 2 ** math.ceil(math.log2(window))
    hann = torch.hann_window(window, dtype=signal.dtype, device=signal.device)
    power = torch.fft.rfft(cut * hann, fft_size).abs().square()
    bands = mel_bands(channels, fft_size, sample_rate, lowest_hz=lowest_hz, highest_hz=highest_hz)
    energy: Tensor = power @ bands.to(signal).T
    return energy.clamp(min=floor).log()


def mel_bands(
    channels: int, fft_size: int, sample_rate: float, *, lowest_hz: float = 0.0, highest_hz: float | None = None
) -> Tensor:
    """The weight of each frequency of a Fourier transform in each band of the mel scale.

    A band is a triangle over the frequency in Hz: 0 at the center of the band below, highest at its own center, 0 at
    the center of the band above, with an area of 1. Centers are equally far apart in mel.

    Args:
        channels: number of bands, at least 1.
        fft_size: points of the transform; its frequencies are 0, 1, ..., fft_size // 2 times sample_rate / fft_size.
        sample_rate: samples per second.
        lowest_hz: where the first band begins, at least 0.
        highest_hz: where the last band ends; half the sample rate where left out, which is also the most.

    Returns:
        (channels, fft_size // 2 + 1) float64, in 1/Hz.

    Raises:
        SettingError: a number is too small, the range is not within 0 and half the sample rate, or a band lies between
            two frequencies.

    Source: the scale and the areas are those of Slaney 1998, Auditory Toolbox, Interval Technical Report 1998-010.
    """
    top = sample_rate / 2 if highest_hz is None else highest_hz
    whole_number("channels", channels, at_least=1)
    whole_number("fft_size", fft_size, at_least=2)
    if not 0 <= lowest_hz < top <= sample_rate / 2:
        raise SettingError(
            f"bands must lie within 0 and {sample_rate / 2:g} Hz, half the sample rate, lowest below highest; got "
            f"{lowest_hz:g} to {top:g} Hz."
        )
    ends = hz_to_mel(torch.tensor([lowest_hz, top], dtype=torch.float64))
    edges = mel_to_hz(torch.linspace(float(ends[0]), float(ends[1]), channels + 2, dtype=torch.float64))
    frequency = torch.arange(fft_size // 2 + 1, dtype=torch.float64) * sample_rate / fft_size
    below, center, above = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (frequency - below) / (center - below), (above - frequency) / (above - center)
    triangles = torch.minimum(rising, falling).clamp(min=0)
    empty = (triangles.amax(1) < 1e-6).nonzero().flatten().tolist()
    if empty:
        band = empty[0]
        raise SettingError(
            f"band {band}, {float(edges[band]):.1f} to {float(edges[band + 2]):.1f} Hz, lies between two of the "
            f"transform's frequencies, {sample_rate / fft_size:.1f} Hz apart; take fewer channels or a longer window."
        )
    return triangles * 2 / (above - below)


_LINEAR_HZ_PER_MEL = 200 / 3
_LOG_FROM_HZ = 1000.0  # linear below, logarithmic above
_LOG_FROM_MEL = _LOG_FROM_HZ / _LINEAR_HZ_PER_MEL
_LOG_STEP = math.log(6.4) / 27  # of the natural logarithm, per mel


def hz_to_mel(hz: Tensor) -> Tensor:
    """Frequencies on Slaney's mel scale: 3 mel per 200 Hz up to 1 kHz, 27 mel per factor of 6.4 above.

    >>> hz_to_mel(torch.tensor([0.0, 200.0, 1000.0, 6400.0]))
    tensor([ 0.,  3., 15., 42.])
    """
    above = _LOG_FROM_MEL + (hz / _LOG_FROM_HZ).clamp(min=1).log() / _LOG_STEP
    return torch.where(hz < _LOG_FROM_HZ, hz / _LINEAR_HZ_PER_MEL, above)


def mel_to_hz(mel: Tensor) -> Tensor:
    """Frequencies in Hz, back from :func:`hz_to_mel`."""
    above = _LOG_FROM_HZ * ((mel - _LOG_FROM_MEL) * _LOG_STEP).exp()
    return torch.where(mel < _LOG_FROM_MEL, mel * _LINEAR_HZ_PER_MEL, above)


_IN_FLOATS = {torch.int16: "signal / 32768", torch.uint8: "(signal.float() - 128) / 128", torch.int32: "signal / 2**31"}


def _check_signal(signal: Tensor, window: int, sample_rate: float) -> None:
    if not isinstance(signal, Tensor):
        raise ShapeError(f"a signal is a tensor; got {type(signal).__name__}, use torch.as_tensor(signal).")
    if signal.ndim != 1:
        raise ShapeError(
            f"a signal is one channel, (samples,); got {described(signal)}. Mix a stereo signal down, for example "
            "signal.mean(0) where channels come first."
        )
    if signal.dtype not in {torch.float32, torch.float64}:
        way = _IN_FLOATS.get(signal.dtype, "signal.float()")
        raise ShapeError(f"a signal is float32 or float64; got {described(signal)}. Use {way}.")
    if len(signal) < window:
        raise ShapeError(
            f"the signal has {len(signal)} samples, {len(signal) / sample_rate:g} s, less than one window of {window}; "
            "take a longer signal or a shorter window."
        )


def _whole_window(seconds: float, sample_rate: float) -> int:
    samples = _samples("window_seconds", seconds, sample_rate)
    return max(round(samples), 1)


def _whole_step(seconds: float, sample_rate: float) -> int:
    samples = _samples("step_seconds", seconds, sample_rate)
    step = round(samples)
    if step < 1 or not math.isclose(samples, step, rel_tol=1e-9):
        raise SettingError(
            f"step_seconds={seconds:g} is {samples:g} samples at {sample_rate:g} Hz, which is no whole number; "
            f"resample the signal, or take {max(step, 1)} / {sample_rate:g}."
        )
    return step


def _samples(name: str, seconds: float, sample_rate: float) -> float:
    """A duration in samples."""
    if not 0 < sample_rate < math.inf:
        raise SettingError(f"sample_rate must be a number of samples per second above 0, got {sample_rate}.")
    if not 0 < seconds < math.inf:
        raise SettingError(f"{name} must be above 0 seconds, got {seconds}.")
    return seconds * sample_rate
