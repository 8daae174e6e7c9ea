"""Learning from items as they come, and how well they were answered before that."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.errors import UnreachableError
from streamhash.live.directory import NO_LABEL
from streamhash.live.learner import Learner
from streamhash.live.view import View

__all__ = ["teach"]

NEIGHBOURS = 10  # labelled neighbours whose labels an answer is judged by
LOOKED_AT = 50  # neighbours that are looked at to find so many labelled ones


def teach(
    learner: Learner,
    view: View,
    rows: NDArray[Any],
    labels: list[Any],
    keys: NDArray[np.int64] | None,
) -> tuple[Learner | None, Codes | None]:
    """Return a learner that has learned from these rows, if there is anything to learn; and codes.

    Labelled rows ask for their neighbours first; ``keys`` are theirs, if they are there.
    """
    now = time.time()
    codes = None if view.model is None else view.model.transform(rows)
    known = [i for i, label in enumerate(labels) if label is not None]
    taught = known if learner.hasher_.needs_labels else [*range(len(rows))]
    if not taught:
        return None, codes
    learner = learner.copy()
    if codes is not None and known:
        own = None if keys is None else keys[known]
        precisions = _precisions(view, codes[known], [labels[i] for i in known], own)
        labelled = view.directory.n_labelled + len(known)
        learner.monitor_.answers(precisions, time=now, labelled=labelled)
    n_items = len(view.directory) + (0 if keys is not None else len(rows))
    learned = learner.learn(
        rows[taught].astype(np.float32),
        [labels[i] for i in taught],
        serving=view.model,
        n_items=n_items,
    )
    if learned and view.model is not None:
        gain = learner.gain_
        learner.monitor_.point(
            time=now,
            items=n_items,
            labelled=view.directory.n_labelled + len(known),
            model=view.number,
            precision=learner.monitor_.recent_,
            balance=learner.balance(view.model),
            gain=float("nan") if gain is None else gain,
        )
    return learner, codes


def _precisions(
    view: View, codes: Codes, labels: list[Any], own: NDArray[np.int64] | None
) -> NDArray[np.float64]:
    """Share of each query's nearest labelled neighbours that have its label; no item, none."""
    if view.index is None or len(view.directory) == 0:
        return np.empty(0)
    try:
        keys = view.index.glance(codes, min(LOOKED_AT, len(view.directory)))[1]
    except UnreachableError:
        return np.empty(0)  # answers that nobody gets are not judged
    numbers = np.full(keys.shape, NO_LABEL)
    there = view.directory.has(keys) if view.index.is_shared else keys >= 0
    numbers[there] = view.directory.listing.labels_of(keys[there])
    if own is not None:
        numbers[keys == own[:, None]] = -1
    precisions = []
    for row, label in zip(numbers, labels, strict=True):
        near = row[row >= 0][:NEIGHBOURS]
        if len(near):
            precisions.append((near == view.directory.label_number(label)).mean())
    return np.array(precisions)
