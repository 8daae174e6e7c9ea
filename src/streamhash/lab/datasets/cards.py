"""What is known of each data set (``cards.toml``), and where it lies on this machine."""

import os
import sys
import tomllib
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from streamhash.errors import MissingDataError


@dataclass(frozen=True)
class Card:
    """The facts of one data set.

    ``checksum`` is that of the ``files`` (algorithm:digits, one for each), and ``where`` the place
    on this machine: a folder, or a remark for what needs no file, or None if it is missing.
    """

    name: str
    rows: int
    features: int
    classes: int
    source: str
    licence: str
    note: str
    checksum: str | None = None
    where: str | None = None
    files: tuple[str, ...] = ()
    is_public: bool = False  # whether it can be downloaded
    mirrors: tuple[str, ...] = ()  # the addresses of its file, if its checksum is not known
    why_not_public: str = "has no public download"
    label_column: str | None = (
        None  # the array of labels in its file, if not one of the usual names
    )
    queries_from: int | None = None  # of a set in order of time: the row where its queries begin

    @property
    def here(self) -> bool:
        """Whether the set can be loaded without a download."""
        return self.where is not None


def _read_cards() -> dict[str, Card]:
    text = (resources.files(__package__) / "cards.toml").read_text(encoding="utf-8")
    cards = tomllib.loads(text).items()
    lists = ("files", "mirrors")
    return {
        name: Card(name, **facts | {key: tuple(facts.get(key, ())) for key in lists})
        for name, facts in cards
    }


CARDS = _read_cards()


def cache_folder() -> Path:
    """Return the folder that downloads go to: ``STREAMHASH_CACHE``, else the platform's own.

    The platform's own is ``~/.cache/streamhash`` (or under ``XDG_CACHE_HOME``) on Linux,
    ``~/Library/Caches/streamhash`` on macOS and ``%LOCALAPPDATA%\\streamhash`` on Windows.
    """
    chosen = os.environ.get("STREAMHASH_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        parent = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Caches"
    else:
        parent = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(parent) / "streamhash"


def data_folders() -> list[Path]:
    """Return the folders that are searched, in order: ``STREAMHASH_DATA`` if set, the cache."""
    chosen = os.environ.get("STREAMHASH_DATA")
    return [*([Path(chosen).expanduser()] if chosen else []), cache_folder()]


def find_files(card: Card) -> list[Path] | None:
    """Return the files of a data set from the first folder that has them all, else None."""
    for folder in data_folders():
        for place in (folder, folder / card.name, folder / card.name.replace("-", "_")):
            found = [path for file in card.files for path in _spellings(place / file)]
            if len(found) == len(card.files):
                return found
    return None


def _spellings(path: Path) -> list[Path]:
    """Return the file, or the same file uncompressed, by both names that MNIST's have."""
    plain = path.with_name(path.name.removesuffix(".gz"))
    paths = (path, plain, plain.with_name(plain.name.replace("-idx", ".idx")))
    return [path for path in paths if path.is_file()][:1]


def missing(place: str, name: str) -> MissingDataError:
    """Return the error for a set that is not here: where it was looked for, and the next step."""
    looked = " and ".join(map(str, data_folders()))
    files = ", ".join(CARDS[name].files)
    if CARDS[name].is_public:
        step = f"run streamhash data fetch {name}, or set STREAMHASH_DATA to a folder that has them"
    else:
        why = CARDS[name].why_not_public
        step = f"it {why}: get the file and set STREAMHASH_DATA to its folder"
    return MissingDataError(f"{place}: {name!r} ({files}) is not in {looked}; {step}.")


def is_named(name: str | Path) -> bool:
    """Whether a name is that of a data set, and there is no file of that name.

    >>> is_named("digits"), is_named("items.csv")
    (True, False)
    """
    return name in CARDS and not Path(name).exists()


def available() -> list[Card]:
    """Return the card of every named set; ``card.here`` says if it is on this machine.

    >>> [card.name for card in available()]
    ['digits', 'mnist', 'cifar10-features', 'cifar10-vgg16', 'miniplaces-features', 'places205',
     'places205-synthetic', 'reuters', 'long-tail', 'synthetic']
    """
    found = [(card, find_files(card)) for card in CARDS.values()]
    return [replace(card, where=str(paths[0].parent)) if paths else card for card, paths in found]
