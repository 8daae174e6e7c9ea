"""Data for experiments: sets by name, the field's splits and preparation, and made-up streams.

>>> from streamhash.lab.datasets import load_data, pieces, split
>>> digits = load_data("digits")
>>> parts = split(digits.y, queries_per_class=10, stream=1000, random_state=0)
>>> stream = pieces(digits.X[parts.stream], digits.y[parts.stream], size=250)
>>> [X.shape for X, y in stream]
[(250, 64), (250, 64), (250, 64), (250, 64)]
"""

from streamhash.lab.datasets.cards import Card, available, cache_folder, is_named
from streamhash.lab.datasets.sets import (
    DataSet,
    Request,
    Split,
    centre_unit,
    fetch,
    load_data,
    mean_row,
    pieces,
    split,
    split_unseen,
    unit_rows,
)
from streamhash.lab.datasets.streams import PlacesLikeStream, SyntheticStream

__all__ = [
    "Card",
    "DataSet",
    "PlacesLikeStream",
    "Request",
    "Split",
    "SyntheticStream",
    "available",
    "cache_folder",
    "centre_unit",
    "fetch",
    "is_named",
    "load_data",
    "mean_row",
    "pieces",
    "split",
    "split_unseen",
    "unit_rows",
]
