"""One reader of files: CSV, JSON lines, Parquet, NumPy and MATLAB, as a whole or piece by piece.

Every format gives the same pieces of ids, vectors, labels and metadata, by the same column rules.

>>> import io
>>> from streamhash.files import open_table
>>> with open_table(io.StringIO("id,width,height,label\\n7,1,2,cat\\n"), format="csv") as table:
...     print(table.taken)
...     [piece] = table.pieces(1000)
Taken(id='id', vectors=('width', 'height'), label='label', metadata=())
>>> piece.ids, piece.vectors.tolist(), piece.labels
([7], [[1.0, 2.0]], ['cat'])
"""

from streamhash.files.columns import Columns, Piece, Table, Taken
from streamhash.files.read import FORMATS, open_table, read_items, read_labels, read_table
from streamhash.files.text import ids_from_text, label_from_text
from streamhash.files.write import write_table

__all__ = [
    "FORMATS",
    "Columns",
    "Piece",
    "Table",
    "Taken",
    "ids_from_text",
    "label_from_text",
    "open_table",
    "read_items",
    "read_labels",
    "read_table",
    "write_table",
]
