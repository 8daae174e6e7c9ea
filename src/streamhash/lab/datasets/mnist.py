"""MNIST's four idx files: how they are known, downloaded and read."""

import gzip
import math
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError
from streamhash.lab.datasets.download import RemoteFile, check_bytes, download

__all__ = ["FILES", "MIRRORS", "IdxFile", "fetch_mnist", "read_mnist"]

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)


class IdxFile(NamedTuple):
    """One of the four files: name, shape of its array, and MD5 of its uncompressed bytes."""

    name: str
    shape: tuple[int, ...]
    md5: str

    @property
    def header_size(self) -> int:
        """Bytes before the array: four that say its type, and four for each dimension."""
        return 4 + 4 * len(self.shape)

    @property
    def size(self) -> int:
        """Uncompressed bytes."""
        return self.header_size + math.prod(self.shape)

    def check(self, content: bytes) -> None:
        """Raise ValueError unless ``content`` is the uncompressed file, to the byte."""
        check_bytes(content, self.size, self.md5)

    def check_compressed(self, data: bytes) -> None:
        """Raise ValueError unless ``data`` is the compressed file."""
        self.check(_decompress(data, self.size))


FILES = (
    IdxFile("train-images-idx3-ubyte", (60_000, 28, 28), "6bbc9ace898e44ae57da46a324031adb"),
    IdxFile("train-labels-idx1-ubyte", (60_000,), "a25bea736e30d166cdddb491f175f624"),
    IdxFile("t10k-images-idx3-ubyte", (10_000, 28, 28), "2646ac647ad5339dbf082846283269ea"),
    IdxFile("t10k-labels-idx1-ubyte", (10_000,), "27ae3e4e09519cfbb04c329615203637"),
)


def _decompress(data: bytes, most: int) -> bytes:
    """Return what a gzip file holds, at most one byte more than ``most``; ValueError if broken."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as file:
            return file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"not a whole gzip file: {error}") from error


def fetch_mnist(folder: Path, mirrors: Sequence[str] | None, timeout: float) -> Path:
    """Download the four files into a folder, and return it."""
    step = "get the four files elsewhere and set STREAMHASH_DATA to their folder"
    files = [
        # gzip adds little: never more
        RemoteFile(f"{file.name}.gz", file.size + 1024, file.check_compressed, step)
        for file in FILES
    ]
    return download(files, folder, MIRRORS if mirrors is None else mirrors, timeout)


def read_mnist(paths: list[Path]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Read X (70000, 784), pixels / 255, and y (70000,), the training rows first."""
    n_train, n_test = FILES[0].shape[0], FILES[2].shape[0]
    X = np.empty((n_train + n_test, 28 * 28), np.float32)
    y = np.empty(n_train + n_test, np.int64)
    for images, labels, rows in [(0, 1, slice(n_train)), (2, 3, slice(n_train, None))]:
        np.divide(_read(FILES[images], paths[images]).reshape(-1, 28 * 28), 255, out=X[rows])
        y[rows] = _read(FILES[labels], paths[labels])
    return X, y


def _read(file: IdxFile, path: Path) -> NDArray[np.uint8]:
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = _decompress(content, file.size)
        file.check(content)
    except (OSError, ValueError) as error:
        raise FileError(
            f"load_data: {path} is not MNIST's {file.name} ({error}); delete it and run "
            "streamhash data fetch mnist."
        ) from error
    return np.frombuffer(content, np.uint8, offset=file.header_size).reshape(file.shape)
