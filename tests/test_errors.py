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
