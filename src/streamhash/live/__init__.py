"""The live collection: learn, store and search at once, never mixing two models."""

from streamhash.live.collection import Collection, check_vectors
from streamhash.live.journal import Batch
from streamhash.live.load import Loaded, add_from, label_from
from streamhash.live.view import Answer, Listing
from streamhash.records import History, Item

__all__ = [
    "Answer",
    "Batch",
    "Collection",
    "History",
    "Item",
    "Listing",
    "Loaded",
    "add_from",
    "check_vectors",
    "label_from",
]
