"""What a class has learned: names, types, shapes and ranges, in one table of the class.

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        n_updates_=Count(),
        queue_=Part(PairQueue, d="D"),
    )

A saved model may come from anybody, so loading holds what is in it to the table of its class: what
is missing, or not in the table, is refused, and so is what would make a compiled loop read beside
an array. The same table tells how much memory a model will take, before it is taken.

A size is a number, the name of a parameter or an attribute, or a letter, which stands for the same
number wherever it is in a table. Of a hasher, ``d`` are the features of a row as it comes, ``D``
those after its parts, ``k`` the bits.
"""

import math
import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamhash.errors import InputError
from streamhash.labels import each_label
from streamhash.parameters import Rule

Size = int | str
MOST = 2**48  # of whatever is counted: sums of such numbers fit int64, and float64 holds each
WIDEST = float(np.finfo(np.float32).max)  # of a number that meets float32 rows
COPIES = 2  # of what is learned, in memory at a time: a stage makes new arrays beside the old ones


class Sizes:
    """The numbers that the sizes of one object's table stand for."""

    def __init__(self, owner: Any, known: Mapping[str, int], *, values: bool = True) -> None:
        self.owner, self.known = owner, dict(known)
        self.values = values  # look at values too, not at shapes alone

    def of(self, size: Size) -> int | None:
        """Return the number that a size stands for; None while it is free."""
        if isinstance(size, int):
            return size
        value = self.known.get(size, getattr(self.owner, size, None))
        return value if isinstance(value, int) else None

    def agree(self, size: Size, found: int) -> bool:
        """Whether this number can be that of a size; a free letter takes it."""
        if (value := self.of(size)) is None:
            self.known[str(size)] = found
            return True
        return value == found


class Learned:
    """What an attribute may be.

    ``when`` tells of an object whether it has the attribute: else it is not there, or None. One
    that is ``optional`` need not be there in any case.
    """

    def __init__(
        self, *, when: Callable[[Any], bool] | None = None, optional: bool = False
    ) -> None:
        self.when, self.optional = when, optional

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value, behind its name; None if nothing is."""
        raise NotImplementedError

    def n_bytes(self, sizes: Sizes) -> int:  # noqa: ARG002
        """Return how many bytes it takes, as far as the sizes tell."""
        return 0


class Table(dict[str, Learned]):
    """What the attributes of a class may be, by their names."""


class Array(Learned):
    """A finite array of one type; its numbers from ``low`` to ``high`` or below a size, or ±1."""

    def __init__(
        self,
        dtype: Any,
        *shape: Size,
        low: float = -math.inf,
        high: float = math.inf,
        below: Size | None = None,
        signs: bool = False,
        nan: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.dtype, self.shape = np.dtype(dtype), shape
        self.low, self.high, self.below, self.signs = low, high, below, signs
        self.nan = nan  # where a value is not known

    def __str__(self) -> str:
        return f"{self.dtype} ({', '.join(map(str, self.shape))})"

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        if not isinstance(value, np.ndarray):
            return f"is {reprlib.repr(value)}, not an array {self}"
        fits = value.dtype == self.dtype and value.ndim == len(self.shape)
        if not fits or not all(map(sizes.agree, self.shape, value.shape)):
            wanted = tuple(sizes.of(size) or str(size) for size in self.shape)
            return f"is {value.dtype} of shape {value.shape}, not {self.dtype} of shape {wanted}"
        if value.size == 0 or not sizes.values:
            return None
        if self.nan and np.isnan(value).any():
            value = np.nan_to_num(value, posinf=np.inf, neginf=-np.inf)
        with np.errstate(invalid="ignore"):
            least, most = value.min(), value.max()  # one that is not finite comes through
        if not np.isfinite([least, most]).all():
            return "has values that are not finite"
        limit = sizes.of(self.below) if self.below is not None else None
        if least < self.low or most > self.high or (limit is not None and most >= limit):
            return f"has values from {least} to {most}, out of range"
        if self.signs and not (np.abs(value) == 1).all():
            return "has values other than -1 and 1"
        return None

    def n_bytes(self, sizes: Sizes) -> int:
        """Return how many bytes it takes."""
        found = [sizes.of(size) for size in self.shape]
        return math.prod(size or 0 for size in found) * int(self.dtype.itemsize)


class Count(Learned):
    """A whole number from ``low`` up to a size."""

    def __init__(self, low: int = 0, high: Size = MOST, **options: Any) -> None:
        super().__init__(**options)
        self.low, self.high = low, high

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        high = sizes.of(self.high)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if is_whole and self.low <= value and (high is None or value <= high):
            return None
        return f"is {reprlib.repr(value)}, not a whole number from {self.low} to {high}"


class Real(Learned):
    """A number from ``low`` to ``high``; or NaN, if that is how an unknown one is said."""

    def __init__(
        self, low: float = -WIDEST, high: float = WIDEST, *, nan: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self.low, self.high, self.nan = low, high, nan

    def fault(self, value: Any, sizes: Sizes) -> str | None:  # noqa: ARG002
        """Say what is wrong with a value."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and (self.low <= value <= self.high or (self.nan and value != value)):
            return None
        return f"is {reprlib.repr(value)}, not a number from {self.low:g} to {self.high:g}"


