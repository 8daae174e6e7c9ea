"""Which items a search may find: a condition on ids, labels and metadata.

It is written as in SQL after WHERE, or as JSON:

    price < 10 AND category IN ('shoes', 'hats') AND NOT sold
    {"and": [{"field": "price", "op": "<", "value": 10},
             {"field": "category", "op": "in", "value": ["shoes", "hats"]},
             {"not": {"field": "sold", "op": "=", "value": true}}]}

    condition  = condition OR condition | condition AND condition | NOT condition | (condition)
    comparison = field (= | != | <> | < | <= | > | >=) value      also with the value first
               | field [NOT] BETWEEN value AND value | field [NOT] IN (value, ...)
               | field [NOT] LIKE 'text'                          % any text, _ any character
               | field IS [NOT] NULL | field                      the latter: field = true
               | value [NOT] IN field | array_has(field, value)   of fields that hold lists
    value      = 10 | -2.5e3 | 'it''s' | true | false | date '2026-01-31'
               | timestamp '2026-01-31T12:00:00Z'                 without a zone: UTC
    field      = price | "field name" | `field name` | a.b        b inside a

AND binds tighter than OR, NOT tighter than both. Fields are those of the metadata, and ``id``,
``label`` and ``labels``; a field of the metadata that is called so is ``metadata.id``.

**Three values.** As in SQL a comparison is true, false or unknown: unknown where the item lacks the
field, has null there, or a value of another type than the one it is compared with. NOT of unknown
is unknown, and only items are found for which the whole is true: an item without ``x`` matches
neither ``x = 1`` nor ``x != 1`` nor ``NOT x = 1``, but ``x IS NULL``.
"""

import operator
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, NoReturn

from streamhash.errors import InputError, shown

LONGEST = 100_000  # characters of a filter
DEEPEST = 50  # parentheses, or objects, inside one another
MOST_CONDITIONS = 100  # comparisons of a filter
MOST_VALUES = 10_000  # of an IN
LONG_NUMBER = 100  # digits

Path = tuple[str, ...]  # of a field: names, one inside the other

NEGATED = {"=": "!=", "<": ">=", "<=": ">", "in": "not in", "like": "not like"}
NEGATED |= {"is null": "is not null", "has": "has not"}
NEGATED |= {negative: positive for positive, negative in NEGATED.items()}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LISTED = ("in", "not in", "between", "not between")  # comparisons with several values

ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
PLAIN_NAME = re.compile(r"[^\W\d]\w*")


class Condition(NamedTuple):
    """A comparison of a field with values of one kind.

    ``kind`` is "number", "string", "boolean", "date" or "null"; dates are microseconds of UTC.
    """

    field: Path
    op: str
    kind: str
    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool | None:
        """Tell whether it is true of a value; None if that is unknown.

        >>> Condition(("price",), "<", "number", (10,)).holds(9.5)
        True
        >>> Condition(("price",), "<", "number", (10,)).holds("cheap") is None
        True
        """
        if self.kind == "null":
            return (value is None) == (self.op == "is null")
        if self.op in ("has", "has not"):
            if not isinstance(value, list | tuple):
                return None
            equal = self._replace(op="=")
            return any(equal.holds(each) for each in value) == (self.op == "has")
        if self.kind == "date":
            value = microseconds(value) if isinstance(value, str) else None
            if value is None:
                return None
        elif kind_of(value) != self.kind:
            return None
        return bool(self.test()(value))

    def test(self) -> Callable[[Any], Any]:
        """Return the comparison, of values of its kind."""
        if self.op in ("in", "not in"):
            among, wanted = frozenset(self.values), self.op == "in"
            return lambda value: (value in among) == wanted
        if self.op in ("like", "not like"):
            matches, wanted = like(self.values[0]), self.op == "like"
            return lambda value: matches(value) == wanted
        compare, (other,) = COMPARISONS[self.op], self.values
        return lambda value: compare(value, other)


class Junction(NamedTuple):
    """Several conditions, of which all or any hold."""

    op: str  # "and" or "or"
    parts: "tuple[Condition | Junction, ...]"


