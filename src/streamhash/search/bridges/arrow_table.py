"""To and from Arrow tables, and so Parquet, Feather, DuckDB, Polars, LanceDB and more."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.optional import import_optional
from streamhash.search.bridges._contents import (
    BIT_ORDER,
    VERSION,
    check_form,
    contents,
    make_index,
)
from streamhash.search.ids import kind
from streamhash.search.index import HammingIndex

__all__ = ["from_arrow", "to_arrow"]


def to_arrow(index: HammingIndex) -> Any:
    """Copy an index into a ``pyarrow.Table`` with the columns ``id`` and ``code``.

    ``id`` is int64 or string, ``code`` fixed-size binary. The schema's metadata says ``n_bits``,
    ``bit_order`` ("big": the first bit in the highest place) and ``version``, each under a name
    that begins with ``streamhash.``; Parquet and Feather files keep it.
    """
    arrow = import_optional("pyarrow", extra="files", place="to_arrow")
    codes, ids = contents(index)
    n, width = codes.shape
    code = arrow.FixedSizeBinaryArray.from_buffers(
        arrow.binary(width), n, [None, arrow.py_buffer(codes)]
    )
    try:
        id_type = arrow.string() if kind(ids) == "strings" else arrow.int64()
        table = arrow.table({"id": arrow.array(ids, id_type), "code": code})
    except UnicodeEncodeError as error:
        raise InputError(
            f"to_arrow: an id holds half a character, {error.object!r}, which is no text in UTF-8; "
            "give the item another id."
        ) from error
    facts = {"n_bits": index.n_bits, "bit_order": BIT_ORDER, "version": VERSION}
    return table.replace_schema_metadata(
        {f"streamhash.{name}": str(value) for name, value in facts.items()}
    )


def from_arrow(table: Any, *, n_bits: int | None = None) -> HammingIndex:
    """Make an index of a ``pyarrow.Table`` with a column ``code`` and, if it has one, ``id``.

    ``code`` may be binary of any kind, all values of one length. ``n_bits`` is what the table's
    metadata says, unless you pass it; without both, every bit counts. Other columns are left out.
    """
    arrow = import_optional("pyarrow", extra="files", place="from_arrow")
    if not isinstance(table, arrow.Table):
        raise InputError(
            f"from_arrow: a {type(table).__name__} came; pass a pyarrow.Table, such as "
            "pyarrow.parquet.read_table(path)."
        )
    facts = {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, value in (table.schema.metadata or {}).items()
    }
    if "streamhash.bit_order" in facts:
        version = facts.get("streamhash.version", "")
        check_form(
            facts["streamhash.bit_order"], _whole(version, "streamhash.version"), "from_arrow"
        )
    if n_bits is None and "streamhash.n_bits" in facts:
        n_bits = _whole(facts["streamhash.n_bits"], "streamhash.n_bits")
    codes = _codes(arrow, _column(arrow, table, "code"))
    ids = _ids(arrow, _column(arrow, table, "id")) if "id" in table.column_names else None
    return make_index(codes, ids, n_bits, "from_arrow")


def _whole(text: str, name: str) -> int:
    if not text.isdecimal():
        raise InputError(
            f"from_arrow: the table's metadata says {name}={text!r}, which is no whole number; "
            "write the table again with to_arrow."
        )
    return int(text)


def _column(arrow: Any, table: Any, name: str) -> Any:
    """Return a column as one array without nulls."""
    if table.column_names.count(name) != 1:
        raise InputError(
            f"from_arrow: the table has the columns {', '.join(table.column_names)}, and one named "
            f"{name!r} is wanted; rename the column that holds it."
        )
    column = table.column(name)
    if column.null_count:
        raise InputError(
            f"from_arrow: column {name!r} has {column.null_count} nulls; leave these rows out."
        )
    return arrow.concat_arrays(column.chunks) if column.num_chunks else arrow.array([], column.type)


def _codes(arrow: Any, values: Any) -> NDArray[np.uint8]:
    code_type = values.type
    if arrow.types.is_fixed_size_binary(code_type):
        width = code_type.byte_width
    elif str(code_type) in ("binary", "large_binary", "binary_view"):
        lengths = {len(value) for value in values.to_pylist()}
        if len(lengths) != 1:
            raise InputError(
                f"from_arrow: column 'code' holds values of {len(lengths)} lengths; pass codes of "
                "one length, as fixed-size binary if there are none."
            )
        width = lengths.pop()
        values = arrow.array(values.to_pylist(), arrow.binary(width))
    else:
        raise InputError(f"from_arrow: column 'code' is {code_type}; pass binary values.")
    rows = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    first = values.offset * width
    return rows[first : first + len(values) * width].reshape(len(values), width)


def _ids(arrow: Any, values: Any) -> Any:
    types = arrow.types
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values.to_numpy() if types.is_integer(values.type) else values.to_pylist()
