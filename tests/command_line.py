"""The command line in tests: called in this process, and what it says when it refuses."""

from typer.testing import CliRunner

from streamhash.cli import app


def run(*words, **options):
    return CliRunner().invoke(app, [str(word) for word in words], prog_name="streamhash", **options)


def refused(result, message):
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"streamhash: {message}\n"
