"""The tables of ``reliability.md``, from the rows that the long runs of faults have left.

Each run adds its rows to results/faults, so a fault that was tried in several runs has several:
what was tried and what was lost are their sums.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "results" / "faults"
OPEN = "it opens, with all that was acknowledged, and the change under way whole or not at all"

Row = dict[str, Any]


@cache
def read(name: str) -> list[Row]:
    """Rows of a file in results/faults."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def rows_of(name: str, fault: str) -> list[Row]:
    """Rows of a fault, by how its name begins."""
    return [row for row in read(name) if row["fault"].startswith(fault)]


def tried(rows: Iterable[Row]) -> int:
    """How often it was tried."""
    total = 0
    for row in rows:
        times: Any = row.get("tried", row.get("operations", 1))
        total += sum(times.values()) if isinstance(times, dict) else times
    return total


def lost(rows: Iterable[Row]) -> int:
    """How often it was not as promised."""
    total = 0
    for row in rows:
        found: Any = row.get("lost", row.get("violations", 0))
        total += len(found) if isinstance(found, list) else found
        total += row.get("errors", 0)
    return total


class Fault(NamedTuple):
    """A line of the table."""

    title: str
    rows: Callable[[], list[Row]]
    promise: str
    command: str


def failed(kinds: str, mode: str) -> Callable[[], list[Row]]:
    """Rows of calls of these kinds that fail in one way."""

    def rows() -> list[Row]:
        found = rows_of("durable", "failed calls")
        return [row for row in found if set(kinds) & set(row["kinds"]) and mode in row["tried"]]

    return rows


WRITES = "python tests/durability.py writes --kinds wsnl --mode"
FAULTS = [
    Fault(
        "process killed (SIGKILL) while it adds, labels, deletes, refreshes or reverts",
        lambda: rows_of("durable", "kills"),
        f"{OPEN}; all numbers of the learner are those of one that learned what is there",
        "python benchmarks/faults.py --kills 1000",
    ),
    Fault(
        "power cut, simulated: of what was not synced, any part is lost",
        lambda: [r for r in rows_of("durable", "power cuts") if r["fault"] == "power cuts"],
        OPEN,
        "python tests/durability.py cuts --n 200",
    ),
    Fault(
        "power cut of ext4: the device is copied under the writer",
        lambda: rows_of("durable", "power cuts of ext4"),
        OPEN,
        "python tests/durability.py ext4",
    ),
    *(
        Fault(
            f"{error} at each write, sync, rename and link, {how}",
            failed("w", f"{error} {how}"),
            "an error that names the place, or none if it does no harm; the process goes on",
            f'{WRITES} "{error} {how}"',
        )
        for error in ("EIO", "ENOSPC")
        for how in ("once", "lasting")
    ),
    *(
        Fault(
            f"EIO at each read, {how}",
            failed("r", f"EIO {how}"),
            "the same",
            f'python tests/durability.py writes --kinds r --mode "EIO {how}"',
        )
        for how in ("once", "lasting")
    ),
    Fault(
        "a bit flipped, a file cut short or removed",
        lambda: rows_of("durable", "damage"),
        "told by name when opened or by `live verify`, or no harm: never other items in silence",
        "python tests/durability.py damage --n 1000",
    ),
    Fault(
        "fork at a random moment, then both go on",
        lambda: rows_of("threads", "forks"),
        "the child only reads; the parent and its lock are as before",
        "python benchmarks/fault_threads.py forks",
    ),
    Fault(
        "calls of 8 threads in 3 processes, recorded",
        lambda: rows_of("threads", "history"),
        "linearizable, item by item; no error",
        "python benchmarks/fault_threads.py history",
    ),
    Fault(
        "adds beside readers that idle, stand still or were killed",
        lambda: rows_of("threads", "leases"),
        "files and versions stay few; each reader goes on",
        "python benchmarks/fault_threads.py leases",
    ),
    Fault(
        "one extreme row or value, 1e6 to 1e37, in 2,000 images",
        lambda: [{"lost": int(spoiled(row))} for row in read("extreme")],
        "precision of ten neighbours falls by at most 0.03",
        "python benchmarks/faults.py extreme",
    ),
    Fault(
        "changed files of models and indexes, with numba's bounds check and without",
        lambda: read("files"),
        "an error or a sound model, never a crash",
        "python benchmarks/faults.py files",
    ),
    Fault(
        "requests made up at random",
        lambda: rows_of("service", "requests made up"),
        "answered or refused in the shape that errors have; every item can be answered after",
        "python benchmarks/fault_service.py",
    ),
    Fault(
        "hostile requests, bodies of up to 31 MB",
        lambda: rows_of("service", "a request"),
        "answered as the table of [service.md](service.md) says",
        "python benchmarks/fault_service.py",
    ),
    Fault(
        "bytes without end, and answers that are never read",
        lambda: [*rows_of("service", "without a token"), *rows_of("service", "answers")],
        "the connection is closed; memory stays bounded",
        "python benchmarks/fault_service.py",
    ),
]


