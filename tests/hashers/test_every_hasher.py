"""Every method through every shared check, and through scikit-learn's own."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from streamhash import (
    BSODH,
    FROSH,
    HMOH,
    LSH,
    OSH,
    SDOH,
    AnchorMap,
    CenterScale,
    MIHash,
    SketchHash,
    SnapshotHasher,
    StreamPipeline,
)
from streamhash.checks import ALL_CHECKS, check_hasher
from streamhash.hashers import METHODS

HASHERS = {
    **{method.__name__: method(n_bits=16, random_state=0) for method in METHODS.values()},
    "SDOH(anchors)": SDOH(n_bits=16, n_anchors=50, random_state=0),
    "SDOH.published": SDOH.published("mnist", n_bits=16, random_state=0, max_steps=20),
    "OSH(boosting)": OSH(n_bits=16, loss="boosting", random_state=0),
    "HMOH(linear)": HMOH(n_bits=16, n_anchors=None, random_state=0),
    "HMOH.published": HMOH.published("mnist", n_bits=16, random_state=0),
    "BSODH.published": BSODH.published("mnist", n_bits=16, random_state=0, batch_size=150),
    "SketchHash(released)": SketchHash(n_bits=16, state="released", random_state=0),
    "SketchHash.published": SketchHash.published("mnist", n_bits=16, random_state=0),
    "FROSH.published": FROSH.published("mnist", n_bits=16, random_state=0),
    "SnapshotHasher": SnapshotHasher(SDOH(n_bits=16, random_state=0), random_state=0),
    "SnapshotHasher(fix)": SnapshotHasher(
        LSH(n_bits=16, random_state=0), trigger="fix", random_state=0
    ),
    "SnapshotHasher(MIHash)": SnapshotHasher(
        MIHash(n_bits=16, random_state=0), reservoir_size=90, random_state=0
    ),
    "StreamPipeline": StreamPipeline(
        [CenterScale(scale="unit"), AnchorMap(40)], SDOH(n_bits=16, random_state=0)
    ),
}
RAW = "the published settings take the features as they are, as the authors' program does"
EXEMPT = {
    ("SDOH.published", "scales_do_not_matter"): RAW,
    ("BSODH.published", "scales_do_not_matter"): RAW,
}


@pytest.mark.parametrize("check", ALL_CHECKS)
@pytest.mark.parametrize("name", HASHERS)
def test_hasher_keeps_the_contract(name, check):
    if reason := EXEMPT.get((name, check)):
        pytest.skip(reason)
    ALL_CHECKS[check](HASHERS[name])


# scikit-learn's own checks; nothing is exempted.
@parametrize_with_checks([method(n_bits=16) for method in METHODS.values()])
def test_hasher_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def test_a_broken_hasher_is_caught():
    class Forgetful(SDOH):
        """Begins anew at every stage, as the released programs of OSH and SketchHash do."""

        def _learn(self, X, y):
            self._start(X, y)
            super()._learn(X, y)

    with pytest.raises(AssertionError):
        ALL_CHECKS["learning_carries_over"](Forgetful(n_bits=8, normalize=False, random_state=0))


def test_an_exemption_must_name_a_check():
    with pytest.raises(ValueError, match="no check is called typo"):
        check_hasher(LSH(), exempt={"typo": "why"})
