"""Threads and processes that share a collection: no item is missed, and no call fails."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from streamhash import SDOH, FileError
from streamhash.live import Collection, view
from streamhash.live.backends.memory import MemoryBackend
from streamhash.search import directory

ROOT = Path(__file__).parents[2]


def stream(n=400, d=8, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = 3 * np.eye(classes, d)[y] + random.standard_normal((n, d))
    return X.astype(np.float32), y.tolist()


X, Y = stream()


def hasher():
    return SDOH(16, batch_size=20, n_features=32, memory=60, random_state=0)


@pytest.fixture
def items(tmp_path):
    with Collection.create(tmp_path / "items", hasher(), refresh="manual") as c:
        c.add(range(100), X[:100], Y[:100])
        yield c


def run(fault, operations):
    """Try a fault in a process of its own; return what came of it."""
    ended = subprocess.run(
        [
            sys.executable,
            ROOT / "benchmarks" / "fault_threads.py",
            fault,
            f"--operations={operations}",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout), ended.stderr


@pytest.mark.parametrize("change", ["replace", "replace two", "delete another"])
def test_searches_never_miss_an_item_that_is_there(items, monkeypatch, change):
    """They look at every step of a change, as another thread might."""
    found = []

    def look():
        ids = items.search(X[:1], 200)[1][0].tolist()
        found.append(7 in ids and ids.count(-1) == 200 - len({*ids} - {-1}))
        found.append(7 in items.ids)

    for name in ("add", "delete"):
        plain = getattr(MemoryBackend, name)

        def step(self, *arguments, plain=plain):
            look()
            plain(self, *arguments)
            look()

        monkeypatch.setattr(MemoryBackend, name, step)
    if change == "delete another":
        items.delete([8])
    else:
        ids = [7] if change == "replace" else [7, 300]
        items.add(ids, X[200 : 200 + len(ids)], existing="replace")
    assert len(found) >= 4
    assert all(found)


def test_labels_are_read_beside_deletes(items, monkeypatch):
    """Where most are deleted, the others move up: labels must not be looked for in old places."""
    monkeypatch.setattr(directory, "SPARE_PLACES", 8)
    plain, others = view.Directory.find, []

    def find(self, ids):
        keys = plain(self, ids)
        if not others:  # as soon as labels has found its keys
            others.append(threading.Thread(target=items.delete, args=[range(90)]))
            others[0].start()
            others[0].join(1)
        return keys

    monkeypatch.setattr(view.Directory, "find", find)
    assert items.labels(range(100)) == Y[:100]
    others[0].join()
    assert items.labels(range(100)) == [*[None] * 90, *Y[90:100]]


def test_an_export_is_of_one_moment(items, tmp_path):
    """Also where what is there changes its kind meanwhile: labels from numbers to words."""
    file = tmp_path / "items.parquet"
    with items.contents(vectors=False) as contents:
        items.add([500], X[:1], ["a word"])
        items.label([1], ["another"])
        items.delete([2])
        items.refresh()
        batches = [*contents.batches]
    assert [*np.concatenate([batch.ids for batch in batches])] == [*range(100)]
    assert [label for batch in batches for label in batch.labels] == Y[:100]
    assert {*contents.label_names} == {0, 1, 2}
    codes = np.concatenate([batch.codes for batch in batches])
    assert np.array_equal(codes, items.model(contents.model).transform(X[:100]))
    assert items.export(file) == 100


def test_a_scan_whose_files_are_gone_says_so(items):
    with items.contents(vectors=True, size=1) as contents:
        for file in (Path(items.status()["address"]) / "items.lance" / "data").iterdir():
            file.unlink()
        with pytest.raises(
            FileError, match=r"cannot be read as it was when this began .* within ten minutes\."
        ):
            list(contents.batches)


@pytest.mark.slow
def test_a_history_of_threads_and_processes_is_linearizable():
    row, said = run("history", 1500)
    assert row["violations"] == row["errors"] == 0, said
    assert row["operations"] == 1500
    assert row["threads"] == 8
    assert row["processes"] == 3
    for verb in ("add", "replace", "label", "delete", "get", "labels", "ids", "search", "scan"):
        assert row["calls"][verb] > 0
