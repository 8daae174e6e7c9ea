"""Requests made up at random: good ones with something changed, by whoever, to a real service.

Each begins as a request that is good. Its JSON, its bytes, its address or its head are changed in
one to four places. An answer may be good or refuse (2xx, 4xx, 503), in the shape that all answers
have; 500, silence and a service that ends are failures. At the end every item must be answered.
"""

import json
import random
import socket
import threading
import time
import urllib.parse
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np

from _service import READ, WIDTH, WRITE, Service, exchange, watch
from streamhash.service.frames import TYPE as RAW, pack_frame

ROW = [round(i / WIDTH - 0.5, 3) for i in range(WIDTH)]
NASTY: list[Any] = [
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**53, 2**63, -(2**63), 10**30),
    *(
        10**400,
        "",
        "a",
        "\ud800",
        "\x00",
        "é" * 1001,
        "../../etc/passwd",
        "NaN",
        "😀",
        [],
        {},
        [[]],
    ),
    *([None], {"a": {}}, ROW, [ROW], [ROW[:-1]], ["1"] * WIDTH, "sdoh", "__import__", float("nan")),
    *(float("inf"), {"__proto__": 1}, [[[[[[[[[[1]]]]]]]]]], "x" * 3000),
]
PATHS = [
    *("/", "/health", "/ready", "/metrics", "/openapi.json", "/api/status", "/api/history"),
    *("/api/models", "/api/items", "/api/items?offset=3&limit=5&newest=true", "/api/items/7"),
    *("/api/items/7/image", "/static/main.js", "/static/../app.py", "/nothing"),
]
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/api/search", {"vectors": [ROW], "k": 3}),
    ("/api/search", {"ids": [1, 2], "k": 3, "metadata": False}),
    ("/api/search", {"ids": [5], "k": 2, "model": 1}),
    ("/api/encode", {"vectors": [ROW, ROW]}),
    ("/api/compare", {"queries": [1], "k": 2, "left": {"model": 1}, "right": {"method": "lsh"}}),
    ("/api/items/get", {"ids": [3, 4]}),
    ("/api/items", {"vectors": [ROW], "labels": [1], "metadata": [{"a": [1, "b"]}]}),
    ("/api/items", {"vectors": [ROW] * 2, "ids": [3, 900_001], "existing": "replace"}),
    ("/api/labels", {"ids": [6, 8], "labels": [1, None]}),
    ("/api/items/delete", {"ids": [900_001]}),
    ("/api/refresh", {"wait": False}),
]
LINES = [
    *(
        "Host: evil.example",
        "Content-Length: 5",
        "Content-Length: -1",
        "Transfer-Encoding: chunked",
    ),
    *("Expect: 100-continue", "Connection: Upgrade", "Upgrade: websocket", "Connection: close"),
    *("Accept: application/octet-stream", "Content-Type: text/plain", "Authorization: Bearer é"),
    *(": nothing", "X: \x01", "X" * 200, "Content-Type: application/json; charset=utf-16"),
]


