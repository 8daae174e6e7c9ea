"""Backups: of one moment while another process writes, restored to the bit, refused if damaged."""

import importlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import numpy as np
import pytest

from streamhash import SDOH, FileError, InputError
from streamhash.errors import NotFoundError
from streamhash.live import Collection, backup, backups, restore, verify

pytest.importorskip("lance", reason="Lance is not installed")

D = 8


def stream(n=600, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n)
    return (2 * np.eye(3, D)[y] + random.standard_normal((n, D))).astype(np.float32), y.tolist()


X, Y = stream()


def hasher():
    return SDOH(16, batch_size=10, n_features=32, memory=40, random_state=0)


def made(path, **options):
    items = Collection.create(path, hasher(), refresh="manual", random_state=0, **options)
    items.add(range(60), X[:60], Y[:60], metadata=[{"n": i} for i in range(60)])
    items.refresh()
    items.add([60], X[60:61], [1])  # goes to the log
    items.label([3], [2])
    items.delete([4])
    items.feedback(query_id=1, id=[2, 3])
    items.add(range(70, 80), X[70:80])
    return items


def state(items):
    """Everything that a user can ask for, and what was learned to the bit."""
    found = items.get(items.ids)
    rows = [(i.id, i.vector.tobytes(), i.code.tobytes(), i.label, i.metadata) for i in found]
    learner = items._learner
    return (
        rows,
        learner.to_bytes(),
        learner.hasher_.to_bytes(),
        items.model_number,
        items.judgements(),
    )


@pytest.fixture
def shop(tmp_path):
    with made(tmp_path / "shop") as items:
        yield items


@pytest.mark.parametrize("target", ["shop.tar", "backups"])
def test_what_is_restored_is_what_was_there_and_goes_on_the_same(shop, tmp_path, target):
    wanted = state(shop)
    (tmp_path / "shop" / "display.json").write_text('{"version": 1, "title": "n"}')
    taken = backup(tmp_path / "shop", tmp_path / target)
    assert taken.items == len(shop)
    assert taken.new_bytes >= taken.bytes > 0
    shop.add([90], X[90:91], [0])  # after the moment
    restored = restore(tmp_path / target, tmp_path / "again")
    assert (restored.items, restored.made) == (taken.items, taken.made)
    assert (tmp_path / "again" / "display.json").read_text() == '{"version": 1, "title": "n"}'
    assert verify(tmp_path / "again").damages == []
    with Collection.open(tmp_path / "again") as again:
        assert state(again) == wanted
        again.add([90], X[90:91], [0])
        for items in (again, shop):
            items.refresh()
            items.delete([7])
        assert state(again)[0] == state(shop)[0]
    assert verify(tmp_path / "again").damages == []


def test_a_tar_unpacked_by_any_program_is_a_collection(shop, tmp_path):
    wanted = state(shop)
    backup(tmp_path / "shop", tmp_path / "shop.tar")
    subprocess.run(["tar", "xf", "../shop.tar"], cwd=mkdir(tmp_path / "other"), check=True)
    with Collection.open(tmp_path / "other" / "shop") as again:
        assert state(again) == wanted


def mkdir(path):
    path.mkdir()
    return path


def test_a_folder_takes_only_what_is_new(shop, tmp_path):
    place = tmp_path / "backups"
    states, taken = [], []
    for n in (100, 101, 102):
        taken.append(backup(tmp_path / "shop", place))
        states.append(state(shop))
        shop.add([n], X[n : n + 1])
    assert [each.name for each in backups(place)] == [each.name for each in taken]
    same = backup(tmp_path / "shop", place)
    again = backup(tmp_path / "shop", place)
    assert again.bytes == same.bytes
    assert again.new_bytes < 6000  # the list of files alone
    for each, wanted in zip(taken, states, strict=True):
        restore(place, tmp_path / each.name, name=each.name)
        with Collection.open(tmp_path / each.name, read_only=True) as items:
            assert state(items) == wanted
    kept = backup(tmp_path / "shop", place, keep=2)
    assert [each.name for each in backups(place)] == [again.name, kept.name]
    assert verify(place).damages == []
    restore(place, tmp_path / "last")
    with Collection.open(tmp_path / "last", read_only=True) as items:
        assert state(items) == state(shop)
    with pytest.raises(NotFoundError, match="no backups begin with '1999'"):
        restore(place, tmp_path / "never", name="1999")
    with pytest.raises(NotFoundError, match="2 backups begin with '2'"):
        restore(place, tmp_path / "never", name="2")


