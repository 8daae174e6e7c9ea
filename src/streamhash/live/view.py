"""What searches see: one model, the codes that it made, and the items they belong to.

A search takes the view once and uses nothing else, so it cannot mix two models: a new serving model
means a new view, put in place of the old one in a single assignment.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import Codes
from streamhash.live.arrow import codes_of
from streamhash.live.directory import Directory
from streamhash.live.inputs import from_json
from streamhash.live.store import CODE, Store
from streamhash.search import HammingIndex

__all__ = ["View", "absent", "advance", "nothing"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """The items of a collection with the codes of one model."""

    number: int  # of the model that serves, 0 while there is none
    model: OnlineHasher | None
    index: HammingIndex | None  # codes by key
    directory: Directory
    n_later_labels: int  # labels that came after their items, read so far
    fold: int  # since the labels were folded so often


def nothing() -> View:
    """Return the view of an empty collection."""
    none = np.empty(0, np.int64)
    return View(0, None, None, Directory(none, none, []), 0, 0)


def advance(view: View, store: Store) -> View:
    """Return the view of what the store holds now, reading only what is new to the one before.

    Directory and index are changed in place: the caller sees to it that nobody else does.
    """
    directory, number, model = view.directory, store.serving, view.model
    changed = number != view.number
    if changed:
        model = store.read_model(number).hasher()
    index = HammingIndex(model.n_bits) if changed and model is not None else view.index
    fold = store.fold
    n_labels = view.n_later_labels if fold == view.fold else 0
    if not store.has_items:
        return View(number, model, index, directory, n_labels, fold)

    column = f"{CODE}{number}" if number else None
    there = store.read_items(["key", column] if changed and column else ["key"])
    keys = there["key"].to_numpy()
    gone = absent(directory.keys, keys)
    new = _new_items(store, directory.last_key, column)
    later, labels = store.read_labels(n_labels)
    # All is read; from here on only memory changes.
    names = new.ids.tolist()
    replaced = directory.find(names)
    dropped = np.union1d(gone, directory.keys_at(replaced[replaced >= 0]))
    again, lost = set(names), directory.listing.ids_of(gone)
    directory.remove([name for name in lost.tolist() if name not in again])
    directory.append(new.keys, new.ids, new.labels)
    if index is not None and changed:
        codes, here = codes_of(there[column]), directory.keys
        if not np.array_equal(keys, here):  # they differ in what was removed or moved
            order = np.argsort(keys)
            order = order[np.isin(keys[order], here, assume_unique=True)]
            keys, codes = keys[order], codes[order]
        index.add(codes, keys)
    elif index is not None and new.codes is not None:
        index.remove(dropped)
        index.add(new.codes, new.keys)
    _set_labels(directory, later, from_json(labels))
    return View(number, model, index, directory, n_labels + len(later), fold)


class _New(NamedTuple):
    keys: Integers
    ids: NDArray[Any]
    labels: list[Any]
    codes: Codes | None


def _new_items(store: Store, last_key: int, column: str | None) -> _New:
    """Read the items with keys above ``last_key``; of those with one id, only the last."""
    columns = ["key", "id", "label", *([column] if column else [])]
    table = store.read("items", columns=columns, filter=f"key > {last_key}")
    table = table.sort_by("key")
    keys = table["key"].to_numpy()
    strings = str(table["id"].type) == "string"
    ids = table["id"].to_pylist()
    last = dict(zip(ids, keys.tolist(), strict=True))
    if len(last) < len(ids):  # a process died between storing an item anew and deleting the old
        table = table.filter(np.isin(keys, [*last.values()]))
        keys, ids = table["key"].to_numpy(), table["id"].to_pylist()
    return _New(
        keys,
        np.fromiter(ids, object if strings else np.int64, len(ids)),
        from_json(table["label"].to_pylist()),
        codes_of(table[column]) if column else None,
    )


def absent(keys: Integers, others: Integers) -> Integers:
    """Return the keys, ascending, that are not among others; quickly where those begin with all."""
    if np.array_equal(keys, others[: len(keys)]):
        return keys[:0]
    return np.setdiff1d(keys, others, assume_unique=True)


def _set_labels(directory: Directory, keys: Integers, labels: list[Any]) -> None:
    """Give items the labels that came later; those of items that are gone are passed over."""
    if not len(keys):
        return
    wanted = dict(zip(keys.tolist(), labels, strict=True))  # the last of each counts
    places = directory.places
    here = directory.keys_at(places)
    hit = np.isin(here, np.fromiter(wanted, np.int64, len(wanted)))
    directory.set_labels(places[hit], [wanted[key] for key in here[hit].tolist()])
