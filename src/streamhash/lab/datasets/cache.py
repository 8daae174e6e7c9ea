"""Large sets as arrays in the cache: made once, chunk by chunk, and memory-mapped from then on.

A set is a folder with ``X.npy`` (float32), ``y.npy`` and ``about.json``. It is written aside and
renamed when it is whole: a run that is killed leaves no half-made set, of two runs at once one
is kept, and several processes that load the set share its pages.
"""

import json
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, MissingDataError
from streamhash.lab.datasets.cards import cache_folder

Chunks = Iterable[tuple[NDArray[Any], NDArray[Any]]]  # rows of X with their labels
# X (n, d), memory-mapped and read-only; y (n,), or (n, C) matrix of 0 and 1; what is known of them.
Stored = tuple[NDArray[np.float32], NDArray[Any], dict[str, Any]]

SECONDS_UNTIL_FORGOTTEN = 24 * 3600  # an unfinished folder is then one that a killed run left


def load_stored(name: str) -> Stored | None:
    """Return the set of that name from the cache, or None if it is not there."""
    folder = cache_folder() / name
    if not folder.is_dir():
        return None
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        X = np.load(folder / "X.npy", mmap_mode="r", allow_pickle=False)
        y = np.load(folder / "y.npy", allow_pickle=False)
        if not isinstance(about, dict) or X.dtype != np.float32 or len(X) != len(y):
            raise ValueError("its parts do not belong together")
    except (OSError, ValueError, EOFError) as error:
        raise FileError(
            f"load_data: the folder {folder} is damaged ({error}); delete it: it is made again "
            "when it is asked for."
        ) from error
    return X, y, about


def store(name: str, shape: tuple[int, int], chunks: Chunks, about: dict[str, Any]) -> Stored:
    """Write chunks of X and y, ``shape`` in all, as the set of that name, and return it."""
    with _aside(cache_folder() / name) as folder:
        labels = []
        with (folder / "X.npy").open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for X, y in chunks:
                # Beyond float32: infinite, and the hasher's to judge.
                with np.errstate(over="ignore", invalid="ignore"):
                    file.write(np.ascontiguousarray(X, "<f4").data)
                labels.append(y)
        np.save(folder / "y.npy", np.concatenate(labels))
        (folder / "about.json").write_text(json.dumps(about, indent=2), encoding="utf-8")
    made = load_stored(name)
    assert made is not None  # it has just been put in place
    return made


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """Give a folder to write to; it gets its name at the end, and is deleted after an error."""
    folder = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
    try:
        forget_parts(target)
        folder.mkdir(parents=True)
        yield folder
        folder.rename(target)  # refused if it exists
    except OSError as error:
        if target.is_dir():  # another process was first, and its set is the same
            return
        raise MissingDataError(
            f"load_data: {target} cannot be written ({error}); free some space, or set "
            "STREAMHASH_CACHE to a folder that can."
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def forget_parts(target: Path) -> None:
    """Delete what killed runs have left of this set; a part that still grows is left alone."""
    for part in target.parent.glob(f"{target.name}.*.part"):
        with suppress(OSError):
            newest = max(path.stat().st_mtime for path in (part, *part.iterdir()))
            if time.time() - newest > SECONDS_UNTIL_FORGOTTEN:
                shutil.rmtree(part, ignore_errors=True)
