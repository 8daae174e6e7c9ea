"""Failed calls to the disk, power cuts, damage and second writers: nothing acknowledged is lost.

The harness is ``tests/durability.py``; here are short runs of it, and what it cannot see. The long
runs are those of ``benchmarks/fault_durable.py``.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import faulty_disk
from streamhash import SDOH, FileError, InputError, InUseError
from streamhash.live import Collection, journal, store, verify

HERE = Path(__file__).parent
random = np.random.default_rng(0)
Y = random.integers(3, size=200).tolist()
X = (3 * np.eye(3, 8)[Y] + random.standard_normal((200, 8))).astype(np.float32)


def run(*arguments):
    """Run the harness in a process of its own; return what it says."""
    command = [sys.executable, HERE.parent / "durability.py", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ended.stdout, ended.stderr
    row = json.loads(ended.stdout.splitlines()[-1])
    assert row["lost"] == [], ended.stderr
    return row


watched = pytest.mark.skipif(faulty_disk.why_not() is not None, reason=str(faulty_disk.why_not()))


@pytest.mark.slow
@watched
def test_calls_that_fail_lose_nothing():
    row = run("writes", "--sample", 40)
    assert sum(row["tried"].values()) > 30
    assert sum(row["told"].values()) > 10


@pytest.mark.slow
@watched
def test_a_replaced_item_that_cannot_be_read_any_more_is_tidied_up_later():
    row = run("writes", "--mode", "EIO lasting", "--kinds", "r", "--call", "replace", "--step", 3)
    assert sum(row["tried"].values()) > 10


@pytest.mark.slow
@watched
def test_power_cuts_lose_nothing():
    row = run("cuts", "--n", 30)
    assert row["syncs"] > 100
    assert len(row["during"]) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("large", [[], ["--large"]])
def test_damage_is_told_or_does_no_harm(large):
    row = run("damage", "--n", 40, *large)
    assert row["found"]["told when opened or used"] > 3


# ------------------------------------------------------------------------------- what is stored


def hasher():
    return SDOH(16, batch_size=20, n_features=32, memory=60, random_state=0)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "items"
    with Collection.create(path, hasher(), refresh="manual") as c:
        c.add(range(60), X[:60], Y[:60])
        c.add(range(60, 80), X[60:80])
        c.label([61], [2])
        c.delete([3])
    return path


def test_what_is_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(store, "sync", lambda paths: synced.extend(paths))
    with Collection.create(tmp_path / "process", hasher(), durability="process") as c:
        c.add([1], X[:1])
        assert synced == []
    with Collection.create(tmp_path / "synced", hasher()) as c:
        synced.clear()
        c.add([1], X[:1], [1])
        folder = c._journal.folder
        below = [path for path in synced if path.is_relative_to(folder)]
        names = [path.relative_to(folder).as_posix() for path in below]
        assert any(name.startswith("items.lance/data/") for name in names)
        assert any(name.startswith("learner.lance/_versions/") for name in names)
        assert {"items.lance", "items.lance/data", "learner.lance/_versions"} <= {*names}
        # The manifest, which makes it count, comes last.
        last = [name for name in names if name.startswith(("items.lance/", "learner.lance/"))]
        assert [name.split("/")[:2] for name in last if name.endswith(".manifest")][-1:] == [
            ["items.lance", "_versions"]
        ]
        assert last.index("items.lance/data") < last.index("items.lance/_versions")
    with Collection.open(tmp_path / "process") as c:
        synced.clear()
        c.add([2], X[:1])
        assert synced == []
    with pytest.raises(InputError, match="durability='never'"):
        Collection.create(tmp_path / "other", hasher(), durability="never")


def test_a_version_that_was_never_acknowledged_is_passed_over(path, caplog, monkeypatch):
    monkeypatch.setattr(journal, "SMALL_KEYS", 0)  # every change is a commit
    with Collection.open(path) as c:
        before = c.ids
        c.add([500], X[:1])
        version = c._journal.version("items")
    checksums = path / "checksums"
    lines = checksums.read_bytes().split(b"\n")
    manifest = next(each for each in lines if b'"items", "version": %d' % version in each)
    content = json.loads(manifest.partition(b" ")[2])
    file = next(name for name in content["files"] if name.endswith(".manifest"))
    broken = path / "items.lance" / file
    copy = shutil.copytree(path, path.with_name("copy"))
    broken.write_bytes(broken.read_bytes()[:100])
    # It was acknowledged: that is damage.
    for read_only in (True, False):
        with pytest.raises(FileError, match=f"{broken}: has 100 bytes .*restore"):
            Collection.open(path, read_only=read_only)
    # It was not: that is a power cut.
    checksums.write_bytes(b"\n".join(lines[: lines.index(manifest)]) + manifest[:40])
    with Collection.open(path, read_only=True) as c:
        assert c.ids == before
        assert broken.exists()
    with Collection.open(path) as c:
        assert c.ids == before
        assert "was never acknowledged and is passed over" in caplog.text
        c.add([501], X[:1])
    assert verify(path).damages == []
    with Collection.open(path) as c:
        assert c.ids == [*before, 501]
    # Whole, though its line is lost: it counts.
    (copy / "checksums").write_bytes(b"\n".join(lines[: lines.index(manifest)]))
    with Collection.open(copy) as c:
        assert c.ids == [*before, 500]


@pytest.mark.parametrize("sums", [True, False])
def test_missing_datasets_are_named(path, sums):
    if not sums:  # so that only one dataset tells of another
        (path / "checksums").unlink()
    for name in ("items", "labels", "learner", "models", "encoded", "state"):
        there, away = path / f"{name}.lance", path / "away"
        there.rename(away)
        for read_only in (True, False):
            with pytest.raises(FileError, match=rf"{name}\.lance.*missing.*restore"):
                Collection.open(path, read_only=read_only)
        if sums or name != "learner":
            with pytest.raises(InputError, match="there is a collection already"):
                Collection.create(path, hasher())
        assert any(f"{name}.lance" in damage.file for damage in verify(path).damages)
        away.rename(there)
    Collection.open(path).close()
    with pytest.raises(FileError, match="there is no collection here"):
        verify(path.parent)
    with pytest.raises(FileError, match="there is no collection here"):
        verify(path / "nothing")


def test_collections_without_checksums(tmp_path):
    with zipfile.ZipFile(HERE.parent / "files" / "v1-collection.zip") as archive:
        archive.extractall(tmp_path)
    found = verify(tmp_path)
    assert found.without_checksum > 3
    assert found.damages == []
    with Collection.open(tmp_path) as c:
        assert not (tmp_path / "checksums").exists()
        c.add([9999], np.zeros((1, c.n_features)))
    found = verify(tmp_path)
    assert (found.without_checksum, found.damages) == (0, [])
    (tmp_path / "checksums").unlink()
    shutil.rmtree(tmp_path / "items.lance")
    with pytest.raises(FileError, match=r"items\.lance: is missing"):
        Collection.open(tmp_path)


def test_a_line_of_checksums_that_is_damaged(path):
    checksums = path / "checksums"
    content = bytearray(checksums.read_bytes())
    content[len(content) // 2] ^= 1
    checksums.write_bytes(content)
    (damage,) = verify(path).damages
    assert damage.file == str(checksums)
    with Collection.open(path) as c:
        c.add([700], X[:1])
    assert verify(path)[2:] == (0, [])


# ----------------------------------------------------------------------------------- two writers


@pytest.mark.parametrize("change", ["labelled", "unlabelled", "label", "delete", "refresh"])
def test_two_writers_are_refused_by_the_commit(path, change):
    """The lock is gone, as somebody has deleted it, or two machines do not share locks."""
    first = Collection.open(path)
    (path / "writer.lock").unlink(missing_ok=True)
    second = Collection.open(path)
    first.add([100], X[100:101])
    calls = {
        "labelled": lambda: second.add(range(500, 540), X[:40], Y[:40]),
        "unlabelled": lambda: second.add([500], X[:1]),
        "label": lambda: second.label([1], [1]),
        "delete": lambda: second.delete([1]),
        "refresh": lambda: second.refresh(),
    }
    if change == "refresh":
        first.add(range(200, 240), X[:40], Y[:40])
        first.refresh()
    with pytest.raises(InUseError, match="another process has written to this collection"):
        calls[change]()
    with pytest.raises(InputError, match="open to read only"):
        calls[change]()
    first.close()
    second.close()
    with Collection.open(path) as c:
        keys = c._journal.keys().tolist()
        assert len(set(keys)) == len(keys) == len(c)
        assert {100, 1} <= {*c.ids}
        assert not {500} & {*c.ids}
        assert c._learner.hasher_.to_bytes() == first._learner.hasher_.to_bytes()


@pytest.mark.parametrize("small", [0, 4096])
@pytest.mark.parametrize("labelled", [True, False])
def test_of_two_that_commit_at_once_one_is_refused(path, monkeypatch, labelled, small):
    """The first writes between the look of the second at the versions and its commit."""
    first = Collection.open(path)
    (path / "writer.lock").unlink(missing_ok=True)
    second = Collection.open(path)
    write, stored = store.Store._write_fragments, []

    def meanwhile(self, name, *arguments):
        written = write(self, name, *arguments)
        if name == "items":
            monkeypatch.setattr(store.Store, "_write_fragments", write)
            monkeypatch.setattr(journal, "SMALL_KEYS", small)
            with contextlib.suppress(InUseError):
                first.add([100], X[100:101])
                stored.append(100)
        return written

    monkeypatch.setattr(store.Store, "_write_fragments", meanwhile)
    monkeypatch.setattr(journal, "SMALL_KEYS", 0)
    with contextlib.suppress(InUseError):
        second.add(range(500, 540), X[:40], Y[:40] if labelled else None)
        stored.append(500)
    # A record of the log and a commit do not meet, where none of them learns: both are there.
    assert len(stored) == (2 if small and not labelled else 1)
    with Collection.open(path, read_only=True) as c:
        assert {100, 500} & {*c.ids} == {*stored}
        known = (second if 500 in stored else first)._learner.hasher_.to_bytes()
        assert c._learner.hasher_.to_bytes() == known
    first.close()
    second.close()
    with Collection.open(path) as c:
        keys = c._journal.keys().tolist()
        assert len(set(keys)) == len(keys) == len(c)
        assert {*stored} <= {*c.ids}
