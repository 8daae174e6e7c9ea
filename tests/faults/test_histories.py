"""The check of histories finds what cannot be, and nothing else."""

import importlib.util
from itertools import permutations
from pathlib import Path

import numpy as np

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def imported(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


histories = imported("histories")
Step, violation = histories.Step, histories.violation


def write(start, end, value):
    return Step(start, end, f"write {value}", lambda _: value)


def read(start, end, value):
    def apply(state):
        if state != value:
            raise histories.Impossible
        return state

    return Step(start, end, f"read {value}", apply)


def test_a_write_is_seen_from_its_end_on_and_perhaps_before():
    assert violation([write(0, 10, 1), read(11, 12, 1)]) is None
    assert violation([write(0, 10, 1), read(11, 12, None)]) == (
        "read None at 11 to 12: the item can only have been one of [1]"
    )
    assert violation([write(0, 10, 1), read(5, 6, 1), read(7, 8, 1)]) is None
    assert violation([write(0, 10, 1), read(5, 6, None), read(7, 8, 1)]) is None
    assert violation([write(0, 10, 1), read(5, 6, 1), read(7, 8, None)]) is not None


def test_an_item_that_is_missed_for_an_instant_is_found():
    first, second = write(0, 1, 1), write(10, 20, 2)
    assert violation([first, second, read(12, 13, None)]) is not None
    assert violation([first, second, read(12, 13, 1), read(14, 15, 2)]) is None


def test_readers_must_agree_on_the_order():
    writes = [write(0, 10, 1), write(0, 10, 2)]
    assert violation([*writes, read(11, 12, 1), read(13, 14, 1)]) is None
    assert violation([*writes, read(11, 12, 1), read(13, 14, 2)]) is not None


def slow_violation(steps):
    """Whether no order of all calls fits: every one is tried."""
    for order in permutations(steps):
        if any(
            later.end < earlier.start for i, earlier in enumerate(order) for later in order[i + 1 :]
        ):
            continue
        state = None
        try:
            for step in order:
                state = step.apply(state)
        except histories.Impossible:
            continue
        return False
    return True


def test_it_agrees_with_trying_every_order():
    random, n_bad = np.random.default_rng(0), 0
    for _ in range(400):
        steps = []
        for _ in range(5):
            start = int(random.integers(20))
            kind = write if random.random() < 0.5 else read
            steps.append(kind(start, start + int(random.integers(1, 12)), int(random.integers(3))))
        bad = slow_violation(steps)
        n_bad += bad
        assert (violation(steps) is not None) == bad
    assert 50 < n_bad < 350
