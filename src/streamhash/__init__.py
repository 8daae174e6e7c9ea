"""streamhash: supervised online hashing.

Learn k-bit codes from a labelled stream, encode items into a few bytes, search them by Hamming
distance, and measure how good the codes are. Names are loaded when they are first used, so that
``import streamhash`` is quick; ``__init__.pyi`` lists them.

>>> import streamhash
>>> hasher = streamhash.SDOH(n_bits=16, random_state=0)
"""

import lazy_loader

__version__ = "0.2.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
