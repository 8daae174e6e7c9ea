"""The tree of errors: drawn as it is, and each with its status over HTTP."""

import re

import streamhash
from streamhash import errors


def every(kind):
    return {kind, *(each for child in kind.__subclasses__() for each in every(child))}


def test_the_drawn_tree_is_the_real_one_and_all_of_it_is_public():
    assert streamhash.NotStartedError  # defined in base
    drawn = dict(re.findall(r"(\w+Error) +(\d{3})", errors.__doc__))
    ours = {kind for kind in every(errors.StreamhashError) if kind.__module__.startswith("stream")}
    assert drawn == {
        kind.__name__: str(kind.status) for kind in ours if kind is not errors.ServiceError
    }
    assert {kind.__name__ for kind in ours} <= set(streamhash.__all__)


def test_each_caller_gets_an_error_of_its_own_like_the_one_that_came():
    by_type = {
        errors.ExtremeRowsError: ("rows 1, 2", [1, 2]),
        errors.ServiceError: (503, "overloaded", "later"),
    }
    for kind in every(errors.StreamhashError):
        error = kind(*by_type.get(kind, ("a text",)))
        twins = errors.copies(error, 2)
        assert twins[0] is not twins[1]
        for twin in twins:
            assert (type(twin), str(twin), vars(twin)) == (kind, str(error), vars(error))
            assert twin.__cause__ is error
    assert errors.copies(error, 1) == [error]
    other = OSError(28, "no space")
    assert errors.copies(other, 2) == [other, other]
