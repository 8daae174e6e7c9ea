"""``streamhash serve``: collections behind HTTP, with a page."""

import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from streamhash.cli import _options as options
from streamhash.errors import InputError

READ, WRITE = "STREAMHASH_READ_TOKEN", "STREAMHASH_WRITE_TOKEN"

Port = Annotated[
    int,
    typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 takes a free one."),
]


def run(
    path: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Collections, or a folder of collections."),
    ],
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Where to listen; other machines need a token."
        ),
    ] = "127.0.0.1",
    port: Port = 8000,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Take no changes: another process may write.")
    ] = False,
    mmap: options.Mmap = False,
    read_token_file: Annotated[
        Path | None,
        typer.Option(
            "--read-token-file",
            metavar="FILE",
            help=f"A file with the token for reading; or set {READ}.",
        ),
    ] = None,
    write_token_file: Annotated[
        Path | None,
        typer.Option(
            "--write-token-file",
            metavar="FILE",
            help=f"A file with the token for everything; or set {WRITE}.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="A public name, behind a proxy; may repeat."
        ),
    ] = None,
    log_level: Annotated[
        str,
        typer.Option(
            "--log-level",
            metavar="LEVEL",
            help="debug, info (a line a request), warning or error.",
        ),
    ] = "warning",
    log_format: Annotated[
        str, typer.Option("--log-format", metavar="FORMAT", help="text or json.")
    ] = "text",
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", metavar="NAME=VALUE", help="Change a limit, such as k=100; may repeat."
        ),
    ] = None,
) -> None:
    """Serve collections over HTTP, with a page for people.

    Each goes by the name of its folder. Where a folder of collections is served, others can be
    created in it, and dropped, over HTTP.

    It listens on this machine alone; for any other ADDRESS a token must be set. Ctrl-C or SIGTERM
    ends it: running requests are answered, and all that was acknowledged is stored.
    """
    from streamhash.service import Limits, Tokens, serve

    serve(
        *path,
        host=host,
        port=port,
        read_only=read_only,
        mmap=mmap,
        tokens=Tokens(_token(read_token_file, READ), _token(write_token_file, WRITE)),
        allowed_hosts=allow_host or [],
        limits=Limits(**_limits(limit or [])),
        log_level=log_level,
        log_format=log_format,
        started=say_address,
    )
    typer.echo("Stopped.")


def say_address(address: str, n_items: int) -> None:
    """Tell people where a service is."""
    typer.echo(f"Serving {n_items:,} items at {address} (Ctrl-C ends it)")


def _limits(changes: list[str]) -> dict[str, Any]:
    from streamhash.service import Limits

    kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(Limits)}
    values: dict[str, Any] = {}
    for change in changes:
        name, _, value = change.partition("=")
        try:
            values[name] = kinds[name](value)
        except (KeyError, ValueError):
            values[name] = -1
        if values[name] < 0:
            raise InputError(
                f"serve: --limit {change}: pass NAME=NUMBER with a name of {', '.join(kinds)}."
            )
    return values


def _token(file: Path | None, variable: str) -> str | None:
    """Return a token of a file or of the environment: others could see one of an option."""
    if file is None:
        return os.environ.get(variable) or None
    text = file.read_text(encoding="utf-8").strip()
    if not text:
        raise InputError(f"{file}: is empty; put the token into it.")
    return text
