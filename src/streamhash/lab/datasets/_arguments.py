"""The few argument checks that the rooms' functions share, each with one wording."""

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.errors import InputError


def whole(place: str, name: str, value: Any, *, least: int, advice: str = "") -> int:
    """Return ``value`` as an int of at least ``least``, or say what is wrong."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        advice = advice or f"pass a whole number from {least} up"
        raise InputError(
            f"{place}: {name}={value!r} is not a whole number from {least} up; {advice}."
        )
    return number


def number(place: str, name: str, value: Any, *, least: float, most: float, advice: str) -> float:
    """Return ``value`` as a float within ``[least, most]``, or say what is wrong."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        result = float("nan")
    if not least <= result <= most or result == float("inf"):
        raise InputError(f"{place}: {name}={value!r} cannot be used; {advice}.")
    return result


def matrix(place: str, name: str, value: ArrayLike) -> NDArray[Any]:
    """Return ``value`` as a two-dimensional array of numbers, without copying one."""
    array = np.asarray(value)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise InputError(
            f"{place}: {name} is {array.dtype} of shape {array.shape}; pass numbers of shape "
            "(rows, features)."
        )
    return array
