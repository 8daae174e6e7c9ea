"""The leaderboard: which rows count, one line a method, and their ranks over blocks.

A block is a data set in a stream at a code length, and gives every method a rank by its mAP;
``leaderboard.toml`` has the blocks, the protocol on each data set, and the rankings. The rules:

- Only the protocol of the block counts, on the same data, with an encoded database, and nothing
  changed in the settings. A method stands once. On each data set it has its tuned settings, or its
  default ones if these were run in more blocks of the set.
- A method is ranked if it has seed 0 in every block of a ranking; the others are shown with what is
  missing. The value of a block is the mean over those seeds that all ranked methods have there.
- Equal values share their ranks.

The package has the rows of the leaderboard as it was built last (``leaderboard.jsonl``); those of
others are added to them, and held to the same rules. Rows of the methods of streamhash come from
``results/`` alone, so that nobody replaces them.
"""

import json
import shlex
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.hashers import METHODS
from streamhash.lab.datasets import DataSet, available, load_data
from streamhash.lab.ranks import block_ranks, cliques, critical_difference, friedman
from streamhash.lab.rows import LATER, ROWS_FILE, Row, read_rows
from streamhash.lab.run import Method, Plan, Running, find_method, plan_cell, run_cells

SHIPPED = "leaderboard.jsonl"
SUBMITTED = "submitted"  # the folder in results/ that holds rows of others
RANKED_BY = {"map": "mAP", "map_by_class": "mAP by class"}
SETTINGS = ("tuned", "default")  # the first where both were run in as many blocks
NEEDED_SEED = 0
FIELDS = (
    *("method", "settings", "data", "data_checksum", "n_bits", "seed", "stream"),
    *("queries_per_class", "order", "label_noise", "database", "queries", "instances"),
    *("version", "date"),
)
Values = NDArray[np.float64]


class Misfit(NamedTuple):
    """Why a row has no place on the leaderboard."""

    what: str  # that does not fit, in a word or two
    why: str  # in words that follow "its"


@dataclass(frozen=True)
class Block:
    """A data set in a stream at a code length."""

    data: str
    stream: str
    n_bits: int

    def __str__(self) -> str:
        return f"{self.data}, {self.stream}, {self.n_bits} bits"


@dataclass(frozen=True)
class BoardSet:
    """A data set of the leaderboard, with the protocol on it."""

    data: str
    checksum: str
    stream: int
    queries_per_class: int
    order: str = "shuffled"  # its usual one
    several_labels: bool = False

    @property
    def classes_ask_alike(self) -> bool:
        """Whether each class asks as often as any other, so that mAP by class is the mAP."""
        return self.queries_per_class > 0


@dataclass(frozen=True)
class Part:
    """The blocks that are ranked together."""

    name: str
    title: str
    data: tuple[str, ...]
    streams: tuple[str, ...]
    bits: tuple[int, ...]
    newcomer: bool = False  # whether a newcomer runs it

    @property
    def blocks(self) -> list[Block]:
        """All of its blocks, data set by data set."""
        return [
            Block(data, stream, n_bits)
            for data in self.data
            for stream in self.streams
            for n_bits in self.bits
        ]


