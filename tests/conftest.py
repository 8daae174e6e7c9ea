"""What several test files share: services, in processes of their own and in this one."""

import asyncio
import os
import signal
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest

# A shell that starts tests in the background lets them ignore Ctrl-C, and their children with them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What tests share is imported once: collected too, it would define its classes a second time.
collect_ignore = [
    path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")
]

MAIN = "from streamhash.cli import main; main()"


class Service:
    """A service that runs: ``streamhash serve PATH OPTIONS``, or another verb, on a free port."""

    def __init__(self, *arguments, **environment):
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *map(str, arguments), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "STREAMHASH_THREADS": "2", **environment},
        )
        line = self.process.stdout.readline()
        if " at http" not in line:
            self.process.kill()
            pytest.fail(f"the service did not start: {line}{self.process.communicate()[1]}")
        self.url = line.split(" at ")[1].split("/ ")[0]
        self.port = int(self.url.rpartition(":")[2])

    def stop(self):
        """End it as an operator would; return the exit code and what it said."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            out, err = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        # Where the kernels are not compiled yet, it says so.
        lines = [line for line in err.splitlines() if "compiling" not in line]
        return self.process.returncode, out, "\n".join(lines)


@pytest.fixture(scope="session")
def start_service():
    started = []

    def start(*arguments, **environment):
        started.append(Service(*arguments, **environment))
        return started[-1]

    yield start
    for service in started:
        if service.process.poll() is None:
            service.stop()


@pytest.fixture(scope="session")
def ask_app():
    """Make functions that ask an ASGI application, as a server would, in this process.

    They take method, path, headers and content; they return status, headers and content.
    """
    with asyncio.Runner() as runner:

        def asking(app):
            def ask(method, path, headers=None, content=b""):
                return runner.run(_ask(app, method, path, headers or {}, content))

            return ask

        yield asking


@pytest.fixture
def ask_together():
    """Ask an ASGI application for many things at once: method, path, headers, content each."""

    def ask(app, requests):
        async def ask_all():
            return await asyncio.gather(*(_ask(app, *each) for each in requests))

        return asyncio.run(ask_all())

    return ask


async def _ask(app, method, path, headers, content):
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": urllib.parse.unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    messages = [{"type": "http.request", "body": content, "more_body": False}]
    sent = []

    async def receive():
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    start, *parts = sent
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, b"".join(part["body"] for part in parts)


@pytest.fixture(scope="session")
def make_digits(tmp_path_factory):
    """Make collections of the first digits, by whole numbers or by strings."""
    from sklearn.datasets import load_digits

    from streamhash import SDOH
    from streamhash.live import Collection

    X, y = load_digits(return_X_y=True)

    def make(n=600, *, strings=False, labelled=True) -> Path:
        path = tmp_path_factory.mktemp("served") / "digits"
        hasher = SDOH(32, random_state=0)
        with Collection.create(path, hasher, refresh="manual", reservoir_size=200) as items:
            if n:
                items.add(
                    [f"a/{i}" for i in range(n)] if strings else range(n),
                    X[:n],
                    y[:n] if labelled else None,
                    metadata=[{"image": {"width": 8, "height": 8}, "row": i} for i in range(n)],
                )
        return path

    return make


@pytest.fixture(scope="session")
def library(make_digits):
    """A collection of 600 digits that tests only read from."""
    from streamhash.live import Collection

    with Collection.open(make_digits(), read_only=True) as items:
        yield items
