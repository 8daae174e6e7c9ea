"""All items of a collection, batch by batch: one moment of it, in bounded memory."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.live.arrow import codes_of, vectors_of
from streamhash.live.directory import NO_LABEL
from streamhash.live.inputs import from_json
from streamhash.live.locks import ReaderLease
from streamhash.live.store import CODE

if TYPE_CHECKING:
    from streamhash.live.reading import Reading

__all__ = ["Batch", "scan"]


class Batch(NamedTuple):
    """Some items of a collection: row by row what ``add`` takes, and their codes."""

    ids: NDArray[Any]
    vectors: Any  # array (n, d); None where they were not asked for
    labels: list[Any]
    metadata: list[Any]
    codes: Any  # array (n, bytes), by the model that serves; None while there is none


def scan(collection: "Reading", *, vectors: bool, size: int) -> Iterator[Batch]:
    """Go through the items as they are at the first batch, in the order of adding."""
    store = collection._store
    with collection._writing:
        directory, number = collection._view.directory, collection._view.number
        # Copies, as the directory moves on. Keys ascend, so that a key finds its place by halving.
        places = directory.places
        keys, ids = directory.keys_at(places), directory.ids_at(places)
        labels, names = directory.listing.labels_of(keys), directory.label_names
        if not len(keys):
            return
        version = store.version("items")
        items = store.dataset("items").checkout_version(version)
        lease = None if store.folder is None else ReaderLease(store.folder)
        if lease is not None:
            lease.use(version)  # the writer keeps what is still to be read
    code = [f"{CODE}{number}"] if number else []
    columns = ["key", "metadata", *code, *(["vector"] if vectors else [])]
    try:
        for part in items.to_batches(columns=columns, batch_size=size, scan_in_order=True):
            part_keys = part["key"].to_numpy()
            at = np.minimum(np.searchsorted(keys, part_keys), len(keys) - 1)
            live = keys[at] == part_keys  # others were replaced, and wait to be deleted
            part, at = part.filter(live), at[live]
            if not len(at):
                continue
            yield Batch(
                ids[at],
                vectors_of(part["vector"]) if vectors else None,
                [None if label == NO_LABEL else names[label] for label in labels[at].tolist()],
                from_json(part["metadata"].to_pylist()),
                codes_of(_chunked(part[code[0]])) if code else None,
            )
    finally:
        if lease is not None:
            lease.release()


def _chunked(column: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array([column])
