"""Vectors read straight from Lance's files: for a few rows, ten times as fast as through Lance.

Lance says how each page of a column is laid out. Where vectors lie one behind the other as they are
in memory, which it does from some 256 bytes a vector on, a row's place is known, and its bytes are
read. Any other layout is left to Lance. A file never changes; it is open only while it is read, and
read by calls, not mapped: what fails is an error and not the end of the process.
"""

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.live.addresses import FRAGMENT_BITS
from streamhash.live.arrow import Keys

if TYPE_CHECKING:
    import lance

KNOWN_FILES = 4096  # whose pages are remembered
FLAT = re.compile(  # a page of vectors without gaps or compression, as Lance describes it
    r"PageLayout\{layout:Some\(FullZipLayout\(FullZipLayout\{bits_rep:0,bits_def:0,num_items:(\d+),"
    r"num_visible_items:\1,value_compression:Some\(CompressiveEncoding\{compression:Some\("
    r"FixedSizeList\(FixedSizeList\{items_per_value:(\d+),has_validity:false,values:Some\("
    r"CompressiveEncoding\{compression:Some\(Flat\(Flat\{bits_per_value:(\d+),data:None,\},\),\),"
    r"\},\),\},\),\),\},\),layers:\[RepdefAllValidItem,\],"
    r"details:Some\(BitsPerValue\(\d+,\),\),\},\),\),\}"
)


class Pages(NamedTuple):
    """Where the vectors of a file are."""

    firsts: Keys  # the first row of each page
    starts: Keys  # in the file

    def offsets(self, rows: Keys, row_bytes: int) -> Keys:
        """Where rows begin in the file."""
        page = np.searchsorted(self.firsts, rows, side="right") - 1
        return self.starts[page] + (rows - self.firsts[page]) * row_bytes


class VectorFiles:
    """The files that hold the vectors of a dataset, looked up once for each of its versions."""

    def __init__(self) -> None:
        self._version = 0
        self._known: dict[int, tuple[Path, Pages] | None] = {}  # by fragment

    def read(self, dataset: "lance.LanceDataset", addresses: Keys) -> NDArray[Any] | None:
        """Read vectors by their addresses; None where Lance has to do it."""
        if "://" in str(dataset.uri) or not hasattr(os, "pread"):
            return None
        if dataset.version != self._version:
            self._version, self._known = int(dataset.version), {}
        kind_of_list = dataset.schema.field("vector").type
        width = int(kind_of_list.list_size)
        kind = np.dtype(kind_of_list.value_type.to_pandas_dtype())
        vectors = np.empty((len(addresses), width), kind)
        fragments = addresses >> FRAGMENT_BITS
        for number in np.unique(fragments).tolist():
            if number not in self._known:
                self._known[number] = _find(dataset, number, width, kind)
            found = self._known[number]
            if found is None:
                return None
            chosen = np.flatnonzero(fragments == number)
            rows = addresses[chosen] & (2**FRAGMENT_BITS - 1)
            size = width * kind.itemsize
            content = _read(found[0], found[1].offsets(rows, size).tolist(), size)
            vectors[chosen] = np.frombuffer(content, kind).reshape(-1, width)
        return vectors


def _find(
    dataset: "lance.LanceDataset", number: int, width: int, kind: np.dtype[Any]
) -> tuple[Path, Pages] | None:
    """Return the file of a fragment that has its vectors, and where; None if only Lance knows."""
    field: Any = dataset.lance_schema.field("vector")
    fragment: Any = dataset.get_fragment(number)
    file = next((each for each in fragment.data_files() if field.id() in each.fields), None)
    if file is None or file.base_id is not None:
        return None
    path = Path(str(dataset.uri)) / "data" / file.path
    pages = _pages(path, file.column_indices[file.fields.index(field.id())], width, kind)
    return None if pages is None else (path, pages)


def _read(path: Path, offsets: list[int], n_bytes: int) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        content = b"".join([os.pread(file, n_bytes, offset) for offset in offsets])
    finally:
        os.close(file)
    if len(content) != n_bytes * len(offsets):
        raise OSError(f"{path}: is shorter than its vectors")
    return content


@lru_cache(KNOWN_FILES)
def _pages(path: Path, column: int, width: int, kind: np.dtype[Any]) -> Pages | None:
    """Return where a file has its vectors, None if they are laid out in another way."""
    from lance.file import LanceFileReader

    firsts, starts, n_rows = [], [], 0
    for page in LanceFileReader(str(path)).metadata().columns[column].pages:
        flat = FLAT.fullmatch(re.sub(r"\s", "", page.encoding))
        if flat is None or len(page.buffers) != 1:
            return None
        rows, items, bits = map(int, flat.groups())
        size = rows * width * kind.itemsize
        if (items, bits, page.buffers[0].size) != (width, 8 * kind.itemsize, size):
            return None
        firsts.append(n_rows)
        starts.append(page.buffers[0].position)
        n_rows += rows
    return Pages(np.array(firsts, np.int64), np.array(starts, np.int64))
