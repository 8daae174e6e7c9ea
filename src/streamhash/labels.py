"""Labels of any type: checked, and turned into small integers.

A label is anything that compares equal to itself: a number, a string, a date. Several labels an
instance come as a 0/1 matrix, one column a class. Two instances are *similar* when their labels
are equal or, with several labels, when they share at least one: the one rule for learning and for
evaluation alike.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError, shown
from streamhash.sparse import check_sparse

LARGEST = 2**63 - 1  # label of an item that is a whole number, above or below 0
LONGEST = 1000  # characters of an item's id or label
MOST_LABELS = 1000  # of an item
LISTS = (list, tuple, set, frozenset, np.ndarray)  # what several labels of an item come in

ItemLabel = int | str | tuple[int | str, ...] | None  # of a stored item


def as_numpy(values: Any) -> Any:
    """Bring a torch tensor of any device and precision to NumPy; leave all else as it is."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        tensor = values.detach().cpu()
        return (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    return values


def check_labels(
    labels: Any, n: int, *, place: str, name: str = "y", rows: str = "rows of X"
) -> NDArray[Any]:
    """Return labels as an array (n,), or a 0/1 matrix (n, classes) of uint8; say what is wrong.

    ``place``, ``name`` and ``rows`` are how an error calls the caller, the argument and what each
    label belongs to.
    """
    array = _as_array(labels, f"{place}: {name}")
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            f"{place}: {name} came as a column of shape {array.shape} and is read as labels.",
            _column_warning(),
            stacklevel=4,
        )
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise InputError(
            f"{place}: {name} should be a 1d array of labels or a 0/1 matrix with one column a "
            f"class, but came with shape {array.shape}."
        )
    if len(array) != n:
        raise InputError(
            f"{place}: {name} has {len(array)} labels for {n} {rows}; pass one label each."
        )
    _refuse_missing(array, f"{place}: {name}")
    if array.ndim == 1:
        return array
    if not np.isin(array, (0, 1)).all():
        raise InputError(
            f"{place}: {name} with two dimensions must hold only 0 and 1, one column a class, but "
            "came with other values; pass single labels as a 1d array."
        )
    return array.astype(np.uint8)


def check_item_labels(y: Any, n: int, *, place: str) -> list[ItemLabel]:
    """Return the labels of n stored items: whole numbers or strings, None for an item without.

    Several labels of an item come as a list, and are returned as a tuple, sorted, each once; an
    empty list is no label. An array of two dimensions is a 0/1 matrix with one column a class: its
    labels are the numbers of the columns, those of a data frame their names.

    This is for collections, where items may wait for their labels; ``check_labels`` is for
    learning and evaluation, where every row has one. ``y`` may be None: no item has a label.

    >>> check_item_labels([3, ["wheat", "grain"], None], 3, place="add")
    [3, ('grain', 'wheat'), None]
    >>> check_item_labels(np.array([[0, 1, 1], [1, 0, 0]]), 2, place="add")
    [(1, 2), (0,)]
    """
    if y is None:
        return [None] * n
    values = (
        y.to_pylist() if hasattr(y, "to_pylist") else as_numpy(y)
    )  # Arrow's values are no others'
    if getattr(values, "ndim", 1) == 2:
        names = [*getattr(values, "columns", range(values.shape[1]))]
        values = check_labels(values, n, place=place, rows="items")
        values = label_lists(values, names) if values.ndim == 2 else values
    values = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise InputError(f"{place}: y={y!r} is not a list of labels; pass one label an item.")
    labels = [
        _item_labels(value, place) if isinstance(value, LISTS) else _item_label(value, place)
        for value in values
    ]
    if len(labels) != n:
        raise InputError(f"{place}: {n} items and {len(labels)} labels came; pass one an item.")
    texts = [each for label in labels for each in each_label(label) if isinstance(each, str)]
    check_texts(texts, place=place, what="y holds")
    return labels


def each_label(label: Any) -> tuple[Any, ...]:
    """Return the labels of an item, none, one or several, as a tuple.

    >>> each_label(None), each_label(3), each_label(("grain", "wheat"))
    ((), (3,), ('grain', 'wheat'))
    """
    return label if isinstance(label, tuple) else () if label is None else (label,)


def share_label(label: Any, others: Iterable[Any]) -> list[bool]:
    """Tell which of some items have a label in common with an item.

    >>> share_label(("grain", "wheat"), [("wheat",), "corn", None])
    [True, False, False]
    """
    own = {*each_label(label)}
    return [
        not own.isdisjoint(other) if isinstance(other, tuple) else other in own for other in others
    ]


def label_lists(Y: NDArray[Any], names: Sequence[Any] | None = None) -> list[list[Any]]:
    """Return the labels of each row of a 0/1 matrix: the numbers of its columns, or their names.

    >>> label_lists(np.array([[0, 1, 1], [0, 0, 0]]))
    [[1, 2], []]
    """
    lists: list[list[Any]] = [[] for _ in Y]
    for row, column in zip(*(index.tolist() for index in np.nonzero(Y)), strict=True):
        lists[row].append(column if names is None else names[column])
    return lists


def check_texts(texts: list[str], *, place: str, what: str) -> None:
    """Refuse strings of items that are too long, or that no file and no answer can say."""
    if max(map(len, texts), default=0) > LONGEST:
        n = max(map(len, texts))
        raise InputError(
            f"{place}: {what} a string of {n} characters; pass strings of at most {LONGEST}."
        )
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{place}: {what} a string with half of a surrogate pair; pass text that UTF-8 can say."
        ) from error


