"""MNIST's four idx files: how they are known, downloaded and read."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError
from streamhash.lab.datasets.download import RemoteFile, download

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
FILES = (
    RemoteFile("train-images-idx3-ubyte.gz", 47_040_016, "6bbc9ace898e44ae57da46a324031adb", True),
    RemoteFile("train-labels-idx1-ubyte.gz", 60_008, "a25bea736e30d166cdddb491f175f624", True),
    RemoteFile("t10k-images-idx3-ubyte.gz", 7_840_016, "2646ac647ad5339dbf082846283269ea", True),
    RemoteFile("t10k-labels-idx1-ubyte.gz", 10_008, "27ae3e4e09519cfbb04c329615203637", True),
)
IMAGES_START, LABELS_START = 16, 8  # bytes of their headers


def fetch_mnist(folder: Path, mirrors: Sequence[str] | None, timeout: float) -> Path:
    """Download the four files into a folder, and return it."""
    step = "get the four files elsewhere and set STREAMHASH_DATA to their folder"
    mirrors = MIRRORS if mirrors is None else mirrors
    return download(FILES, folder, mirrors, timeout=timeout, otherwise=step)


def read_mnist(paths: list[Path]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Read X (70000, 784), pixels / 255, and y (70000,), the training rows first."""
    train_X, train_y, test_X, test_y = map(_read, FILES, paths)
    pixels = np.concatenate([train_X[IMAGES_START:], test_X[IMAGES_START:]]).reshape(-1, 28 * 28)
    labels = np.concatenate([train_y[LABELS_START:], test_y[LABELS_START:]])
    return np.divide(pixels, 255, dtype=np.float32), labels.astype(np.int64)


def _read(file: RemoteFile, path: Path) -> NDArray[np.uint8]:
    try:
        as_here = file._replace(is_compressed=path.suffix == ".gz")
        return np.frombuffer(as_here.content(path.read_bytes()), np.uint8)
    except (OSError, ValueError) as error:
        raise FileError(
            f"load_data: {path} is not MNIST's {file.name} ({error}); delete it and run "
            "streamhash data fetch mnist."
        ) from error
