"""What files of named columns share: which column holds the labels, and labels from text."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError

__all__ = ["LABEL_NAMES", "as_labels", "choose_columns", "read_lines"]

LABEL_NAMES = ("label", "y")


def choose_columns(
    names: list[str], column: str | None, find_labels: bool, path: Path
) -> tuple[list[str], str | None]:
    """Return the names of the feature columns, in order, and that of the label column or None."""
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise InputError(
            f"read_table: {path} has several columns called {name!r}; give each its own name."
        )
    label = column
    if column is None and find_labels:
        label = next((name for name in LABEL_NAMES if name in names), None)
    if column is not None and column not in names:
        raise InputError(
            f"read_table: column={column!r} is not in {path}, which has {_listed(names)}; pass "
            "one of these."
        )
    features = [name for name in names if name != label]
    if not features:
        raise InputError(
            f"read_table: {path} has no columns beside {label!r}; save the features with the "
            "labels."
        )
    return features, label


def as_labels(values: Sequence[Any], path: Path) -> NDArray[Any]:
    """Return labels as an array, texts as whole numbers if all are; none may be missing."""
    for row, value in enumerate(values, start=1):
        if value is None or value == "":
            raise InputError(
                f"read_table: {path} has no label in row {row}; fill it in or drop the row."
            )
    try:
        numbers = [int(value) for value in values]
        # Texts such as 007 and floats such as 0.5 are not the number that int makes of them.
        whole = all(
            str(number) == str(value) for number, value in zip(numbers, values, strict=True)
        )
        return np.array(numbers, np.int64) if whole else np.array(values)
    except (ValueError, OverflowError, TypeError):
        return np.array(values)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a one-column text file, without quotes and blank lines at the end."""
    text = path.read_text(encoding="utf-8-sig").rstrip()
    return [line.strip().strip('"') for line in text.splitlines()]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
