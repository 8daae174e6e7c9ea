"""Parameters: what they may be, how they are declared, and what is worth trying."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from streamhash import SDOH, InputError
from streamhash.base import OnlineHasher, Streaming
from streamhash.hashers import METHODS
from streamhash.parameters import (
    Choice,
    Maybe,
    Number,
    Span,
    Values,
    Whole,
    check_parameters,
    parameter,
)


@pytest.mark.parametrize(
    ("rule", "good", "bad", "words"),
    [
        (Whole(1, 3), [1, np.int64(3)], [0, 4, 1.0, True, "1", None], "a whole number from 1 to 3"),
        (Whole(0), [0, 10**9], [-1], "a whole number from 0 up"),
        (Number(above=0), [1e-9, 3], [0, -1, np.inf, np.nan, True], "a number greater than 0"),
        (Number(at_least=0, at_most=1), [0, 1, 0.5], [-0.1, 1.1], "a number from 0 to 1"),
        (Number(at_least=2), [2, 3.5], [1], "a number from 2 up"),
        (Number(), [-5], ["x"], "a number"),
        (Choice("a", True), ["a", True], [1, "b", None], "one of 'a', True"),
        (Maybe(Whole(1)), [None, 1], [0], "None or a whole number from 1 up"),
    ],
)
def test_rules(rule, good, bad, words):
    assert str(rule) == words
    assert all(rule.allows(value) for value in good)
    assert not any(rule.allows(value) for value in bad)
    with pytest.raises(InputError, match=f"Owner: x={bad[0]!r} must be {words}."):
        check_parameters("Owner", {"x": bad[0]}, {"x": rule})


def test_what_is_worth_trying():
    random = np.random.default_rng(0)
    drawn = [Span(0.01, 10).draw(random) for _ in range(200)]
    assert 0.01 <= min(drawn) < 0.02
    assert 5 < max(drawn) <= 10
    assert 0.2 < np.median(drawn) < 0.5  # all orders of magnitude alike
    assert {Values("a", None).draw(random) for _ in range(50)} == {"a", None}


class Base(Streaming):
    size: int = parameter(Whole(1), default=3, search=Values(1, 2), kw_only=False)
    rate: float = parameter(Number(above=0), default=0.5, search=Span(0.1, 1))
    note: str = parameter(default="any")


class Child(Base):
    name: str = parameter(Choice("a", "b"), default="a", search=Values("a", "b"))
    size: int = parameter(Whole(2), default=4)


def test_a_class_follows_from_its_parameters():
    assert str(inspect.signature(Base)) == (
        "(size: int = 3, *, rate: float = 0.5, note: str = 'any') -> None"
    )
    assert (list(Base.rules), list(Base.search)) == (["size", "rate"], ["size", "rate"])
    made = Base(7, rate=0.1)
    assert made.get_params() == {"note": "any", "rate": 0.1, "size": 7}
    assert repr(clone(made)) == "Base(rate=0.1, size=7)"


def test_a_parameter_declared_again_replaces_the_inherited_one():
    assert Child().get_params() == {"name": "a", "note": "any", "rate": 0.5, "size": 4}
    assert str(Child.rules["size"]) == "a whole number from 2 up"
    assert list(Child.search) == ["rate", "name"]
    assert list(Base.search) == ["size", "rate"]


def test_a_constructor_of_ones_own_stays():
    class Plain(Base):
        def __init__(self, size=1):
            self.size = size

    assert Plain().get_params() == {"size": 1}
    assert Plain.rules is Base.rules


@pytest.mark.parametrize("method", METHODS.values())
def test_every_method_has_the_same_first_parameters(method):
    first = next(iter(inspect.signature(method).parameters.values()))
    assert (first.name, first.default, first.kind) == ("n_bits", 32, first.POSITIONAL_OR_KEYWORD)
    assert method().random_state is None
    assert inspect.signature(method.published).parameters["n_bits"].default == 32
    for name in method.rules:
        assert method.rules[name].allows(getattr(method(), name))


def test_searched_values_keep_their_rules():
    random = np.random.default_rng(0)
    for method in METHODS.values():
        for name, space in method.search.items():
            assert method.rules[name].allows(space.draw(random))


def test_a_hasher_without_parameters_of_its_own_has_the_shared_ones():
    class Bare(OnlineHasher):
        pass

    shared = {"batch_size": 200, "features": None, "memory": 0, "n_bits": 16}
    assert Bare(16).get_params() == {**shared, "random_state": None}
    assert list(SDOH.rules)[:2] == ["n_bits", "batch_size"]
