"""Data: a person's own files, the field's splits and preparation, and streams."""

from streamhash.data.normalise import centre_unit
from streamhash.data.splits import Split, split, split_unseen
from streamhash.data.streams import pieces
from streamhash.data.synthetic import SyntheticStream
from streamhash.data.tables import read_table

__all__ = [
    "Split",
    "SyntheticStream",
    "centre_unit",
    "pieces",
    "read_table",
    "split",
    "split_unseen",
]
