"""How the items of a collection are shown to people: which fields are title, subtitle and picture.

It is guessed from metadata, until somebody says it; then it lies beside the collection's data as
``display.json``, and no item is changed by it.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from streamhash.errors import InputError
from streamhash.live import Collection
from streamhash.storage import whole_file

FILE, VERSION = "display.json", 1
LOOKED_AT = 200  # items
TITLES = ("title", "name", "headline", "subject", "caption", "text")  # the first that items have
PICTURES = ("image", "picture", "photo", "thumbnail", "image_url", "img")
SUBTITLES = 3  # fields that are guessed to be worth a place under the title
LONGEST = 40  # characters of what is, on average
PICTURE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")


def read_display(collection: Collection) -> dict[str, Any]:
    """Return what was said, or what metadata suggest."""
    place = _place(collection)
    if place is not None and place.exists():
        try:
            said = json.loads(place.read_text(encoding="utf-8"))
            if said.pop("version") <= VERSION:
                return {"title": None, "subtitle": [], "image": None, **said, "guessed": False}
        except (ValueError, KeyError, TypeError, AttributeError):
            pass  # it is not worth an error: what is guessed will do
    _, keys, _, _ = collection.list_items(0, LOOKED_AT, newest=True)
    return guess(collection.metadata(keys).values())


def write_display(collection: Collection, said: dict[str, Any]) -> None:
    """Keep what was said."""
    place = _place(collection)
    if place is None:
        raise InputError(
            "display: this collection is in an object store, where it cannot be kept; what is "
            "guessed is shown."
        )
    with whole_file(place) as temporary:
        temporary.write_text(json.dumps({"version": VERSION, **said}), encoding="utf-8")


def _place(collection: Collection) -> Path | None:
    return None if "://" in collection.address else Path(collection.address) / FILE


def guess(metadata: Iterable[Any]) -> dict[str, Any]:
    """Return which fields look like a title, like facts below it, and like a picture.

    >>> guess([{"title": "Red shoe", "price": 9.5, "photo": "https://a.b/c.png"}])
    {'title': 'title', 'subtitle': ['price'], 'image': 'photo', 'guessed': True}
    """
    known = [each for each in metadata if isinstance(each, dict)]
    names = [name for name, _ in Counter(name for each in known for name in each).most_common()]
    values = {name: [each[name] for each in known if each.get(name) is not None] for name in names}
    pictures = [name for name in names if _are_pictures(values[name])]
    image = next((name for name in PICTURES if name in pictures), [*pictures, None][0])
    texts = [name for name in names if name not in pictures and _is_text(values[name])]
    known_titles = [name for name in TITLES if name in texts]
    tell_apart = [name for name in texts if _tells_apart(values[name])]
    title = [*known_titles, *tell_apart, None][0]
    rest = [name for name in names if name not in (title, *pictures) and _is_short(values[name])]
    return {"title": title, "subtitle": rest[:SUBTITLES], "image": image, "guessed": True}


def _is_text(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, str) and value.strip() for value in values)


def _tells_apart(values: list[str]) -> bool:
    """Whether texts are words that name an item: nearly all different, and no dates or numbers."""
    wordy = sum(any(sign.isalpha() for sign in value) and " " in value for value in values)
    return len(set(values)) > 0.8 * len(values) and wordy > 0.5 * len(values)


def _is_short(values: list[Any]) -> bool:
    if not values or any(isinstance(value, dict | list) for value in values):
        return False
    return sum(len(str(value)) for value in values) <= LONGEST * len(values)


def _are_pictures(values: list[Any]) -> bool:
    return bool(values) and all(map(_is_picture, values))


def _is_picture(value: Any) -> bool:
    if isinstance(value, dict):
        return {"width", "height"} <= value.keys()
    if not isinstance(value, str):
        return False
    if value.startswith("data:image/"):
        return True
    path = value.partition("?")[0].lower()
    return value.startswith(("https://", "http://", "/")) and path.endswith(PICTURE_ENDINGS)
