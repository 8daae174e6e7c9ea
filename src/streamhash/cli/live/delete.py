"""``streamhash live delete``: items that are to go."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from streamhash.cli.live._options import Address
from streamhash.cli.live._source import STANDARD_INPUT, parse_ids
from streamhash.errors import InputError

__all__ = ["run"]


def run(
    collection: Address,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of the items to delete.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--ids", metavar="FILE", help="A file with an id a line, or - for input."),
    ] = None,
) -> None:
    """Delete items, all of them or none.

    What was learned from them stays learned.
    """
    from streamhash.live import Collection

    names = [*(ids or [])]
    if file is not None:
        text = sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text("utf-8-sig")
        names += [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise InputError("delete: no ids came; pass some, or --ids FILE.")
    with Collection.open(collection) as items:
        items.delete(parse_ids(items, names))
        typer.echo(f"{len(names):,} items deleted; {len(items):,} are left.")
