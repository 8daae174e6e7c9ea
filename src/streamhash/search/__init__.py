"""Search by Hamming distance: exact, with ids of your own, while items come and go."""

from streamhash.search.index import HammingIndex

__all__ = ["HammingIndex"]
