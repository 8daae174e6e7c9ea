"""Where items lie in their dataset, so that a few of them are read without looking at all."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from streamhash.live.arrow import Keys
from streamhash.live.locks import uninterrupted

if TYPE_CHECKING:
    import lance

FRAGMENT_BITS = 32  # a row's address: bits of the place in its fragment, below its number


class _Rows(NamedTuple):
    """The rows of one fragment, in the order of their keys."""

    keys: Keys
    first: int  # the address of the first
    gaps: Keys | None  # from the first to each row; None where these are 0, 1, 2, ...


class Addresses:
    """Addresses of items by their keys.

    Lance finds a row at once by its address: the number of its fragment, and its place in it.
    Neither changes as long as there is the fragment; only joining fragments gives their rows other
    addresses. So the keys of a fragment are read once, and known from then on, by the name of its
    first file: a number may come again where the last fragment was deleted, a file never does.
    """

    def __init__(self, known: "Addresses | None" = None) -> None:
        self._version = 0
        self._fragments: dict[str, _Rows] = {} if known is None else known._fragments
        self._rows: list[_Rows] = []
        self._ends = np.empty((2, 0), np.int64)  # the first and the last key of each

    def find(self, dataset: "lance.LanceDataset", keys: Keys) -> Keys:
        """Return the addresses of keys, -1 where there is none."""
        if dataset.version != self._version:
            self._update(dataset)
        order, found = np.argsort(keys), np.full(len(keys), -1, np.int64)
        keys = keys[order]
        starts = np.searchsorted(keys, self._ends[0])
        stops = np.searchsorted(keys, self._ends[1], side="right")
        for number in np.flatnonzero(starts < stops).tolist():
            some, rows = slice(starts[number], stops[number]), self._rows[number]
            at = np.searchsorted(rows.keys, keys[some])
            there = rows.keys[at] == keys[some]
            at = at[there]
            found[order[some][there]] = rows.first + (at if rows.gaps is None else rows.gaps[at])
        return found

    def _update(self, dataset: "lance.LanceDataset") -> None:
        there = {fragment.data_files()[0].path: fragment for fragment in dataset.get_fragments()}
        known = {name: rows for name, rows in self._fragments.items() if name in there}
        new = {name: fragment for name, fragment in there.items() if name not in known}
        if new:
            known |= _read(dataset, new)
        self._fragments = known  # not changed in place: others may go on from it
        self._rows = [*known.values()]
        ends = [(rows.keys[0], rows.keys[-1]) for rows in self._rows]
        self._ends = np.array(ends, np.int64).reshape(-1, 2).T
        self._version = int(dataset.version)


def _read(dataset: "lance.LanceDataset", fragments: dict[str, Any]) -> dict[str, _Rows]:
    """Read the keys of fragments; those in which no item is left are not there again."""
    scanner = dataset.scanner(
        columns=["key"], fragments=[*fragments.values()], with_row_address=True
    )
    with uninterrupted():
        table = scanner.to_table()
    keys, addresses = table["key"].to_numpy(), table["_rowaddr"].to_numpy().astype(np.int64)
    number = addresses >> FRAGMENT_BITS
    order = np.lexsort((keys, number))
    keys, addresses, number = keys[order], addresses[order], number[order]
    found = {}
    for name, fragment in fragments.items():
        start, stop = np.searchsorted(number, [fragment.fragment_id, fragment.fragment_id + 1])
        if start < stop:
            first = int(addresses[start])
            gaps = addresses[start:stop] - first
            dense = np.array_equal(gaps, np.arange(len(gaps)))
            found[name] = _Rows(keys[start:stop].copy(), first, None if dense else gaps)
    return found
