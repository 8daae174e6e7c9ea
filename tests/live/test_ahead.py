"""Rows of the log that are written to files before it is folded: the same comes of them."""

import logging
import shutil

import numpy as np
import pytest

from streamhash import SDOH, FileError
from streamhash.live import Collection, journal, verify
from streamhash.live.store import Store

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((600, 8)).astype(np.float32)
Y = RANDOM.integers(3, size=600).tolist()
ROW = X[:1].nbytes


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Logs of twenty changes, of which twenty rows are written at a time."""
    monkeypatch.setattr(journal, "LOG_CHANGES", 20)
    monkeypatch.setattr(journal, "AHEAD_BYTES", 20 * ROW)


def made(path):
    hasher = SDOH(16, batch_size=10, n_features=32, memory=40, random_state=0)
    items = Collection.create(path, hasher, refresh="manual", random_state=0)
    items.add(range(30), X[:30], Y[:30])
    items.label([0], [1])  # which begins a log
    return items


def add(items, start, n=10):
    items.add(range(start, start + n), X[start : start + n], Y[start : start + n])


def content(items):
    return (
        [
            (each.id, each.vector.tobytes(), each.label, each.metadata, each.code.tobytes())
            for each in items.get(items.ids)
        ],
        items._learner.hasher_.to_bytes(),
        items._learner.knowledge.to_bytes(),
    )


def n_ahead(items):
    """How many rows of the log are in files."""
    ahead = items._journal._tail.ahead
    if ahead is None:
        return 0
    ahead.wait()
    return ahead.n_begun


def test_a_fold_takes_what_was_written_before_it(tmp_path, monkeypatch):
    written = []
    write = Store.write_fragments

    def counted(self, name, table, *arguments, **options):
        written.append((name, len(table)))
        return write(self, name, table, *arguments, **options)

    monkeypatch.setattr(Store, "write_fragments", counted)
    with made(tmp_path / "items") as items:
        for start in range(30, 130, 10):
            add(items, start)
            n_ahead(items)
        assert [n for name, n in written if name == "items"] == [30, 20, 20, 20, 20, 20]
        add(items, 130)
        written.clear()
        items._journal.fold_log()
        assert [n for name, n in written if name == "items"] == [10]
        before = content(items)
    with Collection.open(tmp_path / "items") as items:
        assert content(items) == before
    assert verify(tmp_path / "items").damages == []


@pytest.mark.parametrize("seed", range(2))
def test_the_same_comes_of_any_changes(tmp_path, monkeypatch, seed):
    """Items are deleted, replaced and labelled while they are in such files."""
    random, new, both = np.random.default_rng(seed), 30, []
    ones, others = (made(tmp_path / name) for name in ("ahead", "plain"))
    for turn in range(60):
        ids = random.choice(ones.ids, 5, replace=False).tolist()
        rows, labels = X[ids[::-1]], [Y[i] for i in ids[::-1]]
        kind = random.integers(8)
        for items, least in ((ones, 20 * ROW), (others, 2**40)):
            monkeypatch.setattr(journal, "AHEAD_BYTES", least)
            if turn == 30:
                items.refresh()
            elif kind < 5:
                add(items, new)
            elif kind == 5:
                items.delete(ids)
            elif kind == 6:
                items.add(ids, rows, labels, existing="replace")
            else:
                items.label(ids, labels)
        new += 10 * (kind < 5 and turn != 30)
        both.append(n_ahead(ones))
        assert n_ahead(others) == 0
        if turn % 10 == 9:
            assert content(ones) == content(others)
            copy = shutil.copytree(tmp_path / "ahead", tmp_path / f"crashed-{turn}")
            with Collection.open(copy) as again:
                assert content(again) == content(ones)
            with Collection.open(copy, read_only=True) as reader:
                assert content(reader) == content(ones)
    assert max(both) >= 40
    before = content(ones)
    assert before == content(others)
    ones.close(), others.close()
    with Collection.open(tmp_path / "ahead") as ones:
        assert content(ones) == before
    assert verify(tmp_path / "ahead").damages == []


def test_all_of_them_may_be_gone(tmp_path):
    with made(tmp_path / "items") as items:
        add(items, 30, 25)
        assert n_ahead(items) == 25
        items.delete(range(30, 55))
        items._journal.fold_log()
        assert items.ids == [*range(30)]
        add(items, 30)
    with Collection.open(tmp_path / "items") as items:
        assert items.ids == [*range(40)]


def test_what_cannot_be_written_before_is_written_by_the_fold(tmp_path, monkeypatch, caplog):
    def fail(*_):
        raise FileError("no room")

    with made(tmp_path / "items") as items:
        with monkeypatch.context() as broken:
            broken.setattr(Store, "write_loose", fail)
            with caplog.at_level(logging.INFO):
                add(items, 30, 25)
                n_ahead(items)
            assert "no room" in caplog.text
        add(items, 55, 25)  # it is not tried again before the next log
        items._journal.fold_log()
        add(items, 80, 25)
        assert n_ahead(items) == 25
        before = content(items)
    with Collection.open(tmp_path / "items") as items:
        assert content(items) == before
        assert len(items) == 105


@pytest.mark.parametrize("step", ["append", "delete", "overwrite", "acknowledge"])
def test_a_fold_that_fails_is_done_again(tmp_path, monkeypatch, step):
    with made(tmp_path / "items") as items:
        add(items, 30, 25)
        items.delete([31, 3])
        add(items, 31, 1)
        assert n_ahead(items) == 25
        before = content(items)

        def fail(*_, **__):
            raise FileError("the disk fails")

        with monkeypatch.context() as broken:
            broken.setattr(Store, step, fail)
            with pytest.raises(FileError, match="the disk fails"):
                items._journal.fold_log()
        copy = shutil.copytree(tmp_path / "items", tmp_path / "copy")
        with Collection.open(copy) as again:
            assert content(again) == before
        assert content(items) == before
        items.add([70], X[70:71])
        items.delete([70])
        items._journal.fold_log()
        assert [each.id for each in items.get(items.ids)] == [each[0] for each in before[0]]


def test_files_of_a_process_that_died_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "TIDY_AFTER", 8)
    with made(tmp_path / "items") as items:
        add(items, 30, 25)
        assert n_ahead(items) == 25
        copy = shutil.copytree(tmp_path / "items", tmp_path / "copy")

    def unknown():
        with Collection.open(copy, read_only=True) as reader:
            fragments = reader._journal.dataset("items").get_fragments()
            known = {file.path for each in fragments for file in each.data_files()}
        return {path.name for path in (copy / "items.lance" / "data").iterdir()} - known

    left = unknown()
    assert len(left) == 1
    with Collection.open(copy) as items:
        for start in range(100, 400):
            add(items, start, 1)
    assert not left & unknown()
