"""The files of the page, read once: what a request names is looked up, never opened."""

import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

__all__ = ["File", "read_page"]

FRONT = "index.html"
TYPES = {".js": "text/javascript", ".html": "text/html", ".css": "text/css"}  # on every machine


class File(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str


def read_page() -> dict[str, File]:
    """Return the files of the page by name; ``index.html`` is its front."""
    found: dict[str, File] = {}
    folder = files("streamhash.service").joinpath("page")
    if folder.is_dir():
        _read(folder, "", found)
    return found


def _read(folder: Traversable, prefix: str, found: dict[str, File]) -> None:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            if not entry.name.startswith("_"):
                _read(entry, f"{name}/", found)
        elif not entry.name.endswith((".py", ".pyc", ".md")):
            ending = entry.name[entry.name.rfind(".") :]
            kind = TYPES.get(ending) or mimetypes.guess_type(entry.name)[0]
            found[name] = File(entry.read_bytes(), kind or "application/octet-stream")
