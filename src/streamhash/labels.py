"""Labels of any type: checked, and turned into small integers.

A label is anything that compares equal to itself: a number, a string, a date. Several labels an
instance come as a 0/1 matrix, one column a class. Two instances are *similar* when their labels
are equal or, with several labels, when they share at least one: the one rule for learning and for
evaluation alike.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError

__all__ = ["as_numpy", "check_labels", "group"]


def as_numpy(values: Any) -> Any:
    """Bring a torch tensor of any device and precision to NumPy; leave all else as it is."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        tensor = values.detach().cpu()
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    return values


def check_labels(y: Any, n: int, *, place: str) -> NDArray[Any]:
    """Return labels as an array (n,), or a 0/1 matrix (n, classes) of uint8; say what is wrong."""
    labels = as_numpy(y)
    if hasattr(labels, "toarray"):  # a sparse 0/1 matrix
        labels = labels.toarray()
    try:
        labels = np.asarray(labels)
    except ValueError as error:  # rows of unequal length
        raise InputError(
            f"{place}: y has rows of unequal length; pass one label a row, or a 0/1 matrix with "
            "one column a class."
        ) from error
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            f"{place}: y came as a column of shape {labels.shape} and is read as {n} labels.",
            _column_warning(),
            stacklevel=4,
        )
        labels = labels[:, 0]
    if labels.ndim not in (1, 2):
        raise InputError(
            f"{place}: y should be a 1d array of labels or a 0/1 matrix with one column a class, "
            f"but came with shape {labels.shape}."
        )
    if len(labels) != n:
        raise InputError(
            f"{place}: X has {n} rows and y has {len(labels)} labels; pass one label a row."
        )
    _refuse_missing(labels, place)
    if labels.ndim == 1:
        return labels
    if not np.isin(labels, (0, 1)).all():
        raise InputError(
            f"{place}: a 2-d y must hold only 0 and 1, one column a class, but came with "
            f"other values; pass single labels as a 1d array."
        )
    return labels.astype(np.uint8)


def _column_warning() -> type[Warning]:
    from sklearn.exceptions import DataConversionWarning  # slow to import, rarely needed

    kind: type[Warning] = DataConversionWarning
    return kind


def _refuse_missing(labels: NDArray[Any], place: str) -> None:
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    elif labels.dtype.kind in "mM":
        missing = np.isnat(labels)
    elif labels.dtype == object:
        missing = np.array([item is None or item != item for item in labels.ravel()], dtype=bool)
    else:
        return
    if missing.any():
        raise InputError(
            f"{place}: y has {int(missing.sum())} missing labels (None, NaN or inf), the first "
            f"in row {int(np.argmax(missing.reshape(len(labels), -1).any(axis=1)))}; "
            "leave out rows without a label."
        )


def group(labels: NDArray[Any]) -> NDArray[np.int32]:
    """Number the distinct labels of a stage: equal labels get equal numbers.

    >>> group(np.array(["cat", "dog", "cat"]))
    array([0, 1, 0], dtype=int32)
    """
    if labels.dtype == object:  # labels of several types cannot be sorted, only compared
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.int32)
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)
