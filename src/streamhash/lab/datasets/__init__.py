"""Data for experiments: sets by name, the field's splits and preparation, and made-up streams.

>>> from streamhash.lab.datasets import load_data, pieces, split
>>> digits = load_data("digits")
>>> parts = split(digits.y, queries_per_class=10, stream=1000, random_state=0)
>>> stream = pieces(digits.X[parts.stream], digits.y[parts.stream], size=250)
>>> [X.shape for X, y in stream]
[(250, 64), (250, 64), (250, 64), (250, 64)]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
