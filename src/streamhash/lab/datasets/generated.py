"""Made-up sets by name: a small one in memory, a large one once into the cache."""

import hashlib
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.lab.datasets._arguments import whole
from streamhash.lab.datasets.blocks import BLOCK, BlockStream
from streamhash.lab.datasets.folders import cache_folder
from streamhash.lab.datasets.places_like import PlacesLikeStream
from streamhash.lab.datasets.stored import load_stored, log, store
from streamhash.lab.datasets.synthetic import SyntheticStream

__all__ = ["GENERATED", "generate"]

GENERATED: dict[str, BlockStream] = {
    "synthetic": SyntheticStream(),
    "places205-synthetic": PlacesLikeStream(),
}
_IN_MEMORY = 100_000  # rows of a set that is drawn anew each time
_CHUNK = 16 * BLOCK  # rows in memory while a larger one is written


def generate(name: str, rows: int | None, most: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return the first ``rows`` rows of a made-up set (None = all, ``most``).

    A set of many rows is written into the cache at its first use and memory-mapped. A shorter one
    is then a part of it.
    """
    if rows is None:
        rows = most
    elif whole("load_data", "rows", rows, least=1) > most:
        raise InputError(
            f"load_data: rows={rows} is more than the {most} that {name!r} has; pass at most as "
            f"many, or use {type(GENERATED[name]).__name__}, which has no end."
        )
    stream = GENERATED[name]
    if most <= _IN_MEMORY:
        return stream.take(rows)
    place = f"{name}/{{}}-rows-{_fingerprint(stream)}"
    stored = next((n for n in _stored_sizes(place) if n >= rows), None)
    found = None if stored is None else load_stored(place.format(stored))
    if found is None:
        log.warning(
            "streamhash: making %s, %s rows, in %s (only the first time)",
            *(name, f"{rows:,}", cache_folder() / name),
        )
        shape = rows, stream.take(0)[0].shape[1]
        about = {"made_by": repr(stream)}
        found = store(place.format(rows), shape, stream.pieces(rows, _CHUNK), about)
    return found.X[:rows], found.y[:rows]


def _fingerprint(stream: BlockStream) -> str:
    """Tell apart what other versions of this code or of NumPy would draw."""
    X, y = stream.take(BLOCK)
    return hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()[:12]


def _stored_sizes(place: str) -> list[int]:
    """Return how many rows each set in the cache has that was made by the same code."""
    pattern = re.compile(place.rpartition("/")[2].format(r"(\d+)"))
    folder = (cache_folder() / place).parent
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))
