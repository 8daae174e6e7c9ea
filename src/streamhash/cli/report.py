"""``streamhash report``: tables, figures and a page from the rows of a folder."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["run"]


def run(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A folder with the rows.jsonl of bench, or with such folders."
        ),
    ],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables in Markdown, and write nothing.")
    ] = False,
) -> None:
    """Make tables, figures and a page from the rows of bench.

    Rows of an experiment of a paper stand beside the paper's numbers, all others by data set and
    code length. How many rows went where is told on standard error.
    """
    from streamhash.cli._console import note
    from streamhash.lab import (
        have_figures,
        read_folder,
        report_markdown,
        sort_rows,
        write_contents,
    )

    contents = sort_rows(read_folder(folder))
    if markdown and contents.has_lines:
        typer.echo(report_markdown(contents), nl=False)
        return
    command = f"streamhash report {folder.name}"
    page = write_contents(contents, folder, command=command, figures=have_figures())
    note(contents.account())
    if not have_figures():
        note('The report has no figures; for them, run pip install "streamhash[plots]".')
    typer.echo(f"The report is in {page}: open it in a browser.")
