"""Targets on a common scale for training, and back to their own unit afterwards; which targets can be learned."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Self

import torch
from torch import Tensor

from graphattn.errors import GraphattnWarning, SettingError, ShapeError, TrainingError


@dataclass(frozen=True, slots=True)
class TargetScaler:
    """Each target's mean and spread over the training rows; a scaled target has mean 0 and standard deviation 1.

    One that is constant there has std 0: it is shifted only, and all ways back lead to its value.

    >>> scaler = TargetScaler.fit(torch.tensor([[1.0], [3.0], [torch.nan]]), ["y"])
    >>> scaler
    TargetScaler(mean=(2.0,), std=(1.0,))
    >>> scaler.scale(torch.tensor([[5.0]]))
    tensor([[3.]])
    """

    mean: tuple[float, ...]  # (T,), in the unit of each target
    std: tuple[float, ...]  # (T,), the same

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not self.mean:
            raise SettingError(
                f"a scaler needs one mean and one std per target, got {len(self.mean)} means and {len(self.std)} stds."
            )
        for place, (mean, std) in enumerate(zip(self.mean, self.std, strict=True)):
            if not (math.isfinite(mean) and math.isfinite(std) and std >= 0):
                raise SettingError(
                    f"target {place} (counted from 0): a mean must be finite and a std finite and at least 0, "
                    f"got mean {mean} and std {std}."
                )

    @classmethod
    def fit(cls, targets: Tensor, names: Sequence[str]) -> Self:
        """Mean and population standard deviation of each target's values; NaN, a missing value, is left out.

        A target whose values are all the same has std 0, with a GraphattnWarning: nothing can be learned from it.

        Args:
            targets: (rows, T) float, of the training rows only.
            names: (T,), for messages.

        Raises:
            ShapeError: as :func:`check_targets`.
            TrainingError: as there, or values so far apart or so close together that their spread is inf or 0.
        """
        check_targets(targets, names)
        means, stds = [], []
        for column, name in zip(targets.double().T, names, strict=True):
            values = column[~column.isnan()]
            low, high = (float(end) for end in values.aminmax())
            mean, std = float(values.mean()), float(values.std(correction=0))
            if low == high:  # the rounded mean of equal values may leave a std of 1e-17
                warnings.warn(
                    f"target {name!r} has the same value, {low:g}, in all {len(values)} training rows; "
                    "a model predicts just that for every molecule.",
                    GraphattnWarning,
                    stacklevel=2,
                )
                mean, std = low, 0.0
            elif not (math.isfinite(mean) and math.isfinite(std) and std):
                too, unit = ("close", "smaller") if not std else ("far", "larger")
                raise TrainingError(
                    f"target {name!r} reaches from {low:g} to {high:g} in the training rows, too {too} to scale; "
                    f"give it in a {unit} unit, or as a logarithm."
                )
            means.append(mean)
            stds.append(std)
        return cls(tuple(means), tuple(stds))

    @property
    def spread(self) -> tuple[float, ...]:
        """(T,) what one step of a scaled target is in its unit: std, or 1 for a constant."""
        return tuple(std or 1.0 for std in self.std)

    def scale(self, targets: Tensor) -> Tensor:
        """(..., T) in the targets' units -> (..., T) without unit, of the same dtype; NaN stays NaN."""
        mean, spread = self._as_tensors(self.spread, targets)
        return ((targets.double() - mean) / spread).to(targets.dtype)

    def unscale(self, scaled: Tensor) -> Tensor:
        """(..., T) without unit -> (..., T) in the targets' units, of the same dtype.

        A target with a mean of 1e6 and a std of 1 has no room in float32: pass ``scaled.double()``.
        """
        mean, std = self._as_tensors(self.std, scaled)
        return (scaled.double() * std + mean).to(scaled.dtype)

    def settings(self) -> dict[str, object]:
        """For JSON; :meth:`from_settings` gives an equal scaler."""
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> Self:
        """The scaler that :meth:`settings` described.

        Raises:
            SettingError: keys that are missing or unknown, or values that are no finite numbers.
        """
        wanted = [field.name for field in fields(cls)]
        if sorted(settings) != sorted(wanted):
            raise SettingError(f"a scaler is described by {wanted}, got {sorted(settings)}.")
        lists: dict[str, tuple[float, ...]] = {}
        for name in wanted:
            values = settings[name]
            if not isinstance(values, list) or not all(type(value) in {int, float} for value in values):
                raise SettingError(f"a scaler's {name} must be a list of numbers, got {values!r}.")
            lists[name] = tuple(float(value) for value in values)
        return cls(**lists)

    def _as_tensors(self, widths: tuple[float, ...], like: Tensor) -> tuple[Tensor, Tensor]:
        if like.shape[-1:] != (len(self.mean),):
            raise ShapeError(f"the scaler knows {len(self.mean)} targets, got values of shape {tuple(like.shape)}.")
        mean, width = torch.tensor([self.mean, widths], dtype=torch.float64, device=like.device)
        return mean, width


def check_targets(targets: Tensor, names: Sequence[str]) -> None:
    """Refuse targets that nothing can be learned from.

    Args:
        targets: (rows, T) float; NaN is a missing value.
        names: (T,), for messages.

    Raises:
        ShapeError: not two dimensions, or another number of names.
        TrainingError: a target without a single value, by name; a value that is infinite, with its row.
    """
    if targets.dim() != 2 or targets.shape[1] != len(names):
        raise ShapeError(f"targets must have shape (rows, {len(names)}) for {list(names)}, got {tuple(targets.shape)}.")
    empty = [name for name, column in zip(names, targets.isnan().all(0).tolist(), strict=True) if column]
    if empty:
        raise TrainingError(
            f"no training row has a value for {', '.join(map(repr, empty))} ({len(targets)} rows); "
            "leave such a target out."
        )
    infinite = targets.isinf().nonzero()
    if len(infinite):
        row, column = infinite[0].tolist()
        raise TrainingError(
            f"target {names[column]!r} is {float(targets[row, column])} in training row {row + 1} of {len(targets)}; "
            "give a finite value, or NaN for a missing one."
        )


def labeled_rows(targets: Tensor) -> Tensor:
    """Rows of ``targets`` (rows, T) that hold at least one value: their numbers, int64; the others teach nothing."""
    return (~targets.isnan()).any(1).nonzero().flatten()
