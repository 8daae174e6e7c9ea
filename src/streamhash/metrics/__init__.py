"""Retrieval quality of codes: how well Hamming distance finds the items that are similar.

An item is *relevant* to a query when it has the query's label or, with several labels each, shares
one of them. Every metric here comes from a ranking of the database by Hamming distance. Defaults
are those of the online hashing papers; ``docs/evaluation.md`` lists every convention.
"""

from streamhash.metrics import retrieval
from streamhash.metrics.retrieval import *  # noqa: F403

__all__ = retrieval.__all__
