"""Metadata as typed columns in memory, so that a filter is a few comparisons of arrays.

A column is read when the first filter names its field: the metadata of all items are gone through
once. From then on it follows: a writer notes what it adds, a reader reads what is new. Columns are
by place of the view's listing, and a filter's mask is worked out for a moment of the view, so that
a search with a filter sees one moment, as any other does.

**Types.** Each value has its own: a condition is unknown for values of another kind than it
compares with, and an error if no item has a value of that kind. Whole numbers are exact; once a
field has a fraction, or a number beyond 64 bits, all of its numbers are float64. Strings that are
ISO dates can be compared with dates, too.

**Memory.** Numbers take 2 to 9 bytes an item, all else 1 to 4 and what the different values take.
Columns stay as long as all of them take no more than 64 bytes an item, or 256 MiB if that is more;
those not used for longest go first. A filter whose own columns take more is refused. The masks of
the last filters take a byte an item each.
"""

import json
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.live.arrow import Batch, Keys, from_json
from streamhash.live.filters import (
    COMPARISONS,
    DEEPEST,
    Condition,
    Filter,
    Node,
    Path,
    kind_of,
    microseconds,
    quoted,
)

if TYPE_CHECKING:
    from streamhash.live.view import Moment, View
    from streamhash.search.code_store import Snapshot
    from streamhash.search.directory import Listing

Mask = NDArray[np.bool_]
Read = Callable[[Callable[[], Keys]], AbstractContextManager[Iterator[Batch]]]

ITEM_BYTES = 64  # of columns, an item,
LEAST_BYTES = 2**28  # and for a collection of any size
MASKS = 16  # of the last filters
FEW_CODES = 8  # are compared one by one, which is quicker than looking each up
NOTED_CHANGES = 1024  # whose metadata are remembered for columns to follow
SURVEYED = 5000  # items that fields are learned from before there is a column
MOST_FIELDS = 256  # that are listed
MOST_SHAPES = 10_000  # of metadata, that are known to tell nothing new
SHOWN_FIELDS = 20  # in an error
VALUE_BYTES = 120  # of a value in a dictionary, beside its text
NO_DATE = np.iinfo(np.int64).min
OBJECT = object()  # stands for any dict, which compares with nothing
LABELS = (("label",), ("labels",))
SPECIAL = ("id", "label", "labels")  # fields that are not of the metadata


