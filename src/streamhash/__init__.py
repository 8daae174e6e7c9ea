"""streamhash: supervised online hashing.

Learn k-bit codes from a labelled stream, encode items into a few bytes, search them by Hamming
distance, and measure how good the codes are. Names are loaded when they are first used, so that
``import streamhash`` is quick.

>>> import streamhash
>>> hasher = streamhash.SDOH(n_bits=16, random_state=0)
"""

import importlib
from typing import Any

__version__ = "0.2.0.dev0"

# Where each public name lives. The lists of names are the public surface, and tested as such.
_PUBLIC = {
    "streamhash.hashers": [
        "AdaptHash",
        "BSODH",
        "FROSH",
        "HCOH",
        "HMOH",
        "ITQ",
        "LSH",
        "MIHash",
        "OKH",
        "OSH",
        "PCAH",
        "SDOH",
        "SketchHash",
    ],
    "streamhash.base": ["NotStartedError", "OnlineHasher", "load"],
    "streamhash.codes": ["pack", "unpack"],
    "streamhash.errors": [
        "ConflictError",
        "FileError",
        "GoneError",
        "InUseError",
        "InputError",
        "MissingDataError",
        "MissingPartError",
        "NotFoundError",
        "ReadOnlyError",
        "ServiceError",
        "StreamhashError",
        "UnreachableError",
    ],
    "streamhash.features": ["AnchorMap", "CenterScale", "StreamPipeline"],
    "streamhash.live": ["Collection"],
    "streamhash.service": ["Client"],
    "streamhash.metrics": [
        "Retrieval",
        "area_under_curve",
        "evaluate",
        "mean_average_precision",
        "precision_at_ranks",
        "precision_within_radius",
    ],
    "streamhash.refresh": ["SnapshotHasher"],
    "streamhash.search": ["HammingIndex"],
    "streamhash.threads": ["get_threads", "set_threads"],
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = ["__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'streamhash' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
