"""One reader of files: CSV, JSON lines, Parquet, NumPy and MATLAB, as a whole or piece by piece.

Every format gives the same pieces of ids, vectors, labels and metadata, by the same column rules.

>>> import io
>>> from streamhash.files import open_table
>>> with open_table(io.StringIO("id,width,height,label\\n7,1,2,cat\\n"), format="csv") as table:
...     print(table.taken)
...     [piece] = table.pieces(1000)
features: width, height; id: id; label: label
>>> piece.ids, piece.vectors.tolist(), piece.labels
([7], [[1.0, 2.0]], ['cat'])
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
