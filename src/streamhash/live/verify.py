"""Is every file of a collection what it was written as?"""

from collections.abc import Iterator
from os import PathLike, fspath
from typing import NamedTuple

from streamhash.errors import FileError
from streamhash.live.checksums import NAME, Checksums
from streamhash.live.journal import NAMES, Journal
from streamhash.live.log import ACKNOWLEDGED, FOLDER
from streamhash.live.store import WAY_BACK, File, files_of

TRIES = 3  # of a dataset that is written to meanwhile


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


def verify(path: str | PathLike[str], *, storage_options: dict[str, str] | None = None) -> Verified:
    """Read every file of a collection and compare it with its checksum; others may write meanwhile.

    Files without a checksum, of collections of version 0.1 to which nothing was written since, are
    read row by row; those in an object store, too, which keeps checksums of its own.
    """
    journal = Journal(fspath(path), storage_options)
    if journal.folder is None:
        return _read_all(journal)
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
    found = found.plus(Verified(len(logs), sum(path.stat().st_size for path in logs), 0, []))
    return found if found.damages else found.plus(Verified(0, 0, 0, [*_open(journal.another())]))


def _open(journal: Journal) -> Iterator[Damage]:
    """Find what only opening tells: the log, or a dataset that is missing and had no checksum."""
    try:
        journal.open(read_only=True)
        journal.load()[-1].release()
    except FileError as error:
        yield _damage(error)


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
