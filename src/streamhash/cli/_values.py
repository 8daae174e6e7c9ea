"""What people type as option values, turned into Python values."""

import json
from collections.abc import Iterable
from typing import Any

from streamhash.errors import InputError

__all__ = ["parse_changes", "split_names", "split_numbers"]

WORDS = {"None": None, "none": None, "True": True, "False": False}


def split_names(text: str) -> list[str]:
    """Split a list at its commas.

    >>> split_names("sdoh, lsh")
    ['sdoh', 'lsh']
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def split_numbers(option: str, text: str) -> list[int]:
    """Split a list of whole numbers at its commas.

    >>> split_numbers("--bits", "32,64")
    [32, 64]
    """
    words = split_names(text)
    if not words or not all(word.isdecimal() for word in words):
        raise InputError(f"{option} {text}: pass whole numbers with commas, such as 32,64.")
    return [int(word) for word in words]


def parse_changes(texts: Iterable[str] | None) -> dict[str, Any]:
    """Read parameters from NAME=VALUE; values are numbers, true, false, none, or else text.

    >>> parse_changes(["n_anchors=1000", "gradient=exact", "sigma=none"])
    {'n_anchors': 1000, 'gradient': 'exact', 'sigma': None}
    """
    changes = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not name or not equals or not value:
            raise InputError(f"--set {text}: pass NAME=VALUE, such as --set batch_size=100.")
        if name in ("n_bits", "random_state"):
            raise InputError(f"--set {text}: use --bits for n_bits and --seed for random_state.")
        changes[name] = _value(value)
    return changes


def _value(text: str) -> Any:
    if text in WORDS:
        return WORDS[text]
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
