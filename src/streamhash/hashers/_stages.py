"""Stages that are too short for a method: told once."""

import logging

from streamhash.base import OnlineHasher

LOOKED_AT = 10  # stages, before it is told
ROWS_OF_A_CLASS = 2  # in a stage, at least
log = logging.getLogger("streamhash.hashers")


def tell_short_stages(model: OnlineHasher, n_classes: int) -> None:
    """Say after ten stages, and so once, that they had too few rows of each class so far."""
    mean_rows = model.n_samples_seen_ / LOOKED_AT
    if model.n_stages_ == LOOKED_AT and mean_rows < ROWS_OF_A_CLASS * n_classes:
        log.warning(
            "%s: stages were too short for %d classes, with a mean length of %.3g, and codes may "
            "be far worse for it; hand over pieces of about %d rows.",
            *(type(model).__name__, n_classes, mean_rows, max(model.batch_size, 2 * n_classes)),
        )
