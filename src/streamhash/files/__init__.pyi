"""The public names of ``streamhash.files``, loaded when they are first used."""

from .columns import (
    Columns as Columns,
    Piece as Piece,
    Table as Table,
    Taken as Taken,
)
from .read import (
    FORMATS as FORMATS,
    open_table as open_table,
    read_items as read_items,
    read_labels as read_labels,
    read_table as read_table,
    read_whole as read_whole,
)
from .text import (
    ids_from_text as ids_from_text,
    label_from_text as label_from_text,
)
from .write import (
    write_table as write_table,
)

__all__: list[str]
