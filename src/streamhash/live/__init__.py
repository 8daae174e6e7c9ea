"""The live collection: learn, store and search at once, never mixing two models."""

from streamhash.live.collection import Collection
from streamhash.live.reading import Item
from streamhash.live.reports import History

__all__ = ["Collection", "History", "Item"]
