"""``streamhash live``: a collection that learns, stores and is searched at once; a file a verb."""

import typer

from streamhash.cli.live import (
    add,
    create,
    delete,
    export,
    get,
    history,
    label,
    refresh,
    search,
    status,
)

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
for verb in (create, add, label, delete, get, search, refresh, status, history, export):
    app.command(verb.__name__.rpartition(".")[2])(verb.run)


@app.callback()
def about() -> None:
    """Keep a collection that learns and is searched at once."""
