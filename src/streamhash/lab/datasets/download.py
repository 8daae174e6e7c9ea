"""Public downloads: checked to the byte, written aside and renamed, from several mirrors."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from streamhash.errors import FileError, MissingDataError
from streamhash.storage import whole_file

__all__ = ["RemoteFile", "check_bytes", "download"]


class RemoteFile(NamedTuple):
    """One file as the mirrors have it."""

    name: str
    most: int  # bytes
    check: Callable[[bytes], None]  # raises ValueError unless it is whole
    elsewhere: str  # what else a person can do


def check_bytes(content: bytes, size: int, md5: str) -> None:
    """Raise ValueError unless ``content`` has this size and this MD5."""
    if len(content) != size:
        more = "more than " if len(content) > size else ""
        raise ValueError(f"{more}{min(len(content), size)} bytes instead of {size}")
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != md5:
        raise ValueError(f"MD5 {found} instead of {md5}")


def download(
    files: Iterable[RemoteFile], folder: Path, mirrors: Sequence[str], timeout: float
) -> Path:
    """Download the files that are not in the folder yet, or are damaged; return the folder."""
    order = list(mirrors)
    for file in files:
        try:
            file.check((folder / file.name).read_bytes())
        except (OSError, ValueError):
            _put(folder / file.name, _download(file, order, timeout))
    return folder


def _download(file: RemoteFile, mirrors: list[str], timeout: float) -> bytes:
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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_bytes(data)
    except (OSError, FileError) as error:
        reason = error.__cause__ or error
        raise MissingDataError(
            f"fetch: {path} cannot be written ({reason}); set STREAMHASH_CACHE to one that can."
        ) from error
