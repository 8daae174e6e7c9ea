"""Files by name, in a folder or in an object store: read, written whole or not at all, deleted."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from streamhash.errors import FileError
from streamhash.live.checksums import sync
from streamhash.live.log import naming

if TYPE_CHECKING:
    from pyarrow import fs

# What Lance calls the options of S3, and Arrow; Lance takes them with "aws_" before or without.
S3_OPTIONS = {
    "endpoint": "endpoint_override",
    "endpoint_url": "endpoint_override",
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "session_token",
    "region": "region",
}


class Place:
    """A folder, or an address such as ``s3://bucket/name``."""

    def __init__(self, address: str, options: dict[str, str] | None = None) -> None:
        self.address = address
        self.folder = None if "://" in address else Path(address)
        self._files, self._root = _filesystem(address, options or {})

    def uri(self, name: str) -> str:
        """Return where a file is, for people."""
        return f"{self.address.rstrip('/')}/{name}"

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def read(self, name: str) -> IO[bytes]:
        """Open a file."""
        with naming(self.uri(name), "read"):
            return cast("IO[bytes]", self._files.open_input_file(self._path(name)))

    def size(self, name: str) -> int:
        """Return the bytes of a file."""
        with naming(self.uri(name), "read"):
            info = self._files.get_file_info(self._path(name))
        if info.size is None:
            raise FileError(f"{self.uri(name)}: is missing.")
        return int(info.size)

    def files(self, folder: str) -> list[str]:
        """List the files in a folder, and in those below; none if it is not there."""
        from pyarrow import fs

        with naming(self.uri(folder), "read"):
            chosen = fs.FileSelector(self._path(folder), allow_not_found=True, recursive=True)
            found = self._files.get_file_info(chosen)
        start = len(self._root) + 1
        return [each.path[start:] for each in found if each.type == fs.FileType.File]

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        with suppress(FileNotFoundError), naming(self.uri(name), "deleted"):
            self._files.delete_file(self._path(name))

    @contextmanager
    def new_file(self) -> Iterator["NewFile"]:
        """Write a file; it is there when it was given its name by ``keep``."""
        new = NewFile(self)
        try:
            yield new
        finally:
            new.discard()

    def open_output(self, name: str) -> IO[bytes]:
        """Open a file to write to; the folder is made."""
        with naming(self.uri(name), "written"):
            path = self._path(name)
            if self.folder is not None:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            return cast("IO[bytes]", self._files.open_output_stream(path))

    def move(self, name: str, to: str) -> None:
        """Give a file another name; on a local disk, when all of it is there for good."""
        with naming(self.uri(to), "written"):
            if self.folder is not None:
                target = self.folder / to
                new = [
                    each
                    for each in (target.parent, *target.parent.parents)
                    if each.is_relative_to(self.folder)
                ]
                target.parent.mkdir(parents=True, exist_ok=True)
                sync([self.folder / name])
                (self.folder / name).replace(target)
                sync(new)
            else:
                self._files.move(self._path(name), self._path(to))


class NewFile:
    """A file that is being written."""

    def __init__(self, place: Place) -> None:
        self._place, self._name = place, f"{uuid.uuid4().hex}.part"
        self._file: IO[bytes] | None = place.open_output(self._name)

    def write(self, content: bytes) -> None:
        """Write at its end."""
        assert self._file is not None
        with naming(self._place.uri(self._name), "written"):
            self._file.write(content)

    def keep(self, name: str) -> None:
        """Give it its name."""
        file, self._file = self._file, None
        assert file is not None
        with naming(self._place.uri(name), "written"):
            file.close()
        self._place.move(self._name, name)

    def discard(self) -> None:
        """Leave nothing of it, unless it was kept."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._place.delete(self._name)


def _filesystem(address: str, options: dict[str, str]) -> "tuple[fs.FileSystem, str]":
    """Return a file system of Arrow, and the path in it."""
    from streamhash.live.arrow import import_pyarrow

    import_pyarrow()
    from pyarrow import fs

    if "://" not in address:
        return fs.LocalFileSystem(), Path(address).absolute().as_posix()
    try:
        if options and address.startswith("s3://"):
            return fs.S3FileSystem(**_s3_options(options)), address[5:].rstrip("/")
        found, path = fs.FileSystem.from_uri(address)
    except (ValueError, OSError, NotImplementedError) as error:
        raise FileError(f"{address}: cannot be reached ({error}).") from error
    return found, path.rstrip("/")


def _s3_options(options: dict[str, str]) -> dict[str, Any]:
    named = {name.lower().removeprefix("aws_"): value for name, value in options.items()}
    known = {S3_OPTIONS[name]: value for name, value in named.items() if name in S3_OPTIONS}
    if named.get("allow_http") == "true":
        known["scheme"] = "http"
    return known
