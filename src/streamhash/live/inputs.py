"""What comes into a collection, checked before anything is done with it."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.labels import as_numpy

__all__ = ["check_labels", "check_metadata", "check_vectors", "from_json", "to_json"]


def check_vectors(X: Any, width: int | None, kind: str, *, place: str) -> NDArray[Any]:
    """Return vectors as rows of float16 or float32, finite and as wide as the collection's."""
    X = as_numpy(X)
    try:
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if rows.dtype.kind not in "fiub":
            rows = rows.astype(np.float64)
    except (TypeError, ValueError) as error:
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


def check_labels(y: Any, n: int, *, place: str) -> list[Any]:
    """Return a label for each item: a whole number or a string, or None for no label."""
    if y is None:
        return [None] * n
    values = as_numpy(y)
    values = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise InputError(f"{place}: y={y!r} is not a list of labels; pass one label an item.")
    labels = [_label(value, place) for value in values]
    if len(labels) != n:
        raise InputError(f"{place}: {n} items and {len(labels)} labels came; pass one an item.")
    return labels


def _label(value: Any, place: str) -> Any:
    if isinstance(value, float) and value != value:  # a gap, as pandas writes it
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, int | str) and not isinstance(value, bool)):
        return value
    raise InputError(
        f"{place}: y holds {value!r}; pass one whole number or one string an item, None for no "
        "label."
    )


def check_metadata(metadata: Any, n: int, *, place: str) -> list[str | None]:
    """Return the JSON of each item's metadata, None where there is none."""
    if metadata is None:
        return [None] * n
    values = [*metadata] if isinstance(metadata, Iterable) else [metadata]
    if isinstance(metadata, dict | str) or len(values) != n:
        raise InputError(
            f"{place}: metadata came for {len(values)} of {n} items; pass a list with a dict (or "
            "None) an item."
        )
    return [to_json(value, place) for value in values]


def to_json(value: Any, place: str) -> str | None:
    """Return JSON, None for None."""
    if value is None:
        return None
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{place}: metadata {value!r} is not JSON ({error}); pass dicts of plain values."
        ) from error


def from_json(texts: Sequence[str | None]) -> list[Any]:
    """Undo ``to_json``; of equal texts only one is read."""
    known: dict[str | None, Any] = {None: None}
    for text in texts:
        if text not in known:
            known[text] = json.loads(text)  # type: ignore[arg-type]
    return [known[text] for text in texts]