@dataclass(frozen=True)
class Rules:
    """What ``leaderboard.toml`` says."""

    bits: tuple[int, ...]
    streams: Mapping[str, Mapping[str, Any]]
    sets: Mapping[str, BoardSet]
    parts: tuple[Part, ...]

    def part(self, name: str) -> Part:
        """Return a ranking by its name."""
        for part in self.parts:
            if part.name == name:
                return part
        known = ", ".join(part.name for part in self.parts)
        raise InputError(f"leaderboard: there is no ranking {name!r}; choose from {known}.")

    def stream_facts(self, block: Block) -> dict[str, Any]:
        """Return order and wrong labels of a block's stream, as rows have them."""
        usual = {"order": self.sets[block.data].order, "label_noise": 0.0}
        return {**usual, **self.streams[block.stream]}

    def block(self, row: Mapping[str, Any]) -> Block | Misfit:
        """Return the block of a row, or why it has none."""
        known = self.sets.get(row["data"])
        if known is None:
            return Misfit("data set", f"data set {row['data']} is none of {', '.join(self.sets)}")
        row = {**LATER, "changes": {}, **row}
        wanted: dict[str, tuple[str, tuple[Any, ...]]] = {
            "split": ("split", ("all",)),
            "settings": ("settings", SETTINGS),
            "changes": ("changed settings", ({},)),
            "database_codes": ("database", ("encoded",)),
            "data_checksum": ("checksum of the data", (known.checksum,)),
            "stream": ("length of the stream", (known.stream,)),
            "queries_per_class": ("queries of each class", (known.queries_per_class,)),
            "query_share": ("share of queries", (None,)),
            "n_bits": ("code length", self.bits),
        }
        for name, (what, values) in wanted.items():
            if row[name] not in values:
                counts = " or ".join(str(value or "none") for value in values)
                return Misfit(what, f"{what}: {row[name]}; on {known.data}, {counts} counts")
        for stream in self.streams:
            block = Block(known.data, stream, row["n_bits"])
            if self.stream_facts(block).items() <= row.items():
                return block
        came = f"{row['order']}, {row['label_noise']:g} wrong labels"
        return Misfit("stream", f"stream: {came}; {', '.join(self.streams)} count")


@cache
def read_rules() -> Rules:
    """Read the rules of the leaderboard."""
    given = tomllib.loads(_resource("leaderboard.toml"))
    lists = ("data", "streams", "bits")
    return Rules(
        bits=tuple(given["bits"]),
        streams=given["streams"],
        sets={each["data"]: BoardSet(**each) for each in given["set"]},
        parts=tuple(
            Part(**{**each, **{name: tuple(each[name]) for name in lists}})
            for each in given["ranking"]
        ),
    )


def _resource(name: str) -> str:
    return files("streamhash.lab").joinpath(name).read_text(encoding="utf-8")


def kept_fields(row: Row) -> Row:
    """Return what the leaderboard needs of a row: a tenth of it."""
    metrics = {name: round(value, 6) for name, value in row["metrics"].items() if name in RANKED_BY}
    cpu = {what: {"cpu": round(row["seconds"][what]["cpu"], 4)} for what in ("learn", "encode")}
    machine = {"cpu": row["machine"].get("cpu", "unknown")}
    return {name: row[name] for name in FIELDS} | {
        "metrics": metrics,
        "seconds": cpu,
        "machine": machine,
    }


def microseconds(row: Row) -> tuple[float, float]:
    """Return the processor time of a row's cell, to learn a row and to encode an item."""
    seconds, encoded = row["seconds"], row["database"] + row["queries"]
    return 1e6 * seconds["learn"]["cpu"] / row["instances"], 1e6 * seconds["encode"][
        "cpu"
    ] / encoded


def cell_command(row: Row) -> str:
    """Return the command that runs the cell of a row again."""
    usual = read_rules().sets[row["data"]].order
    options = {
        **{"data": row["data"], "method": row["method"], "bits": row["n_bits"]},
        **{"first-seed": row["seed"], "settings": row["settings"], "stream": row["stream"]},
        "queries-per-class": row["queries_per_class"] or None,
        "checkpoints": 1,
        "order": row["order"] if row["order"] != usual else None,
        "label-noise": row["label_noise"] or None,
    }
    words = [word for name, value in options.items() if value is not None
             for word in (f"--{name}", str(value))]  # fmt: skip
    return shlex.join(["streamhash", "bench", *words])


def shipped_rows() -> list[Row]:
    """Return the rows that came with the package."""
    return [json.loads(line) for line in _resource(SHIPPED).splitlines()]


