"""A collection on a disk that fails, loses its power or is damaged: what is lost?

    python tests/durability.py writes          every call to the disk fails, one after another
    python tests/durability.py cuts --n 200    the power is cut at random moments
    python tests/durability.py ext4 --n 30         the same with a real file system, as root
    python tests/durability.py damage --n 3000 bits flip, files are cut short or vanish

Each prints one JSON line of what was tried and what was lost, and ends with 1 if anything was.
Run it in a process of its own: a disk that fails stays for good.
"""

import argparse
import collections
import contextlib
import itertools
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

from faulty_disk import ALL, Disk, Replay, read_log
from streamhash import SDOH, FileError, InputError, StreamhashError
from streamhash.live import Collection, journal, store, verify

WIDTH, CLASSES = 8, 3


def rows(ids, version=0):
    ids = np.asarray(ids)
    noise = np.sin((ids[:, None] * 31.0 + version * 7.0) * np.arange(1, WIDTH + 1) * 0.737)
    return (noise + 2 * np.eye(CLASSES, WIDTH)[ids % CLASSES]).astype(np.float32)


def hasher():
    return SDOH(16, batch_size=10, n_features=32, memory=40, random_state=0)


def make(path):
    """A collection that has lived a little."""
    with Collection.create(path, hasher(), refresh="manual", random_state=0) as c:
        for start in range(0, 60, 20):
            ids = range(start, start + 20)
            c.add(ids, rows(ids), [i % CLASSES for i in ids], metadata=[{"n": i} for i in ids])
        c.label([3], [1])
        c.delete([7])
        c.refresh()


class Step:
    """One call, and what is there after it if it has come to pass."""

    def __init__(self, name, call, effect=lambda there: there):
        self.name, self.call, self.effect = name, call, effect


def add(ids, version=0, *, labelled=True):
    labels = [i % CLASSES if labelled else None for i in ids]
    vectors = rows(ids, version)

    def call(c):
        c.add([*ids], vectors, labels, existing="replace")

    def effect(there):
        new = {
            i: (row.tobytes(), label) for i, row, label in zip(ids, vectors, labels, strict=True)
        }
        return {**there, **new, "judged": judged_of_others(there, ids)}

    return Step("replace" if version else "add", call, effect)


def label(ids, value):
    def effect(there):
        return {**there, **{i: (there[i][0], value) for i in ids if i in there}}

    return Step("label", lambda c: c.label([*ids], [value] * len(ids)), effect)


def delete(ids):
    def effect(there):
        left = {i: item for i, item in there.items() if i not in ids}
        return {**left, "judged": judged_of_others(there, ids)}

    return Step("delete", lambda c: c.delete([*ids]), effect)


def feedback(query_ids, ids, good):
    def effect(there):
        new = zip(ids, good, query_ids, strict=True)
        return {**there, "judged": (*there["judged"], *new)}

    return Step("feedback", lambda c: c.feedback(query_id=query_ids, id=ids, good=good), effect)


def judged_of_others(there, ids):
    """What is judged of items but these."""
    return tuple(each for each in there["judged"] if not {each[0], each[2]} & {*ids})


STEPS = [
    add([100]),
    add([101, 102, 103], labelled=False),
    label([101, 4], 2),
    add([5], 1),
    delete([8, 102]),
    feedback([0, 1, 2], [3, 4, 6], [True, True, False]),
    add(range(110, 135)),
    feedback([9] * 12, [*range(12, 24)], [i % 3 == 0 for i in range(12)]),
    Step("refresh", lambda c: c.refresh()),
    add([104], labelled=False),
    label([104], 0),
    add([140]),
    delete([110, 12]),
    add([5, 6], 2),
]


def state(c):
    """All that a collection holds."""
    items = c.get(c.ids)
    codes = np.array([item.code for item in items])
    vectors = np.array([item.vector for item in items])
    if c.model_number:
        assert np.array_equal(codes, c.model().transform(vectors)), "codes of another model"
    judged = tuple((each.id, each.good, each.query_id) for each in c.judgements())
    there = {item.id: (item.vector.tobytes(), item.label) for item in items}
    return {**there, "judged": judged}


def learned(c):
    return c._learner.hasher_.to_bytes()


def tidy_often():
    """Tidy up after every few changes, fold labels again and again, all in threads of their own."""
    journal.TIDY_AFTER, journal.LOG_CHANGES, journal.LABEL_ROWS = 5, 3, 0
    journal.REWRITTEN_AT_ONCE, journal.FRAGMENT_ROWS = 0, 8


