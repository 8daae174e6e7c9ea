"""Calls that come at the same time share a commit, as if one had come after the other."""

import sys
import threading
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest

from streamhash import SDOH, ConflictError, FileError, InputError
from streamhash.live import Addition, Collection, Written, groups as groups_module, writer
from streamhash.live.groups import Groups
from streamhash.live.log import Log

D = 8


def stream(n=400, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n)
    return (2 * np.eye(3, D)[y] + random.standard_normal((n, D))).astype(np.float32), y.tolist()


def made(path, **options):
    hasher = SDOH(16, batch_size=10, n_features=32, memory=40, random_state=0)
    items = Collection.create(path, hasher, refresh="manual", random_state=0, **options)
    X, y = stream()
    items.add(range(40), X[:40], y[:40])
    return items


def learned(items):
    """What has been learned, and all that tells what will be; not when, nor how well it did."""
    learner = items._learner
    numbers = learner.n_learned_, learner.n_items_, learner.gain_, learner.missed_
    return learner.knowledge.to_bytes(), learner.n_waiting, numbers, learner.n_leaving


def single(i, X, y, **options):
    return Addition([i], X[i : i + 1], y[i : i + 1], **options)


def test_a_group_learns_what_single_calls_do(tmp_path):
    X, y = stream()
    one, many = made(tmp_path / "one"), made(tmp_path / "many")
    for i in range(100, 200):
        one.add([i], X[i : i + 1], y[i : i + 1])
    assert many.write_each([single(i, X, y) for i in range(100, 200)]) == [(1, 1)] * 100
    assert learned(one) == learned(many)
    assert one.ids == many.ids
    assert (one._journal._tail.n_changes, many._journal._tail.n_changes < 20) == (100, True)
    one.refresh(), many.refresh()
    assert one.model().to_bytes() == many.model().to_bytes()
    assert np.array_equal(one.search(X, k=5).ids, many.search(X, k=5).ids)


def test_an_error_is_that_of_its_caller_alone(tmp_path):
    X, y = stream()
    items = made(tmp_path / "items")
    done = items.write_each(
        [
            single(50, X, y),
            single(3, X, y),  # there already
            Addition([51], [[1.0, 2.0]]),  # too short
            single(50, X, y),  # of this group
            single(50, X, y, existing="skip"),
            Addition([52], X[:1], [{}]),  # no label
            Addition(["a"], X[:1]),
            Addition([-1], X[:1]),
            Addition(None, X[53:55]),  # numbered on
            single(55, X, y, existing="other"),
            single(50, X + 1, y, existing="replace"),
            single(56, X, y),
        ]
    )
    kinds = [type(each).__name__ for each in done]
    stored = [each for each in done if isinstance(each, Written)]
    assert stored == [(1, 1), (0, 0), (2, 2), (1, 0), (1, 1)]
    assert kinds[1] == kinds[3] == "ConflictError"
    assert str(done[3]).startswith("Collection.add: id 50 is there already")
    assert all(isinstance(each, InputError) for each in done if not isinstance(each, Written))
    assert items.ids[40:] == [51, 52, 50, 56]
    assert np.array_equal(items.get([50])[0].vector, X[50] + 1)
    items.close()
    with Collection.open(tmp_path / "items") as items:
        assert items.ids[40:] == [51, 52, 50, 56]


def test_rows_that_are_too_extreme_are_refused_alone(tmp_path):
    X, y = stream()
    items = made(tmp_path / "items")
    wild = Addition(range(300, 330), X[300:330] * 1e12, y[300:330])
    done = items.write_each([single(50, X, y), wild, single(51, X, y)])
    assert [type(each).__name__ for each in done] == ["Written", "ExtremeRowsError", "Written"]
    assert items.ids[40:] == [50, 51]


def test_the_first_items_and_labels_of_a_collection(tmp_path):
    X, _ = stream()
    hasher = SDOH(16, batch_size=10, n_features=32, memory=40, random_state=0)
    with Collection.create(tmp_path / "items", hasher) as items:
        done = items.write_each(
            [
                Addition(["a"], X[:1]),
                Addition([1], X[:1]),  # ids are strings now
                Addition(["b"], X[:1], [["x", "y"]]),
                Addition(["c"], X[:1], ["x"]),  # several labels are there: a list of one
                Addition(["d"], X[:1, :4]),
            ]
        )
        kinds = [type(each).__name__ for each in done]
        assert kinds == ["Written", "InputError", "Written", "Written", "InputError"]
        assert items.labels(["a", "b", "c"]) == [None, ("x", "y"), ("x",)]


def test_a_disk_that_fails_is_an_error_of_all_and_nothing_is_stored(tmp_path, monkeypatch):
    X, y = stream()
    items = made(tmp_path / "items")
    before, known = items.ids, learned(items)

    def fail(*_, **__):
        raise FileError("items: cannot be written; make room.")

    with monkeypatch.context() as broken:
        broken.setattr(Log, "append", fail)
        done = items.write_each([single(50, X, y), single(3, X, y), single(51, X, y)])
    assert [type(each) for each in done] == [FileError, ConflictError, FileError]
    assert done[0] is not done[2]  # each can be raised in a thread of its own
    assert str(done[0]) == str(done[2]) == "items: cannot be written; make room."
    assert (items.ids, learned(items)) == (before, known)
    assert items.write_each([single(50, X, y), single(51, X, y)]) == [(1, 1), (1, 1)]


