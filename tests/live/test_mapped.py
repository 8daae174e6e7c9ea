"""Columns in files that are mapped: the same answers, nothing left behind, and full disks."""

import os

import numpy as np
import pytest

from streamhash import SDOH
from streamhash.errors import FileError, InputError, InUseError
from streamhash.live import Collection, mapped
from streamhash.live.mapped import MappedArrays
from streamhash.search import directory

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((400, 8)).astype(np.float32)
Y = [int(x[0] > 0) for x in X]


@pytest.fixture(autouse=True)
def _map_everything(monkeypatch):
    monkeypatch.setattr(mapped, "SMALL", 0)
    monkeypatch.setattr(directory, "SPARE_PLACES", 8)


def hasher():
    return SDOH(16, batch_size=40, n_features=16, memory=20, random_state=0)


def same(one, two):
    assert one.ids == two.ids
    assert one.labels(one.ids) == two.labels(two.ids)
    for where in (None, "label = 1"):
        for found, wanted in zip(
            one.search(X[:20], 5, where=where), two.search(X[:20], 5, where=where), strict=True
        ):
            assert found.tolist() == wanted.tolist()
    status, other = one.status(), two.status()
    assert status["codes"] == other["codes"]
    assert (status["items"], status["labelled"]) == (other["items"], other["labelled"])


@pytest.mark.parametrize("kind", [int, str])
def test_mapped_columns_answer_as_those_in_memory(tmp_path, kind):
    ids = [kind(i) for i in RANDOM.permutation(400)]
    with (
        Collection.create(tmp_path / "a", hasher(), refresh="manual", mmap=True) as mine,
        Collection.create(tmp_path / "b", hasher(), refresh="manual") as plain,
    ):
        for items in (mine, plain):
            items.add(ids[:200], X[:200], Y[:200])
            items.add(ids[150:400], X[150:400], existing="replace")
            items.label(ids[200:260], Y[200:260])
            items.delete(ids[:190])
            items.refresh()
            items.add(ids[:50], X[:50])
        same(mine, plain)
        (tmp_path / "maps").mkdir()
        with Collection.open(tmp_path / "a", read_only=True, mmap=tmp_path / "maps") as reader:
            same(reader, plain)
            for items in (mine, plain):
                items.delete(ids[:20])
                items.label(ids[300:310], [1] * 10)
                items.refresh()
            same(reader, plain)
        assert not [*(tmp_path / "maps").iterdir()]  # the files have no names
    assert {path.name for path in (tmp_path / "a").iterdir()} == {
        path.name for path in (tmp_path / "b").iterdir()
    }


def test_a_full_disk_is_an_error(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(FileError, match=r"cannot hold 4 MiB of mapped columns .No space left"):
        MappedArrays(tmp_path).zeros(2**19, np.int64)


def test_an_array_outlives_what_made_it(tmp_path):
    array = MappedArrays(tmp_path).zeros((3, 5), np.int32)
    array += 7
    arrays = MappedArrays(tmp_path)
    other = arrays.zeros(4, np.int16)
    other[:] = range(4)
    arrays.let_go()
    assert other.tolist() == [0, 1, 2, 3]
    assert array.tolist() == [[7] * 5] * 3


def test_what_is_no_folder_is_refused_and_nothing_stays_locked(tmp_path):
    Collection.create(tmp_path / "a", hasher()).close()
    for wrong in (tmp_path / "none", 5):
        with pytest.raises(InputError, match="is no folder; pass one, True or False"):
            Collection.open(tmp_path / "a", mmap=wrong)
    Collection.open(tmp_path / "a").close()


def test_a_forked_process_is_told(tmp_path):
    with Collection.create(tmp_path / "a", hasher(), mmap=True) as items:
        items.add(range(40), X[:40], Y[:40])
        items.forked()
        with pytest.raises(InUseError, match="forked"):
            items.search(X[:1], 1)
        with pytest.raises(InUseError, match="forked"):
            len(items)
