"""The exact index against a plain dict, its contract, its files, and its errors."""

import mmap
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import streamhash.search
from fuzzing import machine_settings
from streamhash import FileError, HammingIndex, InputError, pack, storage
from streamhash.kernels.hamming import asymmetric, items, planes, scan
from streamhash.search import code_store
from streamhash.threads import set_threads

FAR = 2147483647
UNTIDY_PLACES = code_store.UNTIDY_PLACES
FILES = Path(__file__).parents[1] / "files"


def codes_of(numbers, n_bits):
    """Codes whose first bits are the binary digits of small numbers: few of them, so many ties."""
    bits = [[int(digit) for digit in f"{number:0{n_bits}b}"[-n_bits:]] for number in numbers]
    return np.packbits(np.array(bits, np.uint8).reshape(-1, n_bits), axis=1)


def planes_of(n, n_bytes):
    return np.zeros((-(-n // 64), n_bytes, 64), np.uint8)


def row(number, n_bits):
    return codes_of([number], n_bits)[0].tobytes()


def distance(code, other):
    return sum((a ^ b).bit_count() for a, b in zip(code, other, strict=True))


class IndexAgainstDict(RuleBasedStateMachine):
    """A dict keeps the order in which keys came, as the index does among strings."""

    some_id = st.integers(0, 12)
    missing = -1
    order = staticmethod(sorted)  # of ids

    @initialize(n_bits=st.sampled_from([1, 3, 8, 12, 63, 65, 128, 256]), few=st.integers(0, 20))
    def start(self, n_bits, few):
        code_store.UNTIDY_PLACES = few  # laid out anew often, or hardly ever
        self.n_bits = n_bits
        self.index = HammingIndex(n_bits)
        self.model = {}

    def numbers(self, n):
        return np.random.default_rng(n * 7 + len(self.model)).integers(0, 2**3, n)

    @rule(ids=st.data(), n=st.integers(0, 5))
    def add(self, ids, n):
        ids = ids.draw(st.lists(self.some_id, min_size=n, max_size=n))
        numbers = self.numbers(n)
        if len(set(ids)) < n or set(ids) & set(self.model):
            with pytest.raises(InputError):
                self.index.add(ids, codes_of(numbers, self.n_bits))
        else:
            self.index.add(ids, codes_of(numbers, self.n_bits))
            self.model |= {i: row(m, self.n_bits) for i, m in zip(ids, numbers, strict=True)}

    @rule(ids=st.data())
    def delete(self, ids):
        ids = ids.draw(st.lists(self.some_id, max_size=3))
        if len(set(ids)) < len(ids) or set(ids) - set(self.model):
            with pytest.raises(InputError):
                self.index.delete(ids)
        else:
            self.index.delete(ids)
            for i in ids:
                del self.model[i]

    @rule(ids=st.data())
    def replace(self, ids):
        ids = ids.draw(st.lists(self.some_id, max_size=3))
        numbers = self.numbers(len(ids))
        if len(set(ids)) < len(ids) or set(ids) - set(self.model):
            with pytest.raises(InputError):
                self.index.replace(ids, codes_of(numbers, self.n_bits))
        else:
            self.index.replace(ids, codes_of(numbers, self.n_bits))
            self.model |= {i: row(m, self.n_bits) for i, m in zip(ids, numbers, strict=True)}

    def ranked(self, query):
        found = [(distance(query, self.model[i]), i) for i in self.order(self.model)]
        return sorted(found, key=lambda pair: pair[0])  # stable: ties keep their order

    @rule(queries=st.lists(st.integers(0, 7), max_size=3), k=st.integers(1, 20))
    def search(self, queries, k):
        distances, ids = self.index.search(codes_of(queries, self.n_bits), k)
        assert distances.shape == ids.shape == (len(queries), k)
        for q, query in enumerate(queries):
            expected = self.ranked(row(query, self.n_bits))[:k]
            padding = k - len(expected)
            assert distances[q].tolist() == [d for d, _ in expected] + [FAR] * padding
            missing = self.missing if self.model else ids[q, -1]
            assert ids[q].tolist() == [i for _, i in expected] + [missing] * padding
            assert missing in (-1, None)

    @rule(queries=st.lists(st.integers(0, 7), max_size=3), radius=st.integers(0, 5))
    def range_search(self, queries, radius):
        limits, distances, ids = self.index.range_search(codes_of(queries, self.n_bits), radius)
        assert limits[0] == 0
        assert limits[-1] == len(distances) == len(ids)
        for q, query in enumerate(queries):
            near = [pair for pair in self.ranked(row(query, self.n_bits)) if pair[0] <= radius]
            place = slice(limits[q], limits[q + 1])
            found = zip(distances[place].tolist(), ids[place].tolist(), strict=True)
            assert list(found) == near

    @rule(data=st.data(), query=st.integers(0, 7), k=st.integers(1, 9), masked=st.booleans())
    def search_among_some(self, data, query, k, masked):
        order = list(self.order(self.model))
        if masked:
            mask = data.draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
            some = {i for i, keep in zip(order, mask, strict=True) if keep}
            allowed = np.array(mask, bool)
        else:
            allowed = data.draw(st.lists(self.some_id, max_size=6))  # some twice, some not there
            some = set(allowed)
        code, moment = codes_of([query], self.n_bits), self.index.moment()
        near = [pair for pair in self.ranked(row(query, self.n_bits)) if pair[1] in some]
        for at in (None, moment):
            distances, ids = self.index.search(code, k, at=at, allowed=allowed)
            there = distances[0] != FAR
            assert list(zip(distances[0, there], ids[0, there], strict=True)) == near[:k]
            _, distances, ids = self.index.range_search(code, self.n_bits, at=at, allowed=allowed)
            assert list(zip(distances, ids, strict=True)) == near
            signs = np.unpackbits(code, axis=1, count=self.n_bits) * 2.0 - 1
            distances, ids = self.index.search_real(signs, k, at=at, allowed=allowed)
            there = distances[0] != np.inf
            assert list(zip(distances[0, there], ids[0, there], strict=True)) == near[:k]
            assert all(i in (-1, None) for i in ids[0, ~there])

    @rule(mapped=st.booleans())
    def save_and_load(self, mapped):
        with tempfile.TemporaryDirectory() as folder:
            self.index.save(Path(folder) / "index")
            self.index = HammingIndex.load(Path(folder) / "index", mmap=mapped)

    def teardown(self):
        code_store.UNTIDY_PLACES = UNTIDY_PLACES

    @invariant()
    def holds_the_same(self):
        assert len(self.index) == len(self.model)
        order = list(self.order(self.model))
        assert list(self.index) == self.index.ids.tolist() == order
        assert [code.tobytes() for code in self.index.codes] == [self.model[i] for i in order]
        assert all(i in self.index for i in self.model)
        assert not any(i in self.index for i in (-1, 13, 2**70, "none", None))


class StringIndexAgainstDict(IndexAgainstDict):
    some_id = st.sampled_from(["", "a", "b", "é", "a\0", "0", "1", "\ud800", "long " * 9])
    missing = None
    order = staticmethod(list)


TestIndexAgainstDict = IndexAgainstDict.TestCase
TestStringIndexAgainstDict = StringIndexAgainstDict.TestCase
for case in (TestIndexAgainstDict, TestStringIndexAgainstDict):
    case.settings = machine_settings(examples=40, steps=30)
    case.pytestmark = pytest.mark.machine
del case  # or it would be collected as one more


# ---------------------------------------------------------------------------------- the contract


def test_ties_go_to_the_lowest_id_in_whatever_order_it_came():
    index = HammingIndex(4)
    index.add([30, 10, 20], codes_of([0, 0, 0], 4))
    assert index.search(codes_of([0], 4), k=2)[1].tolist() == [[10, 20]]
    index.replace([10, 30], codes_of([15, 0], 4))
    assert index.search(codes_of([0], 4), k=3)[1].tolist() == [[20, 30, 10]]
    index.add([5], codes_of([0], 4))
    assert index.search(codes_of([0], 4), k=3)[1].tolist() == [[5, 20, 30]]


def test_ties_of_strings_go_to_the_one_added_first_and_replacing_keeps_its_turn():
    index = HammingIndex(4)
    index.add(["c", "a", "b"], codes_of([0, 0, 0], 4))
    assert index.search(codes_of([0], 4), k=3)[1].tolist() == [["c", "a", "b"]]
    index.replace(["a", "c"], codes_of([15, 0], 4))
    assert index.search(codes_of([0], 4), k=3)[1].tolist() == [["c", "b", "a"]]
    index.delete(["c"])
    index.add(["c"], codes_of([0], 4))
    assert index.search(codes_of([0], 4), k=3)[1].tolist() == [["b", "c", "a"]]


def test_many_ties_out_of_order_need_little_memory_and_go_to_the_lowest_ids():
    rng = np.random.default_rng(0)
    index = HammingIndex(8)
    index.add([10**6], np.zeros((1, 1), np.uint8))
    ids = rng.permutation(20_000)
    for part in np.split(ids, 4):
        index.add(part, np.zeros((len(part), 1), np.uint8))
    assert index.search(np.zeros((5, 1), np.uint8), k=7)[1].tolist() == [list(range(7))] * 5


def test_range_includes_its_radius():
    index = HammingIndex(4)
    index.add(None, codes_of([0b0000, 0b0001, 0b0011, 0b0111], 4))
    limits, distances, ids = index.range_search(codes_of([0b0000, 0b1111], 4), radius=2)
    assert limits.tolist() == [0, 3, 5]
    assert distances.tolist() == [0, 1, 2, 1, 2]
    assert ids.tolist() == [0, 1, 2, 3, 2]
    assert index.range_search(codes_of([0], 4), radius=10**30)[1].tolist() == [0, 1, 2, 3]


def test_items_are_numbered_on_from_the_greatest_id_ever_used(tmp_path):
    index = HammingIndex(4)
    index.add(None, codes_of([1, 2], 4))
    index.add([7], codes_of([3], 4))
    index.add(None, codes_of([4], 4))
    assert list(index) == [0, 1, 7, 8]
    index.delete([8, 7])
    index.save(tmp_path / "index")
    for again in (index, HammingIndex.load(tmp_path / "index")):
        again.add(None, codes_of([5], 4))
        assert list(again) == [0, 1, 9]


def test_an_empty_index_answers():
    index = HammingIndex(12)
    distances, ids = index.search(codes_of([1, 2], 12), k=2)
    assert distances.tolist() == [[FAR, FAR]] * 2
    assert ids.tolist() == [[-1, -1]] * 2
    assert [part.tolist() for part in index.range_search(codes_of([1], 12), 12)] == [[0, 0], [], []]
    assert (len(index), list(index), 0 in index) == (0, [], False)
    assert index.codes.shape == (0, 2)
    assert repr(index) == "HammingIndex(n_bits=12) of 0 items"


def test_an_emptied_index_takes_ids_of_either_kind():
    index = HammingIndex(4)
    index.add(["a"], codes_of([1], 4))
    index.delete(["a"])
    index.add(None, codes_of([1], 4))
    assert list(index) == [0]


def test_an_index_emptied_of_strings_is_saved_and_loaded(tmp_path):
    index = HammingIndex(n_bits=8)
    index.add(["only"], np.zeros((1, 1), np.uint8))
    index.delete(["only"])
    index.save(tmp_path / "index")
    assert list(HammingIndex.load(tmp_path / "index")) == []


def test_results_have_the_types_of_faiss():
    index = HammingIndex(4)
    index.add(np.array([3, 4], np.uint8), codes_of([1, 2], 4))
    distances, ids = index.search(codes_of([1], 4), k=3)
    assert (distances.dtype, ids.dtype) == (np.int32, np.int64)
    limits, distances, ids = index.range_search(codes_of([1], 4), radius=4)
    assert (limits.dtype, distances.dtype, ids.dtype) == (np.int64, np.int32, np.int64)


@pytest.mark.parametrize(
    "ids", [np.array(["x", "y"]), ("x", "y"), np.array(["x", "y"], object), iter("xy")]
)
def test_string_ids_come_in_any_sequence(ids):
    index = HammingIndex(4)
    index.add(ids, codes_of([1, 2], 4))
    assert list(index) == ["x", "y"]
    assert {type(i) for i in index} == {str}


@pytest.mark.parametrize("n_bits", [1, 12, 63, 65, 128, 1024])
def test_search_equals_a_stable_sort_at_any_width(n_bits):
    rng = np.random.default_rng(n_bits)
    codes, queries = (pack(rng.standard_normal((n, n_bits))) for n in (500, 20))
    index = HammingIndex(n_bits)
    index.add(None, codes[:100])
    index.add(None, codes[100:])
    distances = np.unpackbits(queries[:, None] ^ codes, axis=2).sum(axis=2)
    order = np.argsort(distances, axis=1, kind="stable")[:, :50]
    found, ids = index.search(queries, k=50)
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_array_equal(found, np.take_along_axis(distances, order, axis=1))


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    codes, queries = (pack(rng.standard_normal((n, 16))) for n in (500, 100))
    index = HammingIndex(16)
    index.add(None, codes)
    results = []
    try:
        for n_threads in (1, 3):
            set_threads(n_threads)
            results.append([*index.search(queries, 10), *index.range_search(queries, 4)])
    finally:
        set_threads(None)
    for one, three in zip(*results, strict=True):
        np.testing.assert_array_equal(one, three)


def test_a_search_sees_whole_batches_while_others_are_added_and_removed():
    index = HammingIndex(8)
    query = codes_of([0], 8)
    stop, seen = threading.Event(), []

    def search():
        while not stop.is_set():
            seen.append(index.range_search(query, 8)[2].tolist())

    searching = threading.Thread(target=search)
    searching.start()
    for i in range(60):
        index.add(range(10 * i, 10 * i + 10), np.zeros((10, 1), np.uint8))
        if i % 3 == 2:
            index.delete(range(10 * i - 10, 10 * i))
    stop.set()
    searching.join()
    assert seen
    for ids in seen:
        assert len(ids) % 10 == 0
        assert ids == [i for first in ids[::10] for i in range(first, first + 10)]


def test_a_search_sees_all_of_a_replacement_or_nothing():
    n = 300
    index = HammingIndex(8)
    index.add(None, np.zeros((n, 1), np.uint8))
    zero, stop, seen = np.zeros((5, 1), np.uint8), threading.Event(), []

    def search():
        while not stop.is_set():
            distances, ids = index.search(zero, n + 1)
            seen.append((distances[:, :n], ids[:, :n], index.range_search(zero, 0)[0]))

    searching = [threading.Thread(target=search) for _ in range(2)]
    for thread in searching:
        thread.start()
    for i in range(200):
        index.replace(range(n), np.full((n, 1), 255 * (i % 2), np.uint8))
    stop.set()
    for thread in searching:
        thread.join()
    assert seen
    for distances, ids, limits in seen:
        assert len(np.unique(distances)) == 1
        np.testing.assert_array_equal(ids, np.tile(np.arange(n), (5, 1)))
        assert set(np.diff(limits).tolist()) in ({0}, {n})


def test_deleting_and_replacing_copy_nothing_until_half_is_gone():
    index = HammingIndex(64)
    index.add(None, np.zeros((1000, 8), np.uint8))
    index.add(None, np.zeros((100, 8), np.uint8))  # which makes room
    planes = index._store.now.items.planes
    index.delete(range(300))
    index.replace(range(400, 450), np.ones((50, 8), np.uint8))
    assert index._store.now.items.planes is planes
    index.delete(range(500, 700))
    assert index._store.now.items.size == len(index) == 600
    assert list(index) == [*range(300, 500), *range(700, 1100)]


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.replace([0, 1], codes_of([15, 15], 4)),
        lambda index: index.delete([0]),
        lambda index: index.add(None, codes_of([0, 0], 4)),
    ],
    ids=["replace", "delete", "add"],
)
def test_a_search_sees_the_index_as_it_was_when_it_began(monkeypatch, change):
    index = HammingIndex(4)
    index.add(None, codes_of([0, 1, 3], 4))

    def change_then_search(*arguments):
        change(index)
        return scan.nearest(*arguments)

    monkeypatch.setattr("streamhash.search.index.nearest", change_then_search)
    distances, ids = index.search(codes_of([0], 4), k=3)
    assert distances.tolist() == [[0, 1, 2]]
    assert ids.tolist() == [[0, 1, 2]]


def test_changes_of_the_callers_arrays_do_not_reach_the_index():
    index = HammingIndex(8)
    codes, ids = codes_of([1, 2], 8), np.array([5, 6])
    index.add(ids, codes)
    codes[:], ids[:] = 0, 0
    index.ids[:] = 9
    index.codes[:] = 9
    assert list(index) == [5, 6]
    assert index.codes.tolist() == [[1], [2]]


def test_no_use_of_the_index_makes_a_kernel_compile_again(tmp_path):
    index = HammingIndex(100)
    codes = pack(np.random.default_rng(0).standard_normal((20, 100)))
    codes.flags.writeable = False
    index.add(None, codes)
    index.search(codes, 3)
    index.delete([3])
    index.search(codes[::2], 30)
    index.replace([4], codes[:1])
    index.range_search(np.asfortranarray(codes), 3)
    mask = np.arange(19) % 2 > 0
    mask.flags.writeable = False
    index.search(codes, 3, allowed=mask)
    index.range_search(codes, 3, allowed=[3, 1])
    index.search(codes, 3, at=index.moment().with_keys(np.arange(20)[::1], mask.repeat(2)[:20]))
    index.save(tmp_path / "index")
    mapped = HammingIndex.load(tmp_path / "index", mmap=True)
    mapped.search(codes, 3)
    mapped.range_search(codes, 3)
    projections = np.ones((1, 100))
    index.search_real(projections, 3)
    projections.flags.writeable = False
    mapped.search_real(np.asfortranarray(projections), 3, allowed=[1])
    kernels = scan._search_range, scan._gather, scan._arrange_rows, asymmetric._search_range
    for kernel in (*kernels, asymmetric._arrange, items.have_keys):
        assert len(kernel.signatures) == 1
    assert len(scan._collect.signatures) <= 1  # none, if it came from the cache on disk


# -------------------------------------------------------------------------------------- the files


def test_equal_indexes_are_equal_files(tmp_path):
    for name in ("one", "two"):
        index = HammingIndex(9)
        index.add(["a", "b"], codes_of([1, 2], 9))
        index.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_a_damaged_or_foreign_file_is_refused(tmp_path):
    index = HammingIndex(9)
    index.add(None, codes_of([1, 2], 9))
    path = tmp_path / "index"
    index.save(path)
    whole = path.read_bytes()
    for content in (b"", b"not a zip", whole[: len(whole) // 2]):
        path.write_bytes(content)
        for mapped in (False, True):
            with pytest.raises(FileError):
                HammingIndex.load(path, mmap=mapped)
    storage.write(path, "hasher", {}, {})
    with pytest.raises(FileError):
        HammingIndex.load(path)
    with pytest.raises(FileError):
        HammingIndex.load(tmp_path / "nowhere")


def mapped_from(array):
    """Whether an array is the memory of a mapped file."""
    while array.base is not None and not isinstance(array.base, mmap.mmap):
        array = array.base
    return isinstance(array.base, mmap.mmap)


def test_a_mapped_index_answers_from_the_file_until_items_are_added(tmp_path):
    rng = np.random.default_rng(0)
    codes = pack(rng.standard_normal((1000, 100)))
    index = HammingIndex(100)
    index.add(None, codes)
    index.save(tmp_path / "index")
    before = (tmp_path / "index").read_bytes()
    mapped = HammingIndex.load(tmp_path / "index", mmap=True)
    now = mapped._store.now.items
    for array in (now.planes, now.keys):
        assert mapped_from(array)
        assert array.ctypes.data % 64 == 0
    for change in (
        lambda either: either.search(codes, 1),
        lambda either: either.delete([3, 5]),
        lambda either: either.replace([8, 9], codes[:2]),
        lambda either: either.add(None, codes[:70]),
    ):
        change(index)
        change(mapped)
        for one, other in zip(index.search(codes, 9), mapped.search(codes, 9), strict=True):
            np.testing.assert_array_equal(one, other)
    assert (tmp_path / "index").read_bytes() == before
    mapped.save(tmp_path / "index")  # over the file that another may have mapped
    assert len(HammingIndex.load(tmp_path / "index")) == 1068


@pytest.mark.slow
def test_other_processes_read_the_same_mapped_file(tmp_path):
    index = HammingIndex(64)
    index.add(None, pack(np.random.default_rng(0).standard_normal((500, 64))))
    index.save(tmp_path / "index")
    program = (
        "import sys, numpy as np; from streamhash import HammingIndex; "
        "index = HammingIndex.load(sys.argv[1], mmap=True); "
        "print(index.search(index.codes[7:8], 3)[1].tolist())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "index")]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = {run.communicate(timeout=120)[0] for run in runs}
    assert answers == {f"{index.search(index.codes[7:8], 3)[1].tolist()}\n"}


def test_a_file_of_the_first_layout_loads():
    """Rows of codes, in the order of adding: what version 0.1.0 wrote before codes had planes."""
    index = HammingIndex.load(FILES / "v1-index-rows.streamhash")
    expected = np.load(FILES / "v1-index-rows.npz")
    np.testing.assert_array_equal(index.search(expected["queries"], 5)[0], expected["distances"])
    assert list(index) == sorted(expected["ids"].tolist())
    index.add(None, expected["queries"][:1])
    assert max(index) == 1000  # ids go on from the greatest one


@pytest.mark.parametrize("name", ["v1-index", "v1-index-strings"])
@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_with_planes_loads(name, mapped):
    index = HammingIndex.load(FILES / f"{name}.streamhash", mmap=mapped)
    expected = np.load(FILES / f"{name}.npz")
    distances, ids = index.search(expected["queries"], 5)
    np.testing.assert_array_equal(distances, expected["distances"])
    np.testing.assert_array_equal(ids, expected["ids"])


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"n_bits": 9, "next_id": 2}, {"codes": codes_of([1, 2], 9), "ids": np.array([4])}),
        ({"n_bits": 9, "next_id": 2}, {"codes": codes_of([1, 2], 9), "ids": np.array([4, 4])}),
        ({"n_bits": 9, "next_id": 2}, {"codes": codes_of([1, 2], 9)}),
        ({"n_bits": 99, "next_id": 2}, {"codes": codes_of([1], 9), "ids": np.array([4])}),
        ({"n_bits": 9}, {"codes": codes_of([1], 9), "ids": np.array([4])}),
        ({"n_bits": 9, "next_id": 2}, {"planes": planes_of(65, 2), "ids": np.array([4])}),
        ({"n_bits": 9, "next_id": 2}, {"planes": planes_of(2, 1), "ids": np.array([4, 5])}),
        ({"n_bits": 9, "next_id": 2}, {"planes": planes_of(2, 2), "ids": np.array([5, 4])}),
        ({"n_bits": 9, "next_id": 2}, {"planes": planes_of(2, 2), "ids": np.array([4.0, 5.0])}),
        ({"n_bits": 9, "next_id": 2}, {"planes": ~planes_of(2, 2), "ids": np.array([4, 5])}),
    ],
    ids=[
        *("fewer_ids", "equal_ids", "no_ids", "other_width", "no_next_id", "more_planes"),
        *("fewer_planes", "ids_out_of_order", "ids_not_whole", "spare_bits"),
    ],
)
def test_a_file_whose_parts_do_not_fit_is_refused(tmp_path, header, arrays):
    storage.write(tmp_path / "index", "index", header, arrays)
    with pytest.raises(FileError, match="does not fit together"):
        HammingIndex.load(tmp_path / "index")


