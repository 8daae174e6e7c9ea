"""``streamhash evaluate``: how well a model's codes find similar items."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamhash.cli._options import Json, LabelColumn, Model
from streamhash.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamhash.base import OnlineHasher

__all__ = ["run"]


def run(
    model: Model,
    database: Annotated[
        str, typer.Option("--database", metavar="FILE", help="What is searched: with labels.")
    ],
    queries: Annotated[
        str, typer.Option("--queries", metavar="FILE", help="What is looked for: with labels.")
    ],
    database_labels: Annotated[
        Path | None,
        typer.Option("--database-labels", metavar="FILE", help="Labels of the database."),
    ] = None,
    query_labels: Annotated[
        Path | None, typer.Option("--query-labels", metavar="FILE", help="Labels of the queries.")
    ] = None,
    label_column: LabelColumn = None,
    as_json: Json = False,
) -> None:
    """Measure a model on files with labels.

    AUC, the mean over a stream, needs the stream: streamhash bench measures it.
    """
    from rich import box
    from rich.table import Table

    from streamhash.cli._console import print_json, results
    from streamhash.lab.rows import strict_json
    from streamhash.metrics import evaluate
    from streamhash.pipeline import load

    hasher = load(model)
    asked = _encode(hasher, queries, query_labels, label_column, "--query-labels")
    searched = _encode(hasher, database, database_labels, label_column, "--database-labels")
    metrics = evaluate(*asked, *searched)
    if as_json:
        print_json(strict_json(metrics))
        return
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in metrics.items():
        table.add_row(_heading(name), f"{value:.4f}")
    results().print(table)


def _encode(
    hasher: "OnlineHasher", name: str, labels: Path | None, column: str | None, option: str
) -> "tuple[NDArray[Any], NDArray[Any]]":
    from streamhash.cli._inputs import read_input

    X, y = read_input(name, labels, column if labels is None else None)
    if y is None:
        raise InputError(
            f"evaluate: {name} has no labels; pass {option} FILE or --label-column NAME."
        )
    return hasher.transform(X), y


def _heading(metric: str) -> str:
    return metric.replace("map", "mAP").replace("precision", "P").replace("@h", "@H")
