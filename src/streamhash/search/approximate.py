"""An approximate index over an exact one, for some ten million codes and more; made by faiss."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.codes import Codes
from streamhash.errors import InputError
from streamhash.optional import import_optional
from streamhash.parameters import Maybe, Whole, check_parameters
from streamhash.search.ids import MISSING_ID, kind, to_bytes
from streamhash.search.index import NO_DISTANCE, HammingIndex, check_k, check_width
from streamhash.threads import get_threads

MAX_DEFAULT_BUCKETS = 1024  # more take longer to make than they save
TRAINING_CODES_PER_BUCKET = 256  # that k-means looks at, faiss's number too
SEED = {"random_state": Maybe(Whole(0, 2**31 - 1))}


class _Built(NamedTuple):
    """What a search sees: buckets of places, and the ids at these places."""

    buckets: Any  # faiss.IndexBinaryIVF, or None over an empty index
    ids: NDArray[Any]  # (n,)
    mark: bytes  # of the contents, to tell later whether they have changed


class ApproximateIndex:
    """The codes of a HammingIndex in buckets, of which a search looks into the nearest few.

    K-means on the codes finds the buckets (faiss's ``IndexBinaryIVF``), so this pays where codes
    come in groups, as learned ones do, and are millions; docs/search.md has measurements. It holds
    a copy of the codes as they were when it was made; ask ``is_stale``, and call ``refresh`` when
    you have the seconds.

    What a row holds is in HammingIndex's order, with the true distances. What differs: items in
    buckets not looked into are missed; among the items at a row's last distance, any may be left
    out, not only those added last; and a row ends in distance 2147483647 and id -1 (None among
    strings) where its buckets hold fewer than ``k`` items, even if the index holds more.

    Parameters
    ----------
    index : HammingIndex
        Where the codes come from, now and at each ``refresh``.
    n_buckets : int, optional
        How many; by default the power of two next to the square root of the number of codes, 1024
        at most.
    n_probe : int
        How many buckets a search looks into: more find more and take longer. It may be set anew.
    random_state : int, optional
        Of the k-means: the same codes and number give the same buckets.
    """

    def __init__(
        self,
        index: HammingIndex,
        n_buckets: int | None = None,
        n_probe: int = 8,
        random_state: int | None = None,
    ) -> None:
        values = {"n_buckets": n_buckets, "random_state": random_state}
        check_parameters("ApproximateIndex", values, {"n_buckets": Maybe(Whole(1)), **SEED})
        self.index, self.n_buckets, self.random_state = index, n_buckets, random_state
        self._built = _Built(None, np.zeros(0, np.int64), b"")
        self.n_probe = n_probe
        self.refresh()

    def __len__(self) -> int:
        return len(self._built.ids)

    def __repr__(self) -> str:
        return f"ApproximateIndex of {len(self)} items, n_probe={self.n_probe}"

    @property
    def n_probe(self) -> int:
        """How many buckets a search looks into."""
        return self._n_probe

    @n_probe.setter
    def n_probe(self, value: int) -> None:
        check_parameters("ApproximateIndex", {"n_probe": value}, {"n_probe": Whole(1)})
        self._n_probe = int(value)

    @property
    def is_stale(self) -> bool:
        """Whether the index holds other items now; reads all of its codes and ids to tell."""
        return _mark(*self.index.contents()) != self._built.mark

    def refresh(self) -> bool:
        """Make the buckets anew if the index has changed, and say whether it has.

        Searches in other threads go on with the old buckets meanwhile.
        """
        ids, codes = self.index.contents()
        mark = _mark(ids, codes)
        if mark == self._built.mark:
            return False
        self._built = _Built(self._make(codes) if len(codes) else None, ids, mark)
        return True

    def search(self, codes: ArrayLike, k: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Find about the ``k`` nearest items of each query: distances and ids, (n_queries, k)."""
        queries = check_width(codes, self.index.n_bits, place="ApproximateIndex.search")
        built = self._built
        check_k(k, len(queries), len(built.ids), place="ApproximateIndex.search")
        missing = MISSING_ID[kind(built.ids)]
        if built.buckets is None:
            shape = (len(queries), int(k))
            distances = np.full(shape, NO_DISTANCE, np.int32)
            return distances, np.full(shape, missing, built.ids.dtype)
        with _faiss_threads():
            built.buckets.nprobe = min(self._n_probe, built.buckets.nlist)
            distances, places = built.buckets.search(queries, int(k))
        # By distance, then by place, which is the order of ids; what is not there comes last.
        order = (distances * np.int64(len(built.ids)) + places).argsort(axis=1)
        order += np.arange(0, order.size, int(k))[:, None]  # places in the flat arrays
        distances, places = distances.take(order), places.take(order)
        ids = built.ids.take(places, mode="wrap")
        if places[:, -1].min(initial=0) < 0:
            ids[places < 0] = missing
        return distances, ids

    # ------------------------------------------------------------------------------------ helpers

    def _make(self, codes: Codes) -> Any:
        faiss = _faiss()
        n, n_bytes = codes.shape
        n_buckets = self.n_buckets or min(2 ** round(np.log2(n) / 2), MAX_DEFAULT_BUCKETS)
        if n_buckets > n:
            raise InputError(
                f"ApproximateIndex: n_buckets={n_buckets} is more than the {n} codes of the index; "
                "pass fewer, or None."
            )
        coarse = faiss.IndexBinaryFlat(8 * n_bytes)
        buckets = faiss.IndexBinaryIVF(coarse, 8 * n_bytes, n_buckets)
        seed = self.random_state
        buckets.cp.seed = int(np.random.default_rng().integers(2**31) if seed is None else seed)
        buckets.cp.min_points_per_centroid = 1  # few codes make poor buckets, but no warning
        buckets.cp.max_points_per_centroid = TRAINING_CODES_PER_BUCKET
        with _faiss_threads():
            buckets.train(codes)
            buckets.add(codes)
        return buckets


def _mark(ids: NDArray[Any], codes: Codes) -> bytes:
    """A digest of an index's contents: equal contents have equal ones."""
    digest = blake2b(kind(ids).encode(), digest_size=16)
    parts = to_bytes(ids) if kind(ids) == "strings" else {"ids": ids}
    for array in (codes, *parts.values()):
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


@cache
def _faiss() -> Any:
    return import_optional("faiss", extra="faiss", place="ApproximateIndex")


@contextmanager
def _faiss_threads() -> Iterator[None]:
    """As many threads as streamhash uses, inside the block."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(get_threads())
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
