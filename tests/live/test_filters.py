"""The language of filters: by hand, and against a plain three-valued twin."""

import json
import operator
import time
from contextlib import suppress

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from fuzzing import machine_settings
from streamhash.errors import InputError
from streamhash.live.fields import Column, values_at
from streamhash.live.filters import Condition, Filter, like, microseconds, quoted

SHOES = {"price": 9.5, "category": "shoes", "sold": False, "day": "2026-01-31"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("price < 10", True),
        ("price < 9.5", False),
        ("10 > price", True),
        ("price <= 9.5 and price >= 9.5", True),
        ("price = 9.50 AND price == 9.5", True),
        ("price != 9.5 OR price <> 9.5", False),
        ("price > -1", True),
        ("price > - 1e1", True),
        ("category = 'shoes'", True),
        ("category = 'it''s'", False),
        ("category IN ('hats', 'shoes')", True),
        ("category not in ('hats', 'shoes')", False),
        ("category LIKE 'sh%'", True),
        ("category LIKE '_hoes' AND NOT category LIKE 'sho'", True),
        ("category NOT LIKE '%o%'", False),
        ("price BETWEEN 9 AND 10", True),
        ("price NOT BETWEEN 9 AND 10", False),
        ("NOT sold", True),
        ("sold = false", True),
        ("sold", False),
        ("not not sold = FALSE", True),
        ("day < date '2026-02-01'", True),
        ("day = timestamp '2026-01-31T00:00:00Z'", True),
        ("day = timestamp '2026-01-31 01:00:00+01:00'", True),
        ("day < '2026-02'", True),  # as text
        ("size IS NULL", True),
        ("size IS NOT NULL", False),
        ("size = 1", False),
        ("size != 1", False),
        ("NOT size = 1", False),
        ("NOT (size = 1 AND price = 9.5)", False),
        ("NOT (size = 1 AND price = 1)", True),  # false, whatever the size is
        ("size = 1 OR price = 9.5", True),
        ("price = 'cheap'", False),
        ("NOT price = 'cheap'", False),
        ("sold OR price < 10 AND category = 'hats'", False),
        ("NOT sold OR price < 10 AND category = 'hats'", True),
        ("NOT (sold OR price < 10) AND category = 'hats'", False),
        ('"price" < 10 AND `price` < 10', True),
    ],
)
def test_conditions_by_hand(text, expected):
    assert is_true(text, SHOES) is expected


def is_true(text, item):
    return Filter.parse(text).holds(lambda field: values_at([item], field)[0])


def test_names_and_lists():
    item = {"a": {"b c": 1, "d.e": "x"}, "tags": ["new", 3, True], "and": 1, 'q"': 2}
    for text, expected in {
        'a."b c" = 1': True,
        '"a.b c" = 1': False,
        "a.`d.e` = 'x'": True,
        "'new' IN tags": True,
        "array_has(tags, 'new')": True,
        "'old' NOT IN tags": True,
        "NOT array_has(tags, 'old')": True,
        "3 IN tags AND true IN tags": True,
        "1 IN tags": False,  # true is not 1
        "'new' IN a": False,
        '"and" = 1': True,
        '"q""" = 2': True,
        "a IS NOT NULL": True,
    }.items():
        assert is_true(text, item) is expected, text
    assert quoted(("a", "b c", "and", 'q"')) == 'a."b c"."and"."q"""'


