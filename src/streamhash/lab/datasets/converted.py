"""Named sets whose files are converted into the cache at their first use."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from streamhash.errors import FileError
from streamhash.files import open_table
from streamhash.lab.datasets import cifar
from streamhash.lab.datasets.cards import CARDS
from streamhash.lab.datasets.stored import Chunks, Stored, stored_from
from streamhash.lab.datasets.streams import pieces

__all__ = ["CONVERTED", "convert"]

ROWS_AT_ONCE = 16_384  # in memory while a file is converted


def convert(name: str, path: Path) -> Stored:
    """Return a named set from its file, or from the cache if it was converted before."""
    return stored_from(name, path, partial(CONVERTED[name], name))


@contextmanager
def _mat(name: str, path: Path) -> Iterator[tuple[Any, Chunks]]:
    wanted = CARDS[name].features
    with open_table(path, place="load_data") as table:
        pieces = table.pieces(ROWS_AT_ONCE)
        first = next(pieces)
        if table.width != wanted or first.labels is None or first.labels.ndim > 1:
            raise FileError(
                f"load_data: {path} is not the {name} file, it has {table.fields} where {wanted} "
                "features with a label a row are wanted; copy it again, or load your own file by "
                "its path."
            )
        rows: Any = ((piece.vectors, piece.labels) for piece in chain([first], pieces))
        yield (table.rows, wanted), rows


@contextmanager
def _images(name: str, path: Path) -> Iterator[tuple[Any, Chunks]]:
    try:
        cifar.check(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FileError(
            f"load_data: {path} is not CIFAR-10's {cifar.ARCHIVE.name} ({error}); delete it and "
            f"run streamhash data fetch {name}."
        ) from error
    images, y = cifar.read_cifar(path, "load_data")
    shape = len(images), images[0].size
    yield (
        shape,
        ((X.reshape(-1, shape[1]) / np.float32(255), part) for X, part in pieces(images, y, 4096)),
    )


CONVERTED: dict[str, Callable[[str, Path], AbstractContextManager[tuple[Any, Chunks]]]] = {
    "cifar10-images": _images,
    "cifar10-vgg16": _mat,
    "places205": _mat,
}
