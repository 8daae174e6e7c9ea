"""Codes in a Milvus server (2.3 and newer): the address, its tables, and a backend over them.

A table is a collection of Milvus with keys and binary codes, one a model. What Milvus leaves open
is closed here: among equal distances the lowest keys come first, and a call that was repeated
changes nothing.

Changes flow to the backend after they are stored in Lance. While the server is away, changes are
only noted, and searches say so. When it answers again (at the next search, or when a thread that
tries now and then finds it), what it holds is compared with what it should hold, and the difference
is sent: so nothing depends on what a crash has left in between.
"""

import logging
import os
import re
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes, code_bytes
from streamhash.errors import GoneError, InputError, UnreachableError
from streamhash.live.backends.memory import Keys, Read
from streamhash.optional import import_optional
from streamhash.search.directory import LiveKeys

logger = logging.getLogger(__name__)

FORM = "milvus://host:port/name?index=BIN_FLAT"
CHOICES = {  # of options of an address
    "index": ("BIN_FLAT", "BIN_IVF_FLAT"),
    "consistency": ("Strong", "Bounded", "Eventually"),
    "tls": ("0", "1"),
}

NO_ITEM = np.iinfo(np.int32).max  # the distance where there are no more items
ROWS_RETURNED = 16_384  # of a query, at most
ROWS_SENT = 8192  # at a time
KEYS_READ = 2**20  # about, whose codes are read in one scan of the items
LARGEST_KEY = 2**63 - 1
QUERIES_SENT = 256  # at a time
GAPS_NAMED = 32  # at most, in a condition
ROWS_AT_ONCE = 2**19  # that a query without a limit may return
NO_KEYS = np.empty(0, np.int64)
LOADING_SECONDS = 60.0  # that a server may take to load what it holds
NOT_FOUND = 100  # Milvus's code of a collection that is not there
FIRST_RETRY = 1.0  # seconds before a server that was away is tried again, at first
LAST_RETRY = 30.0  # and at last