class Column:
    """The values of one field, by place."""

    def __init__(self, size: int = 0) -> None:
        self._size = size
        self._numbers: NDArray[Any] | None = None  # 0 where there is none
        self._is_number = np.zeros(0, np.bool_)
        self._codes: NDArray[Any] | None = None  # of all other values, -1 where there is none
        self._values: list[Any] = []  # by code
        self._numbered: dict[Any, int] = {None: -1}
        self._dates = np.empty(0, np.int64)  # by code, as far as they were asked for
        self._value_bytes = 0
        self.kinds: set[str] = set()  # of its values

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        arrays = (self._numbers, self._is_number, self._codes, self._dates)
        return self._value_bytes + sum(each.nbytes for each in arrays if each is not None)

    def grow(self, size: int) -> None:
        """Have places up to ``size``, without values."""
        self._size = size
        if self._numbers is not None:
            self._numbers = _grown(self._numbers, size, 0)
            self._is_number = _grown(self._is_number, size, False)
        if self._codes is not None:
            self._codes = _grown(self._codes, size, -1)

    def keep(self, places: Keys) -> None:
        """Move the values at these places up, and forget the others."""
        self._size = len(places)
        if self._numbers is not None:
            self._numbers, self._is_number = self._numbers[places], self._is_number[places]
        if self._codes is not None:
            self._codes = self._codes[places]

    def put(self, places: Keys, values: Sequence[Any]) -> None:
        """Give places their values."""
        kinds = {*map(type, values)}
        if kinds & {int, float}:
            self._put_numbers(places, values, kinds)
        if kinds - {int, float, type(None)}:
            if kinds & {int, float}:
                values = [None if type(value) in (int, float) else value for value in values]
            self._put_codes(places, values, kinds)

    def _put_numbers(self, places: Keys, values: Sequence[Any], kinds: set[type]) -> None:
        if kinds - {int, float}:
            there = [i for i, value in enumerate(values) if type(value) in (int, float)]
            places, values = places[there], [values[i] for i in there]
        try:
            numbers: NDArray[Any] = np.array(values, np.float64 if float in kinds else np.int64)
        except OverflowError:
            numbers = np.array([_as_float(value) for value in values])
        if self._numbers is None:
            self._numbers = np.zeros(self._size, np.int8)
            self._is_number = np.zeros(self._size, np.bool_)
        if numbers.dtype == np.float64:
            self._numbers = self._numbers.astype(np.float64, copy=False)
        elif self._numbers.dtype != np.float64:
            self._numbers = _wide_enough(self._numbers, int(numbers.min()), int(numbers.max()))
        self.kinds.add("number")
        self._numbers[places] = numbers
        self._is_number[places] = ~np.isnan(numbers)  # version 0.1.0 took NaN

    def _put_codes(self, places: Keys, values: Sequence[Any], kinds: set[type]) -> None:
        keys = values
        if kinds & {list, dict}:
            keys = [_key(each) if isinstance(each, list | dict) else each for each in values]
        for key, value in dict(zip(keys, values, strict=True)).items():
            if key not in self._numbered:
                self._numbered[key] = len(self._values)
                self._values.append(OBJECT if isinstance(value, dict) else value)
                is_list = isinstance(key, tuple)  # its values take more than their text
                text_bytes = sys.getsizeof(key[-1] if is_list else key)
                self._value_bytes += VALUE_BYTES + (4 if is_list else 1) * text_bytes
                self.kinds.add(kind_of(value))
        if self._codes is None:
            self._codes = np.full(self._size, -1, np.int8)
        self._codes = _wide_enough(self._codes, -1, len(self._values))
        self._codes[places] = np.fromiter(map(self._numbered.__getitem__, keys), np.int64)

    # ---------------------------------------------------------------------------------- conditions

    def mask(self, condition: Condition, start: int, stop: int) -> Mask:
        """Tell for which of these places a condition is true."""
        if condition.kind == "null":
            there = np.zeros(stop - start, np.bool_)
            if self._numbers is not None:
                there |= self._is_number[start:stop]
            if self._codes is not None:
                there |= self._codes[start:stop] >= 0
            return there if condition.op == "is not null" else ~there
        if condition.kind == "number" and condition.op not in ("has", "has not"):
            if self._numbers is None:
                return np.zeros(stop - start, np.bool_)
            found = compare_numbers(self._numbers[start:stop], condition)
            found &= self._is_number[start:stop]
            return found
        if self._codes is None:
            return np.zeros(stop - start, np.bool_)
        codes = self._codes[start:stop]
        if len(codes) < len(self._values) and condition.op not in ("=", "in"):
            used, places = np.unique(codes, return_inverse=True)
            values = [None if code < 0 else self._values[code] for code in used.tolist()]
            return np.take(true_of(condition, values), places)
        return _looked_up(self._table(condition), codes)

    def order(self, places: Keys, *, descending: bool) -> Keys:
        """Return in which order these places are by their values: numbers, then text, then none."""
        group, rank = np.full(len(places), 2), np.zeros(len(places))
        if self._codes is not None:
            codes = self._codes[places]
            texts = [str(value) for value in self._values]
            ranks = np.argsort(np.argsort(np.array(texts, object), kind="stable"))
            there = codes >= 0
            group[there], rank[there] = 1, ranks[codes[there]]
        if self._numbers is not None:
            there = self._is_number[places]
            group[there], rank[there] = 0, self._numbers[places][there]
        return np.lexsort((-rank if descending else rank, group))

    @property
    def has_dates(self) -> bool:
        """Whether any value is a date."""
        known = self._dates != NO_DATE
        return bool(known.any() or (self._as_dates() != NO_DATE).any())

    def _as_dates(self) -> NDArray[np.int64]:
        """Return the values by code as dates, NO_DATE where they are none."""
        new = self._values[len(self._dates) :]
        if new:
            dates = (microseconds(value) if isinstance(value, str) else None for value in new)
            more = [NO_DATE if each is None else each for each in dates]
            self._dates = np.concatenate([self._dates, np.array(more, np.int64)])
        return self._dates

    def _table(self, condition: Condition) -> Mask:
        """Tell for which codes a condition is true."""
        if condition.kind == "date" and not condition.op.startswith("has"):
            dates = self._as_dates()
            found = compare_numbers(dates, condition)
            found &= dates != NO_DATE
            return found
        if condition.op in ("=", "in"):
            table = np.zeros(len(self._values), np.bool_)
            codes = [self._numbered.get(value, -1) for value in condition.values]
            table[[code for code in codes if code >= 0]] = True
            return table
        return true_of(condition, self._values)


