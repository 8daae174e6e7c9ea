"""Encoding all items anew, fragment by fragment: in small memory, by any executor, and resumable.

A worker gets an address and a number, reads the vectors itself, and writes the new column beside
the data that is there; nothing is visible until the collection commits all fragments at once.
"""

import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, as_completed
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import Codes, code_bytes, unpack
from streamhash.errors import UnreachableError
from streamhash.live.arrow import binary_array, codes_of, vectors_of
from streamhash.live.backends import sender
from streamhash.live.locks import uninterrupted
from streamhash.live.store import CODE, Store

__all__ = ["Result", "encode_fragment", "encode_fragments", "encode_part", "is_of"]

NUMBERS = 2**19  # of vectors, that are read, encoded and written at a time; Lance reads ahead

Serving = tuple[str | None, dict[str, Any] | None]  # the home of the codes: address and options
Send = Callable[[Codes, NDArray[np.int64]], None]  # takes codes and their keys there
Result = dict[str, Any]  # fragment: its metadata; rows; flips, bit by bit; when it was made


def encode_fragments(
    store: Store,
    version: int,
    number: int,
    fragments: Iterable[int],
    executor: Executor | None,
    done: Callable[[int, Result], None],
    serving: Serving = (None, None),
) -> None:
    """Encode fragments of a version of items, calling ``done`` with each as it is ready."""
    if executor is None:
        own = store.another()  # others may be changing what that one has open
        items, model = _opened(own, version, number)
        send = sender(*serving, number, model.n_bits)
        for fragment in fragments:
            with store.told("items"):
                result, _ = encode_part(items.get_fragment(fragment), number, model, send)
            done(fragment, result)
        return
    work = (store.address, store.options, version, number, serving)
    tasks: dict[Future[Result], int] = {
        executor.submit(encode_fragment, *work, fragment): fragment for fragment in fragments
    }
    try:
        for task in as_completed(tasks):
            done(tasks[task], task.result())
    finally:
        for task in tasks:
            task.cancel()


def encode_fragment(
    address: str,
    options: dict[str, str] | None,
    version: int,
    number: int,
    serving: Serving,
    fragment: int,
) -> Result:
    """Write the codes of one fragment's items by a model, as a new column; return what it is."""
    store = Store(address, options)
    items, model = _opened(store, version, number)
    with store.told("items"):
        send = sender(*serving, number, model.n_bits)
        return encode_part(items.get_fragment(fragment), number, model, send)[0]


def _opened(store: Store, version: int, number: int) -> tuple[Any, OnlineHasher]:
    """Return the items as they were at a version, and a model."""
    return store.dataset("items").checkout_version(version), store.read_model(number).hasher()


def encode_part(
    fragment: Any, number: int, model: OnlineHasher, send: Send | None = None
) -> tuple[Result, Any]:
    """Do so with a fragment that is at hand; return the schema with the new column, too.

    Codes are given to ``send``, with their keys, as they are made.
    """
    import pyarrow as pa
    from lance import batch_udf

    old = [name for name in fragment.schema.names if name.startswith(CODE)]
    old = sorted(old, key=lambda name: int(name.removeprefix(CODE)))[-1:]
    flips = np.zeros(model.n_bits, np.int64)
    away: list[UnreachableError] = []

    # With its schema told, Lance calls it once for each batch, and not before to see what comes.
    @batch_udf(pa.schema([(f"{CODE}{number}", pa.binary(code_bytes(model.n_bits)))]))
    def encode(batch: pa.RecordBatch) -> pa.RecordBatch:
        codes = model.transform(vectors_of(batch["vector"]))
        if old:
            before = codes_of(pa.chunked_array([batch[old[0]]]))
            flips[:] += unpack(codes ^ before, model.n_bits).sum(axis=0, dtype=np.int64)
        if send is not None:
            try:
                send(codes, batch["key"].to_numpy())
            except UnreachableError as error:
                away.append(error)
                raise
        return pa.record_batch([binary_array(codes)], [f"{CODE}{number}"])

    rows = max(256, NUMBERS // fragment.schema.field("vector").type.list_size)
    try:
        with uninterrupted():  # Ctrl-C inside would come out as an error of Lance's
            metadata, schema = fragment.merge_columns(encode, ["key", "vector", *old], rows)
    except ValueError:  # what Lance makes of any error
        if away:
            raise away[0] from None
        raise
    described = metadata.to_json()
    result = {
        "fragment": json.loads(described) if isinstance(described, str) else described,
        "model": number,
        "rows": int(fragment.count_rows()),
        "flips": flips.tolist(),
        "made": time.time(),
    }
    return result, schema


def is_of(result: Result, fragment: Any) -> bool:
    """Whether a result is of this fragment, and not of one that had its number before."""
    own = fragment.metadata.to_json()["files"][0]["path"]
    return bool(result["fragment"]["files"][0]["path"] == own)
