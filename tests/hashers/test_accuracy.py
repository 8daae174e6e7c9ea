"""Results that must not be lost: one seed of what docs/methods shows in full."""

import pytest

from data import need_data
from streamhash.lab import run_cell


def final_map(method, data, n_bits, **choices):
    need_data(data)
    row = run_cell(method, data, n_bits, 0, checkpoints=1, **choices)
    return row["metrics"]["map"]


@pytest.mark.parametrize(
    ("data", "n_bits", "choices", "at_least"),
    [
        ("mnist", 32, {}, 0.80),
        ("mnist", 128, {}, 0.815),
        ("mnist", 32, {"changes": {"n_anchors": 1000}}, 0.90),
        ("mnist", 32, {"settings": "published"}, 0.785),
        ("cifar10-features", 32, {}, 0.65),
        ("miniplaces-features", 32, {}, 0.08),
        ("miniplaces-features", 128, {}, 0.105),
        ("digits", 32, {}, 0.85),
    ],
    ids=str,
)
def test_sdoh_reaches_its_figures(data, n_bits, choices, at_least):
    assert final_map("sdoh", data, n_bits, **choices) >= at_least


# A single seed may lie below the mean of three that the documents show.
@pytest.mark.parametrize(
    ("method", "changes", "low", "high"),
    [
        ("bsodh", {}, 0.69, 0.78),
        ("hmoh", {}, 0.81, 0.86),
        ("hcoh", {}, 0.74, 0.80),
        ("mihash", {}, 0.74, 0.80),
        ("osh", {}, 0.50, 0.58),
        ("osh", {"loss": "hinge"}, 0.67, 0.76),
        ("osh", {"state": "released"}, 0.11, 0.18),
        ("adapthash", {}, 0.28, 0.36),
        ("okh", {}, 0.18, 0.30),
        ("frosh", {}, 0.32, 0.38),
        ("sketchhash", {}, 0.33, 0.38),
        ("lsh", {}, 0.24, 0.30),
    ],
    ids=str,
)
def test_published_settings_stay_near_the_originals(method, changes, low, high):
    reached = final_map(method, "mnist", 32, settings="published", changes=changes)
    assert low <= reached <= high


@pytest.mark.parametrize(
    ("method", "at_least"),
    [("bsodh", 0.74), ("hmoh", 0.90), ("hcoh", 0.73), ("mihash", 0.74), ("osh", 0.72)],
)
def test_defaults_reach_their_figures(method, at_least):
    assert final_map(method, "mnist", 32) >= at_least
