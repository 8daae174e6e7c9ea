"""Retrieval quality of codes: how well Hamming distance finds the items that are similar.

An item is *relevant* to a query when it has the query's label or, with several labels each, shares
one of them. Every metric here comes from a ranking of the database by Hamming distance. Defaults
are those of the online hashing papers; ``docs/evaluation.md`` lists every convention.
"""

from streamhash.metrics.retrieval import Retrieval
from streamhash.metrics.scores import (
    RANKS,
    area_under_curve,
    evaluate,
    mean_average_precision,
    precision_at_ranks,
    precision_within_radius,
)

__all__ = [
    "RANKS",
    "Retrieval",
    "area_under_curve",
    "evaluate",
    "mean_average_precision",
    "precision_at_ranks",
    "precision_within_radius",
]