def read_results(folder: Path) -> list[Row]:
    """Read all rows below a folder, also of folders in its folders.

    Those that others have submitted must be of methods of their own.
    """
    found: list[Row] = []
    for place in sorted(folder.rglob(ROWS_FILE)):
        rows = read_rows(place)
        if SUBMITTED in place.relative_to(folder).parts:
            for number, row in enumerate(rows, start=1):
                if misfit := _not_of_others(row):
                    raise _refused(place, number, row, misfit)
        found += rows
    return found


def read_given(paths: Iterable[Path]) -> tuple[list[Row], Counter[str]]:
    """Read rows that are given: those that fit, and why others of a folder were left out.

    A file must fit as a whole, as it was made for this; a folder may hold rows of other kinds. Rows
    of the methods of streamhash do not fit: they come with the package.
    """
    rules, fitting, left_out = read_rules(), list[Row](), Counter[str]()
    for path in paths:
        if path.is_dir():
            for row in read_results(path):
                misfit = _not_of_others(row) or _misfit(row, rules)
                left_out.update([misfit.what] if misfit else [])
                fitting += [] if misfit else [row]
            continue
        if not path.is_file():
            raise MissingDataError(f"leaderboard: there is no file or folder {path}; check it.")
        rows = read_rows(path)
        for number, row in enumerate(rows, start=1):
            if misfit := _not_of_others(row) or _misfit(row, rules):
                raise _refused(path, number, row, misfit)
        if not rows:
            raise FileError(f"leaderboard: {path} has no rows; run streamhash leaderboard --add.")
        fitting += rows
    return fitting, left_out


def _refused(path: Path, number: int, row: Row, misfit: Misfit) -> FileError:
    return FileError(
        f"leaderboard: {path}, row {number} ({row['method']}): its {misfit.why}; run "
        "streamhash leaderboard --add for rows that fit, or leave this one out."
    )


def _not_of_others(row: Row) -> Misfit | None:
    """Return why a row that is given is not one of somebody else's method."""
    if row["method"] not in METHODS:
        return None
    return Misfit(
        "method of streamhash",
        "method is one of streamhash, whose rows come with the package and are not replaced",
    )


def _misfit(row: Row, rules: Rules) -> Misfit | None:
    """Return why a row has no place; None if it has one."""
    found = rules.block(row)
    if isinstance(found, Misfit):
        return found
    without = [name for name in (*FIELDS, "machine", "seconds") if row.get(name) is None]
    if without:
        return Misfit("fields", f"fields lack {', '.join(without)}")
    method, quality = row["method"], row["metrics"].get("map")
    if method not in METHODS and ":" not in method:
        return Misfit("method", f"method: {method}; pass package.module:Class, or one of ours")
    if not isinstance(quality, float | int) or not 0 <= quality <= 1:
        return Misfit("mAP", f"mAP: {quality!r}; it lies between 0 and 1")
    if row["instances"] != row["stream"]:
        learned = f"{row['instances']} of {row['stream']} rows"
        return Misfit("rows learned", f"method has learned {learned}")
    times = [row["seconds"].get(what, {}).get("cpu") for what in ("learn", "encode")]
    if not all(isinstance(each, float | int) and each >= 0 for each in times):
        return Misfit("seconds", "seconds to learn and to encode are missing")
    return None


@dataclass(frozen=True)
class Ranking:
    """Methods by their mean rank over some blocks, the best first; and those that have none."""

    part: Part
    metric: str
    blocks: tuple[Block, ...]
    methods: tuple[str, ...]
    values: Values  # (methods, blocks)
    ranks: Values  # (methods, blocks)
    seeds: Mapping[Block, tuple[int, ...]]
    unranked: Mapping[str, str]  # and why

    @cached_property
    def mean_ranks(self) -> list[float]:
        """The mean rank of each method."""
        return [float(rank) for rank in self.ranks.mean(axis=1)]

    @cached_property
    def friedman(self) -> tuple[float, float]:
        """Friedman's statistic, and its probability if no method differs."""
        return friedman(self.ranks)

    @cached_property
    def difference(self) -> float:
        """How far two mean ranks must lie apart."""
        return critical_difference(len(self.methods), len(self.blocks))

    @cached_property
    def groups(self) -> list[tuple[str, ...]]:
        """The groups of methods that are not told apart."""
        found = cliques(self.mean_ranks, self.difference)
        return [self.methods[first : last + 1] for first, last in found]

    @property
    def is_tested(self) -> bool:
        """Whether there are enough methods and blocks for a test."""
        return len(self.methods) > 2 and len(self.blocks) > 1

    def place(self, method: str) -> int:
        """Return how many have a better mean rank, plus one."""
        own = self.mean_ranks[self.methods.index(method)]
        return 1 + sum(rank < own for rank in self.mean_ranks)

    def near(self, method: str) -> list[str]:
        """Return the methods that are not told apart from one."""
        own = self.mean_ranks[self.methods.index(method)]
        return [
            other
            for other, rank in zip(self.methods, self.mean_ranks, strict=True)
            if other != method and abs(rank - own) < self.difference
        ]


