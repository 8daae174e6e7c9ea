"""``streamhash data``: the data sets there are; ``show``, ``fetch`` and ``write``."""

from pathlib import Path
from typing import Annotated

import typer

from streamhash.cli._options import Json

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def list_sets(context: typer.Context, as_json: Json = False) -> None:
    """List the data sets, and where they are; or fetch one."""
    if context.invoked_subcommand is not None:
        return
    from dataclasses import asdict

    from rich import box
    from rich.table import Table

    from streamhash.cli._console import print_json, results
    from streamhash.lab.datasets import available

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
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set that the list has.")],
    as_json: Json = False,
) -> None:
    """Print the whole card of a data set."""
    from dataclasses import asdict

    from streamhash.cli._console import print_json
    from streamhash.errors import InputError
    from streamhash.lab.datasets import available

    cards = {card.name: card for card in available()}
    if name not in cards:
        raise InputError(f"{name!r} is not a data set; pass one of {', '.join(cards)}.")
    card = cards[name]
    if as_json:
        print_json({**asdict(card), "here": card.here})
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
        str, typer.Argument(metavar="NAME", help="A data set with a public download: mnist.")
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
    import json

    import numpy as np

    from streamhash.errors import InputError
    from streamhash.lab.datasets import load_data
    from streamhash.storage import whole_file

    if out.suffix not in (".jsonl", ".csv", ".npz"):
        raise InputError(f"write: --out {out}: pass a name that ends in .jsonl, .csv or .npz.")
    data = load_data(name)
    with whole_file(out) as temporary:
        if out.suffix == ".npz":
            with temporary.open("wb") as file:
                np.savez(file, X=data.X, y=data.y, ids=np.arange(len(data.X)))
        else:
            with temporary.open("w", encoding="utf-8") as text:
                if out.suffix == ".csv":
                    text.write(f"id,label,{','.join(f'x{i}' for i in range(data.X.shape[1]))}\n")
                for i, (row, label) in enumerate(zip(data.X, data.y.tolist(), strict=True)):
                    vector = row.tolist()
                    if out.suffix == ".csv":
                        text.write(f"{i},{label},{','.join(map(str, vector))}\n")
                    else:
                        item = {"id": i, "vector": vector, "label": label}
                        text.write(json.dumps(item) + "\n")
    typer.echo(f"{len(data.X):,} rows of {name} are in {out}.")