def test_an_unforeseen_fault_is_an_error_of_those_that_it_met(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "GROUP_ROWS", 2)
    X, y = stream()
    items, append, n_groups = made(tmp_path / "items"), Log.append, count()

    def fail_once(log, change):
        if next(n_groups) == 1:
            raise RuntimeError("unforeseen")
        return append(log, change)

    monkeypatch.setattr(Log, "append", fail_once)
    done = items.write_each([single(i, X, y) for i in range(50, 56)])
    assert [type(each) for each in done] == [Written] * 2 + [RuntimeError] * 2 + [Written] * 2
    items.close()
    with Collection.open(tmp_path / "items") as items:
        assert items.ids[40:] == [50, 51, 54, 55]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_threads_are_as_one_after_the_other(tmp_path, seed):
    """Each id is fought for; who got it is known by its vector, and is told so alone."""
    X, y = stream(3000, seed)
    items = made(tmp_path / "items", background=True)
    random = np.random.default_rng(seed)
    plans = [random.integers(1000, 1060, 40).tolist() for _ in range(8)]
    won, errors = [dict[int, int]() for _ in plans], []

    def work(number):
        for at, i in enumerate(plans[number]):
            row = number * 40 + at
            try:
                if items.add([i], X[row : row + 1], y[row : row + 1]) == 1:
                    won[number][i] = row
            except ConflictError:
                pass
            except BaseException as error:  # noqa: BLE001  raised below
                errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(plans))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    owners = {i: row for each in won for i, row in each.items()}
    assert sum(map(len, won)) == len(owners) == len({i for plan in plans for i in plan})
    items.close()
    with Collection.open(tmp_path / "items") as again:
        assert sorted(again.ids[40:]) == sorted(owners)
        for item in again.get([*owners]):
            assert np.array_equal(item.vector, X[owners[item.id]])


def test_what_waits_is_the_next_group_and_each_gets_its_own():
    """Sixteen threads, the first of which is held up until all others wait."""
    groups, started, go = [], threading.Event(), threading.Event()

    def do(requests):
        groups.append([*requests])
        started.set()
        assert go.wait(10)
        return [ValueError(str(each)) if each % 5 == 0 else 2 * each for each in requests]

    after, found = [], {}
    shared = Groups(do, lambda: after.append(True))

    def call(number):
        try:
            found[number] = shared.run(number)
        except ValueError as error:
            found[number] = str(error)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(1, 17)]
    threads[0].start()
    assert started.wait(10)
    for thread in threads[1:]:
        thread.start()
    while len(shared._waiting) < 16:
        pass
    go.set()
    for thread in threads:
        thread.join(10)
    assert [len(group) for group in groups] == [1, 15]
    assert found == {i: str(i) if i % 5 == 0 else 2 * i for i in range(1, 17)}
    assert len(after) == 2
    assert not shared._waiting


def test_a_caller_that_gives_up_leaves_the_others_alone(monkeypatch):
    go, running = threading.Event(), threading.Event()

    def do(requests):
        running.set()
        assert go.wait(10)
        return [*requests]

    shared = Groups(do, lambda: None)
    first = threading.Thread(target=shared.run, args=(1,))
    first.start()
    assert running.wait(10)

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(threading.Event, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shared.run(2)
    go.set()
    first.join(10)
    assert shared.run(3) == 3


class CtrlC:
    """Raises KeyboardInterrupt at one of the lines of ``groups.py`` that this thread comes to.

    Not at a ``with``: as it ends, its line comes once more, where no signal is ever looked for.
    """

    LINES = Path(groups_module.__file__).read_text().splitlines()

    def __init__(self, at):
        self.left = at

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename != groups_module.__file__:
            return None
        if event == "line" and not self.LINES[frame.f_lineno - 1].lstrip().startswith("with "):
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def ended_at(line, n_others):
    """End a call at a line of its own while others wait; return if it was, and who was answered."""
    started, go, found = threading.Event(), threading.Event(), {}

    def do(requests):
        started.set()
        assert go.wait(10)
        return [*requests]

    shared = Groups(do, lambda: None)

    def call(number):
        sys.settrace(CtrlC(line) if number == 0 else None)
        with suppress(KeyboardInterrupt):
            found[number] = shared.run(number)
        sys.settrace(None)

    threads = [
        threading.Thread(target=call, args=(number,), daemon=True) for number in range(n_others + 2)
    ]
    threads[0].start()
    while threads[0].is_alive() and not started.wait(0.001):
        pass
    for thread in threads[1:-1]:
        thread.start()
    go.set()
    for thread in threads[:-1]:
        thread.join(5)
    threads[-1].start()  # who comes when all is over
    threads[-1].join(5)
    return found.pop(0, None) is None, sorted(found)


@pytest.mark.parametrize("n_others", [0, 2])
def test_ctrl_c_at_any_line_leaves_nobody_waiting(n_others):
    for line in count():
        was_ended, answered = ended_at(line, n_others)
        assert answered == [*range(1, n_others + 2)], f"line {line}"
        if not was_ended:
            break
    assert line > 20


def test_large_calls_are_groups_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "GROUP_ROWS", 10)
    X, _ = stream()
    items = made(tmp_path / "items")
    sizes = [4, 4, 4, 30, 1]
    starts = np.cumsum([100, *sizes])
    parts = [range(*ends) for ends in pairwise(starts)]
    assert items.write_each([Addition(part, X[: len(part)]) for part in parts]) == [
        (n, n) for n in sizes
    ]
    assert items._journal._tail.n_changes == 4
