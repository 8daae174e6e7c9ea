"""Features of images by your own extractor, batch by batch, resumed after a stop.

    python examples/image_features/extract.py --images pictures/ --extractor my_network:fc7 \\
        --out pictures.npy
    streamhash bench --data pictures.npy --labels pictures.labels.npy

No deep-learning library is needed or chosen here: an extractor is any function from a uint8 batch
(b, height, width, channels) to numbers (b, d).
"""

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from images import PLACE, Images, open_images
from streamhash.errors import InputError, StreamhashError
from streamhash.files import read_labels
from streamhash.parameters import Whole, check_parameters

__all__ = ["extract_features"]

Extractor = Callable[[NDArray[np.uint8]], ArrayLike]


def extract_features(
    images: NDArray[np.uint8] | str | Path,
    extractor: Extractor | str,
    out: str | Path,
    *,
    labels: ArrayLike | str | Path | None = None,
    batch_size: int = 256,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Path, Path | None]:
    """Write the features of all images to a .npy, and their labels to another beside it.

    ``load_data(out, labels=...)`` then maps the features into memory, so that they may be larger
    than it. After a stop, call it again in the same way: it goes on after the last whole batch.
    What is done so far lies in ``out`` + ``.part``, and ``out`` appears when it is whole.

    Parameters
    ----------
    images : uint8 array (n, height, width, channels), or a path: a ``.npy`` of such an array, which
        is memory-mapped; CIFAR-10's binary version, as archive or folder; or a folder with a
        sub-folder of pictures for each class, all of one size (needs Pillow)
    extractor : function from a uint8 batch (b, height, width, channels) to numbers (b, d), each row
        from its own image only; or ``"module:function"``, looked for in this folder too
    out : ``.npy`` file for the features, float32
    labels : one for each image, as an array or a file; None = those of CIFAR-10 or of the folder
    batch_size : images given to the extractor at a time
    progress : called after each batch with the images done and all images

    Returns
    -------
    The path of the features, and of the labels: ``name.labels.npy`` for ``name.npy``, or None if
    there are none.

    >>> import tempfile
    >>> images = np.arange(5 * 2 * 2 * 3, dtype=np.uint8).reshape(5, 2, 2, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     def means(batch):
    ...         return batch.mean(axis=(1, 2))
    ...     out, y = extract_features(images, means, f"{folder}/a.npy", labels=[0, 1, 0, 1, 0])
    ...     np.load(out)[0], np.load(y)
    (array([4.5, 5.5, 6.5], dtype=float32), array([0, 1, 0, 1, 0]))
    """
    out = Path(out)
    if out.suffix != ".npy":
        raise InputError(f"{PLACE}: out={str(out)!r} does not end in .npy; choose such a name.")
    beside = out.with_suffix(".labels.npy")
    for path in (out, beside):
        if path.exists():
            raise InputError(
                f"{PLACE}: {path} is there already; delete it, or choose another name."
            )
    check_parameters(PLACE, {"batch_size": batch_size}, {"batch_size": Whole(1)})
    function = _find(extractor) if isinstance(extractor, str) else extractor
    source = open_images(images)
    y = _labels(labels, source)
    part = _write_part(source, function, out, batch_size, progress or (lambda _done, _all: None))
    if y is not None:
        np.save(beside, y)
    part.replace(out)
    _state_path(out).unlink(missing_ok=True)
    return out, None if y is None else beside


def _write_part(
    source: Images, function: Extractor, out: Path, size: int, progress: Callable[[int, int], None]
) -> Path:
    """Write the features that are not written yet, noting after each batch how many there are."""
    part, n = out.with_name(f"{out.name}.part"), source.shape[0]
    known = {"images": source.fingerprint(), "extractor": _name(function)}
    done, width = _resume(part, _state_path(out), known)
    with part.open("r+b" if done else "wb") as file:
        for start in range(done, n, size):
            stop = min(start + size, n)
            # A copy, rows first: an extractor may write to it, and some demand that they could.
            batch = np.array(source.batch(start, stop), order="C")
            features = _check(function(batch), start, stop, width)
            width = features.shape[1]
            header = _header(n, width)
            if start == 0:
                file.write(header)
            file.seek(len(header) + start * width * features.itemsize)
            file.write(features.data)
            file.flush()
            _note(_state_path(out), {**known, "features": width, "done": stop})
            progress(stop, n)
    return part


