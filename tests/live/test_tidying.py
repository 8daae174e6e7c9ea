"""Tidying up beside other changes: labels are folded and fragments joined while writers go on."""

import shutil
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from streamhash import SDOH, FileError
from streamhash.live import Collection, journal, store, verify
from streamhash.live.journal import Journal

ROOT = Path(__file__).parents[1]
D, N = 8, 60

random = np.random.default_rng(0)
Y = random.integers(3, size=400).tolist()
X = (2 * np.eye(3, D)[Y] + random.standard_normal((400, D))).astype(np.float32)


@pytest.fixture
def aside(monkeypatch):
    """Fold and join after a few changes already, in small pieces, and never while others wait."""
    monkeypatch.setattr(journal, "REWRITTEN_AT_ONCE", 0)
    monkeypatch.setattr(journal, "LABEL_ROWS", 0)
    monkeypatch.setattr(journal, "TIDY_AFTER", 6)
    monkeypatch.setattr(journal, "LOG_CHANGES", 2)
    monkeypatch.setattr(journal, "FRAGMENT_ROWS", 16)


pytestmark = pytest.mark.usefixtures("aside")


def made(path):
    hasher = SDOH(16, batch_size=10, n_features=32, memory=40, random_state=0)
    items = Collection.create(path, hasher, refresh="manual", random_state=0)
    items.add(range(N), X[:N], Y[:N])
    return items


def whole(items):
    found = items.get(items.ids)
    return {item.id: (item.vector.tobytes(), item.label) for item in found}


def n_rows(items):
    return items._journal.dataset("labels").count_rows()


def relabel(items, calls, seed=0):
    """Give items other labels, a few at a time; return what they are."""
    random, ids = np.random.default_rng(seed), items.ids
    wanted = dict(zip(ids, items.labels(ids), strict=True))
    for _ in range(calls):
        some = random.choice(ids, 7, replace=False).tolist()
        labels = random.integers(3, size=7).tolist()
        items.label(some, labels)
        wanted |= zip(some, labels, strict=True)
    return wanted


class Held:
    """Stops what is written aside at a point of ``owner``, until it may go on."""

    def __init__(self, monkeypatch, owner, name):
        self.came, self.go_on = threading.Event(), threading.Event()
        before = getattr(owner, name)

        def held(*arguments, **options):
            if threading.current_thread().name.startswith("streamhash-tidy-labels"):
                self.came.set()
                assert self.go_on.wait(60)
            return before(*arguments, **options)

        monkeypatch.setattr(owner, name, held)


def relabel_until(items, event):
    for seed in range(100):
        relabel(items, 1, seed)
        if event.wait(0.01):
            return
    raise AssertionError("nothing was folded")


@pytest.mark.parametrize("place", [(store.Rewrite, "flush"), (Journal, "_commit_aside")])
def test_others_change_what_they_like_while_labels_are_folded(tmp_path, monkeypatch, place):
    items = made(tmp_path / "items")
    with Collection.open(tmp_path / "items", read_only=True) as reader:
        held = Held(monkeypatch, *place)
        relabel_until(items, held.came)
        assert whole(reader) == whole(items)
        wanted = relabel(items, 8, seed=200)  # stored again and again; the log is folded, too
        items.delete([3, 4])
        items.add([4, 300], X[300:302], [2, 1])
        items.label([5], [None])
        assert whole(reader) == whole(items)
        fold = items._journal.fold
        held.go_on.set()
        items._journal.stop_rewriting()
        assert items._journal.fold == fold + 1
        found = whole(items)
        assert whole(reader) == found
        wanted |= {4: 2, 300: 1, 5: None}
        del wanted[3]
        assert {each: label for each, (_, label) in found.items()} == wanted
        items.refresh()
        assert (whole(items), whole(reader)) == (found, found)
    items.close()
    assert verify(tmp_path / "items").damages == []
    with Collection.open(tmp_path / "items") as again:
        assert whole(again) == found


