"""Pages of the documents in tests: their code blocks, commands and examples, and running them."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def read_page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name, language):
    return re.findall(rf"^```{language}\n(.*?)^```", read_page(name), re.DOTALL | re.MULTILINE)


def commands(name):
    """Each command of a page, with the lines that stand below it."""
    for block in blocks(name, "console"):
        yield from commands_of(block)


def commands_of(block):
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def run_command(command, folder):
    """Run a command as a reader would; return what it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PATH": path},
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def says(wanted, printed):
    """Whether a command printed what the page says, where ``...`` stands for anything."""
    return doctest.OutputChecker().check_output(wanted, printed, FLAGS)


def run_examples(name):
    """Run the Python of a page; return how many lines it has."""
    result = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=FLAGS)
    assert result.failed == 0
    return result.attempted


def run_in_order(name, folder):
    """Run the Python and the commands of a page as they follow each other; return how many."""
    names, n = {}, 0
    for language, block in re.findall(
        r"^```(python|console)\n(.*?)^```", read_page(name), re.DOTALL | re.MULTILINE
    ):
        if language == "python":
            test = doctest.DocTestParser().get_doctest(block, names, name, name, 0)
            test.globs, report = names, []
            results = doctest.DocTestRunner(optionflags=FLAGS).run(
                test, out=report.append, clear_globs=False
            )
            assert results.failed == 0, "".join(report)
            n += results.attempted
            continue
        for command, wanted in commands_of(block):
            printed = run_command(command, folder)
            assert not wanted or says(wanted, printed), f"{command}: {printed}"
            n += 1
    return n
