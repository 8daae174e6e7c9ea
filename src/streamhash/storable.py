"""What may be stored beside vectors, so that all that is stored can be answered: one rule for all.

Metadata are a dict an item, or None; a table of pandas, polars or Arrow is a dict a row. As JSON
they are at most a megabyte and 100 levels deep, with whole numbers of 64 bits, finite numbers, and
strings that UTF-8 can say (no half of a surrogate pair). Ids and labels follow
``check_item_labels`` and ``check_new_ids``.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from streamhash.errors import InputError, shown
from streamhash.frames import column_names, records
from streamhash.labels import LARGEST, check_texts

MOST_BYTES = 2**20  # of an item's metadata, as JSON
DEEPEST = 100  # levels of metadata
LONG_NUMBER = re.compile(r"\d{19}")  # only such ones can be too large


class MetadataTexts(list[str | None]):
    """The JSON of each item's metadata, which has been checked already."""


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