def test_folded_labels_are_one_an_item_and_in_pieces(tmp_path, monkeypatch):
    items = made(tmp_path / "items")
    monkeypatch.setattr(journal, "TIDY_AFTER", 10**6)
    wanted = relabel(items, 40)
    with items._journal.changing("test"):  # the log is folded
        pass
    items.delete([1, 2])
    assert n_rows(items) == 280
    assert len(items._journal.dataset("labels").get_fragments()) > 16
    monkeypatch.setattr(journal, "TIDY_AFTER", 6)
    with items._journal.lock:
        items._journal._live = items._view.now.directory
        items._journal._tidy_labels()
    items._journal.stop_rewriting()
    rows = items._journal.dataset("labels").to_table()
    keys = rows["key"].to_pylist()
    assert len({*keys}) == len(keys)
    assert {*keys} <= {*items._view.now.directory.keys.tolist()}
    fragments = [each.count_rows() for each in items._journal.dataset("labels").get_fragments()]
    assert max(fragments) <= 16
    assert len(fragments) <= 2 * len(keys) / 16 + 1
    assert items.labels([7, 8, 9]) == [wanted[i] for i in (7, 8, 9)]
    items.close()
    with Collection.open(tmp_path / "items") as again:
        assert again.labels([7, 8, 9]) == [wanted[i] for i in (7, 8, 9)]


def test_who_follows_need_not_read_all_labels_again_when_they_were_folded(tmp_path, monkeypatch):
    items, read = made(tmp_path / "items"), []
    before = Journal.read_labels

    def counted(self, start=0):
        for keys, labels in before(self, start):
            read.append((self.read_only, len(keys)))
            yield keys, labels

    monkeypatch.setattr(Journal, "read_labels", counted)
    monkeypatch.setattr(journal, "LABEL_ROWS", 1)
    readers = [Collection.open(tmp_path / "items", read_only=True) for _ in range(2)]
    n_read = []
    for seed in range(60):
        relabel(items, 1, seed)
        items._journal.stop_rewriting()
        read.clear()
        assert whole(readers[0]) == whole(items)
        n_read.append(sum(n for _, n in read))
    assert items._journal.fold > 1
    assert max(n_read) <= 3 * 7  # that were in the log
    assert whole(readers[1]) == whole(items)  # it has missed several folds
    read.clear()
    items.add(range(300, 310), X[:10], Y[:10])
    items.refresh()
    assert read == []  # who has written all
    assert whole(readers[0]) == whole(readers[1]) == whole(items)
    for each in (*readers, items):
        each.close()
    with (
        Collection.open(tmp_path / "items") as again,
        Collection.open(tmp_path / "items", read_only=True) as reader,
    ):
        assert whole(again) == whole(reader)


# What is written aside, step by step: the process may die before and after each of them.
STEPS = [(store.Rewrite, "put"), (store.Store, "keep"), (store.Store, "replace")]
STEPS += [(store.Store, name) for name in ("write_fragments", "_committed", "acknowledge")]


def test_a_process_that_dies_while_labels_are_folded(tmp_path, monkeypatch):
    items, copies = made(tmp_path / "items"), []

    def watch(owner, name):
        before = getattr(owner, name)

        def watched(self, *arguments, **options):
            is_aside = threading.current_thread().name == "streamhash-tidy-labels"
            if is_aside:
                copy()
            found = before(self, *arguments, **options)
            if is_aside:
                copy()
            return found

        monkeypatch.setattr(owner, name, watched)

    def copy():
        with items._journal.lock:  # else files come and go while they are copied
            left = tmp_path / f"left-{len(copies)}"
            copies.append((shutil.copytree(tmp_path / "items", left), whole(items)))

    for step in STEPS:
        watch(*step)
    for seed in range(100):
        relabel(items, 1, seed)
        if len(copies) > 40:
            break
    items._journal.stop_rewriting()
    assert items._journal.fold > 0
    items.close()
    monkeypatch.undo()
    assert len(copies) > 40
    for left, wanted in copies:
        with Collection.open(left, read_only=True) as again:
            assert whole(again) == wanted
        with Collection.open(left) as again:
            assert whole(again) == wanted
            again.label([7], [2])
        assert verify(left).damages == []