# ------------------------------------------------------------------------------------- the errors


def full_index():
    index = HammingIndex(12)
    index.add([0, 7], codes_of([1, 2], 12))
    return index


def string_index():
    index = HammingIndex(12)
    index.add(["a", "b"], codes_of([1, 2], 12))
    return index


ONE = codes_of([1], 12)


@pytest.mark.parametrize(
    ("make", "call", "message"),
    [
        (
            full_index,
            lambda index: index.add([8, 7], codes_of([3, 4], 12)),
            "HammingIndex.add: id 7 is already in the index; change its code with replace.",
        ),
        (
            full_index,
            lambda index: index.add([8, 8], codes_of([3, 4], 12)),
            "HammingIndex.add: id 8 came twice; pass each id once.",
        ),
        (
            full_index,
            lambda index: index.add([8], codes_of([3, 4], 12)),
            "HammingIndex.add: 2 codes and 1 ids came; pass one id a code.",
        ),
        (
            full_index,
            lambda index: index.add(["x"], ONE),
            "HammingIndex.add: ids are strings, those of this index are whole numbers; pass whole "
            "numbers.",
        ),
        (
            string_index,
            lambda index: index.add([1], ONE),
            "HammingIndex.add: ids are whole numbers, those of this index are strings; pass "
            "strings.",
        ),
        (
            string_index,
            lambda index: index.add(None, ONE),
            "HammingIndex.add: ids did not come, and this index has strings; pass one string an "
            "item.",
        ),
        (
            full_index,
            lambda index: index.add([1, "x"], codes_of([3, 4], 12)),
            "HammingIndex.add: ids hold 'x'; pass whole numbers from 0 up, or strings, but not "
            "both.",
        ),
        (
            full_index,
            lambda index: index.add([1.0], ONE),
            "HammingIndex.add: ids hold 1.0; pass whole numbers from 0 up, or strings, but not "
            "both.",
        ),
        (
            full_index,
            lambda index: index.add([True], ONE),
            "HammingIndex.add: ids hold True; pass whole numbers from 0 up, or strings, but not "
            "both.",
        ),
        (
            full_index,
            lambda index: index.add([-1], ONE),
            "HammingIndex.add: ids from -1 to -1 came; pass whole numbers from 0 to "
            "9223372036854775807, or strings.",
        ),
        (
            full_index,
            lambda index: index.add([2**63], ONE),
            "HammingIndex.add: ids from 9223372036854775808 to 9223372036854775808 came; pass "
            "whole numbers from 0 to 9223372036854775807, or strings.",
        ),
        (
            string_index,
            lambda index: index.delete("a"),
            "HammingIndex.delete: ids='a' is not a list of ids; pass one id an item.",
        ),
        (
            full_index,
            lambda index: index.delete([0, 8]),
            "HammingIndex.delete: id 8 is not in the index; ask `id in index` first, or add it.",
        ),
        (
            full_index,
            lambda index: index.delete([0, 0]),
            "HammingIndex.delete: id 0 came twice; pass each id once.",
        ),
        (
            full_index,
            lambda index: index.replace([0, 8], codes_of([3, 4], 12)),
            "HammingIndex.replace: id 8 is not in the index; ask `id in index` first, or add it.",
        ),
        (
            full_index,
            lambda index: index.replace([0, 7], ONE),
            "HammingIndex.replace: 1 codes and 2 ids came; pass one id a code.",
        ),
        (
            full_index,
            lambda index: index.add(None, np.zeros((1, 3), np.uint8)),
            "HammingIndex.add: codes: 12 bits need 2 bytes a row, but came 3; pass codes of the "
            "model these belong to.",
        ),
        (
            full_index,
            lambda index: index.add(None, np.full((1, 2), 255, np.uint8)),
            "HammingIndex.add: codes: the last 4 bits of a row, which fill up the last byte of "
            "12-bit codes, must be zero; pass codes of 12 bits.",
        ),
        (
            full_index,
            lambda index: index.search(ONE, k=0),
            "HammingIndex.search: k=0 must be a whole number from 1 up.",
        ),
        (
            full_index,
            lambda index: index.search_real(ONE, k=1),
            "HammingIndex.search_real: projections: expected numbers of shape (n, 12), but came "
            "uint8 of shape (1, 2); make them with a hasher's project(X).",
        ),
        (
            full_index,
            lambda index: index.search_real(np.full((1, 12), 1e39), k=1),
            "HammingIndex.search_real: projections hold values that are not finite in float32; "
            "pass numbers.",
        ),
        (
            full_index,
            lambda index: index.search_real(np.ones((1, 12)), k=1.5),
            "HammingIndex.search_real: k=1.5 must be a whole number from 1 up.",
        ),
        (
            full_index,
            lambda index: index.search(ONE, k=1, allowed=[True]),
            "HammingIndex.search: allowed: a mask of shape (1,) came, and the index has 2 items; "
            "pass one value an item, in the order of `ids`.",
        ),
        (
            full_index,
            lambda index: index.range_search(ONE, 1, allowed=["a"]),
            "HammingIndex.range_search: allowed: ids are strings, those of this index are whole "
            "numbers; pass whole numbers, or a mask.",
        ),
        (
            string_index,
            lambda index: index.search(ONE, k=1, allowed="a"),
            "HammingIndex.search: allowed: ids='a' is not a list of ids; pass one id an item.",
        ),
        (
            full_index,
            lambda index: index.search(ONE, k=10**9),
            "HammingIndex.search: 1 queries with k=1000000000 are more than 100000000 answers, and "
            "there are 2 items; pass a smaller k, or fewer queries at a time.",
        ),
        (
            full_index,
            lambda index: index.range_search(ONE, radius=-1),
            "HammingIndex.range_search: radius=-1 must be a whole number from 0 up.",
        ),
    ],
)
def test_bad_input_is_refused_with_the_next_step_and_changes_nothing(make, call, message):
    index = make()
    before = (index.ids.tolist(), index.codes.tolist())
    with pytest.raises(InputError) as error:
        call(index)
    assert str(error.value) == message
    assert (index.ids.tolist(), index.codes.tolist()) == before


