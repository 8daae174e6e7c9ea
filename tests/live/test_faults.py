"""What can go wrong with a collection: kills, a full disk, two writers, Ctrl-C, lost workers."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from streamhash import SDOH, FileError, InputError, InUseError
from streamhash.live import Collection, journal, refresh

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def stream(n=400, d=8, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = 3 * np.eye(classes, d)[y] + random.standard_normal((n, d))
    return X.astype(np.float32), y.tolist()


X, Y = stream()


def hasher():
    return SDOH(16, batch_size=20, n_features=32, memory=60, random_state=0)


def whole(collection):
    """Check that all codes are those of one model, and that memory is what is stored."""
    items = collection.get(collection.ids)
    if items and collection.model_number:
        rows = np.array([item.vector for item in items])
        codes = np.array([item.code for item in items])
        assert np.array_equal(codes, collection.model().transform(rows))
        assert np.array_equal(codes, collection._view.now.backend.codes)
    return {item.id: (item.vector.tobytes(), item.label) for item in items}


def reopened(path):
    with Collection.open(path) as again:
        return whole(again), again._learner.hasher_.to_bytes(), again.model_number


def now(collection):
    return whole(collection), collection._learner.hasher_.to_bytes(), collection.model_number


# -------------------------------------------------------------------------------------- kills


def test_twenty_kills_lose_nothing(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "faults.py", "--kills", "20", "--items", "300"]
    command += ["--out", tmp_path / "rows.jsonl"]
    # One thread of BLAS: the process that forks the children must have no other.
    one = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, env=one)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    row = json.loads(ended.stdout)
    assert (row["tried"], row["lost"]) == (20, [])


# ---------------------------------------------------------------------------------- full disk


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MB, or a reason why there is none."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no right to mount a small file system: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path):
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(file, b"x" * 4096)
    except OSError:
        os.close(file)


def test_a_full_disk_is_an_error_and_nothing_is_half_there(small_disk):
    path, filling = small_disk / "items", small_disk / "filling"
    c = Collection.create(path, hasher(), refresh="manual")
    c.add(range(60), X[:60], Y[:60])
    c.add(range(60, 100), X[60:100], Y[60:100])
    before = now(c)
    fill(filling)
    long = {"metadata": [{"text": "x" * 2**14}]}  # what is short may fit behind the log
    for call in (
        lambda: c.add([100], X[100:101], [1], **long),
        lambda: c.add([100], X[100:101], **long),
        lambda: c.add([5], X[100:101], existing="replace", **long),
        lambda: c.label([1], [2]),
        lambda: c.feedback(query_id=1, id=[2, 3]),
        lambda: c.delete([1]),
        lambda: c.refresh(),
    ):
        with pytest.raises(FileError, match=r"cannot be written .*No space left"):
            call()
        assert now(c) == before
    with Collection.open(path, read_only=True) as reader:
        assert whole(reader) == before[0]
    c.close()
    with Collection.open(path) as c:  # while it is full
        assert now(c) == before
        filling.unlink()
        c.add([100], X[100:101], [1])
        c.label([1], [2])
        c.delete([2])
        assert c.refresh() is True
        last = now(c)
        assert last[0].keys() == {*range(101)} - {2}
        assert last[0][1][1] == 2
    assert reopened(path) == last


def test_a_disk_that_fills_up_slowly(small_disk):
    """Wherever it gets full, in a change or in a refresh, what is in memory is on disk."""
    path = small_disk / "items"
    c = Collection.create(path, hasher(), refresh=20)
    rows, n, failed = np.tile(X, (10, 1)), 0, 0
    while failed < 3:
        try:
            ids = [*range(n, n + 400)]
            c.add(ids, rows[:400], [*Y[:40], *[None] * 360])
            n += 400
        except FileError:
            failed += 1
    assert c.ids == [*range(n)]
    learner = c._learner.hasher_.to_bytes()
    with contextlib.suppress(FileError):  # a refresh that failed: raised once, at the latest now
        c.close()
    with Collection.open(path, read_only=True) as reader:
        assert reader.ids == [*range(n)]
        assert reader._learner.hasher_.to_bytes() == learner
        whole(reader)
    with Collection.open(path) as c:
        assert c.ids == [*range(n)]
        whole(c)


# ----------------------------------------------------------------------------- a second writer


def start(code, *arguments):
    """Start a process that runs this code."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path):
    path = tmp_path / "items"
    with Collection.create(path, hasher()) as c:
        c.add(range(40), X[:40], Y[:40])
    holder = start(
        """
        import sys
        from streamhash.live import Collection
        c = Collection.open(sys.argv[1])
        print("open", flush=True)
        sys.stdin.readline()
        c.delete([0])
        print("deleted", flush=True)
        sys.stdin.readline()
        """,
        path,
    )
    try:
        assert holder.stdout.readline() == "open\n"
        message = f"process {holder.pid} is writing to this collection"
        with pytest.raises(InUseError, match=message):
            Collection.open(path)
        with Collection.open(path, read_only=True) as reader:
            assert len(reader) == 40
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert holder.stdout.readline() == "deleted\n"
            assert len(reader) == 39
            assert 0 not in reader.search(X[:1], 39)[1].ravel().tolist()
            with pytest.raises(InUseError):
                Collection.open(path)
            holder.kill()
            holder.wait()
            with Collection.open(path) as c:
                c.add([0], X[:1])
            assert len(reader) == 40
    finally:
        holder.kill()
        holder.communicate()


