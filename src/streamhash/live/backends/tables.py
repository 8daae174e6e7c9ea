"""Collections of a Milvus server, called tables here: keys and binary codes, one table a model.

Milvus 2.3 and newer. What it leaves open is closed here: among equal distances the lowest keys come
first, and a call that was repeated changes nothing.
"""

import logging
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes, code_bytes
from streamhash.errors import GoneError, InputError, UnreachableError
from streamhash.live.backends.address import MilvusAddress
from streamhash.optional import import_optional

__all__ = ["MOST", "Server", "Table"]

Keys = NDArray[np.int64]

FAR = np.iinfo(np.int32).max
MOST = 16_384  # rows that Milvus returns of a query at most
TOGETHER = 8192  # rows sent at a time
QUERIES = 256  # searched at a time
LOADING = 60.0  # seconds that a server may take to load what it holds
NOT_FOUND = 100  # Milvus's code of a collection that is not there


class Server:
    """A connection to a server, and the names that belong to one collection there."""

    def __init__(self, address: MilvusAddress, options: dict[str, Any] | None = None) -> None:
        self.address = address
        self._options = {**address.credentials(), **(options or {})}
        self._client: Any = None

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call the client, whatever goes wrong there being an UnreachableError."""
        pymilvus = _pymilvus()
        import grpc

        try:
            if self._client is None:
                self._client = pymilvus.MilvusClient(
                    uri=self.address.uri,
                    db_name=self.address.database,
                    timeout=self.address.timeout,
                    **self._options,
                )
            function = getattr(self._client, method)
            return function(*arguments, **{"timeout": self.address.timeout, **named})
        except (pymilvus.MilvusException, grpc.RpcError, grpc.FutureTimeoutError) as error:
            kind = GoneError if getattr(error, "code", None) == NOT_FOUND else UnreachableError
            raise kind(
                f"{self.address}: Milvus does not answer ({_short(error)}); see that it runs, and "
                "that token and TLS are right. Nothing is lost: what is stored is sent when it is "
                "back."
            ) from error

    def table(self, number: int, n_bits: int) -> "Table":
        """Return the table of a model."""
        return Table(self, f"{self.address.name}_model_{number}", n_bits)

    def numbers(self) -> list[int]:
        """Return the models that have a table."""
        form = re.compile(f"{re.escape(self.address.name)}_model_([0-9]+)")
        found = (form.fullmatch(name) for name in self.call("list_collections"))
        return sorted(int(match[1]) for match in found if match)

    def refuse_taken(self) -> None:
        """Raise an error if another collection is at home here."""
        if self.numbers():
            raise InputError(
                f"{self.address}: this name is taken there, by {self.address.name}_model_"
                f"{self.numbers()[-1]}; choose another name, or drop that collection in Milvus."
            )

    def point_alias(self, number: int) -> None:
        """Let the plain name mean the table of a model, at once for all who search by it."""
        name, target = self.address.name, f"{self.address.name}_model_{number}"
        try:
            self.call("alter_alias", target, name)
        except UnreachableError:
            # There is no such alias yet, or else this fails for the same reason.
            self.call("create_alias", target, name)

    def drop(self, number: int) -> None:
        """Drop the table of a model."""
        self.call("drop_collection", f"{self.address.name}_model_{number}")


class Table:
    """Keys and codes of one model."""

    def __init__(self, server: Server, name: str, n_bits: int) -> None:
        self.server, self.name, self.n_bits = server, name, n_bits

    def _call(self, method: str, **named: Any) -> Any:
        return self.server.call(method, self.name, **named)

    def create(self) -> None:
        """Make it, if it is not there."""
        pymilvus, address = _pymilvus(), self.server.address
        if not self._call("has_collection"):
            schema = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field("key", pymilvus.DataType.INT64, is_primary=True)
            width = 8 * code_bytes(self.n_bits)
            schema.add_field("code", pymilvus.DataType.BINARY_VECTOR, dim=width)
            self._call("create_collection", schema=schema, consistency_level="Strong")
        params = pymilvus.MilvusClient.prepare_index_params()
        settings = {} if address.is_exact else {"nlist": address.nlist}
        params.add_index("code", index_type=address.index, metric_type="HAMMING", params=settings)
        patience = max(self.server.address.timeout, LOADING)
        self._call("create_index", index_params=params, timeout=patience)
        self._call("load_collection", timeout=patience)

    # ------------------------------------------------------------------------------------- changes

    def put(self, codes: Codes, keys: Keys) -> None:
        """Store codes; those of keys that are there are replaced, so it may be repeated."""
        for start in range(0, len(keys), TOGETHER):
            some = slice(start, start + TOGETHER)
            rows = [
                {"key": key, "code": code.tobytes()}
                for key, code in zip(keys[some].tolist(), codes[some], strict=True)
            ]
            self._call("upsert", data=rows)

    def remove(self, keys: Keys) -> None:
        """Delete keys; those that are not there are passed over."""
        for start in range(0, len(keys), TOGETHER):
            self._call("delete", ids=keys[start : start + TOGETHER].tolist())

    # ------------------------------------------------------------------------------------- reading

    def keys(self) -> Keys:
        """Return all keys, the lowest first."""
        found, last = [np.empty(0, np.int64)], -1
        while True:
            rows = self._call(
                "query",
                filter=f"key > {last}",
                output_fields=["key"],
                limit=MOST,
                consistency_level="Strong",
            )
            page = np.unique(np.fromiter((row["key"] for row in rows), np.int64, len(rows)))
            found.append(page)
            if len(rows) < MOST:
                return np.concatenate(found)
            last = int(page[-1])

    def count(self) -> int:
        """Return how many rows it has."""
        rows = self._call(
            "query", filter="", output_fields=["count(*)"], consistency_level="Strong"
        )
        return int(rows[0]["count(*)"])

    def search(
        self, codes: Codes, k: int, *, level: str | None = None
    ) -> tuple[NDArray[np.int32], Keys]:
        """Find the nearest: distances and keys (n, k), rows ending in FAR and -1 if there are few.

        An exact index gives exactly the nearest by (distance, key), unless a ``level`` of
        consistency asks for a quick look.
        """
        if k > MOST:
            raise InputError(
                f"{self.server.address}: Milvus finds at most {MOST} neighbours, k={k} came; "
                "pass a smaller k."
            )
        distances = np.full((len(codes), k), FAR, np.int32)
        keys = np.full((len(codes), k), -1, np.int64)
        for start in range(0, len(codes), QUERIES):
            some = slice(start, start + QUERIES)
            self._search(codes[some], k, level, distances[some], keys[some])
        return distances, keys

    def _search(
        self, codes: Codes, k: int, level: str | None, distances: NDArray[np.int32], keys: Keys
    ) -> None:
        exact = self.server.address.is_exact and level is None
        limit = min(k + max(k, 16), MOST) if exact else k
        level = level or self.server.address.consistency
        found = self._ask(codes, limit, level)
        unsure: dict[int, list[int]] = {}  # queries by the distance at which more may tie
        for i, (there, near) in enumerate(found):
            order = np.lexsort((near, there))[:k]
            n = len(order)
            distances[i, :n], keys[i, :n] = there[order], near[order]
            if exact and n and there.max() == distances[i, n - 1]:
                unsure.setdefault(int(there.max()), []).append(i)
        for distance, queries in unsure.items():
            self._settle(codes, level, distance, queries, distances, keys)

    def _settle(
        self,
        codes: Codes,
        level: str,
        distance: int,
        queries: list[int],
        distances: NDArray[np.int32],
        keys: Keys,
    ) -> None:
        """Put the lowest keys of all at one distance at the ends of rows.

        The n-th lowest key of those seen is an upper bound of the n-th lowest of all: asking for
        keys up to it again, until fewer come than may come, finds them.
        """
        # Each row holds as many keys as it needs: the greatest bound of a group is one of all.
        bound = max(int(keys[i][distances[i] == distance].max()) for i in queries)
        answers = self._ask(codes[queries], MOST, level, (distance, bound))
        for i, (_, near) in zip(queries, answers, strict=True):
            ties = np.flatnonzero(distances[i] == distance)
            lowest = np.union1d(near, keys[i, ties])[: len(ties)]
            changed = not np.array_equal(lowest, keys[i, ties])
            keys[i, ties] = lowest
            if len(near) >= MOST and (changed or len(queries) > 1):
                self._settle(codes, level, distance, [i], distances, keys)

    def _ask(
        self, codes: Codes, limit: int, level: str, among: tuple[int, int] | None = None
    ) -> list[tuple[NDArray[np.int32], Keys]]:
        """Search once; ``among`` restricts it to one distance and to keys up to a bound."""
        params: dict[str, Any] = {}
        if not self.server.address.is_exact:
            params["nprobe"] = self.server.address.nprobe
        condition = ""
        if among is not None:
            distance, bound = among
            params |= {"range_filter": distance, "radius": distance + 1}
            condition = f"key <= {bound}"
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


def _short(error: BaseException) -> str:
    """The one line of an error that tells."""
    details: Callable[[], str] | None = getattr(error, "details", None)
    text = details() if callable(details) else getattr(error, "message", "") or str(error)
    return str(text).strip().splitlines()[0][:200] if str(text).strip() else type(error).__name__


def _pymilvus() -> Any:
    pymilvus = import_optional("pymilvus", extra="milvus", place="a collection served by Milvus")
    log = logging.getLogger("pymilvus")
    if log.level < logging.CRITICAL:
        log.setLevel(logging.CRITICAL)  # it prints tracebacks of what is raised and told here
    return pymilvus
