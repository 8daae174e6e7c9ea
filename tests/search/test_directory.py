"""Ids, keys and labels in columns, against a plain dict; and what an item takes of memory."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from fuzzing import machine_settings
from streamhash import SDOH
from streamhash.kernels import ids as kernels
from streamhash.live import Collection
from streamhash.search import directory, id_table
from streamhash.search.directory import Coded, Directory
from streamhash.search.id_table import IdTable
from streamhash.search.ids import Strings

some_numbers = st.lists(st.integers(0, 40) | st.integers(0, 2**63 - 1), max_size=40)
some_strings = st.lists(st.text(max_size=5) | st.sampled_from("abc"), max_size=40)


def column(values):
    strings = bool(values) and isinstance(values[0], str)
    return Strings.of(values) if strings else np.array(values, np.int64)


@settings(deadline=None)
@given(
    pieces=st.lists(some_numbers, max_size=4) | st.lists(some_strings, max_size=4), data=st.data()
)
def test_a_table_finds_what_a_dict_finds(pieces, data):
    table, twin, all_ids, replaced = IdTable(), {}, [], set()
    if data.draw(st.booleans()):
        table.expect(100)
    for piece in pieces:
        first, all_ids = len(all_ids), all_ids + piece
        again = table.put(column(all_ids), len(all_ids))
        new = {*kernels.plain_put(twin, piece, first)}
        replaced |= new
        assert new <= {*again.tolist()} <= replaced
    if all_ids:
        other = ["", "zz"] if isinstance(all_ids[0], str) else [7, 2**62]
        wanted = [*all_ids, *other]
        found = table.find(column(all_ids), column(wanted))
        assert found.tolist() == kernels.plain_find(twin, wanted)


@pytest.mark.parametrize("kind", ["numbers", "strings"])
def test_kernels_do_as_their_twins(kind):
    random = np.random.default_rng(0)
    values = random.integers(0, 3000, 2000).tolist()
    values = values if kind == "numbers" else [f"item {value}" for value in values]
    ids, salt = column(values), np.uint64(5)
    parts = (ids,) if kind == "numbers" else (ids.content, ids.offsets)
    put, find, move = (getattr(kernels, f"{verb}_{kind}") for verb in ("put", "find", "move"))
    slots, twin = np.full(2200, kernels.FREE, np.int32), {}
    assert put(slots, *parts, 0, 1200, salt).tolist() == kernels.plain_put(twin, values[:1200], 0)
    assert put(slots, *parts, 1200, 2000, salt).tolist() == kernels.plain_put(
        twin, values[1200:], 1200
    )
    larger = np.full(5000, kernels.FREE, np.int32)
    move(slots, larger, *parts, salt)
    for table in (slots, larger):
        assert find(table, *parts, *parts, salt).tolist() == kernels.plain_find(twin, values)


def test_ids_that_ascend_need_no_slots():
    table, ids = IdTable(), np.arange(0, 20_000, 2)
    table.put(ids, 10_000)
    assert len(table._slots) == id_table.LEAST_SLOTS
    assert table.find(ids, np.array([0, 1, 2, 19_998, 20_000])).tolist() == [0, -1, 1, 9999, -1]


@pytest.mark.parametrize("kind", [int, str])
def test_ids_may_be_noted_later_by_any_number_of_threads(kind):
    ids = [kind(i) for i in np.random.default_rng(0).permutation(20_000).tolist()]
    lazy, keys = Directory(), np.arange(20_000)
    for first in range(0, 20_000, 5000):
        some = slice(first, first + 5000)
        lazy.extend(keys[some], column(ids[some]), [None] * 5000)
    assert len(lazy) == 20_000
    assert lazy._table.size == 0  # nobody has looked for an id
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: lazy.find(ids).tolist(), range(8)):
            assert found == keys.tolist()
    assert lazy.append(np.array([20_000]), column(ids[7:8]), [None]).tolist() == [7]
    assert lazy.find(ids[7:9]).tolist() == [20_000, 8]


def test_what_came_twice_is_found_when_all_is_noted():
    one, keys = Directory(), np.arange(6)
    one.extend(keys[:4], column([5, 9, 2, 7]), ["a"] * 4)
    one.note_ids()
    one.extend(keys[4:], column([9, 3]), ["b"] * 2)
    one.note_ids()
    assert one.settle().tolist() == [1]
    assert one.settle().tolist() == []
    assert one.ids == [5, 2, 7, 9, 3]
    assert one.n_labelled == 5


def test_strings_come_back_as_they_were():
    values = ["", "a", "häßlich", "\ud800", "𝄞" * 3]
    assert Strings.of(values)[np.arange(5)].tolist() == values
    assert Strings.of(values)[np.array([4, 0, 1])].tolist() == ["𝄞" * 3, "", "a"]
    assert len(Strings.of([])) == len(Strings.of([])[np.arange(0)]) == 0


class DirectoryMachine(RuleBasedStateMachine):
    """A directory beside a dict, by calls in any order."""

    some_ids = st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True)

    def __init__(self):
        super().__init__()
        directory.SPARE_PLACES = 4  # others move up often
        directory.PIECE = 3
        self.directory, self.twin, self.moments = Directory(), {}, []
        self.deleted, self.lives = 0, []

    def teardown(self):
        directory.SPARE_PLACES, directory.PIECE = 1024, 2**18

    @rule(ids=some_ids, label=st.sampled_from([None, 0, "a", ("a", "b")]), coded=st.booleans())
    def append(self, ids, label, coded):
        keys = self.directory.last_key + 1 + np.arange(len(ids))
        labels = [label] * len(ids)
        if coded:
            labels = Coded(np.full(len(ids), -1 if label is None else 1, np.int32), ["no", label])
        old = [self.twin.pop(i)[0] for i in ids if i in self.twin]
        replaced = self.directory.append(keys, np.array(ids, self.kind), labels)
        assert sorted(replaced.tolist()) == sorted(old)
        self.deleted += len(old)
        self.twin.update((i, (key, label)) for i, key in zip(ids, keys.tolist(), strict=True))

    @rule(data=st.data(), by_key=st.booleans())
    def delete(self, data, by_key):
        ids = data.draw(st.lists(st.sampled_from([*self.twin] or [None]), unique=True))
        ids = [i for i in ids if i is not None]
        keys = [self.twin.pop(i)[0] for i in ids]
        if by_key:
            self.directory.delete_keys(np.array(keys, np.int64))
        else:
            self.directory.delete(ids)
        self.deleted += len(ids)

    @rule(data=st.data(), labels=st.lists(st.sampled_from([None, 1, "b", *range(100, 260)])))
    def label(self, data, labels):
        if self.twin:
            ids = [data.draw(st.sampled_from([*self.twin])) for _ in labels]
            keys = np.array([self.twin[i][0] for i in ids], np.int64)
            self.directory.set_labels(keys, labels)
            for i, label in zip(ids, labels, strict=True):
                self.twin[i] = self.twin[i][0], label

    @rule()
    def remember(self):
        listing = self.directory.listing
        keys = listing.keys[: listing.size].copy()
        self.moments.append((listing, keys, listing.ids_of(keys).tolist()))

    @invariant()
    def they_agree(self):
        now, twin = self.directory, self.twin
        keys = np.array([key for key, _ in twin.values()], np.int64)
        labels = [label for _, label in twin.values()]
        assert len(now) == len(twin)
        assert now.ids == [*twin]
        assert now.keys.tolist() == keys.tolist()
        assert now.find([*twin, *self.others]).tolist() == [*keys.tolist(), -1, -1]
        assert now.find(np.array([*twin], self.kind)).tolist() == keys.tolist()
        assert all(i in now for i in twin)
        assert not any(i in now for i in (*self.others, "x", -1, 2.5, None, 2**70))
        assert now.has(np.array([*keys, -1, now.last_key + 1])).tolist() == [
            *[True] * len(twin),
            0,
            0,
        ]
        assert now.listing.label_names_of(keys) == labels
        assert now.n_labelled == sum(label is not None for label in labels)
        assert now.n_deleted == self.deleted
        classes = {e for y in labels if y is not None for e in (y if isinstance(y, tuple) else [y])}
        assert now.n_classes == len(classes)
        assert {*now.classes} >= classes
        assert now.absent([keys[:2], keys[3:]]).tolist() == keys[2:3].tolist()
        for listing, old, ids in self.moments:
            assert listing.ids_of(old).tolist() == ids
        live = now.live_keys
        assert len(live) == len(keys)
        assert np.concatenate([keys[:0], *live.pieces()]).tolist() == keys.tolist()
        after, last = now.last_key // 3, now.last_key // 3 * 2
        between = live.between(after, last).tolist()
        assert between == keys[(keys > after) & (keys <= last)].tolist()
        others = live.without(keys[::2])
        twice = np.concatenate([keys[::2], [last, 2**40], keys[1::3], keys[::2], keys[1::3]])
        taken = now.live_keys
        assert taken.take_last(keys[1::2]).all()
        first, again = set(keys[1::2].tolist()), taken.take_last(twice)
        wanted = [
            key in {*keys.tolist()} - first and key not in twice[i + 1 :]
            for i, key in enumerate(twice.tolist())
        ]
        assert again.tolist() == wanted
        assert len(taken) == len(keys) - len(keys[1::2]) - sum(wanted)
        assert len(others) == len(keys[1::2])
        assert others.between(-1, now.last_key).tolist() == keys[1::2].tolist()
        for live, all_keys in self.lives:
            assert live.between(-1, 2**62).tolist() == all_keys
        self.lives = [*self.lives[-2:], (now.live_keys, keys.tolist())]

    kind, others = np.int64, (1000, 2**40)


class StringsMachine(DirectoryMachine):
    """The same of strings."""

    some_ids = st.lists(st.text("ab", max_size=3), min_size=1, max_size=8, unique=True)
    kind, others = object, ("nobody", "aaaa")

    @rule(ids=some_ids, label=st.sampled_from([None, 0, "a"]))
    def append(self, ids, label):
        super().append(ids, label, False)


@pytest.mark.parametrize("machine", [DirectoryMachine, StringsMachine])
def test_a_directory_beside_a_dict(machine):
    run_state_machine_as_test(machine, settings=machine_settings(30, 20))


MEASURE = """
import json, sys, tracemalloc
import numpy as np
from streamhash.live import Collection

