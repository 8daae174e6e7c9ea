"""Public downloads: checked to the byte, written aside and renamed, from several mirrors."""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from streamhash.errors import InputError, MissingDataError
from streamhash.lab.datasets import cifar, mnist
from streamhash.lab.datasets.cards import CARDS, PUBLIC, missing
from streamhash.lab.datasets.folders import cache_folder

__all__ = ["fetch"]


def fetch(name: str, *, mirrors: Sequence[str] | None = None, timeout: float = 30.0) -> Path:
    """Download a public data set into the cache and return its folder.

    Each file is checked (size and MD5, MNIST's of its uncompressed bytes) before it is put in
    place, so that the cache never holds a part of a file. What is there already is not fetched
    again.

    Parameters
    ----------
    name : ``"mnist"`` or ``"cifar10-images"``, the sets with a public download
    mirrors : addresses to try in turn; None = the known public ones
    timeout : seconds without an answer until the next mirror is tried
    """
    if name not in CARDS:
        raise InputError(f"fetch: {name!r} is not a data set; pass one of {', '.join(CARDS)}.")
    if CARDS[name].where is not None:
        raise InputError(f"fetch: {name!r} needs no download; use load_data({name!r}).")
    if name not in PUBLIC:
        raise missing("fetch", name)
    folder = cache_folder() / name
    known, files = _remote_files(name)
    todo = [file for file in files if not _is_good(file, folder / file.name)]
    order = list(known if mirrors is None else mirrors)
    for file in todo:
        _put(folder / file.name, _download(file, order, timeout))
    return folder


class _RemoteFile(NamedTuple):
    """One file as the mirrors have it."""

    name: str
    most: int  # bytes
    check: Callable[[bytes], None]  # raises ValueError unless it is whole
    elsewhere: str  # what else a person can do


def _remote_files(name: str) -> tuple[tuple[str, ...], list[_RemoteFile]]:
    """Return the mirrors and the files of a public set."""
    if name == "cifar10-images":
        archive = cifar.ARCHIVE
        step = "get the file elsewhere and set STREAMHASH_DATA to its folder"
        return cifar.MIRRORS, [_RemoteFile(archive.name, archive.size + 1, cifar.check, step)]
    step = "get the four files elsewhere and set STREAMHASH_DATA to their folder"
    return mnist.MIRRORS, [
        # gzip adds little: never more
        _RemoteFile(f"{file.name}.gz", file.size + 1024, partial(_check_idx, file), step)
        for file in mnist.FILES
    ]


def _check_idx(file: mnist.IdxFile, data: bytes) -> None:
    mnist.check(file, mnist.decompress(data, file.size))


def _is_good(file: _RemoteFile, path: Path) -> bool:
    try:
        file.check(path.read_bytes())
    except (OSError, ValueError):
        return False
    return True


def _download(file: _RemoteFile, mirrors: list[str], timeout: float) -> bytes:
    """Return the checked file from the first mirror that has it; that one then leads the list."""
    from http.client import HTTPException
    from urllib.request import urlopen

    failures = []
    for mirror in list(mirrors):
        url = f"{mirror.rstrip('/')}/{file.name}"
        try:
            with urlopen(url, timeout=timeout) as answer:
                data: bytes = answer.read(file.most)
            file.check(data)
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{url}: {error}")
        else:
            mirrors.remove(mirror)
            mirrors.insert(0, mirror)
            return data
    raise MissingDataError(
        f"fetch: no mirror gave {file.name} ({'; '.join(failures) or 'none was passed'}); try "
        f"again when this machine is online, or {file.elsewhere}."
    )


def _put(path: Path, data: bytes) -> None:
    """Write a file in one step: whoever looks sees the whole of it or nothing."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise MissingDataError(
            f"fetch: {path} cannot be written ({error}); set STREAMHASH_CACHE to a folder that can."
        ) from error
