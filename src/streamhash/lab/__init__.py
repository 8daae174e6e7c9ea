"""Experiments: the papers' protocol, result rows, tables, figures and one page that shows them.

What the command line does, these do: :func:`bench`, :func:`reproduce`, :func:`tune` and
:func:`write_report`. Names are loaded when they are first used.

>>> from streamhash.lab import bench
>>> (row,) = bench("lsh", "digits", n_bits=16)
>>> row["queries"], row["database"], row["instances"]
(300, 1497, 1497)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
