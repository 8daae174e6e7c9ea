"""``streamhash report``: figures and a page from the rows of a folder."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["run"]


def run(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder with the rows.jsonl of bench.")
    ],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table in Markdown, and write nothing.")
    ] = False,
) -> None:
    """Make figures and a page from the rows of bench."""
    from streamhash.bench import ROWS_FILE, markdown_table, read_rows, summarise, write_report

    rows = read_rows(folder / ROWS_FILE)
    if markdown and rows:
        typer.echo(markdown_table(summarise(rows)), nl=False)
        return
    page = write_report(rows, folder, command=f"streamhash report {folder.name}")
    typer.echo(f"The report is in {page}: open it in a browser.")
