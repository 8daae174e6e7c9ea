"""Take an index or codes to other programs, and bring theirs here."""

from streamhash.search.bridges.arrow_table import from_arrow, to_arrow
from streamhash.search.bridges.faiss_index import from_faiss, to_faiss
from streamhash.search.bridges.foreign_codes import (
    from_bit_strings,
    from_sentence_transformers,
    to_bit_strings,
    to_sentence_transformers,
)
from streamhash.search.bridges.numpy_file import from_numpy, to_numpy

__all__ = [
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
