"""Tables and columns of pandas, polars and Arrow: their vectors, and their rows as plain dicts.

They are known by their type, so none of the three is imported, or required.
"""

import math
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIBRARIES = ("pandas", "polars", "pyarrow")
NO_FEATURES = ("id", "label", "labels")  # columns that are never features


def is_of_library(value: Any) -> bool:
    """Whether a value is a table or a column of pandas, polars or Arrow."""
    return type(value).__module__.partition(".")[0] in LIBRARIES


def column_names(table: Any) -> list[str] | None:
    """Return the names of a table's columns; None of what is no table of the three libraries."""
    if not is_of_library(table):
        return None
    names = getattr(table, "column_names", getattr(table, "columns", None))
    return None if names is None else [str(name) for name in names]


def with_vectors(X: Any) -> Any:
    """Return a column of lists as a matrix (n, d); any other column or table as it is.

    A table of a single column of lists is that column. ValueError where one would have to guess.

    >>> import pandas
    >>> with_vectors(pandas.Series([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    if not is_of_library(X):
        return X
    names = column_names(X)
    if names is None:
        return _matrix(X, "X") if _holds_lists(X) else X
    lists = [name for name, column in _columns(X) if _holds_lists(column)]
    others = [name for name in names if name not in lists[:1]]
    if lists and not others:
        return _matrix(next(_columns(X))[1], lists[0])
    if lists:
        beside = ", ".join(map(repr, others[:5])) + " …" * (len(others) > 5)
        raise ValueError(f"X has the column of lists {lists[0]!r} beside {beside}")
    if wrong := [name for name in NO_FEATURES if name in names]:
        raise ValueError(f"X has the column {wrong[0]!r}, which is never a feature")
    return X


def records(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts of plain values: dates as ISO text, NaN and null as None.

    >>> import pandas
    >>> dates = pandas.to_datetime(["2026-01-02", None])
    >>> records(pandas.DataFrame({"page": [1, 2], "when": dates}))
    [{'page': 1, 'when': '2026-01-02T00:00:00'}, {'page': 2, 'when': None}]
    """
    columns = {name: [*map(plain_value, _values(column))] for name, column in _columns(table)}
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def plain_value(value: Any) -> Any:
    """Return a value as JSON has it: what is missing is None, times are ISO text.

    >>> plain_value(date(2026, 1, 2)), plain_value(float("nan")), plain_value(np.float32(0.5))
    ('2026-01-02', None, 0.5)
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return plain_value(value.tolist())
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, dict):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain_value(item) for item in value]
    if type(value).__name__ in ("NaTType", "NAType"):  # pandas' nothings
        return None
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value  # and the rule of metadata judges it


def _columns(table: Any) -> Iterator[tuple[str, Any]]:
    names = column_names(table) or []
    for i, name in enumerate(names):
        if hasattr(table, "iloc"):
            yield name, table.iloc[:, i]
        else:  # polars, Arrow
            yield name, table[names[i]]


def _values(column: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            values: list[Any] = getattr(column, method)()
            return values
    return [*column]


def _holds_lists(column: Any) -> bool:
    """Whether the first value that is there is a list."""
    kind = str(getattr(column, "dtype", getattr(column, "type", "object"))).lower()
    if kind != "object" and not any(word in kind for word in ("list", "array")):
        return False  # known by its type, and without a look at its values
    first = next((value for value in _values(column[:100]) if value is not None), None)
    return isinstance(first, list | tuple | np.ndarray)


def _matrix(column: Any, name: str) -> NDArray[Any]:
    arrow = {"zero_copy_only": False} if type(column).__name__.endswith("ListArray") else {}
    rows = column.to_numpy(**arrow)  # an object for each row, or a matrix already
    if rows.ndim == 2:
        return np.asarray(rows)
    lengths = {len(row) if isinstance(row, list | tuple | np.ndarray) else 0 for row in rows}
    if len(lengths) != 1:
        raise ValueError(f"{name} holds lists of {min(lengths)} to {max(lengths)} numbers")
    return np.array([*rows])