Node = Condition | Junction


class Filter(NamedTuple):
    """A condition; NOT is worked into its comparisons, which De Morgan's laws allow for unknowns.

    Equal filters are equal and have one hash.

    >>> found = Filter.parse("price < 10 AND NOT sold")
    >>> [f"{quoted(each.field)} {each.op} {each.values[0]}" for each in found.conditions()]
    ['price < 10', 'sold != True']
    """

    root: Node

    @classmethod
    def parse(cls, text: Any, *, place: str = "where") -> "Filter":
        """Read a filter, as text or as JSON."""
        if isinstance(text, Filter):
            return text
        if isinstance(text, dict):
            root = _FromJson(place).node(text, 1)
        elif isinstance(text, str):
            if len(text) > LONGEST:
                raise InputError(
                    f"{place}: {len(text)} characters came, more than {LONGEST}; pass a shorter "
                    "filter."
                )
            root = _FromText(text, place).whole()
        else:
            raise InputError(
                f'{place}={shown(text)} is no filter; pass text such as "price < 10 AND NOT '
                'sold", or a dict such as {"field": "price", "op": "<", "value": 10}.'
            )
        self = cls(root)
        n = sum(1 for _ in self.conditions())
        if n > MOST_CONDITIONS:
            raise InputError(
                f"{place}: {n} comparisons came, more than {MOST_CONDITIONS}; use IN for many "
                "values of a field."
            )
        return self

    def conditions(self) -> Iterator[Condition]:
        """Go through its comparisons."""
        waiting: list[Node] = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Condition):
                yield node
            else:
                waiting.extend(reversed(node.parts))

    def holds(self, read: Callable[[Path], Any]) -> bool:
        """Tell whether it is true of an item whose fields ``read`` returns, None for none."""

        def is_true(node: Node) -> bool:
            if isinstance(node, Condition):
                return node.holds(read(node.field)) is True
            return (all if node.op == "and" else any)(map(is_true, node.parts))

        return is_true(self.root)


# ----------------------------------------------------------------------------- values and names


def kind_of(value: Any) -> str:
    """What kind a value of metadata is."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "list" if isinstance(value, list | tuple) else "object"


def microseconds(text: str) -> int | None:
    """Return an ISO date or time as microseconds since 1970; None if it is none.

    >>> microseconds("1970-01-02"), microseconds("1970-01-01T01:00+01:00"), microseconds("1970")
    (86400000000, 0, None)
    """
    if ISO.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - EPOCH) // MICROSECOND
    except (ValueError, OverflowError):  # no such day
        return None


def like(pattern: str) -> Callable[[str], bool]:
    """Return the test of LIKE, whose time is in proportion to the text, whatever the pattern.

    >>> [like("%sh_e%")(text) for text in ("shoes", "she")]
    [True, False]
    """
    first, *others = (
        re.compile("".join("." if c == "_" else re.escape(c) for c in part), re.DOTALL)
        for part in pattern.split("%")
    )
    if not others:
        return lambda text: first.fullmatch(text) is not None
    *middle, last = others
    n_last = len(pattern) - pattern.rindex("%") - 1

    def matches(text: str) -> bool:
        found, end = first.match(text), 0
        for part in (*middle, None):
            if found is None:
                return False
            end = found.end()
            if part is not None:
                found = part.search(text, end)
        return end <= len(text) - n_last and bool(last.fullmatch(text, len(text) - n_last))

    return matches


def quoted(field: Path) -> str:
    """Return a field as a filter names it."""
    names = (
        name
        if PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS
        else '"' + name.replace('"', '""') + '"'
        for name in field
    )
    return ".".join(names)


def negated(node: Node) -> Node:
    """Return the opposite; what is unknown stays unknown."""
    if isinstance(node, Condition):
        return node._replace(op=NEGATED[node.op])
    return Junction("or" if node.op == "and" else "and", tuple(map(negated, node.parts)))


def _joined(op: str, parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Junction(op, tuple(parts))


class _Value(NamedTuple):
    kind: str
    value: Any


def _literal(value: Any) -> _Value | None:
    """Return a plain value with its kind; None if it cannot be compared with."""
    kind = kind_of(value)
    if kind == "number" and not abs(value) <= sys.float_info.max:
        return None
    return _Value(kind, value) if kind in ("number", "string", "boolean") else None


def _time(word: str, text: Any) -> _Value | None:
    """Return the value of ``date '...'`` or ``timestamp '...'``; None if it is none."""
    found = microseconds(text) if isinstance(text, str) else None
    if found is None or (word == "date" and len(text) > len("2026-01-31")):
        return None
    return _Value("date", found)


def _condition(field: Path, op: str, values: list[_Value]) -> Node:
    """Return a comparison, or say why there is none such by a ValueError."""
    kinds = {each.kind for each in values}
    if len(kinds) > 1:
        raise ValueError(f"values of one kind are compared, {' and '.join(sorted(kinds))} came")
    kind = kinds.pop() if kinds else "null"
    if op in ("like", "not like") and kind != "string":
        raise ValueError(f"LIKE takes a 'text', a {kind} came")
    if kind == "boolean" and op not in ("=", "!=", "has", "has not"):
        raise ValueError(f"booleans are compared by = and !=, {op} came")
    if len(values) > MOST_VALUES:
        raise ValueError(f"IN takes at most {MOST_VALUES} values, {len(values)} came")
    plain = tuple(each.value for each in values)
    if op.endswith("between"):
        low = Condition(field, ">=", kind, plain[:1])
        both = Junction("and", (low, Condition(field, "<=", kind, plain[1:])))
        return negated(both) if op.startswith("not") else both
    return Condition(field, op, kind, plain)


# ----------------------------------------------------------------------------------------- text

KEYWORDS = frozenset(
    ("AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE", "TRUE", "FALSE"),
)
TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
      | (?P<text>'[^']*(?:''[^']*)*')
      | (?P<quoted>"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`)
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=|>=|<>|!=|==|[-+=<>(),.])
      | (?P<end>$)
    )""",
    re.VERBOSE,
)