path, n = sys.argv[1], int(sys.argv[2])
Collection.open(path + "-small", read_only=True).search(np.zeros((1, 4)), 3)
tracemalloc.start()
items = Collection.open(path)
opened, peak = tracemalloc.get_traced_memory()
items.search(np.zeros((1, 4)), 3)
assert len(items) == n and items.status()["labelled"] == 1000
print(json.dumps([opened / n, peak / n]))
"""


@pytest.mark.parametrize("kind", ["ascending", "any", "strings"])
def test_an_item_takes_few_bytes(tmp_path, kind):
    """In a process of its own; ids, keys and labels as Python objects took 250 bytes and more."""
    n, random = 200_000, np.random.default_rng(0)
    ids = np.arange(n) if kind == "ascending" else random.permutation(n) * 7919
    ids = np.array([f"{i:016x}" for i in ids], object) if kind == "strings" else ids
    for path, size in ((tmp_path / "items", n), (tmp_path / "items-small", 1000)):
        hasher = SDOH(64, batch_size=500, n_features=16, memory=20, random_state=0)
        with Collection.create(path, hasher, refresh="manual", durability="process") as items:
            X = random.standard_normal((size, 4))
            items.add(ids[:1000], X[:1000], np.arange(1000) % 50)
            items.add(ids[1000:size], X[1000:])
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "items"), str(n)],
        capture_output=True,
        text=True,
        check=True,
    )
    opened, peak = json.loads(done.stdout)
    codes, length = 8, 16 if kind == "strings" else 0
    assert opened - codes - length <= 48
    assert peak <= 1.3 * opened + 2**23 / n  # what is read at a time
