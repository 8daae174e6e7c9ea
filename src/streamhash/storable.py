"""What may be stored, so that all that is stored can be answered: one rule for all.

Metadata are a dict an item, or None; a table of pandas, polars or Arrow is a dict a row. As JSON
they are at most a megabyte and 100 levels deep, with whole numbers of 64 bits, finite numbers, and
strings that UTF-8 can say (no half of a surrogate pair). Ids and labels follow
``check_item_labels`` and ``check_new_ids``.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError, shown
from streamhash.frames import column_names, records, with_vectors
from streamhash.labels import LARGEST, as_numpy, check_texts
from streamhash.sparse import check_sparse

MOST_BYTES = 2**20  # of an item's metadata, as JSON
DEEPEST = 100  # levels of metadata
LONG_NUMBER = re.compile(r"\d{19}")  # only such ones can be too large


class MetadataTexts(list[str | None]):
    """The JSON of each item's metadata, which has been checked already."""


def check_vectors(X: Any, width: int | None, kind: str, *, place: str) -> NDArray[Any]:
    """Return vectors as rows of float16 or float32, finite and as wide as the collection's."""
    if (
        type(X) is np.ndarray
        and (X.dtype, X.ndim) == (kind, 2)
        and X.shape[1] == width
        and X.flags.c_contiguous
        and np.isfinite(X).all()
    ):
        return X  # as most are
    if not isinstance(X, np.ndarray | list):
        try:
            X = with_vectors(as_numpy(X))
        except ValueError as error:
            raise InputError(f"{place}: {error}; pass the column or columns of vectors.") from error
    if hasattr(X, "toarray"):
        check_sparse(X, place=f"{place}: X")
    try:
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if rows.dtype.kind == "c":
            raise TypeError("complex numbers")
        if rows.dtype.kind not in "fiub":
            rows = rows.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{place}: X is not an array of numbers ({error}); pass one row of numbers an item."
        ) from error
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InputError(
            f"{place}: X came with shape {rows.shape}; pass a 2-d array, one row an item "
            "(X.reshape(1, -1) for a single one)."
        )
    if width is not None and rows.shape[1] != width:
        raise InputError(
            f"{place}: X has {rows.shape[1]} columns, the vectors of this collection have {width}; "
            "pass vectors of the same features."
        )
    with np.errstate(over="ignore"):  # what the type cannot hold is refused as infinite
        rows = rows.astype(kind, copy=False)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise InputError(
            f"{place}: row {int(np.argmin(finite))} of X has values that are NaN, infinite or too "
            f"large for {kind}; leave out or fill in such rows first."
        )
    return np.ascontiguousarray(rows)


def check_metadata(metadata: Any, n: int, *, place: str) -> MetadataTexts:
    """Return the JSON of the metadata of ``n`` items, None where there are none."""
    if metadata is None:
        return MetadataTexts([None] * n)
    if column_names(metadata) is not None:
        metadata = records(metadata)
    values = [*metadata] if isinstance(metadata, Iterable) else [metadata]
    if isinstance(metadata, dict | str) or len(values) != n:
        raise InputError(
            f"{place}: metadata came for {len(values)} of {n} items; pass a list with a dict (or "
            "None) an item, or a table with a row an item."
        )
    if isinstance(metadata, MetadataTexts):
        return metadata
    return MetadataTexts(metadata_text(value, place=place) for value in values)


def metadata_text(value: Any, *, place: str) -> str | None:
    """Return the JSON of one item's metadata, or say what is wrong with them.

    >>> metadata_text({"page": 12}, place="add")
    '{"page": 12}'
    >>> metadata_text({"page": float("nan")}, place="add")
    Traceback (most recent call last):
    streamhash.errors.InputError: add: metadata {'page': nan} is not JSON (Out of range float
    values are not JSON compliant...); pass dicts of plain values.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _refused(value, place, "is no dict")
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, sort_keys=True)
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise _refused(value, place, "has half of a surrogate pair in a string") from error
    except RecursionError as error:
        raise _refused(value, place, f"is more than {DEEPEST} levels deep") from error
    except (TypeError, ValueError) as error:
        raise _refused(value, place, f"is not JSON ({str(error)[:100]})") from error
    if size > MOST_BYTES:
        raise _refused(value, place, f"has {size} bytes of JSON, more than {MOST_BYTES}")
    if text.count("{") + text.count("[") > DEEPEST and _depth(value) > DEEPEST:
        raise _refused(value, place, f"is more than {DEEPEST} levels deep")
    if LONG_NUMBER.search(text) and not _numbers_fit(value):
        raise _refused(value, place, "has a whole number of more than 64 bits")
    return text


def check_new_ids(ids: NDArray[Any], *, place: str) -> None:
    """Refuse ids that ``check_ids`` takes, but that not every way in and out can say."""
    if ids.dtype == object:
        check_texts(ids.tolist(), place=place, what="ids hold")


def _depth(value: Any) -> int:
    """How many levels of dicts and lists a value has."""
    level, now = 0, [value]
    while now:
        level += 1
        inner = [each for each in now if isinstance(each, dict | list | tuple)]
        now = [part for each in inner for part in _parts(each)]
    return level - 1


def _numbers_fit(value: Any) -> bool:
    now = [value]
    while now:
        each = now.pop()
        if isinstance(each, dict | list | tuple):
            now.extend(_parts(each))
        elif isinstance(each, int) and not -LARGEST - 1 <= each <= 2 * LARGEST + 1:
            return False
    return True


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _refused(value: Any, place: str, reason: str) -> InputError:
    return InputError(f"{place}: metadata {shown(value)} {reason}; pass dicts of plain values.")
