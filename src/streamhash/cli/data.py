"""``streamhash data``: the data sets there are; ``show``, ``fetch`` and ``write``."""

from pathlib import Path
from typing import Annotated

import typer

from streamhash.cli import _console as console
from streamhash.cli._options import Json

app = typer.Typer(cls=console.Verbs, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def list_sets(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets, and where they are; or fetch one."""
    if context.invoked_subcommand is not None:
        return
    from dataclasses import asdict

    from streamhash.lab.datasets import available

    if as_json:
        console.print_json([{**asdict(card), "here": card.here} for card in available()])
        return
    rows = []
    for card in available():
        sizes = (f"{size:,}" for size in (card.rows, card.features, card.classes))
        rows.append((card.name, *sizes, card.where or "not here"))
    numbers = ("rows", "features", "classes")
    console.print_table(("data set", *numbers, "where"), rows, numbers=numbers)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set that the list has.")],
    as_json: Json = False,
) -> None:
    """Print the whole card of a data set."""
    from dataclasses import asdict

    from streamhash.errors import InputError
    from streamhash.lab.datasets import available

    cards = {card.name: card for card in available()}
    if name not in cards:
        raise InputError(f"{name!r} is not a data set; pass one of {', '.join(cards)}.")
    card = cards[name]
    if as_json:
        console.print_json({**asdict(card), "here": card.here})
        return
    size = f"{card.rows:,} rows × {card.features:,} features, {card.classes} classes"
    facts = {"size": size, "source": card.source, "licence": card.licence, "note": card.note}
    facts |= {"checksum": card.checksum or "none", "where": card.where or "not here"}
    typer.echo(name)
    for fact, value in facts.items():
        typer.echo(f"  {fact:<10}{value}")


@app.command()
def fetch(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="One of mnist, cifar10-vgg16 and places205."),
    ],
) -> None:
    """Download a public data set into the cache, and check it."""
    from streamhash.lab.datasets import fetch as fetch_set

    typer.echo(f"{name} is in {fetch_set(name)}.")


@app.command()
def write(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set that is here.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The .jsonl, .csv or .npz to write.")
    ],
) -> None:
    """Write a data set to a file: id, vector and label of each row."""
    from streamhash.files import write_table
    from streamhash.lab.datasets import load_data

    data = load_data(name)
    write_table(out, data.X, data.y)
    typer.echo(f"{len(data.X):,} rows of {name} are in {out}.")