def test_in_an_object_store(bucket, tmp_path):
    options = bucket
    items = made(tmp_path / "shop")
    first = backup(tmp_path / "shop", "s3://bucket/backups", target_options=options)
    wanted = state(items)
    items.add([200], X[200:201])
    second = backup(tmp_path / "shop", "s3://bucket/backups", target_options=options)
    assert second.new_bytes < first.new_bytes
    restore("s3://bucket/backups", tmp_path / "a", name=first.name, source_options=options)
    with Collection.open(tmp_path / "a") as again:
        assert state(again) == wanted
    there = Collection.create("s3://bucket/shop", hasher(), storage_options=options)
    there.add(range(60), X[:60], Y[:60])
    backup("s3://bucket/shop", tmp_path / "there.tar", storage_options=options)
    restore(tmp_path / "there.tar", tmp_path / "b")
    with Collection.open(tmp_path / "b") as again:
        assert [i.label for i in again.get(again.ids)] == Y[:60]
        assert again._learner.hasher_.to_bytes() == there._learner.hasher_.to_bytes()


# ------------------------------------------------------------------------ while another writes

WRITER = """
    import sys
    sys.path.insert(0, sys.argv[2])
    from test_backup import X, Y, Collection, hasher
    items = Collection.create(sys.argv[1], hasher(), refresh=120, random_state=0)
    items.add(range(60), X[:60], Y[:60])
    print("ready", flush=True)
    n = 60
    while n < len(X):
        size = 1 if n % 7 else 9
        items.add(range(n, n + size), X[n : n + size], Y[n : n + size])
        n += size
    print("done", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path):
    folder = Path(__file__).parent
    command = [sys.executable, "-c", textwrap.dedent(WRITER), tmp_path / "busy", folder]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, env=os.environ
    )
    assert started.stdout.readline() == "ready\n"
    yield started
    started.kill()
    started.communicate()


@pytest.mark.slow
def test_backups_while_another_process_writes_are_of_one_moment(writer, tmp_path):
    found = []
    os.set_blocking(writer.stdout.fileno(), False)
    while len(found) < 20 and not writer.stdout.readline():
        target = tmp_path / (f"{len(found)}.tar" if len(found) % 2 else "backups")
        taken = backup(tmp_path / "busy", target)
        restore(target, tmp_path / f"copy-{len(found)}")
        found.append(taken.items)
    assert len(found) >= 3
    assert found == sorted(found)
    twin = Collection.create(tmp_path / "twin", hasher(), refresh=120, random_state=0)
    twin.add(range(60), X[:60], Y[:60])
    for i, n in enumerate(found):
        while (start := len(twin)) < n:  # as the writer has
            end = start + (1 if start % 7 else 9)
            twin.add(range(start, end), X[start:end], Y[start:end])
        assert verify(tmp_path / f"copy-{i}").damages == []
        with Collection.open(tmp_path / f"copy-{i}") as items:
            assert items.ids == [*range(n)]
            assert items._learner.hasher_.to_bytes() == twin._learner.hasher_.to_bytes()
    twin.close()


@pytest.mark.slow
def test_a_plain_copy_while_another_process_writes_opens_or_names_the_backup(writer, tmp_path):
    os.set_blocking(writer.stdout.fileno(), False)
    n = 0
    while n < 20 and not writer.stdout.readline():
        copy = tmp_path / f"copy-{n}"
        subprocess.run(["cp", "-r", tmp_path / "busy", copy], capture_output=True)
        n += 1
        try:
            with Collection.open(copy) as items:
                items.get(items.ids)
        except FileError as error:
            assert "streamhash live backup" in str(error)  # noqa: PT017  either is right
    assert n >= 3


@pytest.mark.skipif(sys.platform == "win32", reason="open files are not deleted there")
def test_files_of_the_moment_that_the_writer_deletes_meanwhile_are_copied(
    shop, tmp_path, monkeypatch
):
    wanted = state(shop)
    module = importlib.import_module("streamhash.live.backup")
    sums = module._sums  # asked for when the files of the moment are open

    def writer_tidies(folder):
        deleted = [*(tmp_path / "shop" / "state.lance" / "_versions").glob("*.manifest")]
        assert deleted
        for file in deleted:
            file.unlink()
        return sums(folder)

    monkeypatch.setattr(module, "_sums", writer_tidies)
    backup(tmp_path / "shop", tmp_path / "shop.tar")
    monkeypatch.undo()
    restore(tmp_path / "shop.tar", tmp_path / "copy")
    with Collection.open(tmp_path / "copy", read_only=True) as items:
        assert state(items) == wanted


# ------------------------------------------------------------------------------------- damage


def flip(path, at=-100):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.usefixtures("shop")
def test_damaged_files_are_not_backed_up(tmp_path):
    (file,) = (tmp_path / "shop" / "models.lance" / "data").glob("*.lance") or ()
    flip(file)
    for target in ("shop.tar", "backups"):
        with pytest.raises(FileError, match=r"models.lance/data/.*: is damaged"):
            backup(tmp_path / "shop", tmp_path / target)
    assert not (tmp_path / "shop.tar").exists()
    assert not [*tmp_path.glob("*.part")]
    assert backups(tmp_path / "backups") == []


@pytest.mark.usefixtures("shop")
def test_damaged_backups_are_not_restored(tmp_path):
    tar, place = tmp_path / "shop.tar", tmp_path / "backups"
    backup(tmp_path / "shop", tar)
    backup(tmp_path / "shop", place)
    whole = tar.read_bytes()
    for i in range(0, len(whole) - 10_240, len(whole) // 40):
        content = bytearray(whole)
        content[i] ^= 4
        tar.write_bytes(content)
        try:
            restore(tar, tmp_path / "again")
        except FileError:
            assert not (tmp_path / "again").exists()
        else:  # what was flipped is the date of a file, or fills a block
            assert verify(tmp_path / "again").damages == []
            shutil.rmtree(tmp_path / "again")
    for size in (0, 700, len(whole) // 2, len(whole) - 12_000):
        tar.write_bytes(whole[:size])
        with pytest.raises(FileError, match=r"damaged|cut short"):
            restore(tar, tmp_path / "again")
    largest = max((place / "objects").rglob("*/*"), key=lambda path: path.stat().st_size)
    flip(largest)
    with pytest.raises(FileError, match="is damaged in this backup"):
        restore(place, tmp_path / "again")
    assert [damage.file for damage in verify(place).damages] == [str(largest)]
    (record,) = place.glob("*.json")
    record.write_text(record.read_text().replace('"items": 70', '"items": 71'))
    with pytest.raises(FileError, match=r"json: is damaged"):
        restore(place, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "again.restoring").exists()


def test_names_that_lead_out_of_the_folder_are_refused(tmp_path):
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        entry = tarfile.TarInfo("shop/../../evil")
        entry.size = 1
        tar.addfile(entry, io.BytesIO(b"x"))
    with pytest.raises(FileError, match="is no name that a file of a backup has"):
        restore(tmp_path / "bad.tar", mkdir(tmp_path / "in") / "again")
    assert not (tmp_path / "evil").exists()


@pytest.mark.usefixtures("shop")
def test_what_cannot_be_is_said(tmp_path):
    backup(tmp_path / "shop", tmp_path / "shop.tar")
    with pytest.raises(InputError, match="is there already; choose another name"):
        backup(tmp_path / "shop", tmp_path / "shop.tar")
    with pytest.raises(InputError, match="is there already; choose a folder that is not"):
        restore(tmp_path / "shop.tar", tmp_path / "shop")
    with pytest.raises(InputError, match="keep goes with a folder"):
        backup(tmp_path / "shop", tmp_path / "other.tar", keep=2)
    with pytest.raises(FileError, match="there is no collection here"):
        backup(tmp_path / "nothing", tmp_path / "other.tar")
    with pytest.raises(NotFoundError, match="there is no backup here"):
        restore(tmp_path / "nothing", tmp_path / "again")
    with pytest.raises(NotFoundError, match="there is no such file"):
        restore(tmp_path / "nothing.tar", tmp_path / "again")


def test_codes_that_are_not_those_of_the_model_are_found(tmp_path):
    import lance

    made(tmp_path / "shop").close()
    items = lance.dataset(str(tmp_path / "shop" / "items.lance"))
    (column,) = [name for name in items.schema.names if name.startswith("code_")]
    key = items.to_table(columns=["key"])["key"][5].as_py()
    items.update({column: "X'FFFF'"}, where=f"key = {key}")
    (tmp_path / "shop" / "checksums").unlink()
    (damage,) = verify(tmp_path / "shop").damages
    assert damage.problem.startswith("1 codes are not those that model 1 gives")
    assert verify(tmp_path / "shop", codes=False).damages == []
