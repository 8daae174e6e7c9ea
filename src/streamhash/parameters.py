"""What a parameter is: its default, what it may be and what is worth trying, said in one line.

    learning_rate: float = parameter(Number(above=0), default=0.1, search=Span(0.01, 1))

``declare_parameters`` makes the constructor of a class from such lines, and the class facts
``rules`` and ``search``; ``check_parameters`` has one wording for every parameter error.
"""

import dataclasses
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from streamhash.errors import InputError, shown


class Rule:
    """What a parameter may be: in words, and as a test of a value.

    >>> even = Rule("an even number", lambda value: Whole(0).allows(value) and value % 2 == 0)
    >>> even.allows(3), str(Maybe(even))
    (False, 'None or an even number')
    """

    def __init__(self, text: str, allows: Callable[[Any], bool]) -> None:
        self.text, self.allows = text, allows

    def __str__(self) -> str:
        return self.text


class Whole(Rule):
    """A whole number from ``low`` to ``high``, both included."""

    def __init__(self, low: int, high: int | None = None) -> None:
        upper = "up" if high is None else f"to {high}"
        super().__init__(
            f"a whole number from {low} {upper}",
            lambda value: (
                _is_number(value, Integral) and low <= value and (high is None or value <= high)
            ),
        )


class Number(Rule):
    """A finite number, greater than ``above``, or ``at_least`` so much and ``at_most`` so much."""

    def __init__(
        self, *, above: float = -math.inf, at_least: float = -math.inf, at_most: float = math.inf
    ) -> None:
        upper = "up" if at_most == math.inf else f"to {at_most:g}"
        text = "a number"
        if above > -math.inf:
            text = f"a number greater than {above:g}"
        elif at_least > -math.inf:
            text = f"a number from {at_least:g} {upper}"
        super().__init__(
            text,
            lambda value: (
                _is_number(value, Real)
                and abs(value) <= sys.float_info.max
                and value > above
                and at_least <= value <= at_most
            ),
        )


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and type(value) is not bool


class Choice(Rule):
    """One of a few values."""

    def __init__(self, *options: Any) -> None:
        super().__init__(
            "one of " + ", ".join(map(repr, options)),
            lambda value: any(type(value) is type(each) and value == each for each in options),
        )


class Maybe(Rule):
    """None, or what another rule allows."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(f"None or {rule}", lambda value: value is None or rule.allows(value))


SEED = Rule(
    "None, a whole number from 0 up, a RandomState or a Generator",
    lambda value: (
        value is None
        or value is np.random
        or isinstance(value, np.random.RandomState | np.random.Generator)
        or (_is_number(value, Integral) and 0 <= value < 2**64)
    ),
)


def check_parameters(owner: str, values: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Raise an InputError for the first value that breaks its rule.

    >>> check_parameters("SDOH", {"n_bits": 0}, {"n_bits": Whole(1, 1024)})
    Traceback (most recent call last):
    streamhash.errors.InputError: SDOH: n_bits=0 must be a whole number from 1 to 1024.
    """
    for name, rule in rules.items():
        if not rule.allows(values[name]):
            raise InputError(f"{owner}: {name}={shown(values[name])} must be {rule}.")


class SearchSpace(Protocol):
    """The values worth trying for a parameter when the best one is searched for."""

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw a value to try."""


@dataclass(frozen=True)
class Span:
    """Any number from ``low`` to ``high``, all orders of magnitude alike, to three digits.

    >>> Span(0.01, 1).draw(np.random.default_rng(0))
    0.188
    """

    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> float:
        """Draw a value to try."""
        value = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return float(f"{value:.3g}")


class Values:
    """One of a few values, each as likely as any other.

    >>> Values(100, 200, 400).draw(np.random.default_rng(0))
    400
    """

    def __init__(self, *values: Any) -> None:
        self.values = values

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw a value to try."""
        return self.values[int(rng.integers(len(self.values)))]


def parameter(
    rule: Rule | None = None,
    *,
    default: Any = dataclasses.MISSING,
    search: SearchSpace | None = None,
    kw_only: bool = True,
) -> Any:
    """Declare a parameter: what it may be, its default, and the values to search."""
    facts = {"rule": rule, "search": search}
    return dataclasses.field(default=default, kw_only=kw_only, metadata=facts)


def declare_parameters(cls: Any) -> None:
    """Make the constructor of a class from its parameters, and ``rules`` and ``search``.

    What a class says itself in the style of scikit-learn (an ``__init__``, a dict ``rules`` or
    ``search``) stays as it is.
    """
    found = vars(cls).items()
    own = {name: value for name, value in found if isinstance(value, dataclasses.Field)}
    if not own:
        return
    for fact, key in (("rules", "rule"), ("search", "search")):
        if fact not in vars(cls):
            said = {name: field.metadata[key] for name, field in own.items()}
            kept = {**getattr(cls, fact), **said}
            setattr(cls, fact, {name: value for name, value in kept.items() if value is not None})
    dataclasses.dataclass(eq=False, repr=False)(cls)
