"""A collection over HTTP, with the verbs of one that is at hand."""

import json
import random
import threading
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.parse import quote, urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.codes import Codes
from streamhash.errors import InputError, ServiceError
from streamhash.frames import column_names, records, with_vectors
from streamhash.labels import LISTS, as_numpy, check_item_labels
from streamhash.records import CollectionFacts, History, Item, Prediction, SearchResult
from streamhash.service.frames import TYPE, pack_frame, read_array, unpack_frame

AGAIN = ("overloaded", "unreachable")  # codes of what may be tried again; of writes the first only
LONGEST_WAIT = 30.0  # seconds between two tries
IDLE_SECONDS = 2.0  # after which a connection may have been closed by the other side


class Client:
    """A collection that ``streamhash serve`` serves.

    The verbs and what they return are those of ``Collection``; vectors travel as raw numbers. Any
    threads may share one object; it has a connection for each that calls at the same time. A
    request that reads is sent once more when its connection broke; one that writes is not, as it
    may have been done: repeat ``add`` with ``existing="skip"``. What is refused because too much
    goes on (503) was not done, and is sent again after a while, as often as ``retries`` says.

    Parameters
    ----------
    url : str
        Such as ``http://127.0.0.1:8000``.
    token : str
        The read or the write token, if the service wants one.
    collection : str
        The name of the collection, if the service has several.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        How often to send again what is refused for the moment.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        collection: str | None = None,
        timeout: float = 60.0,
        retries: int = 4,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"Client: url={url!r} is no address; pass http://HOST:PORT.")
        self.url, self._timeout, self._retries = url, timeout, retries
        self._options = {"token": token, "timeout": timeout, "retries": retries}
        self._of = (
            "/api" if collection is None else f"/api/collections/{quote(collection, safe='')}"
        )
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._address, self._prefix = (parts.hostname, parts.port), parts.path.rstrip("/")
        self._token = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._idle: list[tuple[HTTPConnection, float]] = []  # with the time of its last use
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    # --------------------------------------------------------------------------------- collections

    def collections(self) -> list[CollectionFacts]:
        """Return the collections of the service: name, size, model and quality."""
        listed = json.loads(self._send("/api/collections", None, None, read=True))["collections"]
        return [CollectionFacts(**each) for each in listed]

    def collection(self, name: str) -> "Client":
        """Return a client of another collection of the same service."""
        return Client(self.url, collection=name, **self._options)  # type: ignore[arg-type]

    def create(self, name: str, method: str = "sdoh", **options: Any) -> "Client":
        """Make an empty collection in the service's folder; return a client of it.

        The options are ``n_bits`` and ``parameters`` of the method, and those of
        ``Collection.create``: ``labels``, ``vectors``, ``refresh``, ``durability`` and the like.
        """
        body = {"name": name, "method": method, **options}
        self._send("/api/collections", body, None, read=False)
        return self.collection(name)

    def drop(self, name: str) -> None:
        """Delete a collection of the service's folder, with all its items."""
        path = f"/api/collections/{quote(name, safe='')}"
        self._send(path, None, None, read=False, method="DELETE")

    # ------------------------------------------------------------------------------------- changes

    def add(
        self,
        ids: Any,
        X: ArrayLike,
        y: Any = None,
        *,
        metadata: Any = None,
        existing: str = "refuse",
    ) -> int:
        """Store items, and learn from those that have labels; return how many were stored.

        Several labels of an item are a list; those of all items may be a 0/1 matrix.
        """
        head = {
            "ids": None if ids is None else _plain(ids),
            "labels": None if y is None else _plain_labels(y),
            "metadata": None if metadata is None else _dicts(metadata),
            "existing": existing,
        }
        return int(self._json("/items", head, X, read=False)["added"])

    def label(self, ids: Any, y: Any) -> None:
        """Give items that are there (other) labels, and learn from them."""
        self._json("/labels", {"ids": _plain(ids), "labels": _plain_labels(y)}, read=False)

    def set_metadata(self, ids: Any, metadata: Any) -> None:
        """Give items that are there other metadata, as ``add`` takes them; nothing is learned."""
        self._json("/metadata", {"ids": _plain(ids), "metadata": _dicts(metadata)}, read=False)

    def feedback(
        self, query: Any = None, id: Any = None, good: Any = True, *, query_id: Any = None
    ) -> int:
        """Store judged answers, and learn from them; return how many.

        A query is a vector, several, or by ``query_id`` an item; one for all judgements, or one
        each.
        """
        if (query is None) == (query_id is None):
            raise InputError(
                "Client.feedback: pass either query, a vector, or query_id, of an item."
            )
        said = as_numpy(good)
        body = {
            "ids": _several(id),
            "query_ids": None if query_id is None else _several(query_id),
            "good": _plain(said) if isinstance(said, LISTS) else said,
        }
        rows = None if query is None else np.atleast_2d(np.asarray(as_numpy(query), np.float32))
        return int(self._json("/feedback", body, rows, read=False)["judged"])

    def delete(self, ids: Any) -> None:
        """Delete items."""
        self._json("/items/delete", {"ids": _plain(ids)}, read=False)

    def refresh(self, *, wait: bool = True) -> bool | None:
        """Serve what has been learned; return if it changed, None if it still goes on."""
        changed = self._json("/refresh", {"wait": wait}, read=False)["changed"]
        return None if changed is None else bool(changed)

    def revert(self, model: int, *, wait: bool = True) -> bool | None:
        """Serve an older model again; return if it changed, None if it still goes on."""
        body = {"model": int(model), "wait": wait}
        changed = self._json("/revert", body, read=False)["changed"]
        return None if changed is None else bool(changed)

    # ------------------------------------------------------------------------------------- reading

    def search(
        self, X: ArrayLike, k: int = 10, *, model: int | None = None, **options: Any
    ) -> SearchResult:
        """Find the ``k`` nearest items of each vector; the options are those of ``Collection``."""
        head, content = self._frame("/search", {"k": int(k), "model": model, **options}, X)
        shape = head["shape"]
        _, content = read_array(content, "uint8", [shape[0], head["code_bytes"]])
        distances, content = read_array(content, head.get("distances", "int32"), shape)
        if "ids" in head:
            ids: NDArray[Any] = np.empty(shape, object)
            ids[:] = head["ids"]
        else:
            ids, content = read_array(content, "int64", shape)
        more: dict[str, NDArray[np.float32]] = {}
        for name in head["more"]:
            more[name], content = read_array(content, "float32", shape)
        labels = [[*map(_label, row)] for row in head["labels"]]
        return SearchResult(distances, ids, labels=lambda: labels, model=head["model"], **more)

    def encode(self, X: ArrayLike) -> Codes:
        """Return the codes of vectors by the model that serves."""
        head, content = self._frame("/encode", {}, X)
        return read_array(content, "uint8", head["shape"])[0]

    def predict(self, X: ArrayLike, k: int = 10) -> Prediction:
        """Predict the label of each vector by a vote of its ``k`` nearest labelled items."""
        answered = self._json("/predict", {"k": int(k)}, X)
        labels, chances = answered["labels"], answered["probabilities"]
        if any(isinstance(label, list) for label in labels):
            return Prediction([*map(tuple, labels)], [tuple(_with_nan(row)) for row in chances])
        return Prediction(labels, np.array(_with_nan(chances), float))

    def get(self, ids: Any) -> list[Item]:
        """Return items by their ids, in that order."""
        items = self._json("/items/get", {"ids": _plain(ids)})["items"]
        for item in items:
            item["vector"] = np.array(item["vector"], np.float32)
            item["label"] = _label(item["label"])
            if item["code"] is not None:
                item["code"] = np.frombuffer(bytes.fromhex(item["code"]), np.uint8)
        return [Item(**item) for item in items]

    def status(self) -> dict[str, Any]:
        """Return how the collection does, as plain values."""
        return dict(self._json("/status"))

    def history(self) -> History:
        """Return the refreshes, the alarms of drift, and quality over time."""
        return History(**self._json("/history"))

    def models(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the number and the facts of every model that serves or has served."""
        return [(facts.pop("number"), facts) for facts in self._json("/models")]

    # ---------------------------------------------------------------------------------- over HTTP

    def _json(self, path: str, body: Any = None, X: Any = None, *, read: bool = True) -> Any:
        return json.loads(self._send(self._of + path, body, X, read=read))

    def _frame(self, path: str, head: Any, X: ArrayLike) -> tuple[dict[str, Any], memoryview]:
        return unpack_frame(self._send(self._of + path, head, X, read=True, accept=TYPE))

    def _send(
        self,
        path: str,
        body: Any,
        X: Any,
        *,
        read: bool,
        accept: str = "*/*",
        method: str | None = None,
    ) -> bytes:
        """Send a body, with vectors as raw numbers, or none; return what is answered.

        If the service has too much to do, or does not reach Milvus, try again after as long as it
        says, and longer from time to time.
        """
        headers, content = {"Accept": accept, **self._token}, None
        if X is not None:
            headers["Content-Type"], content = TYPE, _framed(body, X)
        elif body is not None:
            headers["Content-Type"], content = "application/json", json.dumps(body).encode()
        method = method or ("GET" if content is None else "POST")
        for tries_left in reversed(range(self._retries + 1)):
            status, after, answered = self._ask(method, path, content, headers, again=read)
            if status < 400:
                return answered
            refused = _refused(status, answered)
            if status != 503 or not tries_left or refused.code not in AGAIN[: 1 + read]:
                raise refused
            wait = after * 2 ** (self._retries - tries_left)
            time.sleep(min(wait, LONGEST_WAIT) * random.uniform(0.5, 1))
        raise AssertionError

    def _ask(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str], *, again: bool
    ) -> tuple[int, float, bytes]:
        """Return status, seconds to wait and content; once more ``again`` by another connection."""
        for last in (False, True) if again else (True,):
            connection = self._take()
            try:
                connection.request(method, self._prefix + path, content, headers)
                answer = connection.getresponse()
                answered = answer.read()
            except (OSError, HTTPException) as error:
                connection.close()
                if last:
                    raise ServiceError(
                        0, "unreachable", f"{self.url}: no answer ({error!r}); see that it runs."
                    ) from error
            else:
                with self._lock:
                    self._idle.append((connection, time.monotonic()))
                after = answer.headers.get("Retry-After", "")
                return answer.status, float(after) if after.isdecimal() else 1.0, answered
        raise AssertionError

    def _take(self) -> HTTPConnection:
        """Return the connection used last, or a new one."""
        with self._lock:
            connection, used = self._idle.pop() if self._idle else (None, 0.0)
        if connection is None:
            return self._kind(*self._address, timeout=self._timeout)
        if time.monotonic() - used > IDLE_SECONDS:
            connection.close()  # it opens again by itself
        return connection


def _refused(status: int, content: bytes) -> ServiceError:
    try:
        error = json.loads(content)["error"]
        return ServiceError(status, error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, "unknown", f"the answer was {status} {content[:100]!r}.")


def _framed(head: dict[str, Any], X: ArrayLike) -> bytes:
    rows: NDArray[np.float32] = np.asarray(with_vectors(as_numpy(X)), np.float32)
    if rows.ndim != 2:
        raise InputError(f"Client: X came with shape {rows.shape}; pass one row an item.")
    return pack_frame({**head, "shape": [*rows.shape]}, rows)


def _with_nan(values: list[float | None]) -> list[float]:
    return [np.nan if value is None else value for value in values]


def _dicts(metadata: Any) -> list[Any]:
    """Return metadata as a dict an item, of a table too."""
    return records(metadata) if column_names(metadata) is not None else [*metadata]


def _plain(values: Any) -> list[Any]:
    values = as_numpy(values)
    if hasattr(values, "tolist"):
        return list(values.tolist())
    return [each.item() if isinstance(each, np.generic) else each for each in values]


def _several(ids: Any) -> list[Any]:
    """Return one id, or several, as a list."""
    return [ids] if isinstance(ids, str | int) else _plain(ids)


def _label(value: Any) -> Any:
    """Return a label as a collection does: several of an item are a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _plain_labels(y: Any) -> list[Any]:
    """Return labels as JSON has them: several of an item, also of a 0/1 matrix, are a list."""
    is_matrix = getattr(y, "ndim", 1) == 2
    values = check_item_labels(y, y.shape[0], place="Client") if is_matrix else _plain(y)
    return [_plain(each) if isinstance(each, LISTS) else each for each in values]