def true_of(condition: Condition, values: Iterable[Any]) -> Mask:
    """Tell of which values a condition is true."""
    if condition.kind == "string" and not condition.op.startswith("has"):
        test = condition.test()
        return np.array([isinstance(value, str) and test(value) for value in values], np.bool_)
    return np.array([condition.holds(value) is True for value in values], np.bool_)


def compare_numbers(numbers: NDArray[Any], condition: Condition) -> Mask:
    """Compare numbers exactly, as they are stored."""
    is_whole, among = numbers.dtype.kind == "i", []
    if condition.op in ("in", "not in"):
        for value in condition.values:
            if not is_whole:
                among.append(float(value))
            elif value == int(value) and _fits(int(value), numbers.dtype):
                among.append(int(value))
        if len(among) <= FEW_CODES:
            found = reduce(
                np.logical_or, [numbers == value for value in among], np.zeros(len(numbers), bool)
            )
        else:
            found = np.isin(numbers, np.array(among, numbers.dtype))
        return found if condition.op == "in" else ~found
    op, value = condition.op, condition.values[0]
    if is_whole and value != int(value):
        if op in ("=", "!="):
            return np.full(len(numbers), op == "!=")
        op, value = {"<": "<=", ">=": ">"}.get(op, op), np.floor(value)
    found = COMPARISONS[op](numbers, int(value) if is_whole else float(value))
    return np.asarray(found, np.bool_)


def _looked_up(table: Mask, codes: NDArray[Any]) -> Mask:
    """Return the table's entry of each code, False where it is -1."""
    table = np.append(table, False)
    few, others = np.flatnonzero(table), np.flatnonzero(~table)
    others[-1] = -1
    if len(few) <= FEW_CODES:
        return _among(codes, few)
    return ~_among(codes, others) if len(others) <= FEW_CODES else table[codes]


def _among(codes: NDArray[Any], few: NDArray[Any]) -> Mask:
    found = np.zeros(len(codes), np.bool_)
    for code in few.tolist():
        found |= codes == code
    return found


def _key(value: Any) -> tuple[str, ...]:
    """What a list or dict is told from others by: 1 and true are equal, their texts are not."""
    return ("list", json.dumps(value)) if isinstance(value, list) else ("object",)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # version 0.1.0 took numbers of any length
        return float("inf") if value > 0 else float("-inf")


def _fits(value: int, kind: np.dtype[Any]) -> bool:
    return bool(np.iinfo(kind).min <= value <= np.iinfo(kind).max)


def _wide_enough(array: NDArray[Any], low: int, high: int) -> NDArray[Any]:
    """Return whole numbers in the smallest type, from theirs on, that holds these, too."""
    kinds = [array.dtype, *map(np.dtype, (np.int16, np.int32, np.int64))]
    return array.astype(next(k for k in kinds if _fits(low, k) and _fits(high, k)), copy=False)


