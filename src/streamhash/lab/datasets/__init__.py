"""Data: sets by name, a person's own files, the field's splits and preparation, and streams.

>>> from streamhash.lab.datasets import load_data, pieces, split
>>> digits = load_data("digits")
>>> parts = split(digits.y, queries_per_class=10, stream=1000)
>>> stream = pieces(digits.X[parts.stream], digits.y[parts.stream], size=250)
>>> [X.shape for X, y in stream]
[(250, 64), (250, 64), (250, 64), (250, 64)]
"""

from streamhash.files import read_table
from streamhash.lab.datasets.cards import Card
from streamhash.lab.datasets.download import fetch
from streamhash.lab.datasets.extract import extract_features
from streamhash.lab.datasets.folders import cache_folder
from streamhash.lab.datasets.normalise import centre_unit, mean_row, unit_rows
from streamhash.lab.datasets.places_like import PlacesLikeStream
from streamhash.lab.datasets.sets import DataSet, available, is_named, load_data
from streamhash.lab.datasets.splits import Split, split, split_unseen
from streamhash.lab.datasets.streams import pieces
from streamhash.lab.datasets.synthetic import SyntheticStream

__all__ = [
    "Card",
    "DataSet",
    "PlacesLikeStream",
    "Split",
    "SyntheticStream",
    "available",
    "cache_folder",
    "centre_unit",
    "extract_features",
    "fetch",
    "is_named",
    "load_data",
    "mean_row",
    "pieces",
    "read_table",
    "split",
    "split_unseen",
    "unit_rows",
]
