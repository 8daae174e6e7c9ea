"""Data: the field's splits and preparation, and streams."""

from streamhash.data.normalise import centre_unit
from streamhash.data.splits import Split, split, split_unseen
from streamhash.data.streams import pieces
from streamhash.data.synthetic import SyntheticStream

__all__ = ["Split", "SyntheticStream", "centre_unit", "pieces", "split", "split_unseen"]
