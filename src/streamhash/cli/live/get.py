"""``streamhash live get``: what a collection holds of items."""

from typing import Annotated

import typer

from streamhash.cli._options import Json
from streamhash.cli.live._options import Address
from streamhash.cli.live._source import parse_ids

__all__ = ["run"]


def run(
    collection: Address,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the items.")],
    as_json: Json = False,
) -> None:
    """Print items by their ids.

    Label, metadata and code; with --json their vectors, too.
    """
    import json

    from rich import box
    from rich.table import Table

    from streamhash.cli._console import print_json, results
    from streamhash.live import Collection
    from streamhash.search import to_bit_strings

    with Collection.open(collection, read_only=True) as items:
        found = [
            {
                "id": item.id,
                "label": item.label,
                "metadata": item.metadata,
                "code": None
                if item.code is None
                else to_bit_strings(item.code[None], items.n_bits)[0],
                "vector": item.vector.tolist(),
            }
            for item in items.get(parse_ids(items, ids))
        ]
    if as_json:
        print_json(found)
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("id", "label", "metadata", "code"):
        table.add_column(heading, overflow="fold")
    for item in found:
        metadata = "" if item["metadata"] is None else json.dumps(item["metadata"])
        label = "" if item["label"] is None else str(item["label"])
        table.add_row(str(item["id"]), label, metadata, item["code"] or "")
    results().print(table)
