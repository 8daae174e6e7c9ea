"""``streamhash live label``: labels for items that are there."""

from typing import TYPE_CHECKING, Annotated

import typer

from streamhash.cli.live._options import Address, Batch, Format, IdColumn, LabelColumn
from streamhash.cli.live._source import BATCH, Source, parse_ids
from streamhash.errors import InputError

if TYPE_CHECKING:
    from streamhash.files.items import Piece
    from streamhash.live import Collection

__all__ = ["run"]


def run(
    collection: Address,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="Ids and labels: .jsonl .csv .parquet .npz, or -."),
    ] = None,
    item: Annotated[
        str | None, typer.Option("--id", metavar="ITEM", help="A single item to label.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="LABEL", help="Its label.")
    ] = None,
    form: Format = None,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    batch: Batch = BATCH,
) -> None:
    """Label items that are there, and learn from them.

    A file is checked as a whole before anything is stored. An empty label takes the label away.
    """
    from streamhash.cli._console import progress_bar
    from streamhash.files.items import label_from_text
    from streamhash.live import Collection

    if (file is None) != (item is not None and label is not None) or (
        (item is None) != (label is None)
    ):
        raise InputError("label: pass a FILE with ids and labels, or --id ITEM --label LABEL.")
    with Collection.open(collection) as items, progress_bar() as bar:
        if file is None:
            items.label(parse_ids(items, [str(item)]), [label_from_text(str(label))])
            n = 1
        else:
            source = Source(file, form, id_column, None, label_column, batch=batch)
            task = bar.add_task("labelling", total=None)
            if source.is_file:
                for piece in source.pieces(items, with_vectors=False):
                    _check(piece, items, file)
            n = 0
            for piece in source.pieces(items, with_vectors=False):
                _check(piece, items, file)
                items.label(piece.ids, piece.labels)
                n += piece.n
                bar.update(task, completed=n)
        labelled = items.status()["labelled"]
        typer.echo(f"{n:,} items labelled; {labelled:,} of {len(items):,} have labels.")


def _check(piece: "Piece", items: "Collection", file: str) -> None:
    from streamhash.live.inputs import check_labels

    if piece.ids is None or piece.labels is None:
        part = "ids; pass --id-column" if piece.ids is None else "labels; pass --label-column"
        raise InputError(f"label: {file} has no {part} NAME.")
    check_labels(piece.labels, len(piece.ids), place="label")
    unknown = next((each for each in piece.ids if each not in items), None)
    if unknown is not None:
        raise InputError(f"label: id {unknown!r} is not in this collection; add it first.")
