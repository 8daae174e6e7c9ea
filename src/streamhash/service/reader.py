"""Large bodies, read in a process of their own: the service goes on meanwhile.

Reading JSON holds the interpreter for as long as it takes. The process is started with the first
large body and then kept; what it may take of memory is bounded by the system.
"""

import json
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from streamhash.service.bodies import Bytes, Form, RefusedBody, read_json
from streamhash.storable import MetadataTexts

SMALL = 2**16  # bytes of JSON that are read where they are, in a millisecond
MEMORY = 5  # times a body: what reading it may take
SPARE = 8 * 2**20  # bytes that it may take besides

START = f"""
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from {__name__} import main
main()
"""


class BodyReader:
    """Reads bodies, the large ones in a process that lives as long as this."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._lock = seconds, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, content: bytearray | memoryview, form: Form) -> dict[str, Any]:
        """Return what JSON says; that of a whole body is then empty, as nobody needs it twice."""
        if len(content) <= SMALL:
            return read_json(content, form)
        with self._lock:
            for _ in range(2):
                process = self._start()
                timer = threading.Timer(self._seconds, process.kill)
                timer.start()
                try:
                    assert process.stdin is not None
                    assert process.stdout is not None
                    _send(process.stdin, {"names": [*form.names], "most": form.most}, content)
                    if isinstance(content, bytearray):
                        content.clear()
                    return _receive_fields(process.stdout)
                except (BrokenPipeError, EOFError):
                    self.close()
                    if not content:
                        break
                finally:
                    timer.cancel()
        raise RefusedBody(413, "the body could not be read in time; send smaller batches.")

    def _start(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is the service's
            )
            weakref.finalize(self, _end, self._process)
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            _end(self._process)
            self._process = None


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


# ------------------------------------------------------------------------- between the processes


def _send(pipe: IO[bytes], head: dict[str, Any], *contents: Bytes) -> None:
    """Send a head, and contents whose lengths it then tells."""
    text = json.dumps({**head, "lengths": [len(each) for each in contents]}).encode()
    for part in (len(text).to_bytes(8, "little"), text, *contents):
        view = memoryview(part)
        while view:
            view = view[pipe.write(view) :]


def _receive(pipe: IO[bytes]) -> tuple[dict[str, Any], list[bytearray]]:
    head = json.loads(_take(pipe, int.from_bytes(_take(pipe, 8), "little")))
    return head, [_take(pipe, length) for length in head["lengths"]]


def _take(pipe: IO[bytes], n: int) -> bytearray:
    content = bytearray(n)
    view = memoryview(content)
    while view:
        size = pipe.readinto(view)  # type: ignore[attr-defined]
        if not size:
            raise EOFError
        view = view[size:]
    return content


def _send_fields(pipe: IO[bytes], fields: dict[str, Any]) -> None:
    """Send what a body says: arrays and texts as bytes, the rest as JSON."""
    arrays = {name: each for name, each in fields.items() if isinstance(each, np.ndarray)}
    texts = fields.pop("metadata") if isinstance(fields.get("metadata"), MetadataTexts) else None
    rest = {name: each for name, each in fields.items() if name not in arrays}
    contents: list[Bytes] = [each.reshape(-1).view(np.uint8).data for each in arrays.values()]
    if texts is not None:
        parts = [b"" if text is None else text.encode() for text in texts]
        contents += [np.array([*map(len, parts)], np.int64).view(np.uint8).data, b"".join(parts)]
    shapes = {name: each.shape for name, each in arrays.items()}
    _send(pipe, {"fields": rest, "shapes": shapes, "texts": texts is not None}, *contents)


def _receive_fields(pipe: IO[bytes]) -> dict[str, Any]:
    head, contents = _receive(pipe)
    if "status" in head:
        raise RefusedBody(head["status"], head["text"])
    fields: dict[str, Any] = head["fields"]
    for (name, shape), content in zip(head["shapes"].items(), contents, strict=False):
        fields[name] = np.frombuffer(content, np.float32).reshape(shape)
    if head["texts"]:
        lengths, joined = np.frombuffer(contents[-2], np.int64), memoryview(contents[-1])
        ends = np.cumsum(lengths)
        fields["metadata"] = MetadataTexts(
            str(joined[end - length : end], "utf-8") if length else None
            for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
        )
    return fields


def _bound_memory(n: int) -> None:
    """Let this process take no more than it has now and ``n`` bytes."""
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + n
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def main() -> None:
    """Read bodies from the input until it ends."""
    with open(0, "rb", buffering=0) as source, open(1, "wb", buffering=0) as sink:
        while _read_one(source, sink):
            pass


def _read_one(source: IO[bytes], sink: IO[bytes]) -> bool:
    """Read a body, and tell what it says; return False if there is none any more."""
    try:
        head = json.loads(_take(source, int.from_bytes(_take(source, 8), "little")))
    except EOFError:
        return False
    (length,) = head["lengths"]
    _bound_memory(MEMORY * length + SPARE)
    content = [_take(source, length)]
    try:
        fields = read_json(content.pop(), Form(head["names"], head["most"]))
    except RefusedBody as refused:
        _send(sink, {"status": refused.status, "text": refused.text})
    else:
        _send_fields(sink, fields)
    return True
