"""When a refresh is worth its work."""

from typing import Any, NamedTuple

from streamhash.errors import InputError

__all__ = ["Policy"]

THRESHOLD = 0.02  # bits of information


class Policy(NamedTuple):
    """When to encode all items anew: by hand, after every so many learned items, or when it pays.

    It pays when the learner's codes of the sample tell more about the labels than those of the
    serving model, by more than ``threshold`` bits (methods of Cakir et al., ICCV 2017).
    """

    every: int | None = None  # learned items
    threshold: float | None = None  # bits

    @classmethod
    def parse(cls, text: Any, *, place: str) -> "Policy":
        """Read "manual", "gain", "gain=0.05", or a number of items."""
        try:
            if text == "manual":
                return cls()
            if isinstance(text, str) and text.partition("=")[0] == "gain":
                policy = cls(threshold=float(text.partition("=")[2] or THRESHOLD))
            else:
                policy = cls(every=int(text))
        except (TypeError, ValueError):
            policy = cls(every=0)
        if policy.every is not None and policy.every < 1:
            raise InputError(
                f'{place}: refresh={text!r} must be "gain", "gain=BITS", "manual", or a number of '
                "items from 1 up."
            )
        return policy

    def is_due(self, n_learned: int, gain: float | None) -> bool:
        """Whether to refresh, so many items after the last time."""
        if self.every is not None:
            return n_learned >= self.every
        return self.threshold is not None and gain is not None and gain > self.threshold

    def __str__(self) -> str:
        if self.every is not None:
            return str(self.every)
        return "manual" if self.threshold is None else f"gain={self.threshold:g}"