@dataclass(frozen=True)
class MilvusAddress:
    """A server, the name of a collection there, and how it is to be searched.

    >>> address = MilvusAddress.parse("milvus://localhost:19530/photos?index=BIN_IVF_FLAT&nlist=256")
    >>> address.name, address.index, address.nlist, address.uri
    ('photos', 'BIN_IVF_FLAT', 256, 'http://localhost:19530')
    """

    host: str
    port: int
    name: str
    index: str = "BIN_FLAT"  # exact; BIN_IVF_FLAT looks into nprobe of nlist cells only
    nlist: int = 1024
    nprobe: int = 16
    consistency: str = "Strong"  # every search sees every change; the others are faster, and late
    timeout: float = 10.0  # seconds that a call may take
    tls: bool = False
    token_env: str = ""  # the variable of the environment that holds the token
    database: str = ""

    @classmethod
    def parse(cls, text: str, *, place: str = "backend") -> "MilvusAddress":
        """Read an address."""
        try:
            parts = urlsplit(text)
            if parts.scheme != "milvus" or not parts.hostname:
                raise ValueError("it does not name a server")
            if "@" in parts.netloc:
                raise ValueError(
                    "it would keep a secret; name the variable that holds the token: "
                    "?token_env=MILVUS_TOKEN"
                )
            name = parts.path.strip("/")
            if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,200}", name):
                raise ValueError(f"the name {name!r} is not of letters, digits and underscores")
            chosen = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
            return cls(parts.hostname, parts.port or 19530, name, **_read_options(chosen))
        except ValueError as error:
            raise InputError(
                f"{place}: {text!r} is not an address of Milvus ({error}); write {FORM}."
            ) from error

    @property
    def uri(self) -> str:
        """The server, as pymilvus has it."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"milvus://{self.host}:{self.port}/{self.name}"

    @property
    def is_exact(self) -> bool:
        """Whether every code is looked at."""
        return self.index == "BIN_FLAT"

    def credentials(self) -> dict[str, Any]:
        """What the environment holds of secrets."""
        if not self.token_env:
            return {}
        token = os.environ.get(self.token_env)
        if token is None:
            raise InputError(
                f"{self}: the environment has no variable {self.token_env}; set it to the token of "
                'Milvus, "user:password", or pass backend_options={"token": …}.'
            )
        return {"token": token}


def _read_options(chosen: dict[str, str]) -> dict[str, Any]:
    """Check and convert what stands after the question mark."""
    kinds: dict[str, Any] = {each.name: type(each.default) for each in fields(MilvusAddress)[3:]}
    found: dict[str, Any] = {}
    for name, text in chosen.items():
        if name not in kinds:
            raise ValueError(f"there is no option {name}")
        if text not in CHOICES.get(name, (text,)):
            raise ValueError(f"{name}={text} is none of {', '.join(CHOICES[name])}")
        found[name] = text == "1" if kinds[name] is bool else kinds[name](text)
    for name in ("nlist", "nprobe"):
        if not 1 <= found.get(name, 1) <= 65536:
            raise ValueError(f"{name}={found[name]} is not from 1 to 65536")
    if not found.get("timeout", 1) > 0:
        raise ValueError(f"timeout={found['timeout']} is not above 0 seconds")
    return found


class Server:
    """A connection to a server, and the names that belong to one collection there."""

    def __init__(
        self, address: str, options: dict[str, Any] | None = None, *, place: str = "backend"
    ) -> None:
        self.address = MilvusAddress.parse(address, place=place)
        self._options = {**self.address.credentials(), **(options or {})}
        self._client: Any = None
        self._connecting = threading.Lock()

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call the client, whatever goes wrong there being an UnreachableError."""
        pymilvus = _pymilvus()
        import grpc

        address = self.address
        try:
            with self._connecting:
                if self._client is None:
                    self._client = pymilvus.MilvusClient(
                        uri=address.uri,
                        db_name=address.database,
                        timeout=address.timeout,
                        **self._options,
                    )
            function = getattr(self._client, method)
            return function(*arguments, **{"timeout": address.timeout, **named})
        except (pymilvus.MilvusException, grpc.RpcError, grpc.FutureTimeoutError) as error:
            kind = GoneError if getattr(error, "code", None) == NOT_FOUND else UnreachableError
            raise kind(
                f"{address}: Milvus does not answer ({_short(error)}); see that it runs, and that "
                "token and TLS are right. Nothing is lost: what is stored is sent when it is back."
            ) from error

    def _name(self, number: int) -> str:
        return f"{self.address.name}_model_{number}"

    def table(self, number: int, n_bits: int) -> "Table":
        """Return the table of a model."""
        return Table(self, self._name(number), n_bits)

    def numbers(self) -> list[int]:
        """Return the models that have a table."""
        form = re.compile(f"{re.escape(self.address.name)}_model_([0-9]+)")
        found = (form.fullmatch(name) for name in self.call("list_collections"))
        return sorted(int(match[1]) for match in found if match)

    def refuse_taken(self) -> None:
        """Raise an error if another collection has its codes here."""
        numbers = self.numbers()
        if numbers:
            raise InputError(
                f"{self.address}: this name is taken there, by {self._name(numbers[-1])}; choose "
                "another name, or drop that collection in Milvus."
            )

    def point_alias(self, number: int) -> None:
        """Let the plain name mean the table of a model, at once for all who search by it."""
        try:
            self.call("alter_alias", self._name(number), self.address.name)
        except UnreachableError:
            # There is no such alias yet, or else this fails for the same reason.
            self.call("create_alias", self._name(number), self.address.name)

    def drop(self, number: int) -> None:
        """Drop the table of a model."""
        self.call("drop_collection", self._name(number))

    def drop_all(self) -> None:
        """Drop the tables of all models, and the plain name; nothing, if it is away."""
        numbers = self.numbers()
        with suppress(UnreachableError):  # there is no such name before the first model serves
            self.call("drop_alias", self.address.name)
        for number in numbers:
            self.drop(number)


