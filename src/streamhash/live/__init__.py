"""The live collection: learn, store and search at once, never mixing two models."""

from streamhash.live.answers import Answer
from streamhash.live.collection import Collection
from streamhash.live.directory import Listing
from streamhash.live.inputs import check_vectors
from streamhash.records import History, Item

__all__ = ["Answer", "Collection", "History", "Item", "Listing", "check_vectors"]
