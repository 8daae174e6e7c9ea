"""Options that the verbs of a live collection share."""

from typing import Annotated

import typer

__all__ = [
    "Address",
    "Batch",
    "Format",
    "IdColumn",
    "LabelColumn",
    "MetadataColumns",
    "VectorColumn",
]

Address = Annotated[
    str,
    typer.Argument(
        metavar="COLLECTION", help="The collection's folder, or an address such as s3://…"
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORM",
        help="jsonl, csv, parquet, npz or npy (default: by the file's ending; jsonl of -).",
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id-column", metavar="NAME", help="Column of the ids (default: id)."),
]
VectorColumn = Annotated[
    str | None,
    typer.Option(
        "--vector-column",
        metavar="NAME",
        help="Column of lists (default: vector, or all columns of numbers).",
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column", metavar="NAME", help="Column of the labels (default: label or y)."
    ),
]
MetadataColumns = Annotated[
    str | None,
    typer.Option(
        "--metadata-columns",
        metavar="NAMES",
        help="Columns to keep as metadata, with commas (default: metadata).",
    ),
]
Batch = Annotated[
    int,
    typer.Option(
        "--batch", metavar="N", min=1, help="Items read and stored at a time; each is a commit."
    ),
]
