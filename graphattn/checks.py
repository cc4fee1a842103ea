"""What a setting may be: a whole number, a number, a choice. Numbers of NumPy come back as Python's, fit for JSON."""

import math
from collections.abc import Sequence
from numbers import Integral, Real

from graphattn.errors import SettingError

LARGEST_SEED = 2**32 - 1  # every random generator of NumPy, PyTorch and scikit-learn takes 0 to this
LARGEST_COUNT = 2**31 - 1  # of epochs or graphs: more than anybody can wait for or keep
_ANSWERS: dict[object, bool] = {True: True, False: False}  # 1, 0 and NumPy's own are equal to them


def whole_number(name: str, value: object, *, at_least: int, at_most: float = math.inf) -> int:
    """The value as an int.

    Raises:
        SettingError: it is no whole number (True, 16.0 and "16" are none either), or out of its range.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SettingError(f"{name} must be a whole number, got {value!r}")
    number = int(value)
    if number < at_least:
        raise SettingError(f"{name} must be at least {at_least}, got {number}")
    if number > at_most:
        raise SettingError(f"{name} must be between {at_least} and {at_most}, got {number}")
    return number


def number_from_0(name: str, value: object, *, below: float = math.inf) -> float:
    """The value as a float.

    Raises:
        SettingError: it is no number (True and "0.1" are none), or NaN, negative, or not below ``below``.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SettingError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 <= number < below:
        wanted = "at least 0 and finite" if below == math.inf else f"in [0, {below:g})"
        raise SettingError(f"{name} must be {wanted}, got {number}")
    return number


def yes_or_no(name: str, value: object) -> bool:
    """The value as a bool.

    Raises:
        SettingError: it is neither true nor false.
    """
    try:
        return _ANSWERS[value]
    except (KeyError, TypeError):  # TypeError: lists and arrays cannot be looked up
        raise SettingError(f"{name} must be True or False, got {value!r}") from None


def check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise SettingError unless the value is one of those allowed."""
    if not isinstance(value, str) or value not in allowed:
        raise SettingError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
