"""Public downloads: checked to the byte, written in one step, from several mirrors."""

import gzip
import hashlib
import shutil
import zlib
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from streamhash.errors import FileError, MissingDataError
from streamhash.storage import whole_file

PIECE = 2**20  # bytes of a large file that are in memory


class RemoteFile(NamedTuple):
    """One file as the mirrors have it: compressed by gzip, or just as it is."""

    name: str
    size: int  # bytes, uncompressed
    md5: str  # likewise
    is_compressed: bool = False

    def content(self, data: bytes) -> bytes:
        """Return what is in the file, or raise ValueError unless it is the known one."""
        if self.is_compressed:
            try:
                with gzip.GzipFile(fileobj=BytesIO(data)) as file:
                    data = file.read(self.size + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise ValueError(f"not a whole gzip file: {error}") from error
        if len(data) != self.size:
            more = "more than " if len(data) > self.size else ""
            raise ValueError(f"{more}{min(len(data), self.size)} bytes instead of {self.size}")
        found = hashlib.md5(data, usedforsecurity=False).hexdigest()
        if found != self.md5:
            raise ValueError(f"MD5 {found} instead of {self.md5}")
        return data


def download(
    files: Iterable[RemoteFile],
    folder: Path,
    mirrors: Sequence[str],
    *,
    timeout: float,
    otherwise: str,
) -> Path:
    """Download the files that are not in the folder yet, or are damaged; return the folder.

    ``otherwise`` is what a person can do if no mirror has them.
    """
    order = list(mirrors)
    for file in files:
        path = folder / file.name
        try:
            file.content(path.read_bytes())
        except (OSError, ValueError):
            data = _download(file, order, timeout, otherwise)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with whole_file(path) as temporary:
                    temporary.write_bytes(data)
            except (OSError, FileError) as error:
                raise MissingDataError(
                    f"fetch: {path} cannot be written ({error.__cause__ or error}); set "
                    "STREAMHASH_CACHE to a folder that can."
                ) from error
    return folder


def download_unknown(
    path: Path,
    mirrors: Iterable[str],
    check: Callable[[Path], None],
    *,
    timeout: float,
    otherwise: str,
) -> None:
    """Download a large file whose checksum nobody knows, unless it is there.

    It is put in place only if it is as long as the server said, and ``check`` raises no FileError
    at what it holds.
    """
    from http.client import HTTPException
    from urllib.request import urlopen

    failures = []
    for mirror in () if path.is_file() else mirrors:
        url = f"{mirror.rstrip('/')}/{path.name}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as temporary:
                with urlopen(url, timeout=timeout) as answer, temporary.open("wb") as file:
                    shutil.copyfileobj(answer, file, PIECE)
                    expected, size = answer.headers.get("Content-Length"), file.tell()
                if expected is not None and size != int(expected):
                    raise ValueError(f"{size} bytes instead of {expected}")
                check(temporary)
            return
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{url}: {error.__cause__ or error}")
    if not path.is_file():
        raise _none_has(path.name, failures, otherwise)


def _download(file: RemoteFile, mirrors: list[str], timeout: float, otherwise: str) -> bytes:
    """Return the checked file from the first mirror that has it; that one then leads the list."""
    from http.client import HTTPException
    from urllib.request import urlopen

    failures = []
    for mirror in list(mirrors):
        url = f"{mirror.rstrip('/')}/{file.name}"
        try:
            with urlopen(url, timeout=timeout) as answer:
                data: bytes = answer.read(file.size + 1024)  # gzip adds little: never more
            file.content(data)
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{url}: {error}")
        else:
            mirrors.remove(mirror)
            mirrors.insert(0, mirror)
            return data
    raise _none_has(file.name, failures, otherwise)


def _none_has(name: str, failures: list[str], otherwise: str) -> MissingDataError:
    return MissingDataError(
        f"fetch: no mirror gave {name} ({'; '.join(failures) or 'none was passed'}); try again "
        f"when this machine is online, or {otherwise}."
    )
