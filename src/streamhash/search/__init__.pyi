"""The public names of ``streamhash.search``, loaded when they are first used."""

from .approximate import (
    ApproximateIndex as ApproximateIndex,
)
from .index import (
    HammingIndex as HammingIndex,
)
from .interchange import (
    from_arrow as from_arrow,
    from_bit_strings as from_bit_strings,
    from_faiss as from_faiss,
    from_numpy as from_numpy,
    from_sentence_transformers as from_sentence_transformers,
    to_arrow as to_arrow,
    to_bit_strings as to_bit_strings,
    to_faiss as to_faiss,
    to_numpy as to_numpy,
    to_sentence_transformers as to_sentence_transformers,
)

__all__: list[str]
