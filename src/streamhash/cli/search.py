"""``streamhash search``: the nearest items of each query."""

from typing import Annotated

import typer

from streamhash.cli._options import Json, LabelColumn, Model, Nearest

__all__ = ["run"]


def run(
    model: Model,
    database: Annotated[
        str, typer.Argument(metavar="DATABASE", help="What is searched: codes or features.")
    ],
    queries: Annotated[
        str, typer.Argument(metavar="QUERIES", help="What is looked for: codes or features.")
    ],
    k: Nearest = 10,
    label_column: LabelColumn = None,
    as_json: Json = False,
) -> None:
    """Find the nearest items of each query by Hamming distance.

    Items and queries are named by their row in the file, from 0. Codes are .npy files of encode;
    any other file holds features and is encoded first.
    """
    from rich import box
    from rich.table import Table

    from streamhash.cli._console import print_json, results
    from streamhash.cli._inputs import read_codes
    from streamhash.pipeline import load
    from streamhash.search import HammingIndex

    hasher = load(model)
    index = HammingIndex(hasher.n_bits)
    index.add(None, read_codes(hasher, database, label_column))
    codes = read_codes(hasher, queries, label_column)
    distances, items = index.search(codes, k=min(k, len(index)))
    answers = list(enumerate(zip(items.tolist(), distances.tolist(), strict=True)))
    if as_json:
        print_json([{"query": q, "items": near, "distances": far} for q, (near, far) in answers])
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("query", "rank", "item", "distance"):
        table.add_column(heading, justify="right")
    for query, (near, far) in answers:
        for rank, (item, distance) in enumerate(zip(near, far, strict=True), start=1):
            table.add_row(str(query), str(rank), str(item), str(distance))
    results().print(table)