def test_the_same_as_json():
    for text, value in [
        ("price < 10", {"field": "price", "op": "<", "value": 10}),
        ("a.b <> 'x'", {"field": "a.b", "op": "<>", "value": "x"}),
        ('"a.b" = true', {"field": ["a.b"], "op": "=", "value": True}),
        ("x BETWEEN 1 AND 2", {"field": "x", "op": "between", "value": [1, 2]}),
        ("x NOT IN (1)", {"field": "x", "op": "NOT IN", "value": [1]}),
        ("x IS NOT NULL", {"field": "x", "op": "is not null"}),
        ("'g' IN labels", {"field": "labels", "op": "has", "value": "g"}),
        ("x > date '2026-01-31'", {"field": "x", "op": ">", "value": {"date": "2026-01-31"}}),
        (
            "NOT (sold OR x = 1 AND y = 2)",
            {
                "not": {
                    "or": [
                        {"field": "sold", "op": "=", "value": True},
                        {
                            "and": [
                                {"field": "x", "op": "=", "value": 1},
                                {"field": "y", "op": "=", "value": 2},
                            ]
                        },
                    ]
                }
            },
        ),
    ]:
        assert Filter.parse(json.loads(json.dumps(value))) == Filter.parse(text)
    assert hash(Filter.parse("x = 1")) == hash(Filter.parse(" x=1 "))
    assert Filter.parse("x = 1") != Filter.parse("x = true")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "where: at character 1, near '': it is empty; pass a condition such as price < 10."),
        ("price <", "at character 8, near 'price <': the end is no value; write a number"),
        ("x = NULL", "'NULL' is no value; write IS NULL or IS NOT NULL."),
        ("a = b", "a is compared with the field 'b'; compare it with a value"),
        ("x = 'open", 'at character 5, near "x = \'open": a text has no end'),
        ("x ? 3", "at character 3, near 'x ? 3': '? 3' cannot be read"),
        ("1x = 3", "'1x = 3' cannot be read"),
        ("(x = 1", "the end stands where ) is wanted"),
        ("x = 1)", "')' is not expected; join conditions by AND or OR."),
        ("x = 1 y = 2", "at character 7"),
        ("x IN ()", "')' is no value"),
        ("x IN (1, 'a')", "values of one kind are compared, number and string came"),
        ("x BETWEEN 1 AND 'a'", "number and string came"),
        ("x LIKE 5", "LIKE takes a 'text', a number came"),
        ("x < true", "booleans are compared by = and !=, < came"),
        ("x NOT 5", "'5' follows NOT"),
        ("NOT", "the end is no value"),
        ("x = date '2026-02-30'", "date '2026-02-30' is no such value; write date '2026-01-31'"),
        ("x = date '2026-01-30T12:00'", "is no such value"),
        ("x = 1e999", "'1e999' is no value"),
        ("x = " + "9" * 101, "is no value"),
        ("x. = 1", "'=' is no field"),
        ("3", "the end stands where IN is wanted"),
        ("x" * 100_001, "100001 characters came, more than 100000"),
        ("(" * 51 + "x" + ")" * 51, "more than 50 parentheses are open"),
        ("x AND " * 100 + "x", "101 comparisons came, more than 100; use IN"),
        ("x IN (" + "1," * 10_000 + "1)", "IN takes at most 10000 values, 10001 came"),
        (3, "where=3 is no filter; pass text such as"),
        ({}, "it is none of the forms there are"),
        ({"and": []}, "it is none of the forms there are"),
        ({"field": "x", "op": "~", "value": 1}, "op is one of = != <"),
        ({"field": "x", "op": 1, "value": 1}, "op is one of"),
        ({"field": 3, "op": "=", "value": 1}, "field is a name"),
        ({"field": [], "op": "=", "value": 1}, "field is a name"),
        ({"field": "x", "op": "=", "value": None}, "None is no value"),
        ({"field": "x", "op": "=", "value": float("nan")}, "nan is no value"),
        ({"field": "x", "op": "=", "value": 10**400}, "is no value"),
        ({"field": "x", "op": "=", "value": {"date": 3}}, "is no value"),
        ({"field": "x", "op": "in", "value": 3}, "in takes a list value"),
        ({"field": "x", "op": "in", "value": []}, "0 values came for in"),
        ({"field": "x", "op": "between", "value": [1]}, "1 values came for between"),
        ({"field": "x", "op": "is null", "value": 3}, "is null takes no value"),
        ({"field": "x", "op": "=", "value": 1, "more": 2}, "it is none of the forms"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_errors_say_where_and_what(text, problem):
    with pytest.raises(InputError) as caught:
        Filter.parse(text)
    assert problem in str(caught.value)


def test_deep_json_is_refused():
    deep = {"field": "x", "op": "=", "value": 1}
    for _ in range(100_000):
        deep = {"not": deep}
    with pytest.raises(InputError, match="more than 50 levels"):
        Filter.parse(deep)
    with pytest.raises(InputError, match="too many parts"):
        Filter.parse({"or": [{"field": "x", "op": "=", "value": 1}] * 2000})


@given(st.text("abx'\"()=<>!,.%_ \n1-", max_size=60))
@machine_settings(300, 1)
def test_any_text_is_read_or_refused(text):
    with suppress(InputError):
        Filter.parse(text)


def test_like_takes_no_long_time():
    start = time.perf_counter()
    assert not like("%a" * 40 + "%b")("a" * 20_000)
    assert like("%a" * 40 + "%")("a" * 20_000)
    assert time.perf_counter() - start < 1


@given(st.text("ab%_\n", max_size=8), st.text("ab\n", max_size=8))
@machine_settings(300, 1)
def test_like_against_a_twin(pattern, text):
    def twin(p, t):
        if not p:
            return not t
        if p[0] == "%":
            return twin(p[1:], t) or (bool(t) and twin(p, t[1:]))
        return bool(t) and p[0] in ("_", t[0]) and twin(p[1:], t[1:])

    assert like(pattern)(text) == twin(pattern, text)


def test_dates():
    day = 86_400_000_000
    assert microseconds("1970-01-02") == microseconds("1970-01-02T00:00Z") == day
    assert microseconds("1970-01-01T00:00:00.000001") == 1
    assert microseconds("0001-01-01T00:00+23:59") < 0
    for text in (
        "1970-02-30",
        "1970",
        "19700102",
        "1970-01-02T25:00",
        "x1970-01-02",
        "1970-01-02\n",
    ):
        assert microseconds(text) is None


# ------------------------------------------------------------------------------- against a twin

OPERATORS = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt}
OPERATORS |= {"<=": operator.le, ">=": operator.ge}
NAMES = ("n", "s", "b", "d", "l", "m")
scalars = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1]),
    st.sampled_from([-1.5, 0.0, 2.5, 1e300]),
    st.sampled_from(["", "a", "ab", "2026-01-31", "2026-01-31T12:00:00Z", "2026-02-30"]),
    st.booleans(),
)
whole = st.one_of(st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, 2**63 - 1]))
items = st.fixed_dictionaries(
    {},
    optional={
        "n": st.none() | whole,
        "s": st.sampled_from(["", "a", "ab", "b"]),
        "b": st.booleans(),
        "d": st.sampled_from(["2026-01-31", "2026-01-31T12:00:00Z", "2025-01-01"]),
        "l": st.lists(st.sampled_from(["a", 1, True, 2.5]), max_size=3),
        "m": st.one_of(st.none(), scalars, st.just({"x": 1}), st.just([1])),
    },
)