def spoiled(row: Row) -> bool:
    """Whether an extreme value has cost more than it may."""
    return row["error"] is not None or row["precision"] < row["without"] - 0.03


def fault_table() -> str:
    """Each fault: how often it was tried, what was lost, what is promised, the command."""
    lines = ["| fault | tried | lost | promised | command |", "|---|---:|---:|---|---|"]
    for fault, rows in ((fault, fault.rows()) for fault in FAULTS):
        if not rows:  # never tried
            continue
        cells = [fault.title, f"{tried(rows):,}", f"{lost(rows):,}", fault.promise]
        lines.append("| " + " | ".join([*cells, f"`{fault.command}`"]) + " |")
    return "\n".join(lines)


def request_table() -> str:
    """The longest waits for /health by single requests, and the memory that these took."""
    idle = rows_of("service", "nothing")[-1]
    rows = [*rows_of("service", "a request"), *rows_of("service", "without a token")]
    rows = [*{row["fault"]: row for row in [*rows, *rows_of("service", "answers")]}.values()]
    rows.sort(key=lambda row: row["held_up_ms"], reverse=True)
    lines = [
        "| | wait for `/health`, ms | of it held up, ms | memory, MB | times its body |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in [*rows[:6], idle]:
        name = row["fault"].partition(": ")[2] or row["fault"]
        times = row.get("peak_times_body") or ""
        waits = f"{row['longest_wait_ms']:.0f} | {row['held_up_ms']:.0f}"
        lines.append(f"| {name} | {waits} | {row['peak_mb']:.0f} | {times} |")
    bodies = [row for row in rows if row.get("body_mb", 0) > 8]
    most = max(row["peak_times_body"] for row in bodies)
    held = max(row["held_up_ms"] for row in rows)
    lines += [
        "",
        f"Of {len(rows)} kinds, the longest hold-up is {held:.0f} ms; with bodies of more than 8 "
        f"MB, memory is at most {most} times the body.",
    ]
    return "\n".join(lines)


def cost_table() -> str:
    """What calls cost now, in times of what they cost before."""
    row = rows_of("durable", "cost")[-1]
    lines = ["| | before, ms | synced | process |", "|---|---:|---:|---:|"]
    for name, ms in row["before_ms"].items():
        ratios = [f"× {row['ratio'][kind][name]:.2f}" for kind in ("synced", "process")]
        lines.append(f"| {name} | {ms} | " + " | ".join(ratios) + " |")
    for row in {row["fault"]: row for row in rows_of("service", "the cost")}.values():
        name, ms = row["fault"].partition(": ")[2], row["cpu_ms_before"]
        lines.append(f"| request: {name} (processor) | {ms} | × {row['cpu_ratio']:.2f} | |")
    return "\n".join(lines)


def kill_places() -> str:
    """Where processes were killed, and the power was cut."""
    lines = ["| killed in | times |", "|---|---:|"]
    places: Counter[str] = Counter()
    for row in rows_of("durable", "kills"):
        places.update(row.get("during", {}))
    lines += [f"| {name} | {times:,} |" for name, times in places.most_common()]
    return "\n".join(lines)