BySeed = dict[int, Row]


class Leaderboard:
    """All methods with their rows, one kind of settings on each data set.

    Parameters
    ----------
    rows : result rows; of two of one cell that with the later date counts. Those that fit no block
        are left out, and ``left_out`` counts them by what is wrong with them.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rules = read_rules()
        self.left_out: Counter[str] = Counter()
        found: dict[tuple[str, str, str], dict[Block, BySeed]] = defaultdict(dict)
        for row in rows:
            misfit, block = _misfit(row, self.rules), self.rules.block(row)
            if misfit is not None or isinstance(block, Misfit):
                self.left_out.update([misfit.what] if misfit else [])
                continue
            row = kept_fields(row)
            by_seed = found[row["method"], row["data"], row["settings"]].setdefault(block, {})
            if row["seed"] not in by_seed or by_seed[row["seed"]]["date"] <= row["date"]:
                by_seed[row["seed"]] = row
        self._settings: dict[tuple[str, str], str] = {}
        self._rows: dict[str, dict[Block, BySeed]] = {}
        for method in sorted({name for name, _, _ in found}, key=_order):
            own = self._rows.setdefault(method, {})
            for data in self.rules.sets:
                kinds = [kind for kind in SETTINGS if (method, data, kind) in found]
                if kinds:
                    kind = max(kinds, key=lambda kind: len(found[method, data, kind]))
                    self._settings[method, data] = kind
                    own.update(found[method, data, kind])

    @property
    def methods(self) -> list[str]:
        """The methods that have rows: those of streamhash in their order, then others."""
        return list(self._rows)

    @property
    def rows(self) -> list[Row]:
        """The rows that count: without seeds that one method alone has in a block."""
        times = Counter(
            (block, seed) for own in self._rows.values() for block in own for seed in own[block]
        )
        return [
            self._rows[method][block][seed]
            for method in self.methods
            for block in self.blocks
            for seed in sorted(self._rows[method].get(block, ()))
            if seed == NEEDED_SEED or times[block, seed] > 1
        ]

    @property
    def blocks(self) -> list[Block]:
        """All blocks that have a row, in the order of the rules."""
        there = {block for own in self._rows.values() for block in own}
        every = [
            Block(data, stream, n_bits)
            for data in self.rules.sets
            for stream in self.rules.streams
            for n_bits in self.rules.bits
        ]
        return [block for block in every if block in there]

    def found(self, method: str, block: Block) -> BySeed:
        """Return the rows of a method in a block, by their seeds."""
        return self._rows[method].get(block, {})

    def settings(self, method: str, data: Iterable[str] | None = None) -> str:
        """Return a method's settings on data sets: "tuned", "default", or "tuned, default"."""
        sets = self.rules.sets if data is None else data
        kinds = {self._settings[method, each] for each in sets if (method, each) in self._settings}
        return ", ".join(kind for kind in SETTINGS if kind in kinds)

    def ranking(
        self,
        part: Part | str = "one-label",
        metric: str = "map",
        *,
        blocks: Sequence[Block] | None = None,
    ) -> Ranking:
        """Rank the methods over the blocks of a ranking, or over some of them."""
        part = self.rules.part(part) if isinstance(part, str) else part
        if metric not in RANKED_BY:
            raise InputError(f"leaderboard: metric={metric!r}: pass {' or '.join(RANKED_BY)}.")
        wanted = part.blocks if blocks is None else list(blocks)
        unranked = {}
        for method in self.methods:
            if why := self._missing(method, wanted, metric):
                unranked[method] = why
        methods = [method for method in self.methods if method not in unranked]
        if not methods or not wanted:
            raise InputError(
                f"leaderboard: no method has rows in all blocks of {part.name}; add rows of it."
            )
        seeds = {
            block: tuple(
                sorted(set.intersection(*(self._seeds(each, block, metric) for each in methods)))
            )
            for block in wanted
        }
        values = np.array(
            [[self._value(method, block, seeds[block], metric) for block in wanted]
             for method in methods]
        )  # fmt: skip
        ranks = block_ranks(values)
        order = sorted(range(len(methods)), key=lambda i: ranks[i].mean())
        return Ranking(
            part=part,
            metric=metric,
            blocks=tuple(wanted),
            methods=tuple(methods[i] for i in order),
            values=values[order],
            ranks=ranks[order],
            seeds=seeds,
            unranked=unranked,
        )

    def shown_metrics(self, ranking: Ranking) -> list[str]:
        """Return what a ranking goes by, and the other where classes do not ask equally often."""
        alike = all(self.rules.sets[block.data].classes_ask_alike for block in ranking.blocks)
        others = [] if alike else [metric for metric in RANKED_BY if metric != ranking.metric]
        return [ranking.metric, *others]

    def mean(self, ranking: Ranking, method: str, metric: str) -> float | None:
        """Return the mean of a metric over a ranking's blocks; None where it lacks in a row."""
        if any(set(s) - self._seeds(method, block, metric) for block, s in ranking.seeds.items()):
            return None
        values = [self._value(method, block, s, metric) for block, s in ranking.seeds.items()]
        return float(np.mean(values))

    def rankings(self, newcomer: str | None = None, metric: str = "map") -> list[Ranking]:
        """Return all rankings that have methods; with a newcomer, over the blocks that it has."""
        found = []
        for part in self.rules.parts:
            blocks = part.blocks
            if newcomer is not None:
                blocks = [block for block in blocks if self.is_complete(newcomer, [block])]
            if blocks and any(self.is_complete(method, blocks) for method in self.methods):
                found.append(self.ranking(part, metric, blocks=blocks))
        return found

    def is_complete(self, method: str, blocks: Iterable[Block]) -> bool:
        """Whether a method has what a rank over the blocks needs."""
        return all(NEEDED_SEED in self.found(method, block) for block in blocks)

    def _seeds(self, method: str, block: Block, metric: str) -> set[int]:
        """Return the seeds of which a method has a value."""
        rows = self.found(method, block)
        return {seed for seed, row in rows.items() if metric in row["metrics"]}

    def _value(self, method: str, block: Block, seeds: Iterable[int], metric: str) -> float:
        rows = self.found(method, block)
        return float(np.mean([rows[seed]["metrics"][metric] for seed in seeds]))

    def _missing(self, method: str, blocks: Iterable[Block], metric: str) -> str:
        """Say what a method lacks to be ranked over blocks; empty if nothing."""
        without = [block for block in blocks if not self.is_complete(method, [block])]
        if not without:
            has = all(NEEDED_SEED in self._seeds(method, block, metric) for block in blocks)
            return "" if has else f"rows without {RANKED_BY[metric]}"
        sets = list(dict.fromkeys(block.data for block in without))
        if all(self.rules.sets[data].several_labels for data in sets) and learns_one_label(method):
            return f"for one label a row, and {', '.join(sets)} has several"
        if len(without) > 3:
            return f"{len(without)} blocks of {', '.join(sets)} were not run"
        return f"not run: {'; '.join(map(str, without))}"

    def costs(self, method: str, blocks: Iterable[Block]) -> tuple[float, float]:
        """Return processor microseconds to learn a row, and to encode an item, mean of blocks."""
        rows = [self.found(method, block)[NEEDED_SEED] for block in blocks]
        learn, encode = np.mean([microseconds(row) for row in rows], axis=0)
        return float(learn), float(encode)