class _Token(NamedTuple):
    kind: str
    text: str  # keywords in capitals, texts without their quotes
    at: int  # its first character, from 0


class _FromText:
    """A parser by recursive descent, one method a line of the grammar."""

    def __init__(self, text: str, place: str) -> None:
        self._text, self._place = text, place
        self._tokens = [*self._split()]
        self._next = self._depth = 0

    def whole(self) -> Node:
        """Read all of it."""
        if self._now.kind == "end":
            self._refuse("it is empty", "pass a condition such as price < 10")
        node = self._either()
        if self._now.kind != "end":
            self._refuse(f"{self._shown} is not expected", "join conditions by AND or OR")
        return node

    def _split(self) -> Iterator[_Token]:
        text, at = self._text, 0
        while True:
            found = TOKEN.match(text, at)
            if found is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                what = {"'": "a text", '"': "a name", "`": "a name"}.get(text[at])
                problem = f"{text[at : at + 20]!r} cannot be read"
                raise self._error(
                    at, f"{what} has no end" if what else problem, "write numbers, 'texts' or names"
                )
            kind = str(found.lastgroup)
            part, start = found[kind], found.start(kind)
            if kind in ("text", "quoted"):
                part = part[1:-1].replace(2 * part[0], part[0])
            elif kind == "word" and part.upper() in KEYWORDS:
                kind, part = "keyword", part.upper()
            yield _Token(kind, part, start)
            if kind == "end":
                return
            at = found.end()

    # ------------------------------------------------------------------------------- conditions

    def _either(self) -> Node:
        parts = [self._both()]
        while self._take("OR"):
            parts.append(self._both())
        return _joined("or", parts)

    def _both(self) -> Node:
        parts = [self._maybe_not()]
        while self._take("AND"):
            parts.append(self._maybe_not())
        return _joined("and", parts)

    def _maybe_not(self) -> Node:
        is_negated = False
        while self._take("NOT"):
            is_negated = not is_negated
        if self._now.text == "(" and self._now.kind == "sign":
            self._depth += 1
            if self._depth > DEEPEST:
                self._refuse(f"more than {DEEPEST} parentheses are open", "pass a simpler filter")
            self._next += 1
            node = self._either()
            self._expect(")")
            self._depth -= 1
        else:
            node = self._comparison()
        return negated(node) if is_negated else node

    def _comparison(self) -> Node:
        start = self._now
        try:
            if start.text.lower() == "array_has" and self._after.text == "(":
                self._next += 2
                field = self._field()
                self._expect(",")
                value = self._value()
                self._expect(")")
                return _condition(field, "has", [value])
            if self._is_field:
                return self._of_field(self._field())
            return self._of_value(self._value())
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise self._error(start.at, str(error), "write values of the field's kind") from None

    def _of_field(self, field: Path) -> Node:
        op = self._comparison_sign()
        if op is not None:
            if self._is_field:
                self._refuse(
                    f"{quoted(field)} is compared with the field {self._shown}",
                    "compare it with a value; a text stands in single quotes",
                )
            return _condition(field, op, [self._value()])
        if self._take("IS"):
            op = "is not null" if self._take("NOT") else "is null"
            self._expect("NULL")
            return _condition(field, op, [])
        before = "not " if self._take("NOT") else ""
        if self._take("BETWEEN"):
            low = self._value()
            self._expect("AND")
            return _condition(field, f"{before}between", [low, self._value()])
        if self._take("LIKE"):
            return _condition(field, f"{before}like", [self._value()])
        if self._take("IN"):
            self._expect("(")
            values = [self._value()]
            while self._take(","):
                values.append(self._value())
            self._expect(")")
            return _condition(field, f"{before}in", values)
        if before:
            self._refuse(f"{self._shown} follows NOT", "write NOT IN, NOT BETWEEN or NOT LIKE")
        return _condition(field, "=", [_Value("boolean", True)])

    def _of_value(self, value: _Value) -> Node:
        op = self._comparison_sign()
        if op is not None:
            return _condition(self._field(), TURNED[op], [value])
        is_negated = self._take("NOT")
        self._expect("IN")
        return _condition(self._field(), "has not" if is_negated else "has", [value])

    # ------------------------------------------------------------------------ fields and values

    @property
    def _is_field(self) -> bool:
        is_time = self._now.text.lower() in ("date", "timestamp") and self._after.kind == "text"
        return self._now.kind == "quoted" or (self._now.kind == "word" and not is_time)

    def _field(self) -> Path:
        names = []
        while True:
            if self._now.kind not in ("word", "quoted"):
                self._refuse(
                    f"{self._shown} is no field", 'write a name; "in quotes" if it is a keyword'
                )
            names.append(self._now.text)
            self._next += 1
            if not self._take("."):
                return tuple(names)

    def _value(self) -> _Value:
        token, value = self._now, None
        self._next += 1
        if token.kind == "text":
            return _Value("string", token.text)
        if token.text in ("TRUE", "FALSE") and token.kind == "keyword":
            return _Value("boolean", token.text == "TRUE")
        if token.kind == "word" and token.text.lower() in ("date", "timestamp"):
            value = _time(token.text.lower(), self._now.text if self._now.kind == "text" else None)
            if value is None:
                self._next -= 1
                self._refuse(
                    f"{token.text} {self._after.text[:30]!r} is no such value",
                    "write date '2026-01-31' or timestamp '2026-01-31T12:00:00Z'",
                )
            self._next += 1
            return value
        sign = token.text if token.kind == "sign" and token.text in "+-" else ""
        if sign:
            token = self._now
            self._next += 1
        if token.kind == "number" and len(token.text) <= LONG_NUMBER:
            number = float(token.text) if set(token.text) & set(".eE") else int(token.text)
            value = _literal(-number if sign == "-" else number)
        if value is None:
            self._next -= 2 if sign else 1
            step = "write a number, 'text', true, false or date '2026-01-31'"
            if token.text == "NULL":
                step = "write IS NULL or IS NOT NULL"
            self._refuse(f"{self._shown} is no value", step)
        return value

    def _comparison_sign(self) -> str | None:
        op = {"<>": "!=", "==": "="}.get(self._now.text, self._now.text)
        if self._now.kind != "sign" or op not in COMPARISONS:
            return None
        self._next += 1
        return op

    # ----------------------------------------------------------------------------------- tokens

    @property
    def _now(self) -> _Token:
        return self._tokens[self._next]

    @property
    def _after(self) -> _Token:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    @property
    def _shown(self) -> str:
        return "the end" if self._now.kind == "end" else shown(self._now.text, 40)

    def _take(self, text: str) -> bool:
        """Pass over a keyword or sign, if it comes next."""
        is_next = self._now.text == text and self._now.kind in ("keyword", "sign")
        self._next += is_next
        return is_next

    def _expect(self, text: str) -> None:
        if not self._take(text):
            self._refuse(f"{self._shown} stands where {text} is wanted", "put it there")

    def _refuse(self, problem: str, step: str) -> NoReturn:
        raise self._error(self._now.at, problem, step)

    def _error(self, at: int, problem: str, step: str) -> InputError:
        around = self._text[max(0, at - 20) : at + 20]
        return InputError(
            f"{self._place}: at character {at + 1}, near {around!r}: {problem}; {step}."
        )


