"""To and from files of NumPy: one .npz, never pickled."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError
from streamhash.search.bridges._contents import (
    BIT_ORDER,
    VERSION,
    check_form,
    contents,
    make_index,
)
from streamhash.search.ids import kind
from streamhash.search.index import HammingIndex
from streamhash.storage import whole_file

__all__ = ["from_numpy", "to_numpy"]


def to_numpy(
    index: HammingIndex,
    path: str | os.PathLike[str],
    *,
    beside: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write an index to one ``.npz`` that ``np.load`` opens, whole or not at all.

    ``codes`` is (n, bytes) of uint8, ``ids`` (n,) of int64 or of fixed-width strings; ``n_bits``,
    ``bit_order`` and ``version`` are single values. (``HammingIndex.save`` writes the form that is
    quick to load here; this one is for other programs.) ``beside`` are more arrays for the file.

    >>> import tempfile
    >>> index = HammingIndex(n_bits=12)
    >>> index.add(["a", "b"], np.array([[1, 16], [2, 32]], dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_numpy(index, folder + "/codes.npz")
    ...     with np.load(folder + "/codes.npz") as file:
    ...         print(file["codes"].tolist(), file["ids"].tolist(), file["n_bits"])
    [[1, 16], [2, 32]] ['a', 'b'] 12
    """
    codes, ids = contents(index)
    if kind(ids) == "strings":
        for text in ids:
            if text.endswith("\0"):
                raise InputError(
                    f"to_numpy: id {text!r} ends in a zero character, which NumPy's strings lose; "
                    "use HammingIndex.save."
                )
        ids = ids.astype(np.str_)
    arrays: dict[str, Any] = {"codes": codes, "ids": ids, "n_bits": index.n_bits}
    arrays |= {"bit_order": BIT_ORDER, "version": VERSION, **(beside or {})}
    with whole_file(path) as temporary, temporary.open("xb") as file:
        np.savez(file, **arrays)


def from_numpy(path: str | os.PathLike[str], *, n_bits: int | None = None) -> HammingIndex:
    """Read an index from a ``.npz`` with ``codes`` and, if it has them, ``ids`` and ``n_bits``."""
    arrays = _read(Path(path))
    if "codes" not in arrays:
        raise FileError(
            f"{os.fspath(path)}: holds no array named codes, but {', '.join(arrays) or 'nothing'}; "
            "save the codes with np.savez(path, codes=codes, ids=ids)."
        )
    try:
        if "bit_order" in arrays:
            check_form(str(arrays["bit_order"]), int(arrays["version"]), "from_numpy")
        if n_bits is None and "n_bits" in arrays:
            n_bits = int(arrays["n_bits"])
        return make_index(arrays["codes"], arrays.get("ids"), n_bits, "from_numpy")
    except (InputError, KeyError, ValueError, TypeError) as error:
        raise FileError(
            f"{os.fspath(path)}: is not an index ({error}); save codes, ids and n_bits with "
            "streamhash.search.to_numpy."
        ) from error


def _read(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                raise ValueError("one array without a name")
            return {name: loaded[name] for name in loaded.files}
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}); check the path.") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FileError(
            f"{path}: expected a .npz file of arrays, but it is corrupt or foreign ({error}); save "
            "it again with np.savez."
        ) from error
