"""Where data lies on this machine: the person's folder first, then the cache."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["cache_folder", "data_folders", "find_files"]


def cache_folder() -> Path:
    """Return the folder that downloads go to: ``STREAMHASH_CACHE``, else the platform's own.

    The platform's own is ``~/.cache/streamhash`` (or under ``XDG_CACHE_HOME``) on Linux,
    ``~/Library/Caches/streamhash`` on macOS and ``%LOCALAPPDATA%\\streamhash`` on Windows.
    """
    chosen = os.environ.get("STREAMHASH_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Caches"
    else:
        parent = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(parent) / "streamhash"


def data_folders() -> list[Path]:
    """Return the folders that are searched, in order: ``STREAMHASH_DATA`` if set, the cache."""
    chosen = os.environ.get("STREAMHASH_DATA")
    return [*([Path(chosen).expanduser()] if chosen else []), cache_folder()]


def find_files(name: str, wanted: Sequence[Sequence[str]]) -> list[Path] | None:
    """Return the files of data set ``name`` from the first place that has them all, else None.

    ``wanted`` lists, for each file, the names it may have.
    """
    for place in _places(name):
        found = [
            next((place / file for file in names if (place / file).is_file()), None)
            for names in wanted
        ]
        complete = [file for file in found if file is not None]
        if len(complete) == len(wanted):
            return complete
    return None


def _places(name: str) -> Iterator[Path]:
    for folder in data_folders():
        yield from (folder, folder / name, folder / name.replace("-", "_"))
