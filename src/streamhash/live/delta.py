"""What a small change does to the learner: a few numbers, in place of the whole learner.

A labelled item that waits for its stage teaches nothing yet. It asks for its neighbours, which is
counted, and is one more that waits; an item that is deleted until then waits no more, and one whose
metadata change waits under another key. What was learned from an item that is gone leaves with
others. A record of the log holds that much, and whoever reads the log applies one delta after the
other (``Learner.apply``): the same sums of the same numbers in the same order, and so the same
learner to the last bit. When something is learned or forgotten, the record holds the whole learner.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix
from streamhash.live.arrow import Keys
from streamhash.live.calibration import BINS, CELLS, CLASSES, SCORES, Counted

NO_KEYS = np.empty(0, np.int64)
NO_PRECISIONS = np.empty(0)
NO_ROWS = np.empty((0, 0), np.float32)
WIDTH = struct.Struct("<I")  # of the length of the head
SHAPES = {"pairs": (2, CLASSES, CELLS), "votes": (2, 2, SCORES), "reliability": (2, 3, BINS)}


class Delta(NamedTuple):
    """By how much a learner differs from the one before."""

    waits: Keys = NO_KEYS  # items that wait from now on, after the others
    left: Keys = NO_KEYS  # items that wait no more
    several: bool | None = None  # whether items have several labels, as is known now
    time: float = 0.0  # when labelled items have asked,
    labelled: int = 0  # how many labelled items there were then, these with them,
    precisions: NDArray[np.float64] = NO_PRECISIONS  # of what they found,
    counted: Counted | None = None  # and what was counted of it
    renamed: tuple[Keys, Keys] = (NO_KEYS, NO_KEYS)  # items that have other keys, and these
    leaving_rows: Matrix = NO_ROWS  # what is still to be forgotten, after the others,
    leaving_labels: Sequence[Any] = ()  # and their labels

    def leave(self, X: Matrix, labels: Sequence[Any]) -> "Delta":
        """Return it with more rows that leave."""
        before = [self.leaving_rows] if len(self.leaving_labels) else []
        rows = np.concatenate([*before, np.asarray(X, np.float32)])
        return self._replace(leaving_rows=rows, leaving_labels=[*self.leaving_labels, *labels])

    def to_bytes(self) -> bytes:
        """Return it as part of a record."""
        head: dict[str, Any] = {
            "waits": self.waits.tolist(),
            "left": self.left.tolist(),
            "several": self.several,
            "time": self.time,
            "labelled": self.labelled,
            "precisions": len(self.precisions),
            "counted": None,
            "renamed": [keys.tolist() for keys in self.renamed],
            "leaving": [*self.leaving_labels],
        }
        arrays = [self.precisions.tobytes()]
        if self.counted is not None:
            parts = {}
            for name in SHAPES:
                values = getattr(self.counted, name)
                if values is not None:
                    places = np.flatnonzero(values).astype(np.uint16)  # they are few
                    parts[name] = len(places)
                    arrays += [places.tobytes(), values.ravel()[places].tobytes()]
            head["counted"] = [self.counted.model, self.counted.queries, parts]
        arrays.append(self.leaving_rows.tobytes())
        text = json.dumps(head).encode()
        return b"".join([WIDTH.pack(len(text)), text, *arrays])

    @classmethod
    def from_bytes(cls, content: bytes) -> "Delta":
        """Undo ``to_bytes``."""
        (length,) = WIDTH.unpack_from(content)
        at = WIDTH.size + length
        head = json.loads(content[WIDTH.size : at])

        def take(kind: type[np.generic], n: int) -> NDArray[Any]:
            nonlocal at
            values = np.frombuffer(content, kind, n, at)
            at += values.nbytes
            return values

        precisions, counted = take(np.float64, head["precisions"]), None
        if head["counted"] is not None:
            model, queries, parts = head["counted"]
            found: dict[str, Any] = dict.fromkeys(SHAPES)
            for name, n in parts.items():
                values = np.zeros(SHAPES[name])
                places = take(np.uint16, n)
                values.ravel()[places] = take(np.float64, n)
                found[name] = values
            counted = Counted(model, queries, **found)
        names = [
            tuple(each) if isinstance(each, list) else each for each in head.get("leaving", ())
        ]
        rows = np.frombuffer(content, np.float32, offset=at) if names else NO_ROWS
        old, new = head.get("renamed", ((), ()))
        return cls(
            np.array(head["waits"], np.int64),
            np.array(head["left"], np.int64),
            head["several"],
            head["time"],
            head["labelled"],
            precisions,
            counted,
            (np.array(old, np.int64), np.array(new, np.int64)),
            rows.reshape(len(names), -1) if names else rows,
            names,
        )