def _item_labels(values: Any, place: str) -> tuple[int | str, ...] | None:
    """Return several labels of an item as a tuple, None for an empty list."""
    values = values.ravel().tolist() if isinstance(values, np.ndarray) else values
    given = [_item_label(value, place) for value in values]
    labels = {each for each in given if each is not None}
    if None in given:
        raise InputError(
            f"{place}: y holds {shown(values)}, with None among its labels; leave it out."
        )
    if len(labels) < len(given) and labels <= {0, 1}:
        raise InputError(
            f"{place}: y holds {shown(values)}, which looks like a row of a 0/1 matrix; pass a "
            "matrix as an array, and lists of the labels themselves."
        )
    if len(labels) > MOST_LABELS:
        raise InputError(
            f"{place}: y holds {len(labels)} labels of an item; pass at most {MOST_LABELS}."
        )
    return tuple(sorted(labels, key=lambda label: (isinstance(label, str), label))) or None


def _item_label(value: Any, place: str) -> int | str | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value != value:  # a gap, as pandas writes it
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise InputError(
            f"{place}: y holds a whole number of more than 64 bits; pass such a label as a string."
        )
    if value is None or (isinstance(value, int | str) and not isinstance(value, bool)):
        return value
    raise InputError(
        f"{place}: y holds {shown(value)}; pass one whole number or one string an item, or a list "
        "of them, None for no label."
    )


def _as_array(labels: Any, argument: str) -> NDArray[Any]:
    labels = as_numpy(labels)
    if hasattr(labels, "toarray"):  # a sparse 0/1 matrix
        check_sparse(labels, place=argument)
        labels = labels.toarray()
    if isinstance(labels, list | tuple) and len({isinstance(item, str) for item in labels}) == 2:
        return np.fromiter(labels, object, len(labels))  # or NumPy would turn 1 into "1"
    try:
        return np.asarray(labels)
    except ValueError as error:
        raise InputError(
            f"{argument} has rows of unequal length; pass one label a row, or a 0/1 matrix with "
            "one column a class."
        ) from error


def _column_warning() -> type[Warning]:
    from sklearn.exceptions import DataConversionWarning  # slow to import, rarely needed

    kind: type[Warning] = DataConversionWarning
    return kind


def _refuse_missing(labels: NDArray[Any], argument: str) -> None:
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    elif labels.dtype.kind in "mM":
        missing = np.isnat(labels)
    elif labels.dtype == object:
        missing = np.array([_is_missing(item) for item in labels.ravel()], dtype=bool)
    else:
        return
    if missing.any():
        first = int(np.argmax(missing.reshape(len(labels), -1).any(axis=1)))
        raise InputError(
            f"{argument} has {int(missing.sum())} missing labels (None, NaN or inf), the first in "
            f"row {first}; leave out rows without a label."
        )


def _is_missing(label: Any) -> bool:
    """Whether a label is None or, like NaN and pandas' NA, not equal to itself."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def group(labels: NDArray[Any]) -> NDArray[np.int32]:
    """Number the distinct labels of a stage: equal labels get equal numbers.

    >>> group(np.array(["cat", "dog", "cat"]))
    array([0, 1, 0], dtype=int32)
    """
    if labels.dtype == object:  # labels of several types cannot be sorted, only compared
        return number(labels, {})
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def number(labels: Iterable[Any], known: dict[Any, int]) -> NDArray[np.int32]:
    """Return the number of each label; those not ``known`` get the next ones, and become so."""
    try:
        return np.array([known.setdefault(label, len(known)) for label in labels], np.int32)
    except TypeError as error:
        raise InputError(
            f"labels of a kind that cannot be compared ({error}); pass numbers, strings or other "
            "plain values."
        ) from error


def neighbours(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of two sets of labels (n,), (m,) are equal, or share a class, (n, m).

    >>> neighbours(np.array([1, 2]), np.array([2, 2, 1]))
    array([[False, False,  True],
           [ True,  True, False]])
    """
    pairs: NDArray[np.bool_]
    if first.ndim == 1:
        pairs = first[:, None] == second[None]
    else:
        first, second = same_width(first, second)
        pairs = first.astype(np.float32, copy=False) @ second.T.astype(np.float32, copy=False) > 0
    return pairs


def same_width(*labels: NDArray[Any]) -> list[NDArray[Any]]:
    """Give matrices of labels as many columns: a class that one lacks is 0 in all its rows."""
    if len({Y.shape[1:] for Y in labels}) == 1:
        return [*labels]
    width = max(Y.shape[1] for Y in labels)
    return [np.pad(Y, ((0, 0), (0, width - Y.shape[1]))) for Y in labels]


def with_labels(labels: NDArray[Any], more: list[Any]) -> NDArray[Any]:
    """Return labels (n,) and some plain values behind them, each equal to what it was.

    >>> with_labels(np.array([3, 1]), [2])
    array([3, 1, 2])
    >>> with_labels(np.array([3, 1]), ["2"])
    array([3, 1, '2'], dtype=object)
    """
    values = [*labels.tolist(), *more]
    if labels.dtype != object and all(isinstance(value, int | float | str) for value in more):
        array = np.array(values)
        if array.tolist() == values:
            return array
    return np.fromiter(values, object, len(values))
