"""Search by Hamming distance: exact, with ids of your own, while items come and go."""

from streamhash.search import interchange
from streamhash.search.approximate import ApproximateIndex
from streamhash.search.index import HammingIndex
from streamhash.search.interchange import *  # noqa: F403

__all__ = ["ApproximateIndex", "HammingIndex"]
__all__ += interchange.__all__
