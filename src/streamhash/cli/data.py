"""``streamhash data``: the data sets there are, and ``streamhash data fetch``."""

from typing import Annotated

import typer

from streamhash.cli._options import Json

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def show(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets, and where they are; or fetch one."""
    if context.invoked_subcommand is not None:
        return
    from dataclasses import asdict

    from rich import box
    from rich.table import Table

    from streamhash.cli._console import print_json, results
    from streamhash.data import available

    if as_json:
        print_json([{**asdict(card), "here": card.here} for card in available()])
        return
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("data set", "rows", "features", "classes", "where"):
        table.add_column(heading, justify="right" if heading[-1] == "s" else "left")
    for card in available():
        sizes = (f"{size:,}" for size in (card.rows, card.features, card.classes))
        table.add_row(card.name, *sizes, card.where or "not here")
    results().print(table)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set with a download: mnist.")],
) -> None:
    """Download a public data set into the cache, and check it."""
    from streamhash.data import fetch as fetch_set

    typer.echo(f"{name} is in {fetch_set(name)}.")