class Fuzzer:
    """Makes up requests, one after the other, always the same of the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> bytes:
        """Return a request as it is sent."""
        choose = self._random
        if choose.random() < 0.15:
            return self._head("GET", self._path(choose.choice(PATHS)), None)
        path, body = choose.choice(BODIES)
        if path == "/api/compare" and choose.random() < 0.8:  # they take long
            path, body = BODIES[0]
        kind, content = "application/json", b""
        changed = self._value(json.loads(json.dumps(body)), choose.choice([0, 1, 1, 1, 2, 4]))
        if isinstance(changed, dict) and choose.random() < 0.25:
            kind, head = RAW, {**changed, "shape": [1, WIDTH]}
            head.pop("vectors", None)
            text = json.dumps(self._value(head, choose.choice([0, 0, 1]))).encode()
            numbers = pack_frame({}, np.array([ROW], np.float32))[6:]
            content = len(text).to_bytes(4, "little") + text + numbers
        else:
            content = json.dumps(changed).encode()
        if choose.random() < 0.25:
            content = self._bytes(content)
        return self._head("POST", self._path(path), content, kind)

    def _head(self, method: str, path: str, content: bytes | None, kind: str = "") -> bytes:
        choose = self._random
        token = choose.choices([WRITE, READ, None, WRITE[:-1]], [70, 20, 5, 5])[0]
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        lines += [f"Authorization: Bearer {token}"] if token else []
        if content is not None:
            lines += [f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
        if choose.random() < 0.1:
            lines.insert(choose.randrange(1, len(lines) + 1), choose.choice(LINES))
        if choose.random() < 0.03:
            lines[0] = choose.choice([f"{method} {path}", f"BREW {path} HTTP/1.1", "", "\x00" * 9])
        head = "\r\n".join([*lines, "", ""]).encode("utf-8", "replace")
        if choose.random() < 0.02:
            head = self._bytes(head)
        return head + (content or b"")

    def _path(self, path: str) -> str:
        choose = self._random
        if choose.random() < 0.9:
            return path
        part = urllib.parse.quote(str(choose.choice(NASTY))[:300], errors="replace")
        return choose.choice([f"/api/items/{part}", f"/api/items?limit={part}", f"{path}/{part}"])

    def _value(self, value: Any, n: int) -> Any:
        for _ in range(n):
            value = self._changed(value)
        return value

    def _changed(self, value: Any) -> Any:
        """Change one place of a value."""
        choose = self._random
        if isinstance(value, dict) and value and choose.random() < 0.9:
            name = choose.choice([*value])
            how = choose.random()
            if how < 0.1:
                return {key: each for key, each in value.items() if key != name}
            if how < 0.2:
                return {**value, str(choose.choice(NASTY))[:50]: choose.choice(NASTY)}
            return {**value, name: self._changed(value[name])}
        if isinstance(value, list) and value and choose.random() < 0.7:
            at = choose.randrange(len(value))
            how = choose.random()
            if how < 0.15:
                return value[:at] + value[at + 1 :]
            if how < 0.25:
                return value * choose.choice([2, 3, 200])
            return [*value[:at], self._changed(value[at]), *value[at + 1 :]]
        return choose.choice(NASTY)

    def _bytes(self, content: bytes) -> bytes:
        """Change some bytes."""
        choose, changed = self._random, bytearray(content)
        for _ in range(choose.choice([1, 1, 2, 8])):
            at = choose.randrange(len(changed) + 1)
            how = choose.randrange(4)
            if how == 0:
                changed[at : at + 1] = bytes([choose.randrange(256)])
            elif how == 1:
                del changed[at : at + choose.choice([1, 5, 500])]
            elif how == 2:
                changed[at:at] = choose.choice([b"{", b"[", b'"', b",", b"\\", b"\xff", b"1" * 50])
            else:
                changed[at:at] = changed[: choose.choice([1, 10, 100])]
        return bytes(changed)


def ask(connection: socket.socket, content: bytes) -> tuple[int, bytes, bool]:
    """Send a request; return the status and the content of its answer, and if more may follow."""
    with suppress(ConnectionError):
        connection.sendall(content)
    received = bytearray()
    while b"\r\n\r\n" not in received:
        part = connection.recv(2**16)
        if not part:
            return 0, bytes(received), False
        received += part
        if received.startswith(b"HTTP/1.1 100"):
            del received[: received.find(b"\r\n\r\n") + 4]
    start, _, body = bytes(received).partition(b"\r\n\r\n")
    fields = dict(
        line.lower().split(b": ", 1) for line in start.split(b"\r\n")[1:] if b": " in line
    )
    missing = int(fields.get(b"content-length", b"0")) - len(body)
    while missing > 0:
        part = connection.recv(2**16)
        if not part:
            return 0, body, False
        body, missing = body + part, missing - len(part)
    status = int(start.split()[1])
    # What was changed may make two requests of one, or leave one that waits for the rest of it.
    return status, body, status < 400 and missing == 0 and fields.get(b"connection") != b"close"


def failure(status: int, body: bytes) -> str | None:
    """Tell what is wrong with an answer, if anything."""
    if status == 0:
        return None  # no answer to what is no request
    if status >= 500 and status != 503:
        return f"{status} {body[:200]!r}"
    if status >= 400:
        try:
            error = json.loads(body)["error"]
        except (ValueError, KeyError, TypeError):
            return f"{status} without its shape: {body[:200]!r}"
        if set(error) != {"code", "message"} or "Traceback" in error["message"]:
            return f"{status} with another shape: {body[:200]!r}"
    return None


class Attack:
    """Many requests by some threads, and what was answered."""

    def __init__(self, service: Service, n: int, seed: int, *, threads: int = 16) -> None:
        self.statuses: Counter[int] = Counter()
        self.failures: list[str] = []
        self._service, self._lock = service, threading.Lock()
        parts = [n // threads + (i < n % threads) for i in range(threads)]
        self._threads = [
            threading.Thread(target=self._run, args=(part, seed * 1000 + i))
            for i, part in enumerate(parts)
        ]

    def run(self) -> None:
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()

    def _run(self, n: int, seed: int) -> None:
        fuzzer, connection = Fuzzer(seed), None
        for i in range(n):
            content = fuzzer.request()
            try:
                if connection is None:
                    connection = socket.create_connection(("127.0.0.1", self._service.port), 60)
                    connection.settimeout(3)
                status, body, goes_on = ask(connection, content)
            except ConnectionError:
                status, body, goes_on = 0, b"", False
            except TimeoutError:  # what was changed says that more comes
                status, body, goes_on = 0, b"", False
            wrong = failure(status, body)
            with self._lock:
                self.statuses[status] += 1
                if wrong is not None:
                    self.failures.append(f"seed {seed}, request {i}: {wrong}: {content[:300]!r}")
            if connection is not None and (not goes_on or i == n - 1):
                connection.close()
                connection = None


def check_items(service: Service) -> int:
    """Go through all items; return how many of them were answered."""
    total, seen = 1, 0
    while seen < total:
        head = f"GET /api/items?offset={seen}&limit=500 HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Connection: close\r\nAuthorization: Bearer {READ}\r\n\r\n"
        status, body = exchange(service.port, head.encode())
        if status != 200:
            raise SystemExit(f"FAILED: the list of items is answered with {status} {body[:300]!r}")
        answer = json.loads(body)
        total, seen = answer["total"], seen + len(answer["items"])
        if not answer["items"]:
            break
    return seen


def attack(service: Service, n: int, seed: int) -> dict[str, Any]:
    """Send ``n`` requests made up at random; return what came of them."""
    trial, start = Attack(service, n, seed), time.perf_counter()
    seen = watch(service, trial.run)
    return {
        "tried": n,
        "failures": trial.failures[:20],
        "lost": len(trial.failures),
        "statuses": {str(status): n for status, n in sorted(trial.statuses.items())},
        "items_answered": check_items(service),
        "longest_wait_ms": round(1000 * seen.longest, 1),
        "held_up_ms": round(1000 * seen.held_up, 1),
        "left_mb": round(seen.left / 2**20, 1),
        "seconds": round(time.perf_counter() - start, 1),
    }
