"""Errors as one line on standard error: what is wrong and the next step, and the exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from streamhash.errors import StreamhashError

__all__ = ["OneLineErrors"]

BAD_INPUT = 2
INTERRUPTED = 130
# What all usage errors derive from; typer has no public name for it.
UsageError: Any = typer.BadParameter.__bases__[0]


class OneLineErrors(TyperGroup):
    """The top of the command line: catches what its verbs raise on purpose."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run; wrong options and arguments end in one line and exit code 2."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except UsageError as error:
            _say(_usage(error))
            code = BAD_INPUT
        return sys.exit(code if isinstance(code, int) else 0) if standalone_mode else code

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; what it raises on purpose ends in one line and an exit code."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # so that a closed pipe is met here
        except StreamhashError as error:
            _say(str(error))
        except BrokenPipeError:  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except OSError as error:
            _say(_os_error(error))
        except KeyboardInterrupt:
            _say("interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        else:
            return result
        raise typer.Exit(BAD_INPUT)


def _say(message: str) -> None:
    typer.echo(f"streamhash: {' '.join(message.split())}", err=True)


def _usage(error: Any) -> str:
    command = error.ctx.command_path if error.ctx else "streamhash"
    return f"{error.format_message().rstrip('.')}; see {command} --help."


def _os_error(error: OSError) -> str:
    if error.filename is None or error.strerror is None:
        return f"{error}."
    return f"{error.filename}: {error.strerror}; check the path and your rights to it."
