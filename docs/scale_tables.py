"""The tables of ``scale.md``, from what benchmarks printed; ``scale_charts.py`` draws them."""

import re
from typing import NamedTuple

from performance_tables import markdown, printed

MANY = 1_000_000  # items; fewer have little to do with what a process takes
WAYS = ("one thread", "threads of the process", "two processes", "two workers of Dask")


class Opened(NamedTuple):
    """What a collection takes in memory, in MiB, with peaks as multiples of what follows them."""

    items: int
    ids: str
    seconds: float
    cpu_seconds: float
    own: float
    item_bytes: float
    everything: float
    open_peak: float
    changed: float
    change_peak: float
    refreshed: float
    refresh_peak: float
    most: float

    @property
    def refreshed_bytes(self) -> float:
        """Bytes an item after changes and a refresh, as ``item_bytes`` counts them."""
        return self.item_bytes + (self.refreshed - self.own) * 2**20 / self.items


def opened() -> list[Opened]:
    """What ``scale.py --memory`` printed of this version."""
    found = []
    for line in printed("memory").splitlines():
        words = line.replace(",", "").split()
        if len(words) == len(Opened._fields) + 1 and words[2] == "this":
            items, ids, _, *numbers = words
            found.append(Opened(int(items), ids, *map(float, numbers)))
    return found


def memory_table() -> str:
    """Memory, and seconds to open."""
    head = ["items, ids", "open, s", "own, MiB", "with files mapped", "bytes an item"]
    head += ["own, refreshed", "bytes an item", "most, with files"]
    head += ["peak of opening", "peak of a refresh"]
    body = [
        [
            f"{one.items:,}, {one.ids}",
            f"{one.seconds:.2f}",
            f"{one.own:.0f}",
            f"{one.everything:.0f}",
            f"{one.item_bytes:.0f}" if one.items >= MANY else "–",
            f"{one.refreshed:.0f}",
            f"{one.refreshed_bytes:.0f}" if one.items >= MANY else "–",
            f"{one.most:.0f}",
            f"{one.open_peak:.2f}×",
            f"{one.refresh_peak * one.refreshed / max(one.changed, one.refreshed):.2f}×",
        ]
        for one in opened()
    ]
    return markdown(head, body)


class Encoded(NamedTuple):
    """Seconds to encode items anew, by each of WAYS, and how many times as fast as the first."""

    features: int
    items: int
    load: float
    seconds: tuple[float, ...]
    speeds: tuple[float, ...]


def encoded() -> list[Encoded]:
    """What ``reencoding.py`` printed."""
    found = []
    for line in printed("reencoding").splitlines():
        if re.match(r" +\d+ +[\d,]+ ", line):
            d, n, load, *numbers = line.replace(",", "").split()
            seconds, speeds = numbers[: len(WAYS)], ["1", *numbers[len(WAYS) :]]
            taken, times = (tuple(map(float, each)) for each in (seconds, speeds))
            found.append(Encoded(int(d), int(n), float(load), taken, times))
    return found


def reencoding_table() -> str:
    """Seconds, and how many times as fast as one thread."""
    head = ["features", "items", "load", *WAYS]
    body = [
        [
            f"{one.features:,}",
            f"{one.items:,}",
            f"{one.load:.0f}",
            f"{one.seconds[0]:.1f} s",
            *(f"{one.seconds[i]:.1f} s, {one.speeds[i]:.2f}×" for i in range(1, len(WAYS))),
        ]
        for one in encoded()
    ]
    return markdown(head, body)


class Step(NamedTuple):
    """A step, and what the process had after it and at most during it: own memory, and all."""

    name: str
    seconds: float
    own: float
    own_peak: float
    everything: float
    peak: float


def steps(name: str) -> dict[str, list[Step]]:
    """What ``past_memory.py`` printed into a file, by what was run."""
    found: dict[str, list[Step]] = {}
    case = ""
    for line in printed(name).splitlines():
        if " items of 64 bits" in line:
            case = line
        elif step := re.fullmatch(r"([a-z ]+?) +([\d.]+) +(\d+) +(\d+) +(\d+) +(\d+)", line):
            found.setdefault(case, []).append(Step(step[1], *map(float, step.groups()[1:])))
    return found


def past_memory_table() -> str:
    """Own memory and all, after each step and at its peak."""
    (taken,) = steps("past_memory").values()
    return _steps_table(taken)


def past_memory_milvus_table() -> str:
    """The same with codes in Milvus, of the most items."""
    *_, taken = steps("past_memory_milvus").values()
    return _steps_table(taken)


def _steps_table(taken: list[Step]) -> str:
    head = ["", "s", "own, MiB", "peak", "with files mapped", "peak"]
    body = [[one.name, f"{one.seconds:,.1f}", *(f"{v:.0f}" for v in one[2:])] for one in taken]
    return markdown(head, body)
