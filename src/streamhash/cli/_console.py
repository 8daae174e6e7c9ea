"""Where words go: results to standard output, progress and notes to standard error."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["note", "print_json", "progress_bar", "results"]

WIDE = 120  # columns for tables that go into a file or a pipe


def results() -> "Console":
    """Return the console for what was asked for."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def print_json(value: Any) -> None:
    """Print one JSON value on standard output."""
    import json

    typer.echo(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def note(message: str) -> None:
    """Say something beside the result, on standard error."""
    typer.echo(message, err=True)


@contextmanager
def progress_bar() -> Iterator["Progress"]:
    """Show a progress bar on a terminal, with the library's log lines above it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    logger, handler = logging.getLogger("streamhash"), _Above(console)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        logger.addHandler(handler)
        try:
            yield progress
        finally:
            logger.removeHandler(handler)


class _Above(logging.Handler):
    """Prints log lines without breaking the bar."""

    def __init__(self, console: "Console") -> None:
        super().__init__(logging.WARNING)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(record.getMessage(), markup=False, soft_wrap=True)
