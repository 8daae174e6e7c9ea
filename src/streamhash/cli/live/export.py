"""``streamhash live export``: a collection's items as a file for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from streamhash.cli.live._options import Address

__all__ = ["run"]


def run(
    collection: Address,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FILE",
            help="A .parquet, .npz or .faiss to write, or milvus://host:port/name.",
        ),
    ],
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Write the vectors, too (not in .faiss).")
    ] = False,
) -> None:
    """Write all items to a file for other programs.

    They are written as they are at one moment; another process may write meanwhile.
    """
    from streamhash.live import Collection
    from streamhash.live.export import NAMES

    with Collection.open(collection, read_only=True) as items:
        n = items.export(to, vectors=vectors)
        is_named = Path(to).suffix.lower() == ".faiss" and items.id_kind == "strings"
    beside = f" Their ids are in {to}{NAMES}." if is_named else ""
    typer.echo(f"{n:,} items are in {to}.{beside}")