class Value(Learned):
    """What a parameter's rule allows."""

    def __init__(self, rule: Rule, **options: Any) -> None:
        super().__init__(**options)
        self.rule = rule

    def fault(self, value: Any, sizes: Sizes) -> str | None:  # noqa: ARG002
        """Say what is wrong with a value."""
        return None if self.rule.allows(value) else f"is {reprlib.repr(value)}, not {self.rule}"


class Generator(Learned):
    """A source of random numbers."""

    def fault(self, value: Any, sizes: Sizes) -> str | None:  # noqa: ARG002
        """Say what is wrong with a value."""
        if isinstance(value, np.random.Generator):
            return None
        return f"is {reprlib.repr(value)}, not a generator"


class Names(Learned):
    """Different labels of any type that can be compared, in a list; as many as a size, if told."""

    def __init__(self, size: Size, **options: Any) -> None:
        super().__init__(**options)
        self.size = size

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        if not isinstance(value, list):
            return f"is {reprlib.repr(value)}, not a list of labels"
        if sizes.values and not _are_plain(value):
            return "has labels that cannot be compared"
        if sizes.values and len({*value}) < len(value):
            return "has a label twice"
        return None if sizes.agree(self.size, len(value)) else f"has {len(value)} labels"


class Labels(Learned):
    """Labels of rows: an array of as many, of any type, or a 0/1 matrix (rows, classes)."""

    def __init__(self, size: Size, **options: Any) -> None:
        super().__init__(**options)
        self.size = size

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        if not isinstance(value, np.ndarray) or value.ndim not in (1, 2):
            return f"is {reprlib.repr(value)}, not an array of labels"
        if not sizes.agree(self.size, len(value)):
            return f"has {len(value)} labels, not {sizes.of(self.size)}"
        if value.ndim == 2:
            is_matrix = value.dtype == np.uint8 and value.shape[1] > 0
            return None if is_matrix and not (value > 1).any() else "is not a 0/1 matrix"
        if value.dtype == object and not _are_plain(value.tolist()):
            return "has labels that cannot be compared"
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return "has labels that are not finite"
        return None


def _are_plain(labels: Sequence[Any]) -> bool:
    """Whether labels are numbers, strings or tuples of those, each equal to itself."""
    return all(
        _are_plain(label) if isinstance(label, tuple) else isinstance(label, int | float | str)
        for label in labels
    ) and all(label == label for label in labels)


class ItemLabels(Learned):
    """Labels of stored items, in a list: whole numbers, strings, tuples of those, or None."""

    def __init__(self, size: Size, **options: Any) -> None:
        super().__init__(**options)
        self.size = size

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        is_list = isinstance(value, list)
        if is_list and all(
            isinstance(each, int | str) for label in value for each in each_label(label)
        ):
            return None if sizes.agree(self.size, len(value)) else f"has {len(value)} labels"
        return f"is {reprlib.repr(value)}, not a list of labels"


class FeatureNames(Learned):
    """The names of the features, as scikit-learn keeps those of a data frame."""

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        is_array = isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1
        is_text = is_array and all(isinstance(name, str) for name in value.tolist())
        if is_text and sizes.agree("d", len(value)):
            return None
        return f"is {reprlib.repr(value)}, not an array of {sizes.of('d')} strings"


class AnyOf(Learned):
    """None, if ``none`` is among them, or what one of several statements allows."""

    def __init__(self, *kinds: Learned | None, **options: Any) -> None:
        super().__init__(**options)
        self.kinds = kinds

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        fault = None
        for kind in self.kinds:
            if kind is None:
                if value is None:
                    return None
                continue
            known = dict(sizes.known)
            fault = kind.fault(value, sizes)
            if fault is None:
                return None
            sizes.known = known
        return fault or f"is {reprlib.repr(value)}, not None"


class Records(Learned):
    """A list of dicts with these keys, all of numbers."""

    def __init__(self, *keys: str, **options: Any) -> None:
        super().__init__(**options)
        self.keys = {*keys}

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        number = Real(-math.inf, math.inf, nan=True)
        if isinstance(value, list) and all(
            isinstance(record, dict)
            and record.keys() == self.keys
            and not any(number.fault(each, sizes) for each in record.values())
            for record in value
        ):
            return None
        return f"is {reprlib.repr(value)}, not a list of records"


class ListOf(Learned):
    """A list, each item of which is a tuple of what is stated; letters hold within a tuple."""

    def __init__(self, *kinds: Learned, **options: Any) -> None:
        super().__init__(**options)
        self.kinds = kinds

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        if not isinstance(value, list):
            return f"is {reprlib.repr(value)}, not a list"
        for item in value:
            if not isinstance(item, tuple) or len(item) != len(self.kinds):
                return f"holds {reprlib.repr(item)}, not a tuple of {len(self.kinds)}"
            own = Sizes(sizes.owner, sizes.known, values=sizes.values)
            for kind, part in zip(self.kinds, item, strict=True):
                if fault := kind.fault(part, own):
                    return f"holds what {fault}"
        return None


