"""To and from faiss's binary indexes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.errors import InputError
from streamhash.optional import import_optional
from streamhash.search.bridges._contents import contents, make_index
from streamhash.search.ids import kind
from streamhash.search.index import HammingIndex

__all__ = ["from_faiss", "to_faiss"]


def to_faiss(index: HammingIndex, *, numbered: bool = False) -> Any:
    """Copy an index into a ``faiss.IndexBinaryIDMap2`` over an ``IndexBinaryFlat``.

    It finds the same items, in the same order. faiss has whole bytes only: 12-bit codes become
    16-bit ones that end in four zeros, which changes no distance; pass ``n_bits=12`` to
    ``from_faiss`` to get them back. faiss's ``range_search`` finds what is *nearer* than its
    radius: its 3 is our 2.

    faiss has no strings for ids: with ``numbered=True`` they are places in ``index.ids``.
    """
    faiss = import_optional("faiss", extra="faiss", place="to_faiss")
    codes, ids = contents(index)
    if kind(ids) == "strings" and not numbered:
        raise InputError(
            "to_faiss: ids are strings, and faiss has whole numbers only; pass numbered=True, and "
            "look the places that faiss finds up in index.ids."
        )
    result = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(8 * codes.shape[1]))
    result.add_with_ids(codes, np.arange(len(ids)) if numbered else ids)
    return result


def from_faiss(
    faiss_index: Any, *, n_bits: int | None = None, names: Sequence[str] | None = None
) -> HammingIndex:
    """Copy a binary index of faiss: flat, inverted file, or either below an id map; ids are kept.

    Parameters
    ----------
    faiss_index : faiss.IndexBinary
        An IndexBinaryFlat, IndexBinaryIVF, IndexBinaryIDMap or IndexBinaryIDMap2. An inverted file
        does not know in which order items were added: the order of ids is taken.
    n_bits : int, optional
        Length of the codes, where faiss holds them filled up to whole bytes.
    names : sequence of str, optional
        Strings to use for ids: item ``i`` of faiss gets ``names[i]``.
    """
    faiss = import_optional("faiss", extra="faiss", place="from_faiss")
    codes, ids = _read(faiss, faiss_index)
    if names is not None:
        if len(ids) and not (ids.min() >= 0 and ids.max() < len(names)):
            raise InputError(
                f"from_faiss: {len(names)} names came, and ids from {ids.min()} to {ids.max()}; "
                "pass a name for each id from 0 up."
            )
        return make_index(codes, [names[i] for i in ids.tolist()], n_bits, "from_faiss")
    return make_index(codes, ids, n_bits, "from_faiss")


def _read(faiss: Any, wrapped: Any) -> tuple[Codes, NDArray[np.int64]]:
    """Codes (n, bytes) and ids (n,) of an index, in the order of adding where it is known."""
    if not isinstance(wrapped, faiss.IndexBinary):
        raise InputError(
            f"from_faiss: a {type(wrapped).__name__} came; pass a binary index, such as "
            "faiss.IndexBinaryFlat."
        )
    index = faiss.downcast_IndexBinary(wrapped)
    if isinstance(index, faiss.IndexBinaryIDMap):  # an IDMap2 is an IDMap
        codes, places = _read(faiss, index.index)
        ids = faiss.vector_to_array(index.id_map)[places]
    elif isinstance(index, faiss.IndexBinaryFlat):
        codes = faiss.vector_to_array(index.xb).reshape(-1, index.code_size)
        ids = np.arange(len(codes))
    elif isinstance(index, faiss.IndexBinaryIVF):
        codes, ids = _read_lists(faiss, index)
    else:
        raise InputError(
            f"from_faiss: {type(index).__name__} cannot be read; pass an IndexBinaryFlat, "
            "IndexBinaryIVF, IndexBinaryIDMap or IndexBinaryIDMap2."
        )
    return codes, ids


def _read_lists(faiss: Any, index: Any) -> tuple[Codes, NDArray[np.int64]]:
    width, lists = index.code_size, index.invlists
    codes, ids = [np.empty((0, width), np.uint8)], [np.empty(0, np.int64)]
    for i in range(index.nlist):
        size = lists.list_size(i)
        if size:
            codes.append(faiss.rev_swig_ptr(lists.get_codes(i), size * width).reshape(size, width))
            ids.append(faiss.rev_swig_ptr(lists.get_ids(i), size))
    all_ids = np.concatenate(ids)
    order = np.argsort(all_ids, kind="stable")
    return np.concatenate(codes)[order], all_ids[order]
