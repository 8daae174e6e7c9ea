"""The command line in tests: called in this process, and what it says when it refuses."""

import re
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from streamhash.cli import app


def run(*words, **options):
    return CliRunner().invoke(app, [str(word) for word in words], prog_name="streamhash", **options)


def refused(result, message):
    assert (result.exit_code, result.stdout) == (2, "")
    assert errors(result) == f"streamhash: {message}\n"


def errors(result):
    """What was said on standard error, without which columns of a file hold what."""
    return "".join(line for line in result.stderr.splitlines(keepends=True) if not COLUMNS(line))


COLUMNS = re.compile(r"(?!streamhash: ).*: (features|id|label): .*\.$").match


PROGRAM = Path(sys.executable).with_name("streamhash")
TINY = ["--stream", "200", "--checkpoints", "2"]


def program(*words, **options):
    """Run the command line in a process of its own."""
    return subprocess.run(
        [str(PROGRAM), *words], capture_output=True, text=True, timeout=120, check=False, **options
    )


def notes(text):
    """Drop what is said once on a fresh machine, when kernels are compiled."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("streamhash: compiling "))


def heavy_imports(*words):
    """Return the large packages that a call of the command line imports, and what it prints."""
    code = (
        "import sys\n"
        "from streamhash.cli import app\n"
        f"sys.argv = ['streamhash', *{words!r}]\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "heavy = 'numpy numba sklearn scipy matplotlib rich lance pyarrow'.split()\n"
        "sys.stderr.write(' '.join(name for name in heavy if name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr, done.stdout
