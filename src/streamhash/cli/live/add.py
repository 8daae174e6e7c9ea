"""``streamhash live add``: store items, and learn from those with labels."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from streamhash.cli._options import Labels
from streamhash.cli.live._options import (
    Address,
    Batch,
    Format,
    IdColumn,
    LabelColumn,
    MetadataColumns,
    VectorColumn,
)
from streamhash.cli.live._source import BATCH, Source
from streamhash.errors import InputError, StreamhashError

if TYPE_CHECKING:
    from streamhash.files.items import Piece
    from streamhash.live import Collection

__all__ = ["run"]


def run(
    collection: Address,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Items: .jsonl .csv .parquet .npz .npy, a data set, or -."
        ),
    ],
    form: Format = None,
    id_column: IdColumn = None,
    vector_column: VectorColumn = None,
    label_column: LabelColumn = None,
    metadata_columns: MetadataColumns = None,
    labels: Labels = None,
    first_id: Annotated[
        int | None,
        typer.Option("--first-id", metavar="N", min=0, help="Number items by row, from N on."),
    ] = None,
    existing: Annotated[
        str,
        typer.Option(
            "--existing", metavar="WHAT", help="Items that are there: refuse, skip or replace."
        ),
    ] = "refuse",
    batch: Batch = BATCH,
) -> None:
    """Store items, and learn from those with labels.

    A file is read twice: the first time all of it is checked, so that a file with a fault changes
    nothing. Standard input (-) is stored batch by batch as it comes. Items without ids are numbered
    on from those that are there. After a crash, the same command with --existing skip goes on.
    """
    from streamhash.cli._console import note, progress_bar
    from streamhash.live import Collection

    source = Source(
        file, form, id_column, vector_column, label_column, metadata_columns, labels, batch
    )

    def pieces() -> "Iterator[Piece]":
        read = source.pieces(items)
        return read if first_id is None else _numbered(read, first_id)

    with Collection.open(collection) as items, progress_bar() as bar:
        task = bar.add_task("checking", total=None)
        if source.is_file:
            total = 0
            for piece in _checked(pieces(), items, existing):
                total += piece.n
                bar.update(task, completed=total)
            bar.update(task, description="adding", completed=0, total=total)
        done = added = 0
        try:
            for piece in pieces():
                if existing != "refuse":
                    _need_ids(piece)
                added += items.add(
                    piece.ids,
                    piece.vectors,
                    piece.labels,
                    metadata=piece.metadata,
                    existing=existing,
                )
                done += piece.n
                bar.update(task, description="adding", completed=done)
        except StreamhashError as error:
            if not added:
                raise
            raise InputError(
                f"{error} The {added:,} items before are stored; mend it, and add the rest."
            ) from error
        except KeyboardInterrupt:
            note(f"{added:,} items are stored: the same command with --existing skip goes on.")
            raise
        here = f"{done - added:,} were there; " if done > added else ""
        typer.echo(f"{added:,} items added to {collection}; {here}{_state(items)}")


def _numbered(pieces: "Iterable[Piece]", first: int) -> "Iterator[Piece]":
    for piece in pieces:
        if piece.ids is not None:
            raise InputError("add: the items have ids of their own; leave out --first-id.")
        yield piece._replace(ids=range(first, first + piece.n))
        first += piece.n


def _need_ids(piece: "Piece") -> None:
    if piece.ids is None:
        raise InputError(
            "add: the items have no ids, so nobody can tell which are there already; pass "
            "--first-id N as when they were added first, or leave out --existing."
        )


def _checked(pieces: "Iterable[Piece]", items: "Collection", existing: str) -> "Iterator[Piece]":
    """Refuse a file before anything of it is stored; give back its pieces."""
    seen: set[object] = set()
    width: int | None = None
    for piece in pieces:
        if existing != "refuse":
            _need_ids(piece)
        items.check(
            piece.ids, piece.vectors, piece.labels, metadata=piece.metadata, existing=existing
        )
        first_width, width = width, piece.vectors.shape[1] if piece.vectors is not None else None
        if first_width is not None and width != first_width:
            raise InputError(
                f"add: vectors of {first_width} and of {width} numbers came; pass one length."
            )
        for each in piece.ids or ():
            if existing == "refuse" and each in seen:
                raise InputError(f"add: id {each!r} came twice; pass each id once.")
            if seen and isinstance(each, str) != isinstance(next(iter(seen)), str):
                raise InputError("add: ids are whole numbers and strings; pass one kind.")
            seen.add(each)
        yield piece


def _state(items: "Collection") -> str:
    number = items.model_number
    serves = f"model {number} serves" if number else "none can be searched before more have labels"
    return f"{len(items):,} in all; {serves}."
