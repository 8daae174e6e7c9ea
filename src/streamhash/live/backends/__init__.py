"""Where the codes of a collection are searched: in memory, or in Milvus.

Lance holds the truth; a backend holds a copy of the codes of one model, by key. A new model means a
new backend, filled beside the old one, so that no search sees codes of two models. Both have the
same methods.

    memory.py    in this process: nothing else to run, the fastest up to what one machine holds
    milvus.py    a Milvus server: falls behind while it is away, and catches up by itself
"""

from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from streamhash.live.backends.memory import MemoryBackend
    from streamhash.live.backends.milvus import MilvusBackend

__all__ = ["Backend"]

Backend = Union["MemoryBackend", "MilvusBackend"]
