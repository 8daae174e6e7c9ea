"""Is every file of a collection what it was written as, and every code that of its vector?"""

from collections.abc import Iterator
from os import PathLike, fspath
from typing import NamedTuple

import numpy as np

from streamhash.base import OnlineHasher
from streamhash.codes import Codes, unpack
from streamhash.errors import FileError
from streamhash.live import arrow
from streamhash.live.arrow import Batch
from streamhash.live.backup import check_backup, is_backup
from streamhash.live.checksums import NAME, Checksums
from streamhash.live.journal import NAMES, Journal
from streamhash.live.log import ACKNOWLEDGED, FOLDER
from streamhash.live.store import WAY_BACK, File, files_of

TRIES = 3  # of a dataset that is written to meanwhile
NEARLY_ZERO = 1e-3  # of a row's mean projection: there another processor may round to another bit


class Damage(NamedTuple):
    """A file, and what is wrong with it."""

    file: str
    problem: str


class Verified(NamedTuple):
    """What ``verify`` has looked at, and what it found."""

    files: int
    bytes: int
    without_checksum: int  # files that could only be read: they get one when they are written to
    damages: list[Damage]

    def plus(self, other: "Verified") -> "Verified":
        """Return what both have found."""
        return Verified(
            self.files + other.files,
            self.bytes + other.bytes,
            self.without_checksum + other.without_checksum,
            [*self.damages, *other.damages],
        )


def verify(
    path: str | PathLike[str],
    *,
    codes: bool = True,
    storage_options: dict[str, str] | None = None,
) -> Verified:
    """Read every file of a collection and compare it with its checksum; others may write meanwhile.

    Files without a checksum, of collections of version 0.1 to which nothing was written since, are
    read row by row; those in an object store, too, which keeps checksums of its own. If all are
    whole, every vector is encoded and compared with the code that is stored for it, unless
    ``codes=False``.

    A backup, a tar or a folder of them, is compared with the checksums that it has.
    """
    if is_backup(path):
        found = Verified(0, 0, 0, [])
        for name, size, problem in check_backup(path, source_options=storage_options):
            damages = [] if problem is None else [Damage(name, problem)]
            found = found.plus(Verified(1, size, 0, damages))
        return found
    journal = Journal(fspath(path), storage_options)
    found = _read_all(journal) if journal.folder is None else _verify_files(journal)
    if found.damages:
        return found
    opened = [*_open(journal.another(), codes=codes)]
    return found.plus(Verified(0, 0, 0, opened))


def _verify_files(journal: Journal) -> Verified:
    assert journal.folder is not None
    if not journal.folder.is_dir():
        raise journal.nothing_here()
    sums = Checksums(journal.folder)
    sums.read()
    damages = [
        Damage(str(sums.path), f"line {number} is damaged; the next change writes it anew")
        for number in sums.damaged
    ]
    found = Verified(0, 0, 0, damages)
    for name in NAMES:
        for tries_left in reversed(range(TRIES)):
            before = journal.store.versions(name)[:1]
            part = _verify_dataset(journal, sums, name)
            if journal.store.versions(name)[:1] == before or not tries_left:
                break
            sums.read()
        found = found.plus(part)
    if not found.files and not (journal.folder / NAME).exists():
        raise journal.nothing_here()
    logs = [path for path in (journal.folder / FOLDER).glob("*") if path.name != ACKNOWLEDGED]
    return found.plus(Verified(len(logs), sum(path.stat().st_size for path in logs), 0, []))


def _open(journal: Journal, *, codes: bool) -> Iterator[Damage]:
    """Find what only opening tells: the log, or a dataset that is missing and had no checksum."""
    try:
        journal.open(read_only=True)
        *_, lease = journal.load()
    except FileError as error:
        yield _damage(error)
        return
    with lease:
        if codes and journal.has_items and journal.serving:
            number, wrong = journal.serving, 0
            hasher = journal.read_model(number).hasher()
            columns = ["vector", *arrow.code_columns(number)]
            for batch in journal.scan(journal.keys(), *columns):
                wrong += _wrong_codes(hasher, batch)
                lease.renew()
            if wrong:
                yield Damage(
                    journal.uri("items"),
                    f"{wrong:,} codes are not those that model {number} gives their vectors; "
                    "refresh the collection, which encodes all anew",
                )


def _wrong_codes(hasher: OnlineHasher, batch: Batch) -> int:
    """Count the codes with a bit that is not the sign of its projection."""
    stored: Codes = batch.codes
    X = np.asarray(batch.vectors, np.float32)
    other = np.flatnonzero((hasher.transform(X) != stored).any(axis=1))
    if not len(other):
        return 0
    values = hasher.project(X[other])
    near = np.abs(values) <= NEARLY_ZERO * np.abs(values).mean(axis=1, keepdims=True)
    differ = unpack(stored[other], hasher.n_bits).astype(bool) != (values > 0)
    return int((differ & ~near).any(axis=1).sum())


def _verify_dataset(journal: Journal, sums: Checksums, name: str) -> Verified:
    start, store = f"{name}.lance/", journal.another().store
    damages, needed = [], dict[str, int | None]()
    try:
        store.check([name])
        dataset = store.find(name)
        if dataset is not None:
            needed = {start + each.name: each.size for each in files_of(dataset.get_fragments())}
    except FileError as error:
        damages.append(_damage(error))
    known = [place for place in sums.files if place.startswith(start)]
    there = {place for place in known if (sums.folder / place).exists()}
    size = 0
    for place in sorted({*there, *needed}):
        wrong = sums.problem(place, needed.get(place))
        if wrong is not None:
            damages.append(Damage(str(sums.folder / place), wrong))
        else:
            size += (sums.folder / place).stat().st_size
    unsummed = [place for place in needed if place not in sums.files]
    if unsummed and not damages:
        damages += _read_dataset(journal, name)
    unique = [*{damage.file: damage for damage in damages}.values()]
    return Verified(len({*there, *needed}), size, len(unsummed), unique)


def _read_all(journal: Journal) -> Verified:
    """Read all rows of all datasets."""
    found = Verified(0, 0, 0, [])
    for name in NAMES:
        dataset = journal.store.find(name)
        if dataset is None:
            continue
        files: list[File] = files_of(dataset.get_fragments())
        size = sum(each.size or 0 for each in files)
        damages = [*_read_dataset(journal, name)]
        found = found.plus(Verified(len(files), size, len(files), damages))
    if not found.files:
        raise journal.nothing_here()
    return found


def _read_dataset(journal: Journal, name: str) -> Iterator[Damage]:
    store = journal.another().store
    try:
        with store.reading(name):
            for _ in store.dataset(name).to_batches():
                pass
    except FileError as error:
        yield _damage(error)


def _damage(error: FileError) -> Damage:
    """Take an error apart, which begins with the place."""
    place, _, problem = str(error).partition(": ")
    return Damage(place, problem.removesuffix(f"; {WAY_BACK}"))
