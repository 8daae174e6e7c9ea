"""Not one bit of any method's codes has changed since they were kept in ``codes.json``."""

import json

import pytest

from data import need_data
from golden.make import CODES, SEEDS, datasets, digest, hashers, machine

KEPT = json.loads(CODES.read_text(encoding="utf-8"))
NAMES = [name for name, _ in hashers(0)]


def cases():
    for data in ("digits", "mnist"):
        for seed in SEEDS:
            for name in NAMES:
                # A thousand steps a stage take ten seconds.
                quick = (data, seed) == ("digits", 0) and name != "sdoh cifar10"
                marks = [] if quick else [pytest.mark.slow]
                yield pytest.param(data, name, seed, marks=marks, id=f"{data}-{name}-{seed}")


@pytest.fixture(scope="module")
def rows():
    found = {}

    def of(wanted):
        for name, X, y in () if wanted in found else datasets():
            found[name] = X, y
            if name == wanted:
                break
        return found[wanted]

    return of


@pytest.mark.parametrize(("data", "name", "seed"), [*cases()])
def test_codes_are_the_same_bits(rows, data, name, seed):
    if machine() not in KEPT:
        pytest.skip(f"no codes are kept for {machine()}; see tests/golden/make.py")
    if data == "mnist":
        need_data("mnist")
    kept = KEPT[machine()].get(f"{data}, {name}, seed {seed}")
    if kept is None:
        pytest.skip(f"none of {name} was made on {machine()} since its default was last changed")
    assert digest(dict(hashers(seed))[name], *rows(data)) == kept
