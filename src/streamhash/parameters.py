"""What a parameter is: its default, what it may be and what is worth trying, said in one line.

    learning_rate: float = parameter(Number(above=0), default=0.1, search=Span(0.01, 1))

``declare_parameters`` makes the constructor of a class from such lines, and the class facts
``rules`` and ``search``; ``check_parameters`` has one wording for every parameter error.
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from streamhash.errors import InputError

__all__ = [
    "Choice",
    "Maybe",
    "Number",
    "Rule",
    "SearchSpace",
    "Span",
    "Values",
    "Whole",
    "check_parameters",
    "declare_parameters",
    "parameter",
]


class Rule(Protocol):
    """Says whether a value is allowed, and in words what is."""

    def allows(self, value: Any) -> bool:
        """Whether ``value`` keeps the rule."""

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``, both included."""

    low: int
    high: int | None = None

    def allows(self, value: Any) -> bool:
        """Whether ``value`` keeps the rule."""
        return (
            type(value) is not bool
            and isinstance(value, Integral)
            and int(value) >= self.low
            and (self.high is None or int(value) <= self.high)
        )

    def __str__(self) -> str:
        upper = "up" if self.high is None else f"to {self.high}"
        return f"a whole number from {self.low} {upper}"


@dataclass(frozen=True)
class Number:
    """A finite number, greater than ``above``, or ``at_least`` so much and ``at_most`` so much."""

    above: float = -math.inf
    at_least: float = -math.inf
    at_most: float = math.inf

    def allows(self, value: Any) -> bool:
        """Whether ``value`` keeps the rule."""
        return (
            type(value) is not bool
            and isinstance(value, Real)
            and math.isfinite(value)
            and float(value) > self.above
            and self.at_least <= float(value) <= self.at_most
        )

    def __str__(self) -> str:
        if self.above > -math.inf:
            return f"a number greater than {self.above:g}"
        upper = "up" if self.at_most == math.inf else f"to {self.at_most:g}"
        return (
            "a number" if self.at_least == -math.inf else f"a number from {self.at_least:g} {upper}"
        )


class Choice:
    """One of a few values."""

    def __init__(self, *options: Any) -> None:
        self.options = options

    def allows(self, value: Any) -> bool:
        """Whether ``value`` keeps the rule."""
        return any(type(value) is type(option) and value == option for option in self.options)

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.options))


@dataclass(frozen=True)
class Maybe:
    """None, or what another rule allows."""

    rule: Rule

    def allows(self, value: Any) -> bool:
        """Whether ``value`` keeps the rule."""
        return value is None or self.rule.allows(value)

    def __str__(self) -> str:
        return f"None or {self.rule}"


def check_parameters(owner: str, values: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """Raise an InputError for the first value that breaks its rule.

    >>> check_parameters("SDOH", {"n_bits": 0}, {"n_bits": Whole(1, 1024)})
    Traceback (most recent call last):
    streamhash.errors.InputError: SDOH: n_bits=0 must be a whole number from 1 to 1024.
    """
    for name, rule in rules.items():
        if not rule.allows(values[name]):
            raise InputError(f"{owner}: {name}={values[name]!r} must be {rule}.")


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
