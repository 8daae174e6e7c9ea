"""The adapter for river, held to river's own checks of estimators."""

import sys
from pathlib import Path

import numpy as np
import pytest

from streamhash import HCOH, LSH, SDOH

river = pytest.importorskip("river", reason="river is not installed")
checks = pytest.importorskip("river.checks")
pd = pytest.importorskip("pandas")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
HashTransformer = pytest.importorskip("river_pipeline").HashTransformer

HASHERS = {
    "hcoh": HCOH(n_bits=16, random_state=0),  # row by row
    "sdoh": SDOH(n_bits=16, memory=0, features=None, random_state=0),
    "lsh": LSH(n_bits=16, random_state=0),  # without labels
}
# Checks that do not apply to any of them, and why; all others of the list must pass.
DOES_NOT_APPLY = {
    "check_learn_many_matches_learn_one": (
        "its features vanish and come back: where one is missing, 0 is so far out that the guard "
        "against extreme values puts the centre so far in its place, and by row that is another "
        "than by piece; with features that stay, see below"
    ),
}


def all_checks():
    for name, hasher in HASHERS.items():
        for check in checks.yield_checks(HashTransformer(hasher)):
            yield pytest.param(name, check, id=f"{name}-{check.__name__}")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "check"), [*all_checks()])
def test_river_is_content(name, check):
    reason = DOES_NOT_APPLY.get(check.__name__)
    if reason is not None:
        with pytest.raises(AssertionError):
            check(HashTransformer(HASHERS[name]))
        pytest.skip(reason)
    check(HashTransformer(HASHERS[name]))


@pytest.mark.parametrize("name", ["hcoh", "lsh"])
def test_rows_at_once_teach_what_they_teach_one_by_one(name):
    from river import datasets

    stream = [*datasets.TrumpApproval().take(60)]
    one, many = HashTransformer(HASHERS[name]), HashTransformer(HASHERS[name])
    for x, y in stream:
        one.learn_one(x, y)
    frame = pd.DataFrame([x for x, _ in stream])
    for start in range(0, 60, 12):
        labels = pd.Series([y for _, y in stream[start : start + 12]])
        many.learn_many(frame[start : start + 12], labels)
    assert one.transform_many(frame).equals(many.transform_many(frame))


def test_bits_are_those_of_the_hasher_alone():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.integers(0, 3, 60)
    names = ["e", "a", "c", "b", "d"]
    model, alone = HashTransformer(HCOH(n_bits=12, random_state=0)), HCOH(12, random_state=0)
    for row, label in zip(X, y, strict=True):
        model.learn_one(dict(zip(names, row, strict=True)), int(label))
        alone.partial_fit(row[np.argsort(names)][None], [int(label)])
    frame = pd.DataFrame(X, columns=names)
    expected = np.unpackbits(alone.transform(X[:, np.argsort(names)]), axis=1, count=12)
    assert (model.transform_many(frame).to_numpy() == expected).all()


def test_a_missing_feature_is_zero_and_a_new_one_is_left_out():
    model = HashTransformer(LSH(n_bits=8, random_state=0))
    assert model.transform_one({"a": 1.0}) == {}
    model.learn_one({"b": 1.0, "a": 2.0})
    assert model.transform_one({"a": 3.0}) == model.transform_one({"a": 3.0, "b": 0, "c": 9.0})
    assert set(model.transform_one({"a": 3.0})) == set(range(8))
