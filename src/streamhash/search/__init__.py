"""Search by Hamming distance: exact, with ids of your own, while items come and go."""

from streamhash.search.approximate import ApproximateIndex
from streamhash.search.index import HammingIndex
from streamhash.search.interchange import (
    from_arrow,
    from_bit_strings,
    from_faiss,
    from_numpy,
    from_sentence_transformers,
    to_arrow,
    to_bit_strings,
    to_faiss,
    to_numpy,
    to_sentence_transformers,
)

__all__ = [
    "ApproximateIndex",
    "HammingIndex",
    "from_arrow",
    "from_bit_strings",
    "from_faiss",
    "from_numpy",
    "from_sentence_transformers",
    "to_arrow",
    "to_bit_strings",
    "to_faiss",
    "to_numpy",
    "to_sentence_transformers",
]