@pytest.mark.parametrize("name", ["write_fragments", "keep", "replace"])
def test_a_disk_that_fails_while_labels_are_folded(tmp_path, monkeypatch, caplog, name):
    items, before, failed = made(tmp_path / "items"), getattr(store.Store, name), []

    def failing(self, dataset, *arguments, **options):
        if threading.current_thread().name == "streamhash-tidy-labels" and not failed:
            failed.append(name)
            raise FileError("the disk is full.")
        return before(self, dataset, *arguments, **options)

    monkeypatch.setattr(store.Store, name, failing)
    for seed in range(100):
        relabel(items, 1, seed)
        if items._journal.fold:
            break
    assert failed
    assert "something is left to tidy up: the disk is full." in caplog.text
    assert items._journal.fold > 0  # at the next time
    found = whole(items)
    items.close()
    assert verify(tmp_path / "items").damages == []
    with Collection.open(tmp_path / "items") as again:
        assert whole(again) == found


def test_what_was_stored_for_a_change_that_failed_does_not_count_by_tidying(tmp_path, monkeypatch):
    """The learner is stored before its change: a commit of tidying up must not make it fit."""
    items = made(tmp_path / "items")
    held = Held(monkeypatch, Journal, "_commit_aside")
    relabel_until(items, held.came)
    found, learner = whole(items), items._learner.knowledge.to_bytes()
    monkeypatch.setattr(journal, "SMALL_KEYS", 0)  # what comes is a commit

    def fail(*_, **__):
        raise FileError("the disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append_labels", fail)
        with pytest.raises(FileError, match="the disk is full"):
            items.label([*range(30)], Y[30:60])
    assert items._journal._learner_behind
    held.go_on.set()
    items._journal.stop_rewriting()
    left = shutil.copytree(tmp_path / "items", tmp_path / "left")  # as after kill -9
    with Collection.open(left) as again:
        assert whole(again) == found
        assert again._learner.knowledge.to_bytes() == learner
    items.close()


def test_closing_ends_what_is_folded(tmp_path, monkeypatch):
    items = made(tmp_path / "items")
    monkeypatch.setattr(journal, "TIDY_AFTER", 10**6)
    relabel(items, 40)
    monkeypatch.setattr(journal, "TIDY_AFTER", 6)
    relabel(items, 1)  # of tidying up, this begins with something else
    found, fold = whole(items), items._journal.fold
    assert items._journal._chores is not None
    assert fold == 0
    items.close()
    with Collection.open(tmp_path / "items") as again:
        assert again._journal.fold == 1
        assert n_rows(again) <= N
        assert whole(again) == found


def test_labels_of_a_collection_of_version_0_1_are_folded(tmp_path):
    with zipfile.ZipFile(ROOT / "files" / "v1-collection.zip") as archive:
        archive.extractall(tmp_path)
    with Collection.open(tmp_path) as c:
        version = c._journal.dataset("labels").data_storage_version
        ids = c.ids[:20]
        for i in range(40):
            c.label(ids[i % 13 : i % 13 + 7], [i % 3] * 7)
        c._journal.stop_rewriting()
        assert c._journal.fold > 0
        assert c._journal.dataset("labels").data_storage_version == version
        wanted = c.labels(c.ids)
    assert verify(tmp_path).damages == []
    with Collection.open(tmp_path) as c:
        assert c.labels(c.ids) == wanted


def test_fragments_of_feedback_are_joined_beside_changes(tmp_path):
    with made(tmp_path / "items") as items:
        for i in range(40):
            items.feedback(query_id=i, id=[i + 1, i + 2], good=[True, False])
        items._journal.stop_rewriting()
        assert len(items._journal.dataset("feedback").get_fragments()) < 20
        judged = items.judgements()
        assert len(judged) == 80
    with Collection.open(tmp_path / "items") as items:
        assert items.judgements() == judged
