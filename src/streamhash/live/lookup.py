"""Ids that come in, looked up in a collection."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError, NotFoundError
from streamhash.live.directory import Directory
from streamhash.search.ids import LARGEST, check_ids, check_once, kind

__all__ = ["find", "new_ids"]


def new_ids(directory: Directory, ids: Any, n: int, wanted: str | None, place: str) -> NDArray[Any]:
    """Return ids of ``n`` items to be added, of the ``wanted`` kind; None numbers them on."""
    if ids is None:
        if wanted == "strings":
            raise InputError(
                f"{place}: ids did not come, and this collection has strings; pass one an item."
            )
        first = directory.next_id
        if first + n > LARGEST:
            raise InputError(f"{place}: no number is left after id {first - 1}; pass ids.")
        return np.arange(first, first + n)
    names = check_ids(ids, place=place)
    if len(names) != n:
        raise InputError(f"{place}: {n} items and {len(names)} ids came; pass one id an item.")
    check_once(names, place=place)
    if n and wanted is not None and kind(names) != wanted:
        raise InputError(
            f"{place}: ids are {kind(names)}, those of this collection are {wanted}; pass {wanted}."
        )
    return names


def find(directory: Directory, ids: Any, place: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return checked ids, and their places in the directory."""
    names = check_ids(ids, place=place)
    check_once(names, place=place)
    found = directory.find(names.tolist())
    if (found < 0).any():
        raise NotFoundError(
            f"{place}: id {names[found < 0].tolist()[0]!r} is not in this collection; ask "
            "`id in collection` first, or add it."
        )
    return names, found
