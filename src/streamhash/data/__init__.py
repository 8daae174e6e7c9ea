"""Data: sets by name, a person's own files, the field's splits and preparation, and streams.

>>> from streamhash.data import load_data, pieces, split
>>> digits = load_data("digits")
>>> parts = split(digits.y, queries_per_class=10, stream=1000)
>>> stream = pieces(digits.X[parts.stream], digits.y[parts.stream], size=250)
>>> [X.shape for X, y in stream]
[(250, 64), (250, 64), (250, 64), (250, 64)]
"""

from streamhash.data.cards import Card
from streamhash.data.download import fetch
from streamhash.data.extract import extract_features
from streamhash.data.folders import cache_folder
from streamhash.data.normalise import centre_unit, mean_row, unit_rows
from streamhash.data.places_like import PlacesLikeStream
from streamhash.data.sets import DataSet, available, load_data
from streamhash.data.splits import Split, split, split_unseen
from streamhash.data.streams import pieces
from streamhash.data.synthetic import SyntheticStream
from streamhash.data.tables import read_table

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
    "load_data",
    "mean_row",
    "pieces",
    "read_table",
    "split",
    "split_unseen",
    "unit_rows",
]