def _order(method: str) -> tuple[int, str]:
    known = list(METHODS)
    return (known.index(method) if method in known else len(known)), method


def learns_one_label(method: str) -> bool:
    """Whether a method of streamhash is one for a single label a row."""
    found = METHODS.get(method)
    return found is not None and found.needs_labels and not found.multi_label


def read_leaderboard(rows: Iterable[Row] = ()) -> Leaderboard:
    """Return the leaderboard of the package, with further rows added to it.

    >>> read_leaderboard().ranking("one-label").place("sdoh")
    1
    """
    return Leaderboard([*shipped_rows(), *rows])


def write_shipped(board: Leaderboard) -> str:
    """Return the file of rows that the package ships."""
    return "".join(
        json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in board.rows
    )


@dataclass(frozen=True)
class Newcomer:
    """A method that has run the fixed part of the leaderboard, and the leaderboard with it."""

    method: str
    rows_file: Path
    board: Leaderboard
    skipped: Mapping[str, str]  # data sets, and why


def add_method(
    method: Method,
    out: str | Path,
    *,
    rows: Iterable[Row] = (),
    data: Sequence[str] | None = None,
    **running: Unpack[Running],
) -> Newcomer:
    """Run the fixed part of the leaderboard for a method, and place it among the others.

    That part is seed 0 of all blocks that a newcomer runs, with the method's default settings, on
    the data sets that are on this machine. Cells whose rows are there are not run again.

    Parameters
    ----------
    method : an import path ``package.module:Class``, or a class
    out : folder of the rows, ``NAME.jsonl``
    rows : of others, that are to stand beside those of the package
    data : only these data sets; None for all that are here
    jobs, executor, progress : as :func:`~streamhash.lab.run_cells` takes them
    """
    rules, found = read_rules(), find_method(method)
    if found in METHODS.values():
        raise InputError(
            f"leaderboard: {found.__name__} is on it already; pass a method of your own, "
            "package.module:Class."
        )
    here = {card.name for card in available() if card.here}
    parts = [part for part in rules.parts if part.newcomer]
    plans: list[Plan] = []
    skipped: dict[str, str] = {}
    for name in dict.fromkeys(name for part in parts for name in part.data):
        known = rules.sets[name]
        if data is not None and name not in data:
            skipped[name] = "not asked for"
        elif name not in here:
            skipped[name] = "not on this machine (streamhash data show tells where to get it)"
        elif known.several_labels and found.needs_labels and not found.multi_label:
            skipped[name] = f"{found.__name__} learns from one label a row"
        else:
            loaded = load_data(name)
            blocks = [block for part in parts for block in part.blocks if block.data == name]
            cells = [_plan(found, loaded, known, block, rules) for block in blocks]
            why = rules.block(cells[0].identity())
            if isinstance(why, Misfit):
                skipped[name] = f"its {why.why}"
            else:
                plans += cells
    if not plans:
        reasons = "; ".join(f"{name}: {what}" for name, what in skipped.items())
        raise InputError(f"leaderboard: there is nothing to run ({reasons}); pass other data.")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    rows_file = folder / f"{found.__name__}.jsonl"
    made = run_cells(plans, rows_file=rows_file, resume=True, **running)
    board = Leaderboard([*shipped_rows(), *rows, *made])
    return Newcomer(plans[0].method, rows_file, board, skipped)


def _plan(found: Method, data: DataSet, known: BoardSet, block: Block, rules: Rules) -> Plan:
    return plan_cell(
        found,
        data,
        block.n_bits,
        NEEDED_SEED,
        stream=known.stream,
        queries_per_class=known.queries_per_class or None,
        checkpoints=1,
        **rules.stream_facts(block),
    )
