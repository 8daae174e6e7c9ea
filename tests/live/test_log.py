"""Small changes in the log: read beside the datasets, folded, and there after any crash."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest

from streamhash import SDOH, FileError, InUseError
from streamhash.live import Collection, journal, log, verify
from streamhash.live.calibration import Counted
from streamhash.live.delta import Delta

D = 8


def stream(n=400, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n)
    return (2 * np.eye(3, D)[y] + random.standard_normal((n, D))).astype(np.float32), y.tolist()


X, Y = stream()


def made(path, **options):
    hasher = SDOH(16, batch_size=10, n_features=32, memory=40, random_state=0)
    items = Collection.create(path, hasher, refresh="manual", random_state=0, **options)
    items.add(range(40), X[:40], Y[:40], metadata=[{"n": i} for i in range(40)])
    return items


def change(items):
    """One of each; all of it is small."""
    items.add([50], X[50:51], [1], metadata=[{"n": 50}])
    items.add(range(60, 70), X[60:70], Y[60:70])
    items.add([3], X[70:71], [2], existing="replace", metadata=[{"n": 3.5}])
    items.label([50, 4], [0, 0])
    items.delete([5, 61])
    items.add([61], X[71:72])


def state(items):
    found = items.get(items.ids)
    codes = items.model().transform(np.array([item.vector for item in found]))
    assert np.array_equal(codes, np.array([item.code for item in found]))
    rows = [(item.id, item.vector.tobytes(), item.label, item.metadata) for item in found]
    scanned = [
        row
        for batch in items.scan(size=7)
        for row in zip(batch.ids.tolist(), batch.labels, batch.metadata, strict=True)
    ]
    assert scanned == [(id_, label, metadata) for id_, _, label, metadata in rows]
    assert items._learner.knowledge.to_bytes()
    nearest = items.search(X[:20], k=5, rescore=4)
    return rows, items._learner.to_bytes(), nearest.ids.tolist(), items.count("n >= 3")


def n_logged(items):
    return items._journal._tail.n_changes


def test_what_is_in_the_log_is_as_what_is_in_the_datasets(tmp_path, monkeypatch):
    items = made(tmp_path / "logged")
    change(items)
    assert n_logged(items) == 6
    logged = state(items)
    with items._journal.changing("test"):  # folds
        assert n_logged(items) == 0
    assert state(items) == logged
    assert items._journal.dataset("items").count_rows() == len(items)
    items.close()
    monkeypatch.setattr(journal, "SMALL_KEYS", 0)
    other = made(tmp_path / "committed")
    change(other)
    assert n_logged(other) == 0
    found = state(other)
    assert (found[0], found[2:]) == (logged[0], logged[2:])
    assert other._learner.knowledge.to_bytes() == items._learner.knowledge.to_bytes()


@pytest.mark.parametrize("read_only", [True, False])
def test_a_process_that_dies_leaves_its_log(tmp_path, read_only):
    items = made(tmp_path / "items")
    change(items)
    wanted = state(items)
    left = shutil.copytree(tmp_path / "items", tmp_path / "left")  # as after kill -9
    assert verify(left).damages == []
    with Collection.open(left, read_only=read_only) as again:
        assert state(again) == wanted
        if not read_only:
            again.add([80], X[80:81], [1])
            items.add([80], X[80:81], [1])
            assert again._learner.knowledge.to_bytes() == items._learner.knowledge.to_bytes()
    with Collection.open(left) as again:
        assert again.ids == [row[0] for row in wanted[0]] + ([] if read_only else [80])
    assert len([*(left / "log").glob("?" * 32)]) <= 1


def test_closing_leaves_plain_datasets(tmp_path):
    with made(tmp_path / "items") as items:
        change(items)
        wanted, ids = len(items), items.ids
    names = {path.name for path in (tmp_path / "items" / "log").iterdir()}
    assert len(names - {log.ACKNOWLEDGED}) <= 1  # which readers may still look at
    shutil.rmtree(tmp_path / "items" / "log")
    with Collection.open(tmp_path / "items", read_only=True) as items:
        assert (len(items), items.ids) == (wanted, ids)
        assert items._journal.dataset("items").count_rows() == wanted


def test_a_reader_sees_each_record_and_each_fold(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "LOG_CHANGES", 4)
    items = made(tmp_path / "items")
    with Collection.open(tmp_path / "items", read_only=True) as reader:
        for i in range(100, 130):
            items.add([i], X[i : i + 1], [Y[i]])
            if i % 3 == 0:
                items.delete([i - 1])
            if i % 5 == 0:
                items.label([i], [2])
            assert reader.ids == items.ids
            assert reader.labels([i]) == items.labels([i])
            assert np.array_equal(reader.get([i])[0].vector, X[i])
            assert np.array_equal(reader.search(X[:3], 4).ids, items.search(X[:3], 4).ids)
        assert reader.status()["learner"]["learned"] == items.status()["learner"]["learned"]
    items.close()


def test_keys_never_come_again(tmp_path):
    items = made(tmp_path / "items")
    keys = set(items._journal.keys().tolist())
    for i in range(20):
        items.add([200], X[200:201])
        (key,) = items._view.now.directory.find([200]).tolist()
        assert key not in keys
        keys.add(key)
        items.delete([200])
        if i % 3 == 0:
            with items._journal.changing("test"):
                pass
        if i % 7 == 0:
            items.close()
            items = Collection.open(tmp_path / "items")
    items.close()


def damaged(folder, change):
    """Change the content of the log."""
    (path,) = folder.glob("log/" + "?" * 32)
    content = bytearray(path.read_bytes())
    path.write_bytes(change(content))
    return path


def flip(content, at):
    content[at] ^= 4
    return content


@pytest.mark.parametrize("at", [0, 9, 20, 200, -1, -30])
def test_damage_of_what_was_acknowledged_is_told(tmp_path, at):
    items = made(tmp_path / "items")
    change(items)
    left = shutil.copytree(tmp_path / "items", tmp_path / "left")
    path = damaged(left, lambda content: flip(content, at))
    for read_only in (True, False):
        with pytest.raises(FileError, match=f"{path}: is damaged at byte .*restore"):
            Collection.open(left, read_only=read_only)
    assert [each.file for each in verify(left).damages] == [str(path)]


@pytest.mark.parametrize("size", [0, 10, 500, -1])
def test_a_log_that_was_cut_short_is_told(tmp_path, size):
    items = made(tmp_path / "items")
    change(items)
    left = shutil.copytree(tmp_path / "items", tmp_path / "left")
    path = damaged(left, lambda content: content[:size])
    with pytest.raises(FileError, match=f"{path}: is damaged at byte"):
        Collection.open(left)
    path.unlink()
    with pytest.raises(FileError, match=f"{path}: cannot be read"):
        Collection.open(left)
    assert [each.file for each in verify(left).damages] == [str(path)]


def test_the_last_record_may_be_half_written(tmp_path):
    """A power cut, before it was acknowledged: the change never was."""
    items = made(tmp_path / "items")
    items.add([50], X[50:51])
    before = state(items)
    notes = (tmp_path / "items" / "log" / log.ACKNOWLEDGED).read_bytes()
    (path,) = (tmp_path / "items").glob("log/" + "?" * 32)
    size = path.stat().st_size
    items.add([51], X[51:52], [1])
    content = path.read_bytes()
    for left in ("part", "zeros", "changed"):
        copy = shutil.copytree(tmp_path / "items", tmp_path / left)
        (copy / "log" / log.ACKNOWLEDGED).write_bytes(notes)
        new = {
            "part": content[:-20],
            "zeros": content[:size] + bytes(len(content) - size),
            "changed": bytes(flip(bytearray(content), -20)),
        }[left]
        (copy / "log" / path.name).write_bytes(new)
        with Collection.open(copy) as again:
            assert state(again) == before
            again.add([51], X[51:52], [1])
        assert verify(copy).damages == []


def test_a_second_writer_loses_nothing_of_the_first(tmp_path):
    """The lock is gone: whoever stores first goes on, and what it has stored is there."""
    path = tmp_path / "items"
    first = made(path)
    first.add([50], X[50:51])
    (path / "writer.lock").unlink(missing_ok=True)
    second = Collection.open(path)
    first.add([51], X[51:52])  # after the second has read the log
    with pytest.raises(InUseError, match="another process has written"):
        second.add([52], X[52:53])
    second.close()
    first.close()
    third = Collection.open(path)
    assert third.ids[40:] == [50, 51]
    (path / "writer.lock").unlink(missing_ok=True)
    fourth = Collection.open(path)
    third.add([53], X[53:54])
    fourth_again = Collection.open(path, read_only=True)
    assert 53 in fourth_again
    with pytest.raises(InUseError):
        fourth.delete([1])
    third.close()


def test_a_writer_that_was_overtaken_does_not_acknowledge(tmp_path):
    path = tmp_path / "items"
    first = made(path)
    first.add([50], X[50:51])
    (path / "writer.lock").unlink(missing_ok=True)
    second = Collection.open(path)
    append = log.Log.append

    def meanwhile(self, change):
        log.Log.append = append
        second.add([60], X[60:61])  # between the look at the versions and the record
        return append(self, change)

    try:
        log.Log.append = meanwhile
        with pytest.raises(InUseError):
            first.add([51], X[51:52])
    finally:
        log.Log.append = append
    second.close()
    with Collection.open(path, read_only=True) as items:
        assert items.ids[40:] == [50, 60]


@pytest.mark.slow
def test_killed_in_the_middle_of_groups(tmp_path):
    """Sixteen threads add until the end; what was said to be stored is there."""
    program = """
        import sys, threading
        import numpy as np
        from streamhash.live import Collection, journal
        journal.LOG_CHANGES = 10
        items = Collection.open(sys.argv[1])
        X = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
        def work(number):
            for i in range(1000 * number, 1000 * number + 999):
                items.add([i], X[i % 400 : i % 400 + 1], [i % 3 if i % 2 else None])
                sys.stdout.write(f"{i}\\n")
                sys.stdout.flush()
        for number in range(1, 17):
            threading.Thread(target=work, args=(number,), daemon=True).start()
        threading.Event().wait()
    """
    path = tmp_path / "items"
    made(path).close()
    random, known = np.random.default_rng(0), set()
    for _ in range(3):
        command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = [next(process.stdout) for _ in range(int(random.integers(20, 200)))]
        os.kill(process.pid, signal.SIGKILL)
        said += process.communicate()[0].splitlines()
        known = {int(each) for each in said if each.strip().isdecimal()}
        with Collection.open(path) as items:
            assert known <= {*items.ids}
            there = [i for i in items.ids if i >= 1000]
            rows = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
            for item in items.get(there):
                assert np.array_equal(item.vector, rows[item.id % 400])
                assert item.label == (item.id % 3 if item.id % 2 else None)
            items.delete(there)


def test_a_record_is_one_write_and_one_sync(tmp_path, monkeypatch):
    items = made(tmp_path / "items")
    items.add([50], X[50:51], [1])
    calls = []
    monkeypatch.setattr(os, "fsync", lambda _: calls.append("sync"))
    items.add([51], X[51:52])
    items.delete([51])
    items.label([50], [2])
    assert calls == ["sync"] * 3
    monkeypatch.undo()
    items.close()
    other = made(tmp_path / "other", durability="process")
    monkeypatch.setattr(os, "fsync", lambda _: calls.append("sync"))
    calls.clear()
    other.add([50], X[50:51], [1])
    assert calls == []


@pytest.mark.slow
def test_files_and_bytes_are_bounded(tmp_path, monkeypatch):
    """As docs/live.md says under "How much there is", with smaller numbers."""
    tidy_after, small, changes, log_bytes = 12, 64, 16, 20_000
    monkeypatch.setattr(journal, "TIDY_AFTER", tidy_after)
    monkeypatch.setattr(journal, "SMALL_FRAGMENT", small)
    monkeypatch.setattr(journal, "LOG_CHANGES", changes)
    monkeypatch.setattr(journal, "LOG_BYTES", log_bytes)
    monkeypatch.setattr(journal, "AHEAD_BYTES", changes // 4 * X[:1].nbytes)
    items, folder = made(tmp_path / "items"), tmp_path / "items"
    random, most = np.random.default_rng(0), dict.fromkeys(("versions", "fragments", "files"), 0)
    for i in range(100, 900):
        items.add([i], X[i % 400 : i % 400 + 1], [Y[i % 400]] if i % 2 else None)
        if i % 3 == 0:
            items.delete([int(random.choice(items.ids))])
        if i % 7 == 0:
            items.label([items.ids[-1]], [i % 3])
        logs = [path for path in (folder / "log").iterdir() if path.name != log.ACKNOWLEDGED]
        assert len(logs) <= 2
        assert all(path.stat().st_size <= log_bytes + 30_000 for path in logs)  # and one change
        versions = [*folder.glob("*/_versions/*.manifest")]
        by_name = dict.fromkeys(journal.NAMES, 0)
        for path in versions:
            by_name[path.parent.parent.stem] += 1
        counted = sum(by_name[name] for name in ("items", "labels", "learner"))
        fold = 4  # versions that a fold makes; while all is tidied up, one may come, and joins
        assert counted <= tidy_after + 3 * journal.KEPT + 2 * fold
        stored = items._journal.dataset("items")
        fragments = stored.get_fragments()
        most_fragments = tidy_after + 6 + 2 * stored.count_rows() // small
        assert len(fragments) <= most_fragments
        dead = sum(each.num_deletions for each in fragments)
        assert dead <= max(stored.count_rows(), small) + changes * tidy_after
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert len(files) <= len(versions) * (3 + most_fragments) + 20
        found = {"versions": counted, "fragments": len(fragments), "files": len(files)}
        most = {name: max(value, most[name]) for name, value in found.items()}
    assert most["versions"] > journal.KEPT * 3 + 2  # the bounds mean something
    assert verify(folder).damages == []
    items.close()


def test_tidying_up_is_done_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "TIDY_AFTER", 12)
    monkeypatch.setattr(journal, "LOG_CHANGES", 4)
    items, done, call = made(tmp_path / "items"), [], [0]

    def count(owner, name):
        before = getattr(owner, name)

        def counted(self, *arguments, **options):
            if name != "fold_log" or self._tail.n_changes > 4:  # else it has nothing to do
                done.append((call[0], name, arguments[0] if arguments else ""))
            return before(self, *arguments, **options)

        monkeypatch.setattr(owner, name, counted)

    count(journal.Journal, "join_fragments")
    count(journal.Journal, "fold_log")
    count(type(items._journal.store), "forget")
    for call[0] in range(100, 220):
        items.add([call[0]], X[call[0] : call[0] + 1])
    forgotten = {what for _, name, what in done if name == "forget"}
    assert {"items", "labels", "learner", "models", "encoded"} <= forgotten
    for number in range(100, 220):
        kinds = [name for n, name, what in done if n == number and what != "state"]
        assert kinds in ([], ["fold_log"], ["forget"], ["join_fragments"], ["join_fragments"] * 2)
    items.close()


def test_what_was_begun_of_tidying_up_is_done_by_close(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "TIDY_AFTER", 12)
    monkeypatch.setattr(journal, "LOG_CHANGES", 1)
    items = made(tmp_path / "items")
    for i in range(100, 200):
        items.add([i], X[i : i + 1])
        if items._journal._chores is not None:
            break
    n = len(items._journal.store.versions("learner"))
    assert n > journal.KEPT + 1
    items.close()
    assert len(items._journal.store.versions("learner")) <= journal.KEPT


@pytest.mark.parametrize("names", ["numbers", "strings"])
def test_a_change_as_bytes(names):
    ids = np.array([5, 7]) if names == "numbers" else np.array(["a", "ü" * 40], object)
    vectors = X[:2].astype(np.float16)
    codes = np.arange(6, dtype=np.uint8).reshape(2, 3)
    gone, labelled = np.array([1, 2**40]), np.array([9])
    texts = ['"x"', None], [None, '{"a": 1}']
    whole = log.Change(
        np.arange(2) + 2**33,
        ids,
        vectors,
        *texts,
        codes,
        gone,
        labelled,
        ["3"],
        b"learner",
        7,
        None,
    )
    again = log.Change.from_bytes(b"".join(whole.to_bytes()))
    for mine, theirs in zip(whole, again, strict=True):
        if isinstance(mine, np.ndarray):
            assert np.array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
        else:
            assert mine == theirs
    assert log.Change.from_bytes(b"".join(log.Change(gone=gone).to_bytes())).gone.tolist() == [
        1,
        2**40,
    ]


FILES = Path(__file__).parents[1] / "files"


def records(items):
    """What each record of the log in force holds of the learner."""
    used = items._journal
    found = [change for change, _ in log.read(used.folder, used._log_name)]
    return ["whole" if c.learner else "delta" if c.delta else None for c in found]


def learner_of(items):
    knowledge = items._learner.copy().knowledge
    knowledge.hasher_.settle()
    return items._learner.to_bytes(), knowledge.to_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_deltas_of_the_learner_are_followed_to_the_last_bit(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(journal, "MOST_DELTAS", 5)
    X, Y = stream(seed=seed)
    items, random = made(tmp_path / "items"), np.random.default_rng(seed)
    with Collection.open(tmp_path / "items", read_only=True) as reader:
        for i in range(100, 180):
            items.add([i], X[i : i + 1], [Y[i]] if random.random() < 0.8 else None)
            if random.random() < 0.2:
                items.delete([items.ids[-1 - int(random.integers(3))]])
            if i in items and random.random() < 0.2:
                items.label([i], [int(random.integers(3))])
            if i % 9 == 0:
                assert len(reader) == len(items)  # it follows
                assert learner_of(reader) == learner_of(items)
                left = shutil.copytree(tmp_path / "items", tmp_path / f"left{i}")
                with Collection.open(left) as again:
                    assert learner_of(again) == learner_of(items)
    kinds = records(items)
    assert {"whole", "delta"} <= {*kinds}
    run = "".join({"whole": "w", "delta": "d"}.get(kind, "") for kind in kinds)
    assert "d" * 6 not in run  # now and then it is whole, so that there is little to follow
    items.close()
    with Collection.open(tmp_path / "items") as again:
        assert again._learner.monitor_.n_answers_ > 40


def test_items_with_several_labels_that_wait_are_deltas_too(tmp_path):
    hasher = SDOH(16, batch_size=10, n_features=32, memory=40, random_state=0)
    path = tmp_path / "items"
    items = Collection.create(path, hasher, refresh="manual", random_state=0, labels="several")
    items.add(range(40), X[:40], [[y, 7] for y in Y[:40]])
    for i in range(50, 58):
        items.add([i], X[i : i + 1], [[Y[i], "new"] if i % 2 else [Y[i]]])
    assert records(items)[0] == "delta"
    with Collection.open(shutil.copytree(path, tmp_path / "left")) as again:
        assert learner_of(again) == learner_of(items)
    items.close()


@pytest.mark.parametrize("name", ["log1", "log2"])
def test_logs_of_earlier_formats_are_read(tmp_path, name):
    """In format 1 each record has the whole learner; in format 2 deltas have fewer parts."""
    with zipfile.ZipFile(FILES / f"{name}-collection.zip") as archive:
        archive.extractall(tmp_path)
    facts = json.loads((FILES / f"{name}-collection.json").read_text())

    def check(items):
        found = items.get(items.ids)
        assert [[i.id, i.vector.tolist(), i.label, i.metadata] for i in found] == facts["items"]
        learner = items._learner
        assert learner.waiting_keys.tolist() == facts["waiting"]
        assert (learner.n_learned_, learner.monitor_.n_answers_) == (
            facts["learned"],
            facts["answers"],
        )
        assert learner.monitor_.recent_ == facts["recent"]
        assert learner.calibration_.queries_.tolist() == facts["queries"]

    with Collection.open(tmp_path, read_only=True) as items:
        assert n_logged(items) == facts["records"]
        check(items)
    with Collection.open(tmp_path) as items:
        check(items)
        items.add([200], X[200:201], [1])
        items.delete([200])
    with Collection.open(tmp_path) as items:
        assert [item[0] for item in facts["items"]] == items.ids


def test_a_log_of_a_later_version_is_refused(tmp_path, monkeypatch):
    items = made(tmp_path / "items")
    with monkeypatch.context() as patch:
        patch.setattr(log, "FORMAT", log.FORMAT + 1)
        items.add([50], X[50:51], [1])
    left = shutil.copytree(tmp_path / "items", tmp_path / "left")
    with pytest.raises(FileError, match="have format 4, of a later streamhash; "):
        Collection.open(left)
    items.close()


@pytest.mark.parametrize("parts", [(), ("votes",), ("votes", "reliability")])
def test_a_delta_as_bytes(parts):
    random = np.random.default_rng(0)
    shapes = {"pairs": (2, 8, 65), "votes": (2, 2, 51), "reliability": (2, 3, 15)}
    counted = {"votes": None, "reliability": None}
    for name in ("pairs", *parts):
        values = random.random(shapes[name])
        counted[name] = np.where(values > 0.9, values, 0)
    whole = Delta(
        np.array([2**40, 7]),
        np.array([3]),
        True,
        1.25,
        9,
        random.random(3),
        Counted(4, 3, **counted),
        (np.array([7, 5]), np.array([8, 9])),
    )
    whole = whole.leave(np.ones((1, 4)), ["a"]).leave(np.zeros((2, 4)), [("b", "c"), None])
    again = Delta.from_bytes(whole.to_bytes())
    assert again.leaving_labels == ["a", ("b", "c"), None]
    for mine, theirs in zip(_values(whole), _values(again), strict=True):
        assert np.array_equal(mine, theirs)
        assert getattr(mine, "dtype", None) == getattr(theirs, "dtype", None)
    assert Delta.from_bytes(Delta().to_bytes()).counted is None


def _values(delta):
    return [*delta[:-4], *delta.counted, *delta.renamed, delta.leaving_rows]
