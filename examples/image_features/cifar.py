"""CIFAR-10's images, in the binary version of the data set: the archive, or its folder.

    python examples/image_features/cifar.py

downloads the archive into streamhash's cache and prints where it lies.
"""

import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError
from streamhash.lab.datasets import cache_folder
from streamhash.lab.datasets.download import RemoteFile, download

__all__ = ["ARCHIVE", "MIRRORS", "fetch_cifar", "is_cifar", "pixels", "read_cifar"]

MIRRORS = ("https://www.cs.toronto.edu/~kriz/",)
FILES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
ROW_BYTES = 1 + 3 * 32 * 32  # bytes: the label, then 32 × 32 values each of red, green and blue


ARCHIVE = RemoteFile("cifar-10-binary.tar.gz", 170_052_171, "c32a1d4ab5d03f1284b67883e8d87530")


def fetch_cifar(mirrors: Sequence[str] = MIRRORS, *, timeout: float = 30.0) -> Path:
    """Download the archive into the cache, checked to the byte, and return its path."""
    step = "get the file elsewhere and pass its path"
    folder = cache_folder() / "cifar10-images"
    return download([ARCHIVE], folder, mirrors, timeout=timeout, otherwise=step) / ARCHIVE.name


def pixels(batch: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the images themselves as features, pixels / 255: ``--extractor cifar:pixels``."""
    return np.divide(batch.reshape(len(batch), -1), 255, dtype=np.float32)


def is_cifar(path: Path) -> bool:
    """Tell whether a path is, by its names, CIFAR-10: an archive, or a folder of either version."""
    if path.is_dir():
        return (path / FILES[0]).exists() or (path / "data_batch_1").exists()
    return path.name.endswith((".tar.gz", ".tgz"))


def read_cifar(path: Path, place: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read images (n, 32, 32, 3) and labels (n,), the training rows first: 184 MB in memory."""
    try:
        contents = _from_folder(path) if path.is_dir() else _from_archive(path)
        rows = np.concatenate([_rows(*content) for content in contents.items()])
    except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
        raise FileError(
            f"{place}: {path} cannot be read as CIFAR-10's binary version ({error}); get "
            f"{ARCHIVE.name}: python examples/image_features/cifar.py."
        ) from error
    images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, rows[:, 0].astype(np.int64)


def _from_folder(path: Path) -> dict[str, bytes]:
    _refuse_pickles([file.name for file in path.iterdir()])
    return {name: (path / name).read_bytes() for name in FILES}


def _from_archive(path: Path) -> dict[str, bytes]:
    with tarfile.open(path, "r:gz") as archive:
        members = {Path(member.name).name: member for member in archive if member.isfile()}
        _refuse_pickles(list(members))
        missing = [name for name in FILES if name not in members]
        if missing:
            raise ValueError(f"it has no {', '.join(missing)}")
        opened = {name: archive.extractfile(members[name]) for name in FILES}
        return {name: file.read() for name, file in opened.items() if file is not None}


def _refuse_pickles(names: list[str]) -> None:
    if "data_batch_1" in names:
        raise ValueError(
            "it is the python version, of pickled objects, which are never loaded, as they can "
            "run code"
        )


def _rows(name: str, content: bytes) -> NDArray[np.uint8]:
    if not content or len(content) % ROW_BYTES:
        raise ValueError(f"{name} has {len(content)} bytes, which are no rows of {ROW_BYTES}")
    rows = np.frombuffer(content, np.uint8).reshape(-1, ROW_BYTES)
    if rows[:, 0].max() > 9:
        raise ValueError(f"{name} has a label above 9")
    return rows


if __name__ == "__main__":
    print(fetch_cifar())
