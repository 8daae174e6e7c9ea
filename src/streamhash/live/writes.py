"""What callers ask to be written, and what they are told of it."""

from typing import Any, NamedTuple


class Addition(NamedTuple):
    """What ``add`` is called with."""

    ids: Any
    X: Any
    y: Any = None
    metadata: Any = None
    existing: str = "refuse"


class Update(NamedTuple):
    """What ``update`` is called with."""

    ids: Any
    X: Any = None
    y: Any = None
    metadata: Any = None


class Labelling(NamedTuple):
    """What ``label`` is called with."""

    ids: Any
    y: Any


class Description(NamedTuple):
    """What ``set_metadata`` is called with."""

    ids: Any
    metadata: Any


class Deletion(NamedTuple):
    """What ``delete`` is called with."""

    ids: Any


Write = Addition | Update | Labelling | Description | Deletion

VERBS: dict[type[Write], str] = {
    Addition: "add",
    Update: "update",
    Labelling: "label",
    Description: "set_metadata",
    Deletion: "delete",
}


class Written(NamedTuple):
    """What came of a write."""

    items: int  # that were stored, labelled, described or deleted
    created: int = 0  # of those that were added, in the place of no other
