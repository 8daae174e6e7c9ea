"""Results that must not be lost: one seed of what docs/methods shows in full."""

import pytest

from streamhash import MissingDataError
from streamhash.bench import run_cell
from streamhash.data import load_data


@pytest.mark.parametrize(
    ("data", "n_bits", "choices", "at_least"),
    [
        ("mnist", 32, {}, 0.80),
        ("mnist", 128, {}, 0.815),
        ("mnist", 32, {"changes": {"kernel": 1000}}, 0.90),
        ("mnist", 32, {"settings": "published"}, 0.785),
        ("cifar10-features", 32, {}, 0.65),
        ("miniplaces-features", 32, {}, 0.08),
        ("miniplaces-features", 128, {}, 0.105),
        ("digits", 32, {}, 0.85),
    ],
    ids=str,
)
def test_sdoh_reaches_its_figures(data, n_bits, choices, at_least):
    try:
        load_data(data)
    except MissingDataError as missing:
        pytest.skip(str(missing))
    row = run_cell("sdoh", data, n_bits, 0, checkpoints=1, **choices)
    assert row["metrics"]["map"] >= at_least
