"""When a refresh is worth its work."""

from typing import Any, NamedTuple

from streamhash.errors import InputError

__all__ = ["Policy"]

PRICE = 0.001  # bits of information that encoding an item anew is worth


class Policy(NamedTuple):
    """When to encode all items anew: by hand, after every so many learned items, or when it pays.

    Every labelled item asks both models before it is learned; the bits of information by which the
    learner's answers beat those of the serving model are summed up, for each item that came. It
    pays when the sum exceeds ``price`` bits for every item that would be encoded anew: so a small
    collection refreshes soon, a large one when the gain is large or lasts.
    """

    every: int | None = None  # learned items
    price: float | None = None  # bits an item

    @classmethod
    def parse(cls, text: Any, *, place: str) -> "Policy":
        """Read "manual", "gain", "gain=0.001", or a number of items."""
        try:
            if text == "manual":
                return cls()
            if isinstance(text, str) and text.partition("=")[0] == "gain":
                policy = cls(price=float(text.partition("=")[2] or PRICE))
            else:
                policy = cls(every=int(text))
        except (TypeError, ValueError):
            policy = cls(every=0)
        if policy.every == 0 or not all(value is None or value > 0 for value in policy):
            raise InputError(
                f'{place}: refresh={text!r} must be "gain", "gain=BITS", "manual", or a number of '
                "items from 1 up."
            )
        return policy

    def is_due(self, n_learned: int, missed: float, n_items: int) -> bool:
        """Whether to refresh so many items, after so much was learned and missed since."""
        if self.every is not None:
            return n_learned >= self.every
        return self.price is not None and missed > self.price * n_items

    def __str__(self) -> str:
        if self.every is not None:
            return str(self.every)
        return "manual" if self.price is None else f"gain={self.price:g}"
