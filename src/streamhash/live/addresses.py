"""Where items lie in their dataset, so that a few of them are read without looking at all."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.live.arrow import Keys
from streamhash.live.locks import uninterrupted

if TYPE_CHECKING:
    import lance

FRAGMENT_BITS = 32  # a row's address: bits of the place in its fragment, below its number


READ_ROWS = 2**20  # about, whose keys are read at a time
KEPT_BYTES = 2**25  # of runs; of a fragment whose runs are not kept, keys are read again


class _Runs(NamedTuple):
    """The rows of one fragment, in the order of their keys: runs in which both number on."""

    keys: Keys  # the first of each run
    places: NDArray[np.uint32]  # its place in the fragment
    sizes: NDArray[np.uint32]

    @classmethod
    def of(cls, keys: Keys, places: Keys) -> "_Runs":
        """Gather rows, whose keys ascend, into runs."""
        starts = np.flatnonzero((np.diff(keys) != 1) | (np.diff(places) != 1)) + 1
        starts = np.concatenate([[0], starts])
        sizes = np.diff(starts, append=len(keys)).astype(np.uint32)
        return cls(keys[starts], places[starts].astype(np.uint32), sizes)

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self)

    def find(self, keys: Keys) -> Keys:
        """Places of keys, none below the first; -1 where there is none."""
        run = np.searchsorted(self.keys, keys, side="right") - 1
        further = keys - self.keys[run]
        return np.where(further < self.sizes[run], self.places[run] + further, -1)


class _Fragment(NamedTuple):
    """A fragment that has rows: its number, and its first and last key."""

    number: int
    first: int
    last: int


class Addresses:
    """Addresses of items by their keys.

    Lance finds a row at once by its address: the number of its fragment, and its place in it.
    Neither changes as long as there is the fragment; only joining fragments gives their rows other
    addresses. So the keys of a fragment are read once, and known from then on, by the name of its
    first file: a number may come again where the last fragment was deleted, a file never does.

    Items that were added together take next to nothing; others 16 bytes each, and 32 MiB in all.
    """

    def __init__(self, known: "Addresses | None" = None) -> None:
        self._version = 0
        self._fragments: dict[str, _Fragment | None] = {} if known is None else known._fragments
        self._runs: dict[str, _Runs] = {} if known is None else dict(known._runs)
        self._names: list[str] = []
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
            some, name = slice(starts[number], stops[number]), self._names[number]
            fragment = self._fragments[name]
            assert fragment is not None
            if name not in self._runs:
                self._read(dataset, {name: dataset.get_fragment(fragment.number)})
            at = self._runs[name].find(keys[some])
            there = at >= 0
            found[order[some][there]] = (fragment.number << FRAGMENT_BITS) + at[there]
        return found

    def _update(self, dataset: "lance.LanceDataset") -> None:
        there = {fragment.data_files()[0].path: fragment for fragment in dataset.get_fragments()}
        known = {name: each for name, each in self._fragments.items() if name in there}
        self._runs = {name: runs for name, runs in self._runs.items() if name in there}
        group: dict[str, Any] = {}
        n_rows = 0
        for name, fragment in there.items():
            if name not in known:
                group[name] = fragment
                n_rows += int(fragment.count_rows())
            if n_rows >= READ_ROWS:
                known |= self._read(dataset, group)
                group, n_rows = {}, 0
        if group:
            known |= self._read(dataset, group)
        self._fragments = known  # not changed in place: others may go on from it
        with_rows = {name: each for name, each in known.items() if each is not None}
        self._names = [*with_rows]
        ends = [(each.first, each.last) for each in with_rows.values()]
        self._ends = np.array(ends, np.int64).reshape(-1, 2).T
        self._version = int(dataset.version)

    def _read(
        self, dataset: "lance.LanceDataset", fragments: dict[str, Any]
    ) -> dict[str, _Fragment | None]:
        """Read the keys of fragments, and keep runs; those used last go last."""
        scanner = dataset.scanner(
            columns=["key"], fragments=[*fragments.values()], with_row_address=True
        )
        with uninterrupted():
            table = scanner.to_table()
        keys, addresses = table["key"].to_numpy(), table["_rowaddr"].to_numpy().astype(np.int64)
        number = addresses >> FRAGMENT_BITS
        order = np.lexsort((keys, number))
        keys, addresses, number = keys[order], addresses[order], number[order]
        found: dict[str, _Fragment | None] = {}
        for name, fragment in fragments.items():
            start, stop = np.searchsorted(number, [fragment.fragment_id, fragment.fragment_id + 1])
            found[name] = None  # no item is left of it, and none comes again
            if start < stop:
                ends = int(keys[start]), int(keys[stop - 1])
                found[name] = _Fragment(fragment.fragment_id, *ends)
                places = addresses[start:stop] & (2**FRAGMENT_BITS - 1)
                self._runs[name] = _Runs.of(keys[start:stop], places)
        left = sum(runs.nbytes for runs in self._runs.values()) - KEPT_BYTES
        for name in [*self._runs][: -len(fragments)]:
            if left <= 0:
                break
            left -= self._runs.pop(name).nbytes
        return found