@st.composite
def comparisons(draw):
    """A comparison: its text, and its three-valued twin on an item."""
    name = draw(st.sampled_from(NAMES))
    kind = draw(st.sampled_from(["null", "list", "between", "in", "like", "compare", "compare"]))
    if kind == "null":
        op = draw(st.sampled_from(["IS NULL", "IS NOT NULL"]))
        return f"{name} {op}", lambda item: (item.get(name) is None) == (op == "IS NULL")
    value = draw(scalars)
    if kind == "list":
        return f"{said(value)} IN {name}", lambda item: member(item.get(name), value)
    if kind == "like":
        pattern = draw(st.sampled_from(["a%", "%b", "_", "%"]))
        return f"{name} LIKE '{pattern}'", lambda item: text_like(item.get(name), pattern)
    if kind == "in":
        same = [
            value,
            *draw(st.lists(scalars.filter(lambda v: type(v) is type(value)), max_size=2)),
        ]
        if isinstance(value, bool):
            same = ["a"]
        text = ", ".join(map(said, same))
        return f"{name} IN ({text})", lambda item: either(
            *(compared(item.get(name), "=", each) for each in same)
        )
    if kind == "between" and not isinstance(value, bool):
        other = draw(scalars.filter(lambda v: type(v) is type(value)))
        return f"{name} BETWEEN {said(value)} AND {said(other)}", lambda item: both(
            compared(item.get(name), ">=", value), compared(item.get(name), "<=", other)
        )
    if draw(st.booleans()) and kind == "compare":
        day = draw(st.sampled_from(["2026-01-31", "2026-01-31T12:00:00", "2025-06-01"]))
        op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
        return f"{name} {op} timestamp '{day}'", lambda item: dated(item.get(name), op, day)
    ops = ["=", "!="] if isinstance(value, bool) else ["=", "!=", "<", "<=", ">", ">="]
    op = draw(st.sampled_from(ops))
    return f"{name} {op} {said(value)}", lambda item: compared(item.get(name), op, value)


