"""The live collection: learn, store and search at once, never mixing two models."""

from streamhash.live.collection import Collection, check_vectors
from streamhash.live.journal import Batch
from streamhash.live.view import Answer, Listing
from streamhash.records import History, Item

__all__ = ["Answer", "Batch", "Collection", "History", "Item", "Listing", "check_vectors"]
