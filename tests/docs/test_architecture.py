"""docs/architecture.md lists the files that five calls pass; here the calls are made and compared.

Run this file, with `PYTHONPATH=tests`, to print the ways as they are.
"""

import contextlib
import io
import json
import re
import threading
import time
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import uvicorn
from sklearn.datasets import load_digits

from streamhash import SDOH, Collection, HammingIndex
from streamhash.cli import app
from streamhash.service.app import create_app
from ways import Way

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
UPPER = ("cli/", "lab/", "live/", "service/")
# The most files of its layers that a call may pass; calls into the core are listed apart.
LIMITS = {"partial_fit": 8, "transform and search": 8, "bench": 12, "add": 15, "HTTP search": 17}

BY_MACHINE = "kernels/learning/row_products.py"  # passed where BLAS does not treat rows alike

X, y = load_digits(return_X_y=True)
staged = partial(SDOH, memory=0, features=None)  # its memory passes more files: the page says which


def learn() -> list[str]:
    hasher = staged(random_state=0).partial_fit(X[:400], y[:400])
    with Way() as way:
        hasher.partial_fit(X[400:800], y[400:800])
    return way.files


def encode_and_search() -> list[str]:
    hasher = staged(random_state=0).partial_fit(X[:400], y[:400])
    index = HammingIndex(32)
    index.add(None, hasher.transform(X[:800]))
    index.search(hasher.transform(X[:1]), 5)  # compiled, if it was not
    with Way() as way:
        index.search(hasher.transform(X[800:]), 5)
    return way.files


def bench() -> list[str]:
    command = ["bench", "--method", "sdoh", "--set", "memory=0", "--set", "features=none"]

    def run(seed):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            app([*command, "--first-seed", str(seed)])

    run(0)  # loads what is loaded at its first use
    with Way() as way:
        run(1)
    return way.files


def make_collection(path) -> Collection:
    items = Collection.create(path, staged(random_state=0), refresh=200)
    items.add(range(600), X[:600], y[:600])
    return items


def add_and_refresh(path) -> list[str]:
    for place in (path.with_name("first"), path):  # the first loads the compiled loops
        with make_collection(place) as items:
            before = items.model_number
            with Way() as way:
                items.add(range(600, 1000), X[600:1000], y[600:1000])
            assert items.model_number > before
    return way.files


def search_by_http(path) -> list[str]:
    with make_collection(path) as items, Way() as way:
        config = uvicorn.Config(create_app(items), port=0, log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        ask(port, X[:1])  # loads what is loaded at its first use
        while way.files:  # what is done after the answer is sent, such as a line of the log
            way.forget()
            time.sleep(0.1)
        ask(port, X[700:701])
        found = way.files
        server.should_exit = True
        thread.join()
    return found


def ask(port: int, rows) -> None:
    """Search as any program does, so that the client's own files are not counted."""
    body = json.dumps({"vectors": rows.tolist(), "k": 3}).encode()
    address = f"http://127.0.0.1:{port}/api/search"
    with urlopen(Request(address, body, {"Content-Type": "application/json"})) as answer:
        assert json.load(answer)["results"][0]


WAYS = {
    "partial_fit": lambda _: learn(),
    "transform and search": lambda _: encode_and_search(),
    "bench": lambda _: bench(),
    "add": add_and_refresh,
    "HTTP search": search_by_http,
}


def split_layers(files: list[str]) -> tuple[list[str], list[str]]:
    """Return the files of lab, live, service and command line, and those of the core."""
    files = [file for file in files if file != BY_MACHINE]
    upper = [file for file in files if file.startswith(UPPER)]
    return upper, [file for file in files if not file.startswith(UPPER)]


def documented(name: str) -> tuple[list[str], list[str]]:
    """Return the two lists that the page has for a way."""
    text = PAGE.read_text(encoding="utf-8")
    section = re.search(rf"\n### {re.escape(name)}\n(.*?)(?=\n##|\Z)", text, re.DOTALL).group(1)
    listed = re.findall(r"^\d+\. `([\w/.]+)`", section, re.MULTILINE)
    core = re.search(r"^In the core: (.*)$", section, re.MULTILINE)
    return listed, [] if core is None else re.findall(r"`([\w/.]+)`", core.group(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_a_call_passes_the_files_that_the_page_lists(name, tmp_path):
    upper, core = split_layers(WAYS[name](tmp_path / "items"))
    listed, listed_core = documented(name)
    if not upper:
        upper, core = core, []
    assert listed == upper
    assert sorted(listed_core) == sorted(core)
    assert len(upper) <= LIMITS[name]


if __name__ == "__main__":
    import tempfile

    for name, way in WAYS.items():
        upper, core = split_layers(way(Path(tempfile.mkdtemp()) / "items"))
        print(  # noqa: T201
            f"### {name}: {len(upper)} + {len(core)}", *upper, "core:", *core, sep="\n  "
        )
