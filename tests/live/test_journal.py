"""What is stored: items found by their addresses, whatever became of their fragments; caches."""

import numpy as np
import pytest

from streamhash import SDOH
from streamhash.live import Collection, journal, store
from streamhash.live.journal import Journal

lance = pytest.importorskip("lance", reason="Lance is not installed")

N = 16  # numbers of a vector


def append(journal, n):
    """Store items, and return their keys."""
    ids = np.arange(n)
    vectors = np.repeat(ids[:, None], N, axis=1).astype(np.float32)
    texts = [f'"{i}"' for i in range(n)]
    return journal.append_items(ids, vectors, [None] * n, texts, None).tolist()


def check(journal, there, wanted):
    batch = journal.items(np.array(wanted, np.int64))
    expected = [key for key in wanted if key in there]
    assert batch.keys.tolist() == expected
    assert batch.metadata == [str(key & (2**32 - 1)) for key in expected]
    assert batch.vectors[:, 0].tolist() == [key & (2**32 - 1) for key in expected]


# An address with "://" is taken for an object store, which is written to in another way.
@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("seed", range(3))
def test_against_a_plain_set(tmp_path, scheme, seed):
    rng = np.random.default_rng(seed)
    journal, there, ever = Journal(f"{scheme}{tmp_path}/items"), set(), []
    beside = None  # another view of the same, opened now and then
    for _ in range(60):
        kind = rng.integers(5) if there else 0
        if kind < 2:
            keys = append(journal, int(rng.integers(1, 40)))
            there |= {*keys}
            ever += keys
        elif kind == 2:
            gone = rng.choice(sorted(there), int(rng.integers(1, len(there) + 1)), replace=False)
            journal.delete_items(gone)
            there -= {*gone.tolist()}
        elif kind == 3:
            journal.join_fragments("items", many=2)
        else:
            beside = (journal if beside is None else beside).another()
            check(beside, there, ever)
        some = rng.choice([*ever, 5, 99], min(12, len(ever)), replace=False)
        check(journal, there, some.tolist())
    check(journal, there, ever)
    check(journal, there, [])


def test_a_fragment_that_takes_the_number_of_a_deleted_one(tmp_path):
    journal = Journal(f"file://{tmp_path}/items")
    first, second = append(journal, 5), append(journal, 5)
    check(journal, {*first, *second}, second[2:3])
    numbers = [fragment.fragment_id for fragment in journal.fragments()]
    journal.delete_items(np.array(second))
    third = append(journal, 10)
    check(journal, {*first, *third}, [first[0], second[2], third[1]])
    assert [fragment.fragment_id for fragment in journal.fragments()] == numbers


def test_only_new_fragments_are_read(tmp_path, monkeypatch):
    journal = Journal(str(tmp_path))
    first = append(journal, 100)
    check(journal, {*first}, first[5:6])
    second = append(journal, 100)
    read = []
    scanner = lance.LanceDataset.scanner

    def watched(dataset, *arguments, **options):
        read.extend(options.get("fragments") or [])
        return scanner(dataset, *arguments, **options)

    monkeypatch.setattr(lance.LanceDataset, "scanner", watched)
    check(journal.another(), {*first, *second}, [first[5], second[50], 999])
    assert [fragment.fragment_id for fragment in read] == [1]


@pytest.mark.slow
def test_what_lance_remembers_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "CACHE_BYTES", 2**17)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2, N)), [0, 1]
    with Collection.create(tmp_path, SDOH(16), refresh="manual") as collection:
        stored, sizes = collection._journal, []
        session = stored.dataset("learner").session()
        for start in range(0, 200, 2):
            collection.add([start, start + 1], X, y)
            collection.delete([start])
            sizes.append(session.size_bytes())
        collection.feedback(X[:1], [1])
        opened = [stored.dataset(name) for name in journal.NAMES]
        assert all(each.session().is_same_as(session) for each in opened)
        assert stored.another().dataset("items").session().is_same_as(session)
    assert max(sizes) < 2**19
    assert sizes[-1] < 1.5 * sizes[50]


@pytest.mark.parametrize("place", [10, 20, 24])  # compression, its size, the size without it
def test_a_stored_model_that_seems_compressed_is_damaged(place):
    content = bytearray(SDOH(16, memory=0, features=None).to_bytes())
    journal._check_archive(bytes(content))
    content[content.rindex(b"PK\x01\x02") + place] ^= 8
    with pytest.raises(ValueError, match=r"header\.json|decompressing"):
        journal._check_archive(bytes(content))
