"""Data sets in tests: where there are data, none may be missing."""

import os

import pytest

from streamhash.lab.datasets import available


def need_data(name):
    """Return the card of a data set that a test needs.

    Where it is missing, the test is skipped; where STREAMHASH_DATA names a folder, it fails.
    """
    card = next(card for card in available() if card.name == name)
    folder = os.environ.get("STREAMHASH_DATA")
    if not card.here and folder:
        pytest.fail(f"{name} is missing in STREAMHASH_DATA={folder}")
    if not card.here:
        pytest.skip(f"{name} is not on this machine: set STREAMHASH_DATA to a folder that has it")
    return card