@contextlib.contextmanager
def place():
    """A folder, and tidying after every few changes."""
    tidy_often()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # quick, and it is no real disk
    with tempfile.TemporaryDirectory(prefix="streamhash-faults-", dir=memory) as folder:
        yield Path(folder)


class LostError(Exception):
    pass


def expect(holds, otherwise):
    if not holds:
        raise LostError(otherwise)


def check_goes_on(path, wanted=None):
    """The collection opens, is whole, and takes changes."""
    with Collection.open(path) as c:
        there = state(c)
        if wanted is not None:
            expect(there in wanted, f"{len(there)} items that are not what was stored")
        c.add([999], rows([999]), [0], existing="replace")
        after = state(c)
        expect(999 in after, "the last item is missing")
    with Collection.open(path, read_only=True) as c:
        expect(state(c) == after, "a reader sees other items")
    damages = verify(path).damages
    expect(not damages, f"verify: {damages}")
    return there


# ------------------------------------------------------------------------------ calls that fail


class Failing:
    """A collection before each step, so that calls of this step, or of opening, can be failed."""

    def __init__(self, disk, folder):
        self.disk, self.path = disk, folder / "items"
        self.bases, self.there, self.calls = [folder / "base"], [], []
        make(self.bases[0])
        for number in range(-1, len(STEPS)):
            base = folder / f"base-{number}"
            shutil.copytree(self.bases[-1], base)
            disk.watch(base)
            before = disk.tally()
            with Collection.open(base) as c:
                if number >= 0:
                    before = disk.tally()
                    STEPS[number].call(c)
                self.calls.append(disk.tally() - before)
                self.there.append(state(c))
            disk.watch("")
            self.bases += [base] if number >= 0 else []
        disk.watch(self.path)

    def places(self, kinds):
        """Every call of these kinds: the step, -1 for opening, and which of its calls."""
        for number, calls in enumerate(self.calls, -1):
            for at in range(1, 1 + sum(calls[kind] for kind in kinds)):
                yield number, at

    def fail(self, number, kinds, at, error, *, lasting, opening):
        """Fail a call of a step; return whether it came to that, and if there was an error."""
        disk, path, step = self.disk, self.path, STEPS[number]
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.bases[number], path)
        possible, told, c = [self.there[number]], 0, None
        if not opening:
            c = Collection.open(path)
        disk.fail(kinds, at, error, lasting=lasting)
        try:
            if opening:
                c = Collection.open(path)
            else:
                possible.append(step.effect(possible[0]))
                step.call(c)
                possible = possible[1:]
        except FileError:
            told = 1
        if lasting and c is not None:
            with contextlib.suppress(FileError):
                c.add([600], rows([600]), existing="replace")
                possible = [effect_of_600(there) for there in possible]
        came = disk.counted >= at
        disk.work()
        if c is None:
            with Collection.open(path) as c:
                expect(state(c) in possible, "other items after opening failed")
            return came, told
        if lasting:
            possible += [effect_of_600(there) for there in possible]
        # The process goes on, with what is stored.
        c.add([500], rows([500]), [1])
        now, known = state(c), learned(c)
        item = (rows([500])[0].tobytes(), 1)
        expect(now in [{**there, 500: item} for there in possible], "memory is not what was stored")
        with contextlib.suppress(FileError):  # of a refresh by itself
            c.close()
        with Collection.open(path) as c:
            expect(state(c) == now, "other items after opening again")
            expect(learned(c) == known, "another learner after opening again")
        damages = verify(path).damages
        expect(not damages, f"verify: {damages}")
        return came, told


def effect_of_600(there):
    return {**there, 600: (rows([600])[0].tobytes(), None)}


MODES = [
    ("EIO once", ALL, "EIO", False),
    ("ENOSPC once", "wsnlomt", "ENOSPC", False),
    ("EIO lasting", ALL, "EIO", True),
    ("ENOSPC lasting", "wsnlomt", "ENOSPC", True),
]


