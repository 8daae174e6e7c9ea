"""MNIST's four idx files: their names, sizes and checksums, and how they are read."""

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError

__all__ = ["FILES", "MIRRORS", "IdxFile", "check", "decompress", "read_mnist"]

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)


@dataclass(frozen=True)
class IdxFile:
    """One of the four files: name, shape of its array, and MD5 of its uncompressed bytes."""

    name: str
    shape: tuple[int, ...]
    md5: str

    @property
    def header(self) -> bytes:
        """Two zero bytes, 8 for uint8, the number of dimensions, then each as four bytes."""
        return bytes([0, 0, 8, len(self.shape)]) + np.array(self.shape, ">i4").tobytes()

    @property
    def size(self) -> int:
        """Uncompressed bytes."""
        return len(self.header) + int(np.prod(self.shape))

    @property
    def names(self) -> tuple[str, ...]:
        """The names it goes by: compressed, as the mirrors have it, or not."""
        return f"{self.name}.gz", self.name, self.name.replace("-idx", ".idx")


FILES = (
    IdxFile("train-images-idx3-ubyte", (60_000, 28, 28), "6bbc9ace898e44ae57da46a324031adb"),
    IdxFile("train-labels-idx1-ubyte", (60_000,), "a25bea736e30d166cdddb491f175f624"),
    IdxFile("t10k-images-idx3-ubyte", (10_000, 28, 28), "2646ac647ad5339dbf082846283269ea"),
    IdxFile("t10k-labels-idx1-ubyte", (10_000,), "27ae3e4e09519cfbb04c329615203637"),
)


def decompress(data: bytes, most: int) -> bytes:
    """Return what a gzip file holds, at most one byte more than ``most``; ValueError if broken."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as file:
            return file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"not a whole gzip file: {error}") from error


def check(file: IdxFile, content: bytes) -> None:
    """Raise ValueError unless ``content`` is the uncompressed file, to the byte."""
    if len(content) != file.size:
        more = "more than " if len(content) > file.size else ""
        raise ValueError(f"{more}{min(len(content), file.size)} bytes instead of {file.size}")
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 != file.md5:
        raise ValueError(f"MD5 {md5} instead of {file.md5}")


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
            content = decompress(content, file.size)
        check(file, content)
    except (OSError, ValueError) as error:
        raise FileError(
            f"load_data: {path} is not MNIST's {file.name} ({error}); delete it and run "
            "streamhash data fetch mnist."
        ) from error
    return np.frombuffer(content, np.uint8, offset=len(file.header)).reshape(file.shape)
