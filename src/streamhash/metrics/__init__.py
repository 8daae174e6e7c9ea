"""Retrieval quality of codes: how well Hamming distance finds the items that are similar.

An item is *relevant* to a query when it has the query's label or, with several labels each, shares
one of them. Every metric here comes from a ranking of the database by Hamming distance. Defaults
are those of the online hashing papers; ``docs/evaluation.md`` lists every convention.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
