"""``streamhash live search``: the nearest items of each query."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamhash.cli._options import Json, Nearest
from streamhash.cli.live._options import Address, Format, IdColumn, LabelColumn, VectorColumn
from streamhash.cli.live._source import Source, parse_ids
from streamhash.errors import InputError

if TYPE_CHECKING:
    from streamhash.live import Collection

__all__ = ["run"]

Answer = dict[str, Any]  # query, items, distances, labels


def run(
    collection: Address,
    queries: Annotated[
        str | None, typer.Argument(metavar="[QUERIES]", help="Vectors: a file as for add, or -.")
    ] = None,
    item: Annotated[
        str | None, typer.Option("--id", metavar="ITEM", help="Ask for an item that is there.")
    ] = None,
    k: Nearest = 10,
    form: Format = None,
    id_column: IdColumn = None,
    vector_column: VectorColumn = None,
    label_column: LabelColumn = None,
    as_json: Json = False,
) -> None:
    """Find the nearest items of each query by Hamming distance.

    Queries are named by their ids, or by their rows from 0. Another process may write meanwhile.
    """
    from rich import box
    from rich.table import Table

    from streamhash.cli._console import print_json, results
    from streamhash.live import Collection

    if (queries is None) == (item is None):
        raise InputError("search: pass QUERIES, a file of vectors or -, or --id ITEM.")
    with Collection.open(collection, read_only=True) as items:
        if item is not None:
            answers = _ask_for_item(items, item, k)
        else:
            source = Source(str(queries), form, id_column, vector_column, label_column)
            answers = _ask(items, source, k)
    if as_json:
        print_json(answers)
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("query", "rank", "id", "distance", "label"):
        table.add_column(heading, justify="left" if heading in ("id", "label") else "right")
    for answer in answers:
        found = zip(answer["items"], answer["distances"], answer["labels"], strict=True)
        for rank, (name, distance, label) in enumerate(found, start=1):
            shown = "" if label is None else str(label)
            table.add_row(str(answer["query"]), str(rank), str(name), str(distance), shown)
    results().print(table)


def _ask(items: "Collection", source: Source, k: int) -> list[Answer]:
    answers: list[Answer] = []
    for piece in source.pieces(items):
        names = range(len(answers), len(answers) + piece.n) if piece.ids is None else piece.ids
        distances, ids = items.search(piece.vectors, min(k, max(1, len(items))))
        for name, near, far in zip(names, ids.tolist(), distances.tolist(), strict=True):
            answers.append(_answer(items, name, near, far))
    return answers


def _ask_for_item(items: "Collection", text: str, k: int) -> list[Answer]:
    """Ask with the vector of an item, which is left out of the answer."""
    (item,) = items.get(parse_ids(items, [text]))
    distances, ids = items.search(item.vector[None], min(k + 1, len(items)))
    found = zip(ids[0].tolist(), distances[0].tolist(), strict=True)
    others = [(name, far) for name, far in found if name != item.id][:k]
    return [_answer(items, item.id, [name for name, _ in others], [far for _, far in others])]


def _answer(items: "Collection", query: Any, ids: list[Any], distances: list[int]) -> Answer:
    return {"query": query, "items": ids, "distances": distances, "labels": items.labels(ids)}
