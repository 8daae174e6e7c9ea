"""Public downloads: checked to the byte, written aside and renamed, from several mirrors."""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from streamhash.data import mnist
from streamhash.data.cards import CARDS, missing
from streamhash.data.folders import cache_folder
from streamhash.errors import InputError, MissingDataError

__all__ = ["fetch"]


def fetch(name: str, *, mirrors: Sequence[str] | None = None, timeout: float = 30.0) -> Path:
    """Download a public data set into the cache and return its folder.

    Each file is checked (size and MD5 of its uncompressed bytes) before it is put in place, so
    that the cache never holds a part of a file. What is there already is not fetched again.

    Parameters
    ----------
    name : ``"mnist"``, the only set with a public download
    mirrors : addresses to try in turn; None = the known public ones
    timeout : seconds without an answer until the next mirror is tried
    """
    if name not in CARDS:
        raise InputError(f"fetch: {name!r} is not a data set; pass one of {', '.join(CARDS)}.")
    if CARDS[name].where is not None:
        raise InputError(f"fetch: {name!r} needs no download; use load_data({name!r}).")
    if name != "mnist":
        raise missing("fetch", name)
    folder = cache_folder() / name
    todo = [file for file in mnist.FILES if not _is_good(file, folder / f"{file.name}.gz")]
    order = list(mnist.MIRRORS if mirrors is None else mirrors)
    for file in todo:
        data = _download(file, order, timeout)
        _put(folder / f"{file.name}.gz", data)
    return folder


def _is_good(file: mnist.IdxFile, path: Path) -> bool:
    try:
        mnist.check(file, mnist.decompress(path.read_bytes(), file.size))
    except (OSError, ValueError):
        return False
    return True


def _download(file: mnist.IdxFile, mirrors: list[str], timeout: float) -> bytes:
    """Return the checked file from the first mirror that has it; that one then leads the list."""
    from http.client import HTTPException
    from urllib.request import urlopen

    failures = []
    for mirror in list(mirrors):
        url = f"{mirror.rstrip('/')}/{file.name}.gz"
        try:
            with urlopen(url, timeout=timeout) as answer:
                data: bytes = answer.read(file.size + 1024)  # gzip adds little: never more
            mnist.check(file, mnist.decompress(data, file.size))
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{url}: {error}")
        else:
            mirrors.remove(mirror)
            mirrors.insert(0, mirror)
            return data
    raise MissingDataError(
        f"fetch: no mirror gave {file.name}.gz ({'; '.join(failures) or 'none was passed'}); try "
        "again when this machine is online, or get the four files elsewhere and set "
        "STREAMHASH_DATA to their folder."
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