@pytest.mark.parametrize("n_bits", [0, 1025, 2.0, "8", True])
def test_code_lengths_outside_the_range_are_refused(n_bits):
    with pytest.raises(InputError) as error:
        HammingIndex(n_bits)
    assert str(error.value) == (
        f"HammingIndex: n_bits={n_bits!r} must be a whole number from 1 to 1024."
    )


def test_every_public_name_exists():
    for name in streamhash.search.__all__:
        assert hasattr(streamhash.search, name)


def test_ids_are_told_without_building_codes(monkeypatch):
    index = HammingIndex(4)
    index.add([7, 3], codes_of([1, 2], 4))
    monkeypatch.setattr("streamhash.search.index.from_planes", None)
    assert index.ids.tolist() == list(index) == [3, 7]


def test_contents_are_of_one_moment_and_read_once(monkeypatch):
    index = HammingIndex(4)
    index.add(None, codes_of([1, 2, 3], 4))
    calls = []

    def change_then_read(*arguments):
        calls.append(arguments)
        index.replace([0], codes_of([9], 4))
        index.delete([1])
        index.add([8], codes_of([8], 4))
        return planes.from_planes(*arguments)

    monkeypatch.setattr("streamhash.search.index.from_planes", change_then_read)
    ids, codes = index.contents()
    assert len(calls) == 1
    assert ids.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(codes, codes_of([1, 2, 3], 4))
    assert index.ids.tolist() == [0, 2, 8]
