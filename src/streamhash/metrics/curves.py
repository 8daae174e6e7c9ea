"""Quality over the stream, in one number."""

import numpy as np
from numpy.typing import ArrayLike

from streamhash.errors import InputError
from streamhash.parameters import Choice, check_parameters

__all__ = ["area_under_curve"]


def area_under_curve(instances: ArrayLike, values: ArrayLike, *, method: str = "mean") -> float:
    """Area under a metric's ``values`` at checkpoints, after so many ``instances`` of the stream.

    "mean", as in the papers' code, is the plain mean over the checkpoints, however they are
    spaced. "trapezoid" is the area under the straight lines between them, divided by the range of
    ``instances``: it does not depend on the spacing.

    >>> area_under_curve([100, 200, 400], [0.25, 0.5, 0.75])
    0.5
    >>> area_under_curve([100, 200, 400], [0.25, 0.5, 0.75], method="trapezoid")
    0.5416...
    """
    check_parameters(
        "area_under_curve", {"method": method}, {"method": Choice("mean", "trapezoid")}
    )
    x, y = np.asarray(instances, np.float64), np.asarray(values, np.float64)
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise InputError(
            f"area_under_curve: instances of shape {x.shape} and values of shape {y.shape} came; "
            "pass one value for each of at least one checkpoint."
        )
    if not np.isfinite(x).all() or not np.isfinite(y).all():
        raise InputError(
            "area_under_curve: instances or values have NaN or infinity; leave out checkpoints "
            "without a value."
        )
    if (np.diff(x) <= 0).any():
        raise InputError(
            "area_under_curve: instances must rise from checkpoint to checkpoint; sort them, and "
            "keep one value for each."
        )
    if method == "mean":
        return float(y.mean())
    if len(x) == 1:
        raise InputError(
            "area_under_curve: method='trapezoid' needs two checkpoints, but one came; "
            "pass method='mean'."
        )
    return float(np.trapezoid(y, x) / (x[-1] - x[0]))
