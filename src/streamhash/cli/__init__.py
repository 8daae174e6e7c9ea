"""The command line: a thin skin over the library; nothing heavy is imported before a verb runs."""

from typing import Annotated

import typer

from streamhash import __version__
from streamhash.cli import data, lab, live, models, runbooks, serve
from streamhash.cli._console import OneLineErrors
from streamhash.cli._options import import_modules

__all__ = ["app", "main"]

app = typer.Typer(
    cls=OneLineErrors,
    rich_markup_mode=None,  # plain help answers at once
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    *(lab.demo, lab.bench, lab.reproduce, lab.tune, lab.report, lab.leaderboard),
    runbooks.runbook,
    *(models.methods, models.fit, models.encode, models.search, models.evaluate),
):
    app.command()(verb)
app.command("serve")(serve.run)
app.add_typer(data.app, name="data")
app.add_typer(live.app, name="live")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamhash {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            help="Import a module with a method of your own first; may be repeated.",
            envvar="STREAMHASH_IMPORT",
        ),
    ] = None,
) -> None:
    """Learn binary codes from a labelled stream, and search them by Hamming distance.

    Begin with: streamhash demo
    """
    import_modules(modules or [])
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line; the console script ``streamhash``."""
    app(prog_name="streamhash")
