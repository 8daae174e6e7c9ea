"""A collection searched with filters, by calls in any order."""

import tempfile
from functools import partial

import hypothesis.strategies as st
import numpy as np
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from streamhash import SDOH
from streamhash.live import Collection, journal
from streamhash.live.filters import Filter

WIDTH = 4


def vector(number):
    return np.sin(number * np.arange(1, WIDTH + 1) * 0.7).astype(np.float32)


metadata = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "n": st.integers(-2, 6) | st.sampled_from([0.5, 2.5]),
        "s": st.sampled_from(["a", "b", "ab"]),
        "b": st.booleans() | st.none(),
        "d": st.sampled_from(["2026-01-31", "2026-02-01T12:00:00Z"]),
        "in": st.fixed_dictionaries({}, optional={"x": st.integers(0, 2)}),
    },
)
FILTERS = [
    "n < 3",
    "NOT n < 3",
    "n >= 0.5 AND s = 'a'",
    "s IN ('a', 'ab') OR b",
    "s LIKE '%b'",
    "b IS NULL AND n != 2",
    "NOT (b OR n = 1)",
    "d >= date '2026-02-01'",
    '"in".x BETWEEN 1 AND 2',
    "id < 12",
    "label = 1 OR n > 4",
    "label IS NULL",
    "NOT 2 IN labels AND s IS NOT NULL",
]
EVERYTHING = {"n": 1, "s": "a", "b": True, "d": "2026-01-31", "in": {"x": 1}}
ids_of_some = st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True)
label = st.sampled_from([None, 0, 1, 2])


class FilterMachine(RuleBasedStateMachine):
    """A collection searched with filters, against plain Python and NumPy."""

    backend_options = None

    def __init__(self):
        super().__init__()
        journal.TIDY_AFTER, journal.LOG_CHANGES = 5, 3
        self.folder = tempfile.TemporaryDirectory()
        self.path = f"{self.folder.name}/items"
        hasher = SDOH(8, batch_size=4, n_features=16, memory=20, random_state=0)
        self.c = Collection.create(
            self.path,
            hasher,
            refresh=12,
            backend=self.address(),
            backend_options=self.backend_options,
        )
        # One item has every field, with a value of every kind: so no filter is refused.
        self.there = {}
        self.n = 0
        self.put([1000], [1], [EVERYTHING])
        self.reader = Collection.open(
            self.path, read_only=True, backend_options=self.backend_options
        )

    def address(self):
        """Where codes are searched: in memory."""
        return

    def teardown(self):
        self.c.close()
        self.reader.close()
        self.folder.cleanup()
        journal.TIDY_AFTER, journal.LOG_CHANGES = 64, 2048

    def put(self, ids, labels, extra):
        numbers = [*range(self.n, self.n + len(ids))]
        self.n += len(ids)
        rows = np.array([vector(number) for number in numbers])
        self.c.add(ids, rows, labels, metadata=extra, existing="replace")
        for i, *rest in zip(ids, numbers, labels, extra, strict=True):
            self.there.pop(i, None)
            self.there[i] = rest

    def some(self, data):
        others = [i for i in self.there if i != 1000]
        return data.draw(st.lists(st.sampled_from(others), min_size=1, unique=True))

    @rule(ids=ids_of_some, data=st.data())
    def add(self, ids, data):
        n = len(ids)
        labels = data.draw(st.lists(label, min_size=n, max_size=n))
        self.put(ids, labels, data.draw(st.lists(metadata, min_size=n, max_size=n)))

    @precondition(lambda self: len(self.there) > 1)
    @rule(data=st.data())
    def label(self, data):
        ids = self.some(data)
        labels = data.draw(st.lists(label, min_size=len(ids), max_size=len(ids)))
        self.c.label(ids, labels)
        for i, y in zip(ids, labels, strict=True):
            self.there[i][1] = y

    @precondition(lambda self: len(self.there) > 1)
    @rule(data=st.data())
    def set_metadata(self, data):
        ids = self.some(data)
        extra = data.draw(st.lists(metadata, min_size=len(ids), max_size=len(ids)))
        self.c.set_metadata(ids, extra)
        for i, each in zip(ids, extra, strict=True):
            number, y, _ = self.there.pop(i)
            self.there[i] = [number, y, each]

    @precondition(lambda self: len(self.there) > 1)
    @rule(data=st.data())
    def delete(self, data):
        ids = self.some(data)
        self.c.delete(ids)
        for i in ids:
            del self.there[i]

    @rule(n=st.integers(1050, 1100), more=st.integers(0, 100))
    def many_come_and_go(self, n, more):
        """Places of deleted items are used up: the others move up, and new ones come."""
        ids = range(2000, 2000 + n + more)
        for size, value in ((n, 1), (n + more, 2)):
            rows = np.tile(vector(value), (size, 1))
            self.c.add(ids[:size], rows, metadata=[{"n": value}] * size)
            for c in (self.c, self.reader):
                assert c.find(f"n = {value} AND id >= 2000") == [*ids[:size]]
            self.c.delete(ids[:size])

    @precondition(lambda self: self.c.model_number)
    @rule()
    def refresh(self):
        self.c.refresh()

    @rule()
    def reopen(self):
        self.c.close()
        self.c = Collection.open(self.path, backend_options=self.backend_options)

    def matching(self, text):
        def read(i, field):
            _, y, value = self.there[i]
            special = {("id",): i, ("label",): y, ("labels",): None if y is None else (y,)}
            if field in special:
                return special[field]
            for name in field:
                value = value.get(name) if isinstance(value, dict) else None
            return value

        return [i for i in self.there if Filter.parse(text).holds(partial(read, i))]

    @rule()
    def find(self):
        for where in FILTERS:
            for c in (self.c, self.reader):
                assert c.find(where) == self.matching(where), where

    @precondition(lambda self: self.c.model_number)
    @rule(where=st.sampled_from(FILTERS), k=st.integers(1, 12))
    def search(self, where, k):
        queries = np.array([vector(number) for number in (0, 1, self.n)])
        ids = self.matching(where)
        rows = np.array([vector(self.there[i][0]) for i in ids]).reshape(-1, WIDTH)
        for c in (self.c, self.reader):
            model = c.model()
            distances, found = c.search(queries, k, where=where)
            assert found.shape == (3, k)
            codes = np.unpackbits(model.transform(queries), axis=1)
            own = np.unpackbits(model.transform(rows), axis=1) if ids else np.empty((0, 8))
            for q in range(3):
                far = (codes[q] != own).sum(axis=1)
                order = np.argsort(far, kind="stable")[:k]
                assert found[q, : len(order)].tolist() == [ids[i] for i in order]
                assert distances[q, : len(order)].tolist() == far[order].tolist()
                assert (found[q, len(order) :] == -1).all()

    @invariant()
    def nothing_is_lost(self):
        assert self.c.ids == [*self.there]