def said(value):
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else repr(value)


def compared(a, op, b):
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (a, b))
    if a is None or not (numbers or type(a) is type(b)):
        return None
    return OPERATORS[op](a, b)


def dated(a, op, day):
    found = {"2026-01-31": 24, "2026-01-31T12:00:00Z": 36, "2025-01-01": 0}
    found |= {"2026-01-31T12:00:00": 36, "2025-06-01": 1}
    return compared(found.get(a) if isinstance(a, str) else None, op, found[day])


def member(values, value):
    if not isinstance(values, list):
        return None
    return any(compared(each, "=", value) for each in values)


def text_like(text, pattern):
    return like(pattern)(text) if isinstance(text, str) else None


def both(*values):
    return False if False in values else None if None in values else True


def either(*values):
    return True if True in values else None if None in values else False


def opposite(value):
    return None if value is None else not value


def join(word, twin):
    def joined(parts):
        (a, left), (b, right) = parts
        return f"({a}) {word} ({b})", lambda item: twin(left(item), right(item))

    return joined


trees = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(join("AND", both)),
        st.tuples(inner, inner).map(join("or", either)),
        inner.map(lambda part: (f"NOT ({part[0]})", lambda item: opposite(part[1](item)))),
    ),
    max_leaves=6,
)


@given(trees, st.lists(items, min_size=1, max_size=6))
@machine_settings(200, 1)
def test_filters_against_a_three_valued_twin(tree, some):
    text, twin = tree
    for item in some:
        assert is_true(text, item) is (twin(item) is True), (text, item)


@given(comparisons(), st.lists(items, min_size=1, max_size=30), st.integers(0, 30), st.data())
@machine_settings(200, 1)
def test_columns_against_values(comparison, some, cut, data):
    for condition in Filter.parse(comparison[0]).conditions():
        values = values_at(some, condition.field)
        column = Column()
        column.grow(cut := min(cut, len(some)))
        column.put(np.arange(cut), values[:cut])
        column.grow(len(some))
        column.put(np.arange(cut, len(some)), values[cut:])
        rounded = any(isinstance(value, float) for value in values)  # then all are float64
        if rounded and condition.kind == "number":
            values = [float(v) if type(v) is int else v for v in values]
            condition = condition._replace(values=tuple(map(float, condition.values)))
        true = [condition.holds(value) is True for value in values]
        start = data.draw(st.integers(0, len(some)))
        assert column.mask(condition, start, len(some)).tolist() == true[start:]
        kept = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=len(some))))
        kept = kept[kept < len(some)]
        column.keep(kept)
        assert column.mask(condition, 0, len(kept)).tolist() == [true[i] for i in kept]


def test_whole_numbers_are_exact():
    column = Column(4)
    column.put(np.arange(4), [2**53, 2**53 + 1, -(2**63), 2**63 - 1])
    for op, value, expected in [
        ("=", 2**53 + 1, [0, 1, 0, 0]),
        ("<", 2.0**53 + 2, [1, 1, 1, 0]),
        (">", 2**62, [0, 0, 0, 1]),
        ("<", 2**64, [1, 1, 1, 1]),
        (">=", -(10**30), [1, 1, 1, 1]),
        ("<", 0.5, [0, 0, 1, 0]),
        ("=", 0.5, [0, 0, 0, 0]),
        ("!=", 0.5, [1, 1, 1, 1]),
    ]:
        condition = Condition(("n",), op, "number", (value,))
        assert column.mask(condition, 0, 4).tolist() == [bool(each) for each in expected]
    among = Condition(("n",), "in", "number", (2**53 + 1, 10**30, 0.5, *range(20)))
    assert column.mask(among, 0, 4).tolist() == [False, True, False, False]


def test_numbers_of_any_length_are_compared_as_floats():
    column = Column(3)
    column.put(np.arange(3), [2**64 - 1, -(10**400), float("nan")])
    assert column.mask(Condition(("n",), ">", "number", (0,)), 0, 3).tolist() == [1, 0, 0]
    assert column.mask(Condition(("n",), "<", "number", (0,)), 0, 3).tolist() == [0, 1, 0]
    assert column.mask(Condition(("n",), "is null", "null", ()), 0, 3).tolist() == [0, 0, 1]
