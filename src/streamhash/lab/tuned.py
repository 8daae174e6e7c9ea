"""Settings that ``streamhash tune`` has found, one file a data set in ``papers/tuned``."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from streamhash.errors import InputError

__all__ = ["tuned_settings"]


def tuned_settings(data: str, method: str) -> dict[str, Any]:
    """Return what was changed in the defaults of ``method`` for the data set ``data``.

    Nothing for a method without anything to search for.
    """
    found = _tuned(data)
    if method not in found:
        known = ", ".join(found) or "no method"
        raise InputError(
            f"there are no tuned settings of {method} for {data}: {known} has some; run streamhash "
            f"tune {method} --data {data} and pass what it finds with --set."
        )
    return {name: None if value == "none" else value for name, value in found[method].items()}


@cache
def _tuned(data: str) -> dict[str, dict[str, Any]]:
    place = files("streamhash.lab").joinpath("experiments", "tuned", f"{data}.toml")
    return tomllib.loads(place.read_text(encoding="utf-8")) if place.is_file() else {}