class Table:
    """Keys and codes of one model."""

    def __init__(self, server: Server, name: str, n_bits: int) -> None:
        self._server, self._address = server, server.address
        self._name, self._n_bits = name, n_bits

    def _call(self, method: str, **named: Any) -> Any:
        return self._server.call(method, self._name, **named)

    def create(self) -> None:
        """Make it, if it is not there."""
        pymilvus, address = _pymilvus(), self._address
        client = pymilvus.MilvusClient
        if not self._call("has_collection"):
            schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field("key", pymilvus.DataType.INT64, is_primary=True)
            width = 8 * code_bytes(self._n_bits)
            schema.add_field("code", pymilvus.DataType.BINARY_VECTOR, dim=width)
            self._call("create_collection", schema=schema, consistency_level="Strong")
        params = client.prepare_index_params()
        settings = {} if address.is_exact else {"nlist": address.nlist}
        params.add_index("code", index_type=address.index, metric_type="HAMMING", params=settings)
        patience = max(address.timeout, LOADING_SECONDS)
        self._call("create_index", index_params=params, timeout=patience)
        self._call("load_collection", timeout=patience)

    def index_type(self) -> str:
        """Return the kind of index that searches use."""
        return str(self._call("describe_index", index_name="code")["index_type"])

    def put(self, keys: Keys, codes: Codes) -> None:
        """Store codes; those of keys that are there are replaced, so it may be repeated."""
        for start in range(0, len(keys), ROWS_SENT):
            some = slice(start, start + ROWS_SENT)
            rows = zip(keys[some].tolist(), codes[some], strict=True)
            self._call("upsert", data=[{"key": key, "code": code.tobytes()} for key, code in rows])

    def delete(self, keys: Keys) -> None:
        """Delete keys; those that are not there are passed over."""
        for start in range(0, len(keys), ROWS_SENT):
            self._call("delete", ids=keys[start : start + ROWS_SENT].tolist())

    def _query(self, condition: str, field: str, **named: Any) -> list[Any]:
        """Return a field of the rows that a condition holds for."""
        rows = self._call(
            "query", filter=condition, output_fields=[field], consistency_level="Strong", **named
        )
        return [row[field] for row in rows]

    def keys(self, after: int = -1, last: int = LARGEST_KEY, *, at_once: bool = False) -> Keys:
        """Return the keys above ``after``, up to ``last``, the lowest first; page by page."""
        if at_once:  # much faster, where not too many come
            within = self._query(f"key > {after} and key <= {last}", "key")
            return np.unique(np.array(within, np.int64))
        found = [NO_KEYS]
        while True:
            rows = self._query(f"key > {after} and key <= {last}", "key", limit=ROWS_RETURNED)
            found.append(np.unique(np.array(rows, np.int64)))
            if len(rows) < ROWS_RETURNED:
                return np.concatenate(found)
            after = max(rows)

    def count(self, condition: str = "") -> int:
        """Return how many rows it has, of all or of those that a condition holds for."""
        return int(self._query(condition, "count(*)")[0])

    def difference(self, wanted: Keys, after: int) -> tuple[Keys, Keys]:
        """Return what it holds too much and what it lacks, above ``after`` up to the last wanted.

        What is too much lies in the gaps of the wanted keys. Where these are few, asking for it and
        counting the rest tells all, and no other key is read.
        """
        last, before = int(wanted[-1]), np.append(after, wanted[:-1])
        n_held = self.count(f"key > {after} and key <= {last}")
        if n_held == 0:
            return NO_KEYS, wanted
        gaps = np.flatnonzero(wanted - before > 1)
        if len(gaps) <= GAPS_NAMED:
            ends = zip(before[gaps].tolist(), wanted[gaps].tolist(), strict=True)
            inside = " or ".join(f"(key > {low} and key < {high})" for low, high in ends)
            if n_held - (self.count(inside) if inside else 0) == len(wanted):
                extra = self._query(inside, "key") if n_held > len(wanted) else []
                return np.array(extra, np.int64), NO_KEYS
        held = self.keys(after, last, at_once=n_held <= ROWS_AT_ONCE)
        return _without(held, wanted), _without(wanted, held)

    def search(
        self, codes: Codes, k: int, *, among: Keys | None = None, consistent: bool = True
    ) -> tuple[NDArray[np.int32], Keys]:
        """Find the nearest: distances and keys (n, k), rows ending in NO_ITEM and -1 if few.

        An exact index gives exactly the nearest by (distance, key), unless a quick look will do,
        which may miss the last changes. With ``among`` only these keys are looked at.
        """
        if k > ROWS_RETURNED:
            raise InputError(
                f"{self._address}: Milvus finds at most {ROWS_RETURNED} neighbours, k={k} came; "
                "pass a smaller k."
            )
        distances = np.full((len(codes), k), NO_ITEM, np.int32)
        keys = np.full((len(codes), k), -1, np.int64)
        condition = "" if among is None else f"key in {among.tolist()}"
        for start in range(0, 0 if condition == "key in []" else len(codes), QUERIES_SENT):
            some = slice(start, start + QUERIES_SENT)
            self._search(codes[some], distances[some], keys[some], condition, consistent)
        return distances, keys

    def _search(
        self,
        codes: Codes,
        distances: NDArray[np.int32],
        keys: Keys,
        condition: str,
        consistent: bool,
    ) -> None:
        k, exact = keys.shape[1], self._address.is_exact and consistent
        limit = min(k + max(k, 16), ROWS_RETURNED) if exact else k
        level = self._address.consistency if consistent else "Eventually"
        unsure: dict[int, list[int]] = {}  # queries by the distance at which more may tie
        for i, (there, near) in enumerate(self._ask(codes, limit, level, condition)):
            order = np.lexsort((near, there))[:k]
            n = len(order)
            distances[i, :n], keys[i, :n] = there[order], near[order]
            if exact and n and there.max() == distances[i, n - 1]:
                unsure.setdefault(int(there.max()), []).append(i)
        for distance, queries in unsure.items():
            self._break_ties(codes, distance, queries, distances, keys, condition)

    def _break_ties(
        self,
        codes: Codes,
        distance: int,
        queries: list[int],
        distances: NDArray[Any],
        keys: Keys,
        condition: str,
    ) -> None:
        """Put the lowest keys of all at one distance at the ends of rows.

        The n-th lowest key of those seen is an upper bound of the n-th lowest of all: asking for
        keys up to it again, until fewer come than may come, finds them.
        """
        # Each row holds as many keys as it needs: the greatest bound of a group is one of all.
        bound = max(int(keys[i][distances[i] == distance].max()) for i in queries)
        at = {"range_filter": distance, "radius": distance + 1}
        level = self._address.consistency
        up_to = f"key <= {bound}" + (f" and {condition}" if condition else "")
        answers = self._ask(codes[queries], ROWS_RETURNED, level, up_to, **at)
        for i, (_, near) in zip(queries, answers, strict=True):
            ties = np.flatnonzero(distances[i] == distance)
            lowest = np.union1d(near, keys[i, ties])[: len(ties)]
            changed = not np.array_equal(lowest, keys[i, ties])
            keys[i, ties] = lowest
            if len(near) >= ROWS_RETURNED and (changed or len(queries) > 1):
                self._break_ties(codes, distance, [i], distances, keys, condition)

    def _ask(
        self, codes: Codes, limit: int, level: str, condition: str = "", **params: int
    ) -> list[tuple[NDArray[np.int32], Keys]]:
        """Search once."""
        if not self._address.is_exact:
            params["nprobe"] = self._address.nprobe
        answers = self._call(
            "search",
            data=[code.tobytes() for code in codes],
            filter=condition,
            limit=limit,
            search_params={"metric_type": "HAMMING", "params": params},
            consistency_level=level,
        )
        return [
            (np.array(hits.distances, np.int32), np.array(hits.ids, np.int64)) for hits in answers
        ]