def run_writes(every, sample, seed, only, kinds, call):
    """Try every so-manieth call in each way, or a sample of all of them."""
    tried, told, lost = collections.Counter(), collections.Counter(), []
    with place() as folder:
        failing = Failing(Disk(), folder)
        runs = [
            ((mode[0], kinds or mode[1], *mode[2:]), number, at)
            for mode in MODES
            if only in (None, mode[0])
            for number, at in [*failing.places(kinds or mode[1])][seed % every :: every]
            if call in (None, "opening" if number < 0 else STEPS[number].name)
        ]
        if sample is not None:
            runs = random.Random(seed).sample(runs, sample)
        for (name, kinds, error, lasting), number, at in runs:
            try:
                came, was_told = failing.fail(
                    max(number, 0), kinds, at, error, lasting=lasting, opening=number < 0
                )
                tried[name] += came
                told[name] += was_told
            except BaseException as problem:
                failing.disk.work()
                if isinstance(problem, KeyboardInterrupt):
                    raise
                tried[name] += 1
                what = "opening" if number < 0 else STEPS[number].name
                lost.append(f"{name} at {at} of {what} ({number}): {problem!r}"[:400])
                if len(lost) <= 5:
                    traceback.print_exc()
    return {
        "fault": "failed calls",
        "kinds": kinds or ALL,
        "every": every,
        "tried": dict(tried),
        "told": dict(told),
        "lost": lost,
    }


# ----------------------------------------------------------------------------------- power cuts


def record(folder):
    """Go through the steps on a watched disk; return what was there after each, and the log."""
    disk, base, path = Disk(), folder / "base", folder / "items"
    make(base)
    shutil.copytree(base, path)
    disk.watch(path)
    disk.log(folder / "log")
    states = []
    with Collection.open(path) as c:
        states.append((state(c), learned(c)))
        for number, step in enumerate(STEPS * 3, 1):
            with contextlib.suppress(InputError):
                step.call(c)
            states.append((state(c), learned(c)))
            disk.mark(number)
    disk.watch("")
    return states, [*read_log(folder / "log")]


def run_cuts(n, seed):
    lost, seen, choose = [], collections.Counter(), random.Random(seed)
    with place() as folder:
        states, log = record(folder)
        moments = sorted(choose.randrange(len(log) + 1) for _ in range(n))
        replay, at, done = Replay(folder / "items", folder / "base"), 0, 0
        for number, moment in enumerate(moments):
            while at < moment:
                if log[at][0] == "k":
                    done = log[at][1]
                else:
                    replay.apply(log[at])
                at += 1
            path = folder / f"cut-{number}"
            replay.build(path, seed * 1_000_000 + number)
            allowed = states[done : done + 2]
            try:
                with Collection.open(path, read_only=True) as c:
                    expect(state(c) in [there for there, _ in allowed], "a reader sees other items")
                with Collection.open(path) as c:
                    expect((state(c), learned(c)) in allowed, "items or learner are others")
                check_goes_on(path, [there for there, _ in allowed])
            except BaseException as problem:
                if isinstance(problem, KeyboardInterrupt):
                    raise
                lost.append(f"cut {number} after call {moment}, step {done}: {problem!r}"[:400])
                if len(lost) <= 5:
                    traceback.print_exc()
            seen[STEPS[done % len(STEPS)].name] += 1
            shutil.rmtree(path)
    syncs = sum(entry[0] == "s" for entry in log)
    return {
        "fault": "power cuts",
        "tried": n,
        "calls": len(log),
        "syncs": syncs,
        "during": dict(seen),
        "lost": lost,
    }


def write_on(path):
    """Change a collection for ever, and say the id of every item that was acknowledged."""
    tidy_often()
    make(path)
    with Collection.open(path) as c:
        for number in itertools.count(1000):
            c.add([number], rows([number]), [number % CLASSES if number % 2 else None])
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            if number % 7 == 0:
                c.add([5], rows([5], number), [1], existing="replace")
                c.delete([number - 1])
            if number % 20 == 0:
                c.refresh()


