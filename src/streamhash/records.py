"""What a collection tells of its items and its past: plain tuples, the same here and over HTTP.

They need NumPy only, so that ``streamhash.Client`` does too.
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from streamhash.codes import Codes


class Item(NamedTuple):
    """What a collection holds of an item."""

    id: Any
    vector: NDArray[Any]
    label: Any
    metadata: Any
    code: Codes | None  # by the model that serves; None while there is none


class History(NamedTuple):
    """What has happened, the oldest first."""

    refreshes: list[dict[str, Any]]
    drifts: list[dict[str, Any]]
    series: list[dict[str, float]]  # quality and size over time