def _grown(array: NDArray[Any], size: int, fill: Any) -> NDArray[Any]:
    """Return the array with places up to ``size``, and room for as many again."""
    if size <= len(array):
        return array
    wider = np.full(max(size, 2 * len(array)), fill, array.dtype)
    wider[: len(array)] = array
    return wider


# --------------------------------------------------------------------------- names and types


class Survey:
    """Which fields items have or had, and of which types."""

    def __init__(self) -> None:
        self._types: dict[Path, frozenset[str]] = {}
        self._settled: set[tuple[Any, ...]] = set()  # names and types that tell nothing new
        self.forked()
        self.is_complete = False  # whether every item was looked at
        self.last_key = -1  # up to which items were looked at, or some of them

    def forked(self) -> None:
        """Go on without the threads that may hold the lock."""
        self._learning = threading.Lock()

    def may_have(self, field: Path) -> bool:
        """Tell whether an item may have a field."""
        return not self.is_complete or self._is_full or field in self._types

    @property
    def _is_full(self) -> bool:
        return len(self._types) >= MOST_FIELDS

    def learn(self, metadata: Iterable[Any]) -> None:
        """Learn from the metadata of items."""
        with self._learning:
            for each in metadata:
                if isinstance(each, dict):
                    shape = (*each, *map(type, each.values()))
                    if shape not in self._settled:
                        self._learn((), each)
                        if len(self._settled) < MOST_SHAPES and self._tells_all(each):
                            self._settled.add(shape)

    def _tells_all(self, values: dict[str, Any]) -> bool:
        """Whether nothing more can be learned from metadata with the same names and types."""
        return not any(
            isinstance(value, dict)
            or (isinstance(value, str) and "string" not in self._types.get((name,), {"string"}))
            for name, value in values.items()
        )

    def _learn(self, path: Path, values: dict[str, Any]) -> None:
        for name, value in values.items():
            field = (*path, name)
            if isinstance(value, dict) and len(path) < DEEPEST:
                self._learn(field, value)
            if value is not None:
                types, new = self._types.get(field), _type_of(value)
                if types is None and not self._is_full:
                    self._types[field] = frozenset((new,))
                elif types is not None and new not in types:
                    self._types[field] = types | {new}

    def types(self) -> dict[str, str]:
        """The type of each field, by its name in a filter."""
        return {
            quoted(("metadata", *path) if path[0] in (*SPECIAL, "metadata") else path): named(types)
            for path, types in sorted([*self._types.items()])
            if types != {"object"}  # what is in them is listed
        }


def _type_of(value: Any) -> str:
    if isinstance(value, str):
        return "string" if microseconds(value) is None else "date"
    return "whole number" if type(value) is int else kind_of(value)


def named(types: Iterable[str]) -> str:
    """Return one name for the types of values.

    >>> named({"date", "string"}), named({"whole number", "number", "boolean"})
    ('string', 'boolean or number')
    """
    hidden, types = {"whole number": "number", "date": "string"}, {*types}
    return " or ".join(sorted(each for each in types if hidden.get(each) not in types))


def values_at(metadata: Iterable[Any], field: Path) -> list[Any]:
    """Return a field of the metadata of each item; None for none."""
    values = [*metadata]
    for name in field:
        values = [each.get(name) if type(each) is dict else None for each in values]
    return values


def _metadata_field(condition: Condition) -> Path | None:
    """Return the field of the metadata that a condition is about, if it is."""
    path = condition.field
    if path[0] == "metadata" and len(path) > 1:
        return path[1:]
    return None if len(path) == 1 and path[0] in SPECIAL else path


# ------------------------------------------------------------------------------------ filters