def _resume(part: Path, state_path: Path, known: dict[str, str]) -> tuple[int, int | None]:
    """Return how many images an earlier run has done, and how many features they have."""
    if not part.exists() or not state_path.exists():
        return 0, None
    try:
        state = json.loads(state_path.read_text(encoding="utf-8"))
        found = {name: state[name] for name in known}
        done, width = int(state["done"]), int(state["features"])
    except (ValueError, TypeError, KeyError):
        found, done, width = {}, 0, 0
    if found != known:
        begun = " and ".join(f"{name} {value}" for name, value in found.items()) or "other things"
        now = " and ".join(f"{name} {value}" for name, value in known.items())
        raise InputError(
            f"{PLACE}: {part} was begun with {begun}, now it is {now}; delete it to begin anew, "
            "or choose another name."
        )
    return done, width


def _check(features: ArrayLike, start: int, stop: int, width: int | None) -> NDArray[np.float32]:
    array, n = np.asarray(features), stop - start
    is_matrix = array.ndim == 2 and array.size > 0 and array.dtype.kind in "fiub"
    if not is_matrix or array.shape != (n, width or array.shape[1]):
        raise InputError(
            f"{PLACE}: the extractor gave {array.dtype} of shape {array.shape} for {n} images; "
            f"return numbers of shape ({n}, {width or 'features'})."
        )
    with np.errstate(over="ignore"):  # found below
        array = np.ascontiguousarray(array, np.float32)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise InputError(
            f"{PLACE}: the extractor gave NaN or infinity for image {start + bad[0]}; mend the "
            "extractor, or leave the image out."
        )
    return array


def _labels(labels: ArrayLike | str | Path | None, source: Images) -> NDArray[Any] | None:
    n = source.shape[0]
    if labels is None:
        return source.labels
    if isinstance(labels, str | Path):
        return read_labels(Path(labels), n)
    array = np.asarray(labels)
    if array.dtype.kind not in "fiubUS" or array.ndim not in (1, 2) or len(array) != n:
        raise InputError(
            f"{PLACE}: labels are {array.dtype} of shape {array.shape} for {n} images; pass one "
            "for each."
        )
    return array


def _find(text: str) -> Extractor:
    """Return the function that ``module:function`` names."""
    module, _, name = text.partition(":")
    try:
        with _this_folder_too():
            function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"{PLACE}: extractor={text!r} cannot be loaded ({error}); pass module:function of a "
            "module that is installed or lies in this folder."
        ) from error
    if not callable(function):
        raise InputError(f"{PLACE}: extractor={text!r} is no function; name one that is.")
    found: Extractor = function
    return found


@contextmanager
def _this_folder_too() -> Iterator[None]:
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _name(function: Extractor) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def _header(n: int, width: int) -> bytes:
    header = BytesIO()
    description = {"descr": "<f4", "fortran_order": False, "shape": (n, width)}
    np.lib.format.write_array_header_1_0(header, description)
    return header.getvalue()


def _state_path(out: Path) -> Path:
    return out.with_name(f"{out.name}.part.json")


def _note(path: Path, state: dict[str, Any]) -> None:
    """Replace the note in one step, so that a stop leaves the old one or the new one."""
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(json.dumps(state), encoding="utf-8")
    aside.replace(path)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Make features of images with your own function.")
    parser.add_argument("--images", required=True, help=".npy, CIFAR-10's binary version, folder")
    parser.add_argument(
        "--extractor", required=True, help="module:function, (b, h, w, c) to (b, d)"
    )
    parser.add_argument("--out", required=True, help="the .npy to write; resumed after a stop")
    parser.add_argument("--labels", help="a file of labels, one for each image")
    parser.add_argument("--batch-size", type=int, default=256, help="images at a time")
    arguments = vars(parser.parse_args())

    def progress(done: int, total: int) -> None:
        print(f"\r{done:,} of {total:,} images", end="", file=sys.stderr)

    try:
        made, beside = extract_features(**arguments, progress=progress)
    except StreamhashError as error:
        sys.exit(str(error))
    with_labels = "" if beside is None else f" --labels {beside}"
    print(f"\nThe features are in {made}: use them with --data {made}{with_labels}.")


if __name__ == "__main__":
    main()
