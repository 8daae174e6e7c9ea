"""What people see: results on standard output; progress, notes and errors on standard error."""

import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from streamhash.cli._words import in_options
from streamhash.errors import StreamhashError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

COLUMNS_IN_A_PIPE = 120
BAD_INPUT = 2
INTERRUPTED = 130
RUNNING = "streamhash.cli.running"  # the verb that runs, among what a call keeps
# What all usage errors derive from; typer has no public name for it.
UsageError: Any = typer.BadParameter.__bases__[0]


def results() -> "Console":
    """Return the console for what was asked for."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else COLUMNS_IN_A_PIPE, highlight=False)


def print_json(value: Any) -> None:
    """Print one JSON value on standard output; NaN and infinities become null."""
    import json

    value = json.loads(json.dumps(value), parse_constant=lambda _: None)
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Collection[str] = ()
) -> None:
    """Print a table, columns of ``numbers`` to the right; None is empty, a tuple a list."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        justify = "right" if heading in numbers else "left"
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*map(_cell, row))
    results().print(table)


def _cell(value: Any) -> str:
    """Return a value as a table shows it."""
    if isinstance(value, tuple):
        return ", ".join(map(_cell, value))
    if isinstance(value, float):
        return "" if value != value else f"{value:.3f}"
    return "" if value is None else str(value)


def print_answers(
    answers: Sequence[dict[str, Any]], headings: Sequence[str], *, as_json: bool
) -> None:
    """Print what each query has found: its items, their distances, and what else was asked for."""
    if as_json:
        print_json(answers)
        return
    rows = (
        (query, rank, *found)
        for query, *columns in (answer.values() for answer in answers)
        for rank, found in enumerate(zip(*columns, strict=True), start=1)
    )
    numbers = ("query", "rank", "item", "distance", "score", "probability")
    print_table(("query", "rank", *headings), rows, numbers=numbers)


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
    logger, handler = logging.getLogger("streamhash"), _LogAboveBar(console)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        logger.addHandler(handler)
        try:
            yield progress
        finally:
            logger.removeHandler(handler)


@contextmanager
def showing_progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Give a function to call with what is done so far, and with all there is if that is known."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def slices_with_progress(what: str, n: int, size: int) -> Iterator[slice]:
    """Go through ``n`` rows, ``size`` at a time."""
    with showing_progress(what) as progress:
        for start in range(0, n, size):
            yield slice(start, start + size)
            progress(min(start + size, n), n)


class _LogAboveBar(logging.Handler):
    """Prints log lines without breaking the bar."""

    def __init__(self, console: "Console") -> None:
        super().__init__(logging.WARNING)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(record.getMessage(), markup=False, soft_wrap=True)


class SaysColumns(logging.Handler):
    """Says which columns of a file hold what: once, however often the file is read."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, unless it was said."""
        message = record.getMessage()
        if message not in self._said:
            self._said.add(message)
            note(message)


@contextmanager
def saying_columns() -> Iterator[None]:
    """Say what the reader of files logs, while a verb runs."""
    logger, handler = logging.getLogger("streamhash.files"), SaysColumns()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class Verbs(TyperGroup):
    """A group of verbs, which takes note of the one that runs."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a verb, and keep it where the whole call can see it."""
        found = super().resolve_command(ctx, args)
        ctx.meta[RUNNING] = found[1]
        return found


class OneLineErrors(Verbs):
    """The top of the command line: what its verbs raise on purpose ends in one line.

    It says what is wrong and the next step, in the words of the command line, on standard error,
    and exits with 2.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        """Run; wrong options and arguments end in one line and exit code 2."""
        exits = options.pop("standalone_mode", True)
        try:
            code = super().main(*args, standalone_mode=False, **options)  # type: ignore[misc]
        except UsageError as error:
            command = error.ctx.command_path if error.ctx else "streamhash"
            _say(f"{error.format_message().rstrip('.')}; see {command} --help.")
            code = BAD_INPUT
        return sys.exit(code if isinstance(code, int) else 0) if exits else code

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; what it raises on purpose ends in one line and an exit code."""
        try:
            with saying_columns():
                result = super().invoke(ctx)
            sys.stdout.flush()  # so that a closed pipe is met here
        except StreamhashError as error:
            _say(in_options(str(error), ctx.meta.get(RUNNING)))
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except OSError as error:
            named = error.filename is not None and error.strerror is not None
            what = f"{error.filename}: {error.strerror}; check the path and your rights to it"
            _say(f"{what if named else error}.")
        except KeyboardInterrupt:
            _say("interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        else:
            return result
        raise typer.Exit(BAD_INPUT)


def _say(message: str) -> None:
    note(f"streamhash: {' '.join(message.split())}")
