"""``streamhash serve``: a collection behind HTTP, with a page."""

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamhash.errors import InputError, MissingPartError

if TYPE_CHECKING:
    from streamhash.live import Collection
    from streamhash.service.limits import Limits
    from streamhash.service.security import Tokens

__all__ = ["run", "serve"]

READ, WRITE = "STREAMHASH_READ_TOKEN", "STREAMHASH_WRITE_TOKEN"

Host = Annotated[
    str,
    typer.Option("--host", metavar="ADDRESS", help="Where to listen; others need a token."),
]
Port = Annotated[
    int,
    typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes a free one."),
]


def run(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The collection.")],
    host: Host = "127.0.0.1",
    port: Port = 8000,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Serve beside another process that writes.")
    ] = False,
    read_token_file: Annotated[
        Path | None,
        typer.Option(
            "--read-token-file", metavar="FILE", help=f"File with the read token, or {READ}."
        ),
    ] = None,
    write_token_file: Annotated[
        Path | None,
        typer.Option(
            "--write-token-file", metavar="FILE", help=f"File with the write token, or {WRITE}."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="A name it goes by behind a proxy; may repeat."
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit", metavar="NAME=VALUE", help="Change a limit, such as k=100; may repeat."
        ),
    ] = None,
) -> None:
    """Serve a collection over HTTP, with a page for people.

    It listens on this machine alone; for any other ADDRESS a token must be set. Ctrl-C or SIGTERM
    ends it: running requests are answered, and all that was acknowledged is stored.
    """
    need_service()
    from streamhash.live import Collection
    from streamhash.service.security import Tokens
    from streamhash.service.server import check_open

    tokens = Tokens(_token(read_token_file, READ), _token(write_token_file, WRITE))
    check_open(host, tokens)
    limits = _limits(limit or [])
    with Collection.open(path, read_only=read_only, background=True) as collection:
        serve(
            collection,
            host,
            port,
            tokens=tokens,
            allowed_hosts=allow_host or [],
            limits=limits,
        )


def serve(
    collection: "Collection",
    host: str,
    port: int,
    *,
    tokens: "Tokens | None" = None,
    allowed_hosts: Sequence[str] = (),
    limits: "Limits | None" = None,
) -> None:
    """Serve a collection that is open, until a signal ends it."""
    from streamhash.service.app import create_app
    from streamhash.service.server import listen
    from streamhash.service.server import run as run_server

    app = create_app(
        collection, tokens=tokens, host=host, allowed_hosts=allowed_hosts, limits=limits
    )
    with listen(host, port) as at:
        name, actual = at.getsockname()[:2]
        address = f"http://{f'[{name}]' if ':' in name else name}:{actual}/"
        words = f"Serving {len(collection):,} items at {address} (Ctrl-C ends it)"
        run_server(app, at, limits, started=lambda: typer.echo(words))
    typer.echo("Stopped.")


def need_service() -> None:
    """Refuse where the optional part is missing."""
    try:
        import fastapi
        import prometheus_client
        import uvicorn
    except ImportError as error:
        raise MissingPartError(
            f'the service needs {error.name}: pip install "streamhash[serve]".'
        ) from error
    del fastapi, prometheus_client, uvicorn


def _limits(changes: list[str]) -> "Limits":
    from streamhash.service.limits import Limits

    known: dict[str, Any] = {field.name: type(field.default) for field in fields(Limits)}
    values: dict[str, float] = {}
    for change in changes:
        name, _, value = change.partition("=")
        try:
            values[name] = known[name](value)
        except (KeyError, ValueError):
            values[name] = -1
        if values[name] < 0:
            raise InputError(
                f"serve: --limit {change}: pass NAME=NUMBER with a name of {', '.join(known)}."
            )
    return Limits(**values)  # type: ignore[arg-type]


def _token(file: Path | None, variable: str) -> str | None:
    """Return a token of a file or of the environment: others could see one of an option."""
    if file is None:
        return os.environ.get(variable) or None
    text = file.read_text(encoding="utf-8").strip()
    if not text:
        raise InputError(f"{file}: is empty; put the token into it.")
    return text