class Part(Learned):
    """An object of a class (or one derived from it) with a table of its own.

    ``links`` say what the sizes of its table stand for, in the sizes of this one. One that need not
    have learned anything yet is ``started=False``.
    """

    def __init__(
        self,
        kind: type[Any] | str,
        *,
        started: bool = True,
        when: Callable[[Any], bool] | None = None,
        optional: bool = False,
        **links: Size,
    ) -> None:
        super().__init__(when=when, optional=optional)
        self.kind, self.started, self.links = kind, started, links

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        names = {each.__name__ for each in type(value).__mro__}
        name = self.kind if isinstance(self.kind, str) else self.kind.__name__
        if name not in names:
            return f"is {reprlib.repr(value)}, not a {name}"
        if not value.has_learned():
            return f"is a {name} that has learned nothing" if self.started else None
        inner = Sizes(value, value.known_sizes(), values=False)
        for attribute, kind in value.learns.items():  # what is wrong in it, it has said itself
            kind.fault(getattr(value, attribute, None), inner)
        for own, size in self.links.items():
            found = inner.of(own)
            if found is not None and not sizes.agree(size, found):
                return f"is a {name} with {own} = {found}, not {sizes.of(size)}"
        return None

    def n_bytes(self, sizes: Sizes) -> int:
        """Return how many bytes it takes."""
        if isinstance(self.kind, str):
            return 0
        known = {own: sizes.of(size) for own, size in self.links.items()}
        inner = Sizes(self.kind, {own: size for own, size in known.items() if size is not None})
        return sum(each.n_bytes(inner) for each in self.kind.learns.values())


class Parts(Learned):
    """A list of objects of a class, each with a table of its own."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__(**options)
        self.part = Part(kind, started=False)

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Say what is wrong with a value."""
        if not isinstance(value, list):
            return f"is {reprlib.repr(value)}, not a list"
        for part in value:
            if fault := self.part.fault(part, sizes):
                return f"holds what {fault}"
        return None


def check(owner: Any, learned: Mapping[str, Any], *, complete: bool) -> None:
    """Hold what an object has learned to its table; raise an InputError that says what is wrong.

    With ``complete``, the table has all there may be; else what it does not name may be there too,
    if its numbers are finite.
    """
    name = type(owner).__name__
    sizes = Sizes(owner, owner.known_sizes())
    for attribute, value in learned.items():
        if attribute in owner.learns:
            continue
        if complete:
            raise InputError(f"{name}.{attribute} is not among what a {name} learns")
        is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        if is_float and not np.isfinite(value).all():
            raise InputError(f"{name}.{attribute} has values that are not finite")
    for attribute, kind in owner.learns.items():
        if kind.when is not None and not kind.when(owner):
            if learned.get(attribute) is not None:
                raise InputError(f"{name}.{attribute} has no place beside its parameters")
        elif attribute in learned:
            if fault := kind.fault(learned[attribute], sizes):
                raise InputError(f"{name}.{attribute} {fault}")
        elif not kind.optional:
            raise InputError(f"{name}.{attribute} is missing")


# Memory: what will be taken, and what there is ------------------------------------------------


def memory_needed(owner: Any, known: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes that each attribute in an object's table will take, where sizes tell."""
    sizes = Sizes(owner, known)
    return {
        name: kind.n_bytes(sizes)
        for name, kind in owner.learns.items()
        if kind.when is None or kind.when(owner)
    }


def refuse_too_large(needed: Mapping[str, int], d: int, place: str) -> None:
    """Raise an InputError if what is about to be learned does not fit into memory."""
    total, free = COPIES * sum(needed.values()), free_memory()
    if free is not None and total > free:
        largest = max(needed, key=needed.__getitem__)
        raise InputError(
            f"{place}: learning rows of {d} features would take {_in_words(total)} of memory, "
            f"{_in_words(COPIES * needed[largest])} of it for {largest}, and {_in_words(free)} are "
            "free; reduce the features first, or choose a method or settings with a smaller state."
        )


def free_memory() -> int | None:
    """Return the bytes of memory that may still be taken; None where this cannot be told."""
    found = [_number_in("/proc/meminfo", "MemAvailable:", 1024)]
    limit = _number_in("/sys/fs/cgroup/memory.max", "", 1)
    if limit is not None:
        found.append(max(0, limit - (_number_in("/sys/fs/cgroup/memory.current", "", 1) or 0)))
    known = [each for each in found if each is not None]
    if known:
        return min(known)
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _number_in(path: str, line_start: str, unit: int) -> int | None:
    """Return the number after these words in a file of the system, if it has one."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    words = next(
        (line.removeprefix(line_start) for line in lines if line.startswith(line_start)), ""
    )
    number = words.split()[:1]
    return int(number[0]) * unit if number and number[0].isdecimal() else None


def _in_words(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**28 else f"{n_bytes / 2**20:.1f} MiB"