def test_a_forked_child_does_not_hold_the_lock(tmp_path):
    path = tmp_path / "items"
    Collection.create(path, hasher()).close()
    parent = start(
        """
        import os, signal, sys, time
        from streamhash.live.locks import WriterLock
        from pathlib import Path
        lock = WriterLock(Path(sys.argv[1]))
        if os.fork() == 0:
            print(os.getpid(), flush=True)  # by now it has let go of what it inherited
        time.sleep(60)
        """,
        path,
    )
    child = int(parent.stdout.readline())
    try:
        with pytest.raises(InUseError):
            Collection.open(path)
        parent.kill()
        parent.wait()
        Collection.open(path).close()
    finally:
        os.kill(child, signal.SIGKILL)
        parent.communicate()


# -------------------------------------------------------------------------------------- Ctrl-C


def test_ctrl_c_leaves_a_collection_that_works(tmp_path):
    path, n = tmp_path / "items", 0
    c = Collection.create(path, hasher(), refresh=60)
    c.add(range(40), X[:40], Y[:40])
    random = np.random.default_rng(0)
    for turn in range(12):
        delay = float(random.random()) * 0.12
        timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
        try:
            timer.start()
            if turn % 3 == 2:
                c.refresh()
            else:
                c.add(range(1000 * turn + 100, 1000 * turn + 160), X[:60], Y[:60])
            timer.join()
            time.sleep(0.01)
        except KeyboardInterrupt:
            n += 1
        timer.join()
        there = [i for i in c.ids if 1000 * turn + 100 <= i < 1000 * turn + 160]
        assert len(there) in (0, 60)  # whole, or not at all
        whole(c)
    assert n >= 1
    c.refresh()
    last = now(c)
    c.close()
    assert reopened(path) == last


