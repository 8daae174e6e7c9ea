"""What searches see: one model, the codes that it made, and the items they belong to.

A search takes the view once and uses nothing else, so it cannot mix two models: a new serving model
means a new view, put in place of the old one in a single assignment.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import Codes
from streamhash.live.arrow import codes_of
from streamhash.live.backends import Home, Homes
from streamhash.live.directory import Directory
from streamhash.live.inputs import from_json
from streamhash.live.store import CODE, Store

__all__ = ["View", "absent", "advance", "nothing"]

Integers = NDArray[np.int64]

FAR = np.iinfo(np.int32).max  # the distance of an item that is not there
MOST = 16_384  # looked at in a home that others change, to find items that are there


@dataclass(frozen=True)
class View:
    """The items of a collection with the codes of one model."""

    number: int  # of the model that serves, 0 while there is none
    model: OnlineHasher | None
    index: Home | None  # codes by key
    directory: Directory
    n_later_labels: int  # labels that came after their items, read so far
    fold: int  # since the labels were folded so often

    def search(self, codes: Codes, k: int) -> tuple[NDArray[np.int32], Integers]:
        """Find the nearest items of codes: distances and keys, (n, k)."""
        assert self.index is not None
        search = self._search_shared if self.index.is_shared else self.index.search
        return search(codes, k)

    def _search_shared(self, codes: Codes, k: int) -> tuple[NDArray[np.int32], Integers]:
        """Search a home that others change, passing over what this view does not hold."""
        assert self.index is not None
        wanted = k
        while True:
            distances, keys = self.index.search(codes, wanted)
            there = self.directory.has(keys)
            enough = (there.sum(axis=1) >= k) | (keys[:, -1] < 0)
            if enough.all() or wanted >= MOST:
                break
            wanted = min(4 * max(wanted, 16), MOST)
        first = np.argsort(~there, axis=1, kind="stable")[:, :k]  # those that are there, first
        there = np.take_along_axis(there, first, axis=1)
        distances = np.where(there, np.take_along_axis(distances, first, axis=1), FAR)
        return distances, np.where(there, np.take_along_axis(keys, first, axis=1), -1)


def nothing() -> View:
    """Return the view of an empty collection."""
    none = np.empty(0, np.int64)
    return View(0, None, None, Directory(none, none, []), 0, 0)


def advance(view: View, store: Store, homes: Homes) -> View:
    """Return the view of what the store holds now, reading only what is new to the one before.

    Directory and index are changed in place: the caller sees to it that nobody else does.
    """
    directory, number, model = view.directory, store.serving, view.model
    changed = number != view.number
    if changed:
        model = store.read_model(number).hasher()
    index = homes.home(number, model.n_bits) if changed and model is not None else view.index
    fold = store.fold
    n_labels = view.n_later_labels if fold == view.fold else 0
    if not store.has_items:
        if changed and index is not None:
            index.serve(directory.keys, partial(store.read_codes, number))
        return View(number, model, index, directory, n_labels, fold)

    column = f"{CODE}{number}" if number else None
    keys = store.read_items(["key"])["key"].to_numpy()
    gone = absent(directory.keys, keys)
    new = _new_items(store, directory.last_key, column)
    later, labels = store.read_labels(n_labels)
    # All is read but the codes of a new model; from here on only memory and homes change.
    names = new.ids.tolist()
    replaced = directory.find(names)
    dropped = np.union1d(gone, directory.keys_at(replaced[replaced >= 0]))
    again, lost = set(names), directory.listing.ids_of(gone)
    directory.remove([name for name in lost.tolist() if name not in again])
    directory.append(new.keys, new.ids, new.labels)
    if index is not None and changed:
        if view.index is not None:
            view.index.retire()
        index.serve(directory.keys, partial(store.read_codes, number))
    elif index is not None and new.codes is not None:
        index.delete(dropped)
        index.add(new.keys, new.codes)
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