class Selection(NamedTuple):
    """The items of one moment that a filter is true of."""

    moment: "Moment"
    mask: Mask  # by place of its listing; places of deleted items may be true
    codes: "Snapshot | None"  # theirs, of a backend in memory

    @property
    def keys(self) -> Keys:
        """Their keys, perhaps with some of items deleted before."""
        listing = self.moment.listing
        return listing.keys[: listing.size][self.mask]

    def holds(self, keys: Keys) -> Mask:
        """Tell which keys are among them."""
        listing = self.moment.listing
        held = listing.holds(keys)
        held[held] = self.mask[listing.places(keys[held])]
        return held


class Fields:
    """Columns of metadata, and the masks of filters.

    ``lock`` is taken before the journal's by whoever takes both. ``read`` calls a function while
    nothing changes, and gives the items with the keys that it returns.
    """

    def __init__(self, view: "View", read: Read) -> None:
        self._view, self._read = view, read
        self.lock, self._surveying = threading.RLock(), threading.Lock()
        self._keys: Keys = np.empty(0, np.int64)  # of the places that masks and columns are by,
        self._n_places = 0
        self._n_loaded = 0  # and how many of these the columns have
        self._columns: dict[Path, Column] = {}  # those used last at the end
        self._masks: dict[Filter, tuple[Mask, int]] = {}  # so too, each with its size
        self._selections: dict[Filter, Selection] = {}  # of the last moment
        self._survey = Survey()
        self._noted: dict[int, str | None] = {}  # metadata of items that columns lack

    def forked(self) -> None:
        """Go on in a child of this process, without the threads that may hold the lock."""
        self.lock, self._surveying = threading.RLock(), threading.Lock()
        self._survey.forked()

    def select(self, where: Filter) -> Selection:
        """Return the items that a filter is true of, as they are now."""
        with self.lock:
            moment = self._view.now
            self._align(moment.listing)
            fields = [*filter(None, map(_metadata_field, where.conditions()))]
            if fields:
                moment = self._load(moment, dict.fromkeys(fields))
            for condition in where.conditions():
                self._check(condition, moment.listing)
            return self._selection(where, moment)

    def sort(self, field: Path, keys: Keys, *, descending: bool) -> Keys:
        """Return keys in the order of a field of their items; without those deleted meanwhile."""
        with self.lock:
            self._align(self._view.now.listing)
            listing = self._load(self._view.now, {field: None}).listing
            if listing.size and not self._columns[field].kinds:
                raise self._unknown(field)
            keys = keys[listing.holds(keys)]
            places = listing.places(keys)
            return keys[self._columns[field].order(places, descending=descending)]

    def types(self) -> dict[str, str]:
        """The types of fields, from every item once there are columns, from a sample before."""
        if self._surveying.acquire(blocking=False):
            try:
                with self._read(self._unsurveyed) as batches:
                    for batch in batches:
                        self._survey.learn(batch.metadata)
            finally:
                self._surveying.release()
        return self._survey.types()

    def _unsurveyed(self) -> Keys:
        listing, survey = self._view.now.listing, self._survey
        keys = listing.keys[: listing.size]
        keys = keys[np.searchsorted(keys, survey.last_key, side="right") :]
        survey.last_key = int(keys[-1]) if len(keys) else survey.last_key
        if len(keys) > SURVEYED:
            keys = keys[np.linspace(0, len(keys) - 1, SURVEYED).astype(np.int64)]
        return keys

    # ------------------------------------------------------------------------------------- columns

    def _align(self, listing: "Listing") -> None:
        """Have the places of a listing, which goes on from the last one or has moved places up."""
        n, keys = self._n_places, listing.keys
        goes_on = keys is self._keys or np.array_equal(keys[:n], self._keys[:n])
        if listing.size < n or not goes_on:
            self._masks, self._selections = {}, {}
            known = self._keys[: self._n_loaded]
            last = known[-1] if len(known) else -1
            kept = keys[: np.searchsorted(keys[: listing.size], last, side="right")]
            places = np.searchsorted(known, kept)
            if np.array_equal(known[places], kept):
                for column in self._columns.values():
                    column.keep(places)
                self._n_loaded = len(kept)
            else:
                self._columns, self._n_loaded, self._survey.is_complete = {}, 0, False
        self._keys, self._n_places = keys, listing.size

    def _load(self, moment: "Moment", fields: dict[Path, None]) -> "Moment":
        """Have columns of these fields for all items of a moment, this one or a later."""
        survey = self._survey
        if survey.is_complete and not self._follow(moment.listing):
            moment = self._read_columns({}, fields)
        new = [field for field in fields if field not in self._columns]
        for field in new:
            if not survey.may_have(field):
                raise self._unknown(field)
        if new:
            moment = self._read_columns({field: Column() for field in new}, fields)
        for field in fields:
            self._columns[field] = self._columns.pop(field)
        sizes = {field: column.nbytes for field, column in self._columns.items()}
        for field in [*sizes]:
            if sum(sizes.values()) > self._bound and field not in fields:
                del self._columns[field], sizes[field]
        return moment

    def _follow(self, listing: "Listing") -> bool:
        """Have all columns up to date by what was noted; tell whether that was possible."""
        while self._view.notes:
            keys, texts = self._view.notes.popleft()
            self._noted.update(zip(keys.tolist(), texts, strict=True))
        new, noted = listing.keys[self._n_loaded : listing.size].tolist(), self._noted
        known = noted.keys() >= {*new}
        if known and new:
            for column in self._columns.values():
                column.grow(listing.size)
            places = np.arange(self._n_loaded, listing.size)
            self._put(self._columns, places, from_json([noted[key] for key in new]))
            self._n_loaded = listing.size
        last = int(listing.keys[listing.size - 1]) if listing.size else -1
        self._noted = {key: text for key, text in noted.items() if key > last}
        return known

    def _put(self, columns: dict[Path, Column], places: Keys, metadata: Sequence[Any]) -> None:
        self._survey.learn(metadata)
        for field, column in columns.items():
            column.put(places, values_at(metadata, field))

    def _read_columns(self, new: dict[Path, Column], fields: Iterable[Path]) -> "Moment":
        """Read new columns, and what is new of the others; return the moment they are of."""
        moment = self._view.now

        def wanted() -> Keys:
            nonlocal moment
            moment = self._view.now
            self._view.notes = deque(maxlen=NOTED_CHANGES)
            self._align(moment.listing)
            return moment.listing.keys[0 if new else self._n_loaded : moment.listing.size]

        with self._read(wanted) as batches:
            listing, n = moment.listing, self._n_loaded
            for column in (*new.values(), *self._columns.values()):
                column.grow(listing.size)
            for batch in batches:
                places = listing.places(batch.keys)
                self._put(new, places, batch.metadata)
                later = np.flatnonzero(places >= n)
                if len(later) and (self._columns or not new):
                    metadata = [batch.metadata[i] for i in later]
                    self._put(self._columns, places[later], metadata)
                self._refuse_large({**self._columns, **new}, fields)
        self._columns |= new
        self._n_loaded = listing.size
        self._survey.is_complete = True
        self._survey.last_key = int(listing.keys[listing.size - 1]) if listing.size else -1
        return moment

    @property
    def _bound(self) -> int:
        return max(LEAST_BYTES, ITEM_BYTES * self._n_places)

    def _refuse_large(self, columns: dict[Path, Column], fields: Iterable[Path]) -> None:
        sizes = {field: columns[field].nbytes for field in fields if field in columns}
        if sum(sizes.values()) > self._bound:
            largest = max(sizes, key=lambda field: sizes[field])
            self._columns = {f: c for f, c in self._columns.items() if f != largest}
            raise InputError(
                f"where: the fields of this filter take more than {self._bound >> 20} MiB of "
                f"memory, the most {quoted(largest)}; filter by fields with fewer different, or "
                "shorter, values."
            )

    # ------------------------------------------------------------------------------------- masks

    def _selection(self, where: Filter, moment: "Moment") -> Selection:
        if not all(each.moment is moment for each in self._selections.values()):
            self._selections = {}
        known = self._selections.get(where)
        if known is not None:
            return known
        listing, codes = moment.listing, moment.codes
        # Labels change in place: what was found of them is of no use later.
        lasting = not any(condition.field in LABELS for condition in where.conditions())
        mask, n = self._masks.pop(where, (np.empty(0, np.bool_), 0))
        mask = _grown(mask, listing.size, False)
        if n < listing.size:
            mask[n : listing.size] = self._true_of(where.root, listing, n)
        if codes is not None:
            codes = codes.with_keys(listing.keys[: listing.size], mask[: listing.size])
        selection = Selection(moment, mask[: listing.size], codes)
        if lasting:
            self._masks[where] = mask, listing.size
            self._selections[where] = selection
            for old in [*self._masks][:-MASKS]:
                del self._masks[old]
                self._selections.pop(old, None)
        return selection

    def _true_of(self, node: Node, listing: "Listing", start: int) -> Mask:
        """Tell for which places from ``start`` on a condition is true."""
        if not isinstance(node, Condition):
            join = np.logical_and if node.op == "and" else np.logical_or
            return reduce(join, (self._true_of(part, listing, start) for part in node.parts))
        size, field = listing.size, _metadata_field(node)
        if field is not None:
            return self._columns[field].mask(node, start, size)
        if node.field in LABELS:
            return _true_of_labels(node, listing, start)
        if isinstance(listing.ids, np.ndarray) and node.kind != "null":
            return compare_numbers(listing.ids[start:size], node)
        parts = [true_of(node, ids.tolist()) for ids in listing.ids_between(start, size)]
        return np.concatenate([np.empty(0, np.bool_), *parts])

    def _check(self, condition: Condition, listing: "Listing") -> None:
        """Refuse a condition on a field that no item has, or has no value of that kind in."""
        field = _metadata_field(condition)
        if field is not None:
            kinds = self._columns[field].kinds
            if not kinds:
                del self._columns[field]
                raise self._unknown(field)
        elif condition.field == ("id",):
            kinds = {"string" if listing.has_strings else "number"}
            kinds = kinds if listing.size else set()
        elif condition.field == ("labels",):
            kinds = {"list"}
        else:
            kinds = {kind_of(name) for name in listing.names}
        wanted = "string" if condition.kind == "date" else condition.kind
        wanted = "list" if condition.op.startswith("has") else wanted
        fits = condition.kind == "null" or not kinds or wanted in kinds
        if fits and condition.kind == "date" and field is not None and wanted != "list":
            fits = self._columns[field].has_dates
        if not fits:
            raise InputError(
                f"where: {quoted(condition.field)} has no value that is a "
                f"{condition.kind if wanted != 'list' else wanted}, but {named(kinds)}; compare it "
                f"with such a value. {self._listed()}"
            )

    def _unknown(self, field: Path) -> InputError:
        types, name = self._survey.types(), quoted(field)
        near = get_close_matches(name, [*types, *SPECIAL], 1)
        hint = f"did you mean {near[0]}? " if near else ""
        return InputError(f"where: no item has the field {name}; {hint}{self._listed()}")

    def _listed(self) -> str:
        types = self._survey.types()
        some = [f"{name} ({kind})" for name, kind in [*types.items()][:SHOWN_FIELDS]]
        more = len(types) - len(some)
        return f"Fields are id, label, labels{''.join(f', {each}' for each in some)}" + (
            f" and {more} more." if more else "."
        )


def _true_of_labels(condition: Condition, listing: "Listing", start: int) -> Mask:
    numbers, names = listing.labels[start : listing.size], listing.names
    if condition.kind == "null":
        return np.equal(numbers < 0, condition.op == "is null")
    values = names
    if condition.field == ("labels",):  # one label is a list of one
        values = [name if isinstance(name, tuple) else (name,) for name in names]
    return _looked_up(true_of(condition, values), numbers)
