"""CIFAR-10's images, in the binary version of the data set: the archive, or its folder."""

import hashlib
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError

__all__ = ["ARCHIVE", "MIRRORS", "Archive", "check", "is_cifar", "read_cifar"]

MIRRORS = ("https://www.cs.toronto.edu/~kriz/",)
FILES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
_ROW = 1 + 3 * 32 * 32  # bytes: the label, then 32 × 32 values each of red, green and blue


@dataclass(frozen=True)
class Archive:
    """The archive of the binary version: name, bytes and MD5."""

    name: str
    size: int
    md5: str


ARCHIVE = Archive("cifar-10-binary.tar.gz", 170_052_171, "c32a1d4ab5d03f1284b67883e8d87530")


def check(content: bytes) -> None:
    """Raise ValueError unless ``content`` is the archive, to the byte."""
    if len(content) != ARCHIVE.size:
        more = "more than " if len(content) > ARCHIVE.size else ""
        raise ValueError(f"{more}{min(len(content), ARCHIVE.size)} bytes instead of {ARCHIVE.size}")
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 != ARCHIVE.md5:
        raise ValueError(f"MD5 {md5} instead of {ARCHIVE.md5}")


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
            f"{ARCHIVE.name}: streamhash data fetch cifar10-images."
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
    if not content or len(content) % _ROW:
        raise ValueError(f"{name} has {len(content)} bytes, which are no rows of {_ROW}")
    rows = np.frombuffer(content, np.uint8).reshape(-1, _ROW)
    if rows[:, 0].max() > 9:
        raise ValueError(f"{name} has a label above 9")
    return rows
