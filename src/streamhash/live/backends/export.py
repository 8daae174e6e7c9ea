"""A collection's codes copied to Milvus once, for programs that search there."""

from functools import partial
from typing import TYPE_CHECKING, Any

from streamhash.live.backends.address import MilvusAddress
from streamhash.live.backends.tables import Server

if TYPE_CHECKING:
    from streamhash.live.reading import Reading

__all__ = ["export_to_milvus"]


def export_to_milvus(
    collection: "Reading", address: str, options: dict[str, Any] | None = None
) -> int:
    """Copy the codes of the model that serves to ``milvus://host:port/name``; return how many.

    They are in the Milvus collection ``name_model_N``, and the alias ``name`` means it from then
    on. Rows have ``key``, the number of the item in the order of ``collection.ids``, and ``code``.
    """
    model = collection.model()  # without one there are no codes, and it says what to do
    server = Server(MilvusAddress.parse(address, place="Collection.export"), options)
    server.refuse_taken()
    with collection._writing:
        view, store = collection._view, collection._store
        keys, read = view.directory.keys, partial(store.read_codes, view.number)
    table = server.table(view.number, model.n_bits)
    table.create()
    for codes, some in read(keys):
        table.put(codes, keys.searchsorted(some))
    server.point_alias(view.number)
    return len(keys)