# ----------------------------------------------------------------------------------- executors


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A collection of eight fragments, encoded one by one."""
    monkeypatch.setattr(refresh, "LEFT_FOR_THE_END", 10)
    monkeypatch.setattr(journal, "SMALL_KEYS", 1000)
    monkeypatch.setattr(refresh, "NOTE_SECONDS", 0.0)
    rows = np.tile(X, (5, 1))
    with Collection.create(tmp_path / "items", hasher(), refresh="manual") as c:
        c.add(range(40), X[:40], Y[:40])
        for i in range(1, 8):
            c.add(range(2000 * i, 2000 * i + 2000), rows, [*Y[:20], *[None] * 1980])
        yield c


@pytest.mark.parametrize("kind", ["none", "threads", "processes"])
def test_a_refresh_by_any_executor(large, kind):
    shown = []
    before = whole(large)

    def progress(done, n):
        shown.append((done, n))
        if len(shown) == 1:  # changes go on meanwhile
            large.add([1], X[100:101], [0], existing="replace")
            large.delete([2, 2005, 14001])
            large.add([99], X[99:100])
            large.label([3], [2])
            assert large.search(X[4:5], 1)[0].tolist() == [[0]]

    if kind == "none":
        assert large.refresh(progress=progress) is True
    else:
        pools = {
            "threads": lambda: ThreadPoolExecutor(2),
            "processes": lambda: ProcessPoolExecutor(1, get_context("spawn")),
        }
        with pools[kind]() as pool:
            assert large.refresh(executor=pool, progress=progress) is True
    assert large.model_number == 2
    assert [done for done, _ in shown] == sorted(done for done, _ in shown)
    assert shown[-1][0] == shown[-1][1] >= len(large) == 14_038
    after = whole(large)
    assert after.keys() == (before.keys() | {99}) - {2, 2005, 14001}
    assert after[1] == (X[100].tobytes(), 0)
    assert after[3][1] == 2


def test_a_refresh_that_was_interrupted_goes_on_from_there(large, monkeypatch):
    def dies(done, _):
        if done > 5000:
            raise OSError("lost")

    with pytest.raises(OSError, match="lost"):
        large.refresh(progress=dies)
    assert large.model_number == 1
    assert large.status()["refresh"]["interrupted"] is True
    noted = large._journal.read_encoded(2)
    assert sum(result["rows"] for result in noted.values()) >= 5000
    large.delete([2001])
    large.add([50], X[50:51])
    encoded = []
    plain = refresh.encode_fragments

    def spy(work, fragments, *rest):
        encoded.extend(fragments)
        plain(work, fragments, *rest)

    monkeypatch.setattr(refresh, "encode_fragments", spy)
    assert large.refresh() is True
    assert encoded
    assert not set(encoded) & set(noted)
    whole(large)
    assert large.status()["refresh"]["interrupted"] is False


class OneTask(ProcessPoolExecutor):
    """Its worker stands still when it has done one task, so that others are left."""

    is_new = True

    def submit(self, *work):
        task, is_first, self.is_new = super().submit(*work), self.is_new, False
        if is_first:
            task.add_done_callback(lambda _: os.kill(next(iter(self._processes)), signal.SIGSTOP))
        return task


def test_a_worker_that_is_killed_is_an_error_and_made_up_for(large):
    killed = []

    def kill_worker(*_):
        if not killed:
            killed.extend(pool._processes)
            os.kill(killed[0], signal.SIGKILL)

    with OneTask(1, get_context("spawn")) as pool, pytest.raises(BrokenProcessPool):
        large.refresh(executor=pool, progress=kill_worker)
    assert large.model_number == 1
    noted = large._journal.read_encoded(2)
    assert noted
    assert large.refresh() is True
    assert large.encoded_items < len(large) + 40
    whole(large)


# -------------------------------------------------------------------------------- object store


def test_a_collection_in_an_object_store(bucket):
    address = "s3://bucket/items"
    with pytest.raises(FileError, match="there is no collection here"):
        Collection.open(address, storage_options=bucket)
    c = Collection.create(address, hasher(), refresh="manual", storage_options=bucket)
    c.add(range(60), X[:60], Y[:60])
    reader = Collection.open(address, read_only=True, storage_options=bucket)
    c.add(range(60, 100), X[60:100], Y[60:100])
    c.label([1], [9])
    c.delete([2])
    c.add([3], X[200:201], existing="replace")
    assert c.refresh() is True
    assert whole(reader) == whole(c)
    assert reader.model_number == 2
    with pytest.raises(InputError, match="there is a collection already"):
        Collection.create(address, hasher(), storage_options=bucket)
    last = now(c)
    c.close()
    with Collection.open(address, storage_options=bucket) as c:
        assert now(c) == last


@pytest.mark.parametrize("change", ["labelled", "unlabelled", "label", "delete", "refresh"])
def test_two_writers_in_an_object_store_are_noticed(bucket, change):
    address = f"s3://bucket/two-{change}"
    first = Collection.create(address, hasher(), refresh="manual", storage_options=bucket)
    first.add(range(60), X[:60], Y[:60])
    second = Collection.open(address, storage_options=bucket)
    first.add(range(60, 100), X[60:100], Y[60:100])
    first.add([100], X[100:101])
    calls = {
        "labelled": lambda: second.add([500], X[:1], [1]),
        "unlabelled": lambda: second.add([500], X[:1]),
        "label": lambda: second.label([1], [1]),
        "delete": lambda: second.delete([1]),
        "refresh": lambda: second.add(range(500, 540), X[:40], Y[:40]),
    }
    if change == "refresh":
        first.refresh()
    with pytest.raises(InUseError, match="another process has written to this collection"):
        calls[change]()
    with pytest.raises(InputError, match="open to read only"):
        calls[change]()
    keys = first._journal.dataset("items").to_table(columns=["key"])["key"].to_pylist()
    assert len(set(keys)) == len(keys)
    with Collection.open(address, storage_options=bucket) as c:
        assert {*range(2, 101)} <= {*c.ids} <= {*range(101)}
        assert c._learner.hasher_.to_bytes() == first._learner.hasher_.to_bytes()
        assert whole(second) == whole(c)
