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
from streamhash.live.directory import Directory
from streamhash.live.inputs import from_json
from streamhash.live.store import CODE, Store, codes_of
from streamhash.search import HammingIndex

__all__ = ["View", "advance", "nothing"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """The items of a collection with the codes of one model."""

    number: int  # of the model that serves, 0 while there is none
    model: OnlineHasher | None
    index: HammingIndex | None  # codes by key
    directory: Directory
    n_later_labels: int  # labels that came after their items, read so far


def nothing() -> View:
    """Return the view of an empty collection."""
    none = np.empty(0, np.int64)
    return View(0, None, None, Directory(none, none, []), 0)


def advance(view: View, store: Store) -> View:
    """Return the view of what the store holds now, reading only what is new to the one before.

    The directory is changed in place: the caller sees to it that nobody else does.
    """
    if not store.has_items:
        return view
    directory, number, model = view.directory, store.serving, view.model
    changed = number != view.number
    if changed:
        model = store.read_model(number).hasher()
    there = store.read_items(["key"])["key"].to_numpy()
    gone = np.setdiff1d(directory.keys_at(directory.places), there, assume_unique=True)
    new = _new_items(store, directory.last_key, f"{CODE}{number}" if number else None)
    replaced = directory.find(new.ids.tolist())
    dropped = np.concatenate([gone, directory.keys_at(replaced[replaced >= 0])])
    directory.remove(directory.ids_of(dropped).tolist())
    directory.append(new.keys, new.ids, new.labels)
    index = view.index
    if changed and model is not None:
        directory = directory.tidy()
        index = _whole_index(store, model.n_bits, number, directory)
    elif index is not None and new.codes is not None:
        index.remove(dropped)
        index.add(new.codes, new.keys)
    keys, labels = store.read_labels(view.n_later_labels)
    _set_labels(directory, keys, from_json(labels))
    return View(number, model, index, directory, view.n_later_labels + len(keys))


class _New(NamedTuple):
    keys: Integers
    ids: NDArray[Any]
    labels: list[Any]
    codes: Codes | None


def _new_items(store: Store, last_key: int, column: str | None) -> _New:
    """Read the items with keys above ``last_key``; of those with one id, only the last."""
    columns = ["key", "id", "label", *([column] if column else [])]
    table = store.dataset("items").to_table(columns=columns, filter=f"key > {last_key}")
    table = table.sort_by("key")
    keys = table["key"].to_numpy()
    strings = str(table["id"].type) == "string"
    ids = table["id"].to_pylist() if strings else table["id"].to_numpy().tolist()
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


def _whole_index(store: Store, n_bits: int, number: int, directory: Directory) -> HammingIndex:
    """Read the codes of a model, of all that is in the directory."""
    index, column = HammingIndex(n_bits), f"{CODE}{number}"
    table = store.read_items(["key", column]).sort_by("key")
    keys, codes = table["key"].to_numpy(), codes_of(table[column])
    live = np.isin(keys, directory.keys_at(directory.places), assume_unique=True)
    index.add(codes[live], keys[live])
    return index


def _set_labels(directory: Directory, keys: Integers, labels: list[Any]) -> None:
    """Give items the labels that came later; those of items that are gone are passed over."""
    if not len(keys):
        return
    wanted = dict(zip(keys.tolist(), labels, strict=True))  # the last of each counts
    places = directory.places
    here = directory.keys_at(places)
    hit = np.isin(here, np.fromiter(wanted, np.int64, len(wanted)))
    directory.set_labels(places[hit], [wanted[key] for key in here[hit].tolist()])
