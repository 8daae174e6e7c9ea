"""``streamhash demo``: every method on the embedded digits, and a page that shows the result."""

from pathlib import Path
from typing import Annotated

import typer

from streamhash.cli._options import Seed
from streamhash.cli.serve import Port, say_address
from streamhash.errors import InputError

__all__ = ["run"]

BITS = 32
OURS = ".streamhash-demo"  # a file that marks a folder as the demo's own


def run(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for the report, or for the collection."),
    ] = None,
    seed: Seed = 0,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve digits that keep arriving, and a page to watch them."),
    ] = False,
    port: Port = 8000,
) -> None:
    """Try every method on the embedded digits.

    Prints a table of the five metrics, and writes figures and a page that shows them into the
    folder. An earlier report of the demo is replaced; any other folder is left alone.

    With --serve: a live collection of digits behind HTTP, most of them without a label at first;
    labelled ones keep arriving, and within half a minute the neighbours of a digit get better.
    """
    if serve:
        _serve(out, seed, port)
        return
    out = out or Path("streamhash-demo")
    _take(out)
    from streamhash.cli._cells import run_cells
    from streamhash.cli._console import note, results
    from streamhash.hashers import METHODS
    from streamhash.lab import (
        ROWS_FILE,
        append_row,
        have_figures,
        plan_cell,
        rich_table,
        summarise,
        write_report,
    )
    from streamhash.lab.datasets import load_data

    digits = load_data("digits")
    plans = [plan_cell(method, digits, BITS, seed) for method in METHODS]
    (out / ROWS_FILE).unlink(missing_ok=True)
    rows = run_cells(plans, keep=lambda row: append_row(out / ROWS_FILE, row))
    results().print(rich_table(summarise(rows)))
    command = "streamhash demo" + (f" --seed {seed}" if seed else "")
    page = write_report(rows, out, command=command, figures=have_figures())
    if not have_figures():
        note('The page has no figures; for them, run pip install "streamhash[plots]".')
    typer.echo(f"The report is in {page}: open it in a browser.")


def _serve(folder: Path | None, seed: int, port: int) -> None:
    import tempfile

    from streamhash.service import serve
    from streamhash.service.demo import DigitStream, create_digits

    with tempfile.TemporaryDirectory(prefix="streamhash-") as temporary:
        path = folder or Path(temporary) / "digits"
        with create_digits(path, seed) as collection, DigitStream(collection, seed):
            serve(collection, port=port, started=say_address)
    typer.echo("Stopped.")


def _take(folder: Path) -> None:
    """Make the folder, or take one that is empty or the demo's own; refuse any other."""
    if folder.exists() and not (folder / OURS).exists() and any(folder.iterdir()):
        raise InputError(
            f"demo: {folder} is there and not a report of the demo; choose another folder with "
            "--out."
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OURS).touch()