_open: "weakref.WeakSet[MilvusBackend]" = weakref.WeakSet()  # backends of this process


class MilvusBackend:
    """The codes of one model in a Milvus server.

    ``wanted`` tells the keys that it should hold now, ``read`` their codes; without it, another
    process sees to the changes. Keys are compared in pieces: more items take no more memory.
    """

    is_shared = True

    def __init__(
        self,
        server: Server,
        number: int,
        n_bits: int,
        wanted: Callable[[], LiveKeys],
        read: Read | None,
    ) -> None:
        self._server, self.address, self._number = server, server.address, number
        self.table = server.table(number, n_bits)
        self._wanted, self._writes = wanted, read is not None
        self._read: Read = read or (lambda _: ())
        self._held: LiveKeys | None = None  # what the table holds, while it is filled
        # Locks are taken in this order: catching up, then the collection's (by wanted), then this.
        self._catching, self._changing = threading.Lock(), threading.Lock()
        self._is_known = read is None  # what the table lacked, when this process began
        self._late_adds: list[Keys] = []
        self._late_deletes: list[Keys] = []
        self._error: UnreachableError | None = None  # why it is behind; None if it is not
        self._tried_at, self._delay = 0.0, FIRST_RETRY
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        _open.add(self)

    # ---------------------------------------------------------------------------------- changes

    def add(self, keys: Keys, codes: Codes) -> None:
        """Send codes of new keys; if the server is away, later."""
        with self._changing:
            self._late_adds.append(keys)
            self._send(lambda: self.table.put(keys, codes))

    def delete(self, keys: Keys) -> None:
        """Delete keys; if the server is away, later."""
        if len(keys):
            with self._changing:
                self._late_deletes.append(keys)
                self._send(lambda: self.table.delete(keys))

    def _send(self, change: Callable[[], None]) -> None:
        """Make a change, unless it waits for others or has to wait itself."""
        if self._writes and self._error is not None:
            return
        try:
            if self._writes:
                change()
            self._late_adds, self._late_deletes = [], []
        except UnreachableError as error:
            self._fall_behind(error)

    def check(self) -> None:
        """Catch up, unless the server was found away just now."""
        self._be_up_to_date(self._delay)

    def prepare(self) -> None:
        """Make the table, for workers to send codes to."""
        self._held = None
        self.table.create()

    def fill(self, keys: LiveKeys, read: Read) -> None:
        """Hold these keys and no others; what it holds is asked only the first time."""
        held = self._held
        if held is None:
            self.table.create()
        after, missing, n_missing = -1, list[Keys](), 0
        for piece in keys.pieces():
            last = int(piece[-1])
            if held is None:
                extra, lacking = self.table.difference(piece, after)
            else:
                there = held.between(after, last)
                extra, lacking = _without(there, piece), _without(piece, there)
            self.table.delete(extra)
            missing.append(lacking)
            after, n_missing = last, n_missing + len(lacking)
            if n_missing >= KEYS_READ:
                self._put(missing, read)
                missing, n_missing = [], 0
        self._put(missing, read)
        self.table.delete((self.table.keys if held is None else held.between)(after, LARGEST_KEY))
        self._held = keys

    def _put(self, missing: list[Keys], read: Read) -> None:
        """Send the codes of these keys."""
        keys = np.concatenate([NO_KEYS, *missing])
        for codes, some in read(keys) if len(keys) else ():
            self._refuse_closed()
            self.table.put(some, codes)

    def serve(self, keys: LiveKeys, read: Read) -> None:
        """Hold these keys and no others, and let others find them by the plain name."""
        if not self._writes:
            return
        try:
            self.fill(keys, read)
            self._take_over()
        except UnreachableError as error:
            with self._changing:
                self._fall_behind(error)

    def _take_over(self) -> None:
        """Let the plain name mean this table."""
        with self._changing:
            self._refuse_closed()
            self._held, self._is_known = None, True
            self._server.point_alias(self._number)

    def drop_replaced(self) -> None:
        """Drop the tables of older models that no search of this process uses."""
        used = {each._number for each in _open if each.address == self.address}
        if self._writes and self._error is None:
            with suppress(UnreachableError):  # the next time
                for number in self._server.numbers():
                    if number < self._number and number not in used:
                        self._server.drop(number)

    # ------------------------------------------------------------------------------ catching up

    def _fall_behind(self, error: UnreachableError) -> None:
        """Note that the server is away, and look for it now and then."""
        self._error, self._tried_at = error, time.monotonic()
        if self._thread is None and not self._closed.is_set():
            self._thread = threading.Thread(target=self._look_for_it, daemon=True)
            self._thread.start()
            logger.warning("%s", error)

    def _look_for_it(self) -> None:
        self._delay = FIRST_RETRY
        while self._error is not None and not self._closed.wait(self._delay):
            try:
                self.catch_up()
            except UnreachableError:
                self._delay = min(2 * self._delay, LAST_RETRY)
            except Exception:
                logger.exception("%s: catching up failed", self.address)
                self._delay = LAST_RETRY
        self._thread = None

    def catch_up(self) -> None:
        """Send what the server has missed, or raise an UnreachableError."""
        with self._catching:
            if self._error is None or self._closed.is_set():
                return
            try:
                n_adds, n_deletes = len(self._late_adds), len(self._late_deletes)
                keys = self._wanted()  # with those noted so far
                self._held = None
                self.fill(keys, self._read)
                self._take_over()
                with self._changing:
                    self._refuse_closed()
                    del self._late_adds[:n_adds], self._late_deletes[:n_deletes]
                    self._send_late()
                    self._error = None
            except UnreachableError as error:
                self._error, self._tried_at = error, time.monotonic()
                raise
        logger.info("%s: is up to date again", self.address)
        self.drop_replaced()

    def _send_late(self) -> None:
        deletes = np.concatenate([NO_KEYS, *self._late_deletes])
        adds = np.setdiff1d(np.concatenate([NO_KEYS, *self._late_adds]), deletes)
        self._put([adds], self._read)
        self.table.delete(deletes)
        self._late_adds, self._late_deletes = [], []

    def _be_up_to_date(self, patience: float) -> None:
        error = self._error
        if error is not None and self._writes:
            if time.monotonic() - self._tried_at < patience:
                raise error
            self.catch_up()

    # ---------------------------------------------------------------------------------- reading

    def search(
        self, codes: Codes, k: int, *, among: Keys | None = None
    ) -> tuple[NDArray[np.int32], Keys]:
        """Find the nearest, of all or among some keys, after catching up."""
        self._be_up_to_date(FIRST_RETRY)
        return self.table.search(codes, k, among=among)

    def moment(self) -> None:
        """Nothing: what a server holds is searched as it is then."""

    def search_soon(self, codes: Codes, k: int) -> tuple[NDArray[np.int32], Keys]:
        """Search without waiting for the last changes to be seen."""
        if self._error is not None:
            raise self._error
        try:
            return self.table.search(codes, k, consistent=False)
        except UnreachableError as error:
            with self._changing:
                self._fall_behind(error)
            raise

    def share_of_ones(self) -> list[float] | None:
        """Unknown: it would take reading all codes."""
        return None

    def status(self) -> dict[str, Any]:
        """Say where it is, whether it answers, and how many changes it has not got yet."""
        error, count = self._error, None
        try:
            if error is None:
                count = self.table.count()
        except UnreachableError as found:
            error = found
        late: int | None = sum(len(keys) for keys in (*self._late_adds, *self._late_deletes))
        if error is not None and not self._is_known:
            late = None
        return {
            "address": str(self.address),
            "reachable": error is None,
            "lag": late if self._writes or count is None else abs(count - len(self._wanted())),
            "error": None if error is None else str(error),
        }

    def retire(self) -> None:
        """Change nothing any more: another backend serves."""
        with self._changing:
            self._closed.set()

    def drop(self) -> None:
        """Delete all tables of the collection: it is gone."""
        self._server.drop_all()

    def close(self) -> None:
        """Do so, and wait for a thread that is changing something."""
        self.retire()
        with self._catching:
            pass

    def _refuse_closed(self) -> None:
        if self._closed.is_set():
            raise UnreachableError(f"{self.address}: this collection was closed.")


def _without(keys: Keys, others: Keys) -> Keys:
    """Return the keys that are none of the others; each has none twice."""
    return np.setdiff1d(keys, others, assume_unique=True)


def _short(error: BaseException) -> str:
    """The one line of an error that tells."""
    details: Callable[[], str] | None = getattr(error, "details", None)
    text = details() if callable(details) else getattr(error, "message", "") or str(error)
    return str(text).strip().splitlines()[0][:200] if str(text).strip() else type(error).__name__


@cache
def _pymilvus() -> Any:
    pymilvus = import_optional("pymilvus", extra="milvus", place="Milvus as a backend")
    log = logging.getLogger("pymilvus")
    if log.level < logging.CRITICAL:
        log.setLevel(logging.CRITICAL)  # it prints tracebacks of what is raised here
    return pymilvus