def run_ext4(n, seed):
    """Cut the power of a real file system: copy the device below it, under the writer.

    Root only, and where there are loop devices.
    """
    choose, lost, said = random.Random(seed), [], []
    with tempfile.TemporaryDirectory() as folder:
        device, copy, here, there = (Path(folder) / name for name in ("device", "copy", "a", "b"))
        here.mkdir()
        there.mkdir()
        with device.open("wb") as file:
            file.truncate(48 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", device], check=True)
        subprocess.run(["mount", "-o", "loop", device, here], check=True)
        command = [sys.executable, __file__, "write", "--path", here / "items"]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            said += [int(next(writer.stdout)) for _ in range(3)]
            os.set_blocking(writer.stdout.fileno(), False)
            for number in range(n):
                time.sleep(choose.random())
                writer.send_signal(signal.SIGSTOP)
                said += map(int, (writer.stdout.read() or b"").split())
                wanted = {each for each in said if (each + 1) % 7}
                shutil.copyfile(device, copy)
                writer.send_signal(signal.SIGCONT)
                subprocess.run(["mount", "-o", "loop", copy, there], check=True)
                try:
                    found = check_goes_on(there / "items")
                    expect(wanted <= found.keys(), f"{sorted(wanted - found.keys())} are lost")
                except (StreamhashError, LostError, AssertionError, OSError) as problem:
                    lost.append(f"cut {number}: {problem!r}"[:400])
                subprocess.run(["umount", there], check=True)
        finally:
            writer.kill()
            writer.wait()
            subprocess.run(["umount", "-l", here], check=True)
    name = "power cuts of ext4 on a loop device"
    return {"fault": name, "tried": n, "acknowledged": len(said), "lost": lost}


# --------------------------------------------------------------------------------------- damage


def damage_one(path, choose):
    """Damage one file; return what was done."""
    files = sorted(each for each in path.rglob("*") if each.is_file() and each.stat().st_size)
    file = choose.choice(files)
    content, kind = (
        bytearray(file.read_bytes()),
        choose.choices(["flip", "cut", "remove"], [8, 1, 1])[0],
    )
    if kind == "flip":
        bit = choose.randrange(8 * len(content))
        content[bit // 8] ^= 1 << bit % 8
        file.write_bytes(content)
    elif kind == "cut":
        file.write_bytes(content[: choose.randrange(len(content))])
    else:
        file.unlink()
    return kind, file.relative_to(path).as_posix()


def run_damage(n, seed, small):
    """With ``small``, opening reads few files, as where files are large."""
    choose, found, lost = random.Random(seed), collections.Counter(), []
    if not small:
        store.SMALL_FILE = 0
    with place() as folder:
        base, path = folder / "base", folder / "items"
        make(base)
        with Collection.open(base) as c:
            for step in STEPS[:6]:
                step.call(c)
            wanted, known = state(c), learned(c)
        for number in range(n):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(base, path)
            kind, file = damage_one(path, choose)
            if number % 50 == 49:  # a whole dataset
                file = choose.choice(journal.NAMES) + ".lance"
                kind = "remove"
                shutil.rmtree(path / file)
            try:
                reported = [each.file for each in verify(path).damages]
            except FileError as error:
                reported = [str(error)]
            except BaseException as problem:  # noqa: BLE001
                lost.append(f"{kind} {file}: verify: {problem!r}"[:400])
                continue
            named = any(file in each for each in reported)
            try:
                with Collection.open(path) as c:
                    try:
                        same = state(c) == wanted and learned(c) == known
                    except AssertionError:  # a code that is not that of its vector
                        same = False
                    c.add([700], rows([700]), [1])
                    c.refresh()
                outcome = "harmless" if same else "other items"
            except FileError as error:
                outcome = "told when opened or used"
                if not reported:
                    lost.append(f"{kind} {file}: {error}, and verify says nothing")
                if path.name not in str(error):
                    lost.append(f"{kind} {file}: the error names no file: {error}")
            except BaseException as problem:
                if isinstance(problem, KeyboardInterrupt):
                    raise
                outcome = "raw error"
                lost.append(f"{kind} {file}: {problem!r}"[:400])
                if len(lost) <= 5:
                    traceback.print_exc()
            if outcome == "other items":
                if named:
                    outcome = "told by verify"
                else:
                    lost.append(f"{kind} {file}: other items, and verify says {reported}")
            elif outcome == "harmless" and named:
                outcome = "harmless, told by verify"
            found[outcome] += 1
    return {
        "fault": "damage",
        "small_files_read": small,
        "tried": n,
        "found": dict(found),
        "lost": lost,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["writes", "cuts", "ext4", "damage", "write"])
    parser.add_argument("--path", type=Path, help="where write writes")
    parser.add_argument("--step", type=int, default=1, help="try every so-manieth call")
    parser.add_argument("--sample", type=int, help="try so many calls, by chance")
    parser.add_argument("--kinds", help=f"of calls, some letters of {ALL}")
    parser.add_argument("--mode", choices=[mode[0] for mode in MODES])
    parser.add_argument("--call", help="what is called, such as replace; if not given, all")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--large", action="store_true", help="files count as large ones")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    if arguments.what == "writes":
        row = run_writes(
            arguments.step,
            arguments.sample,
            arguments.seed,
            arguments.mode,
            arguments.kinds,
            arguments.call,
        )
    elif arguments.what == "write":
        write_on(arguments.path)
    elif arguments.what == "ext4":
        row = run_ext4(arguments.n, arguments.seed)
    elif arguments.what == "cuts":
        row = run_cuts(arguments.n, arguments.seed)
    else:
        row = run_damage(arguments.n, arguments.seed, not arguments.large)
    sys.stdout.write(json.dumps(row) + "\n")
    sys.exit(1 if row["lost"] else 0)


if __name__ == "__main__":
    main()
