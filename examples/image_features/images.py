"""Images to extract features from: arrays, files of arrays, CIFAR-10, and folders of pictures."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cifar
from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.optional import import_optional

__all__ = ["PLACE", "Images", "open_images"]

PICTURE_ENDINGS = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm"}
PLACE = "extract_features"  # what error messages begin with


@dataclass(frozen=True)
class Images:
    """Images that are read a batch at a time."""

    shape: tuple[int, ...]  # n, height, width, channels
    batch: Callable[[int, int], NDArray[np.uint8]]  # from, to: (b, height, width, channels)
    labels: NDArray[Any] | None

    def fingerprint(self) -> str:
        """Recognise the same images in a later run: by their shape, the first and the last."""
        n = self.shape[0]
        ends = self.batch(0, 1).tobytes() + self.batch(n - 1, n).tobytes()
        return f"{'×'.join(map(str, self.shape))} {zlib.crc32(ends):08x}"


def open_images(images: NDArray[Any] | str | Path) -> Images:
    """Return images by whatever names them; the errors say what is wanted."""
    if not isinstance(images, str | Path):
        return _array(np.asarray(images), "images", None)
    path = Path(images)
    if not path.exists():
        raise MissingDataError(f"{PLACE}: there is no file or folder {path}; check the path.")
    if cifar.is_cifar(path):
        array, labels = cifar.read_cifar(path, PLACE)
        return _array(array, str(path), labels)
    if path.is_dir():
        return _folder(path)
    if path.suffix.lower() != ".npy":
        raise InputError(
            f"{PLACE}: {path} is neither a .npy file, nor {cifar.ARCHIVE.name}, nor a folder; "
            "pass one of these."
        )
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FileError(
            f"{PLACE}: {path} cannot be read as .npy ({error}); save it again."
        ) from error
    return _array(array, str(path), None)


def _array(array: NDArray[Any], name: str, labels: NDArray[Any] | None) -> Images:
    if array.ndim != 4 or array.dtype != np.uint8 or not array.size:
        raise InputError(
            f"{PLACE}: {name} is {array.dtype} of shape {array.shape}; pass uint8 of shape "
            "(images, height, width, channels)."
        )
    return Images(array.shape, lambda start, stop: array[start:stop], labels)


def _folder(path: Path) -> Images:
    """Return the pictures of a folder with a sub-folder for each class."""
    files = [
        file
        for folder in sorted(path.iterdir())
        if folder.is_dir()
        for file in sorted(folder.iterdir())
        if file.suffix.lower() in PICTURE_ENDINGS
    ]
    if not files:
        raise InputError(
            f"{PLACE}: {path} has no sub-folders with pictures; put those of each class into a "
            "folder with the name of the class."
        )
    first = _picture(files[0])

    def batch(start: int, stop: int) -> NDArray[np.uint8]:
        pictures = [_picture(file) for file in files[start:stop]]
        for file, picture in zip(files[start:stop], pictures, strict=True):
            if picture.shape != first.shape:
                sizes = [f"{p.shape[1]} × {p.shape[0]}" for p in (picture, first)]
                raise InputError(
                    f"{PLACE}: {file} is {sizes[0]} and {files[0]} is {sizes[1]}; resize all "
                    "pictures to one size first."
                )
        return np.stack(pictures)

    labels = np.array([file.parent.name for file in files])
    return Images((len(files), *first.shape), batch, labels)


def _picture(path: Path) -> NDArray[np.uint8]:
    """Return a picture as (height, width, 3): red, green, blue."""
    pillow = import_optional(
        "PIL.Image",
        extra="images",
        place=f"{PLACE}: {path}",
        otherwise="pass the images as a uint8 .npy",
    )
    try:
        with pillow.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        raise FileError(
            f"{PLACE}: {path} cannot be read as a picture ({error}); replace or delete it."
        ) from error
