"""Items found by their addresses, whatever became of their fragments; and Lance's caches."""

import numpy as np
import pytest

from streamhash import SDOH
from streamhash.live import Collection, datasets
from streamhash.live.addresses import Addresses
from streamhash.live.store import Store

lance = pytest.importorskip("lance", reason="Lance is not installed")

N = 16  # numbers of a vector


def append(store, keys):
    keys = np.asarray(keys, np.int64)
    vectors = np.repeat(keys[:, None], N, axis=1).astype(np.float32)
    texts = [f'"{key}"' for key in keys.tolist()]
    store.append_items(keys, keys, vectors, [None] * len(keys), texts, None, 0)


def check(store, there, wanted):
    table = store.read_items(["key", "metadata"], np.array(wanted, np.int64))
    expected = sorted(set(there) & set(wanted))
    assert sorted(table["key"].to_pylist()) == expected
    assert sorted(table["metadata"].to_pylist()) == sorted(f'"{key}"' for key in expected)


# An address with "://" is taken for an object store, which is written to in another way.
@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("seed", range(3))
def test_against_a_plain_set(tmp_path, scheme, seed):
    rng = np.random.default_rng(seed)
    store, there, last = Store(f"{scheme}{tmp_path}/items"), set(), 0
    beside = None  # another view of the same, opened now and then
    for _ in range(60):
        kind = rng.integers(5) if there else 0
        if kind < 2:
            keys = range(last + 3, last + 3 + int(rng.integers(1, 40)))
            append(store, keys)
            there |= {*keys}
            last = keys[-1]
        elif kind == 2:
            gone = rng.choice(sorted(there), int(rng.integers(1, len(there) + 1)), replace=False)
            store.delete_items(gone)
            there -= {*gone.tolist()}
        elif kind == 3:
            store.join_fragments("items", many=2)
        else:
            beside = (store if beside is None else beside).another()
            check(beside, there, [*range(last + 5)])
        check(store, there, rng.integers(0, last + 5, 12).tolist())
    check(store, there, [*range(last + 5)])
    check(store, there, [])


def test_a_fragment_that_takes_the_number_of_a_deleted_one(tmp_path):
    store = Store(f"file://{tmp_path}/items")
    append(store, range(5))
    append(store, range(10, 15))
    check(store, {*range(5), *range(10, 15)}, [12])
    numbers = [fragment.fragment_id for fragment in store.fragments()]
    store.delete_items(np.arange(10, 15))
    append(store, range(20, 30))
    check(store, {*range(5), *range(20, 30)}, [0, 12, 21])
    assert [fragment.fragment_id for fragment in store.fragments()] == numbers


def test_only_new_fragments_are_read(tmp_path, monkeypatch):
    store = Store(str(tmp_path))
    append(store, range(100))
    check(store, {*range(100)}, [5])
    append(store, range(200, 300))
    read = []
    scanner = lance.LanceDataset.scanner

    def watched(dataset, *arguments, **options):
        read.extend(options.get("fragments") or [])
        return scanner(dataset, *arguments, **options)

    monkeypatch.setattr(lance.LanceDataset, "scanner", watched)
    found = Addresses(store._addresses).find(store.dataset("items"), np.array([5, 250, 999]))
    assert [fragment.fragment_id for fragment in read] == [1]
    assert sorted(found.tolist()) == [5, (1 << 32) + 50]


def test_what_lance_remembers_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "CACHED", 2**17)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2, N)), [0, 1]
    with Collection.create(tmp_path, SDOH(16), refresh="manual") as collection:
        store, sizes = collection._store, []
        for start in range(0, 200, 2):
            collection.add([start, start + 1], X, y)
            collection.delete([start])
            sizes.append(store._session.size_bytes())
        opened = [store.dataset(name) for name in datasets.NAMES]
        assert all(each.session().is_same_as(store._session) for each in opened)
        assert store.another().dataset("items").session().is_same_as(store._session)
    assert max(sizes) < 2**19
    assert sizes[-1] < 1.5 * sizes[50]