# ----------------------------------------------------------------------------------------- JSON


class _FromJson:
    """Reads {"and": [...]}, {"or": [...]}, {"not": ...} and {"field", "op", "value"}."""

    def __init__(self, place: str) -> None:
        self._place, self._n = place, 0

    def node(self, value: Any, depth: int) -> Node:
        """Read one object, and what is in it."""
        self._n += 1
        if depth > DEEPEST or self._n > 10 * MOST_CONDITIONS:
            raise self._error(value, f"more than {DEEPEST} levels or too many parts")
        if isinstance(value, dict) and len(value) == 1:
            ((op, inner),) = value.items()
            if op == "not":
                return negated(self.node(inner, depth + 1))
            if op in ("and", "or") and isinstance(inner, list) and inner:
                return _joined(op, [self.node(each, depth + 1) for each in inner])
        if isinstance(value, dict) and {"field", "op"} <= value.keys() <= {"field", "op", "value"}:
            try:
                return self._condition(**value)
            except ValueError as error:
                raise self._error(value, str(error)) from None
        raise self._error(value, "it is none of the forms there are")

    def _condition(self, field: Any, op: Any, value: Any = None) -> Node:
        path = tuple(field.split(".")) if isinstance(field, str) else field
        if not isinstance(path, list | tuple) or not path or not all(map(_is_text, path)):
            raise ValueError('field is a name such as "price" or "a.b", or a list of names')
        op = {"<>": "!=", "==": "="}.get(op, op) if isinstance(op, str) else None
        op = op.lower() if isinstance(op, str) else ""
        if op not in (*NEGATED, "between", "not between"):
            raise ValueError(
                "op is one of = != < <= > >= in between like has, is null, is not null"
            )
        values = value if op in LISTED else [] if op.startswith("is ") else [value]
        if not isinstance(values, list) or (op.startswith("is ") and value is not None):
            raise ValueError(f"{op} takes {'a list' if op in LISTED else 'no'} value")
        if (len(values) == 0 and op in LISTED) or (op.endswith("between") and len(values) != 2):
            raise ValueError(f"{len(values)} values came for {op}")
        return _condition(tuple(path), op, [self._value(each) for each in values])

    def _value(self, value: Any) -> _Value:
        found = _literal(value)
        if isinstance(value, dict) and len(value) == 1 and {*value} <= {"date", "timestamp"}:
            ((word, text),) = value.items()
            found = _time(word, text)
        if found is None:
            raise ValueError(
                f"{shown(value, 40)} is no value: a number, text, true, false or "
                '{"date": "2026-01-31"}'
            )
        return found

    def _error(self, value: Any, problem: str) -> InputError:
        return InputError(
            f"{self._place}: {shown(value)}: {problem}; pass "
            '{"field": "price", "op": "<", "value": 10}, {"and": [...]}, {"or": [...]} or '
            '{"not": ...}.'
        )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
