"""Judged pairs as a collection stores them: which answer was good for which query, and which not.

A row has the key of the judged item, and of the query either its vector or, if it is an item
itself, its key. Items that are stored anew with other metadata get another key: a row without a
judgement says so, the old key in the place of the query's. What is judged of an item that is gone
does not count.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix
from streamhash.live.arrow import Keys

if TYPE_CHECKING:
    from streamhash.live.journal import Journal
    from streamhash.live.view import Moment

NO_KEY = -1  # of a query that came as a vector


class Judgements(NamedTuple):
    """Some judged pairs, in the order in which they came."""

    numbers: Keys
    keys: Keys  # of the judged items
    query_keys: Keys  # of queries that are items; -1 where a query came as a vector
    good: NDArray[np.bool_]
    queries: list[bytes | None]  # the vectors of the others

    def some(self, chosen: NDArray[Any] | slice) -> "Judgements":
        """Return those at some places, or those that a mask is true of."""
        places = np.arange(len(self.numbers))[chosen]
        queries = [self.queries[i] for i in places.tolist()]
        numbers, keys, query_keys, good, _ = self
        return Judgements(numbers[places], keys[places], query_keys[places], good[places], queries)

    def about(self, keys: Keys) -> NDArray[np.bool_]:
        """Tell which of them are about some of these items, as answers or as queries."""
        return np.isin(self.keys, keys) | np.isin(self.query_keys, keys)

    def vectors(self, kind: str, width: int) -> NDArray[Any]:
        """Return the vectors of queries (n, width), zeros where a query is an item."""
        empty = np.zeros(width, kind).tobytes()
        content = b"".join(empty if each is None else each for each in self.queries)
        return np.frombuffer(content, kind).reshape(len(self.queries), width)

    def columns(self) -> dict[str, Any]:
        """Return them as columns to be stored."""
        names = ("number", "key", "query_key", "good", "query")
        return dict(zip(names, (*self[:3], self.good.tolist(), self.queries), strict=True))


class Pairs(NamedTuple):
    """Judged pairs to learn from."""

    numbers: Keys
    queries: Matrix
    items: Matrix
    good: NDArray[np.bool_]
    query_labels: list[Any]
    labels: list[Any]

    def some(self, chosen: Any) -> "Pairs":
        """Return those at some places."""
        places = np.arange(len(self.good))[chosen]
        arrays = (each[places] for each in self[:4])
        return Pairs(*arrays, *([names[i] for i in places.tolist()] for names in self[4:]))


def read_pairs(journal: "Journal", moment: "Moment", first: int, last: int) -> Pairs:
    """Read the judged pairs from one number on, up to another, of items that are there."""
    found = journal.read_feedback(last, first=first, vectors=True)
    found = found.some(found.numbers >= first)
    found = found.some(are_there(found, moment))
    asked = found.query_keys >= 0  # those whose query is an item
    keys = np.unique(np.append(found.keys, found.query_keys[asked]))
    rows, listing = journal.vectors(keys), moment.directory.listing
    width = journal.n_features or 0
    queries = found.vectors(journal.settings["vectors"], width).astype(np.float32)
    queries[asked] = rows[np.searchsorted(keys, found.query_keys[asked])]
    names = listing.label_names_of(keys)
    places = np.searchsorted(keys, found.query_keys).tolist()
    labels = [names[i] for i in np.searchsorted(keys, found.keys).tolist()]
    own = [names[i] if is_item else None for i, is_item in zip(places, asked, strict=True)]
    items = rows[np.searchsorted(keys, found.keys)]
    return Pairs(found.numbers, queries, items, found.good, own, labels)


def are_there(found: Judgements, moment: "Moment") -> NDArray[np.bool_]:
    """Tell which judgements are about items that are there."""
    has = moment.directory.has
    there: NDArray[np.bool_] = has(found.keys) & ((found.query_keys < 0) | has(found.query_keys))
    return there


def renaming(first: int, old: Keys, new: Keys) -> dict[str, Any]:
    """Return the columns that say that items have other keys."""
    return {
        "number": first + np.arange(len(old)),
        "key": new,
        "query_key": old,
        "good": [None] * len(old),
        "query": [None] * len(old),
    }


def judgements_of(table: Any, *, last: int) -> Judgements:
    """Return the judgements in a table that are stored up to a number, by the keys of today."""
    table = table.sort_by("number")
    table = table.slice(0, int(np.searchsorted(table["number"].to_numpy(), last)))
    numbers, keys, query_keys = (table[name].to_numpy() for name in ("number", "key", "query_key"))
    said = np.array([-1 if each is None else each for each in table["good"].to_pylist()], np.int64)
    renamed = {
        int(old): int(new) for old, new in zip(query_keys[said < 0], keys[said < 0], strict=True)
    }
    queries = table["query"].to_pylist() if "query" in table.schema.names else [None] * len(keys)
    found = Judgements(
        numbers, _today(keys, renamed), _today(query_keys, renamed), said > 0, queries
    )
    return found.some(said >= 0)


def _today(keys: Keys, renamed: dict[int, int]) -> Keys:
    """Return the keys that items have by now."""
    if not renamed:
        return keys
    found = keys.copy()
    for i, key in enumerate(keys.tolist()):
        while key in renamed:
            key = renamed[key]
        found[i] = key
    return found
