"""The tables of ``performance.md``, from what benchmarks keep in results/benchmarks.

A benchmark keeps rows, ``NAME.jsonl``, or what it printed, ``NAME.txt``. A section of the page has
a function here for its table, and one in ``charts.py`` for its chart.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "results" / "benchmarks"

Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    """Rows that a benchmark kept."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def printed(name: str) -> str:
    """What a benchmark printed."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").strip()


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table, the first column of which is text."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def chosen(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Rows with these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def times_ours(rows: Iterable[Row], who: str, **wanted: Any) -> float:
    """How many times as long as ours somebody took, in the first run that has both."""
    found = chosen(rows, **wanted)
    theirs = chosen(found, who=who)[0]["seconds"]
    return float(theirs / chosen(found, who="streamhash")[0]["seconds"])


def machines() -> dict[str, list[Row]]:
    """Rows of the benchmark of search by machine, each by a short name."""
    found: dict[str, list[Row]] = {}
    for row in rows("search"):
        name = re.sub(r"\([^)]*\)| Processor.*", "", row["machine"])
        found.setdefault(name, []).append(row)
    return found


def search_table() -> str:
    """How many times as long as ours faiss's searches take, on each machine."""
    found = machines()
    some = next(iter(found.values()))
    body = []
    for n_bits in sorted({row["bits"] for row in chosen(some, part="nearest")}):
        for data in ("clustered", "uniform", "learned"):
            if not chosen(some, part="nearest", data=data, bits=n_bits):
                continue
            cells = [f"{n_bits} bits, {data}"]
            for part, n_queries in (
                ("nearest", 200),
                ("nearest", 1),
                ("within", 200),
                ("within", 1),
            ):
                facts = {"part": part, "data": data, "bits": n_bits, "queries": n_queries}
                ratios = (times_ours(each, "faiss", **facts) for each in found.values())
                cells.append(" / ".join(f"{ratio:.1f}" for ratio in ratios))
            body.append(cells)
    head = [f"faiss's time, times ours: {' / '.join(found)}"]
    return markdown([*head, "200 queries", "1 query", "radius, 200", "radius, 1"], body)


def peers_table() -> str:
    """How many times as long as ours the searches of others take."""
    body: dict[str, list[str]] = {}
    head = ["64 bits, clustered; times ours"]
    for machine, measured in machines().items():
        all_rows = chosen(measured, part="nearest", data="clustered", bits=64)
        for n_queries in sorted({row["queries"] for row in chosen(all_rows, who="NumPy")}):
            head.append(f"{machine}, {n_queries} {'query' if n_queries == 1 else 'queries'}")
            took = {row["who"]: row["seconds"] for row in chosen(all_rows, queries=n_queries)}
            ours = took.pop("streamhash")
            for name, theirs in took.items():
                body.setdefault(name, []).append(f"{theirs / ours:.1f}")
    return markdown(head, [[name, *cells] for name, cells in body.items()])


def threads_table() -> str:
    """One query on two threads, and reading the same bytes, by the clock."""
    body = []
    for machine, measured in machines().items():
        for n_bits in (64, 128):
            for who in ("search", "reading"):
                found = chosen(measured, part="threads", bits=n_bits, who=who)
                one, two = (chosen(found, threads=n)[0]["seconds"] * 1e3 for n in (1, 2))
                name = f"{machine}: {found[0]['items']:,} of {n_bits} bits, {who}"
                body.append([name, f"{one:.2f} ms", f"{two:.2f} ms", f"{one / two:.2f}"])
    return markdown(["one query", "one thread", "two", "times as fast"], body)


def no_filter_table() -> str:
    """The search without a filter, by the kernel that can have one and by one that cannot."""
    body: dict[str, list[str]] = {}
    for measured in machines().values():
        found = chosen(measured, part="filter")
        for bare in chosen(found, who="without"):
            same = {name: bare[name] for name in ("bits", "queries")}
            able = chosen(found, who="with the argument", **same)[0]
            case = f"{bare['bits']} bits, queries: {bare['queries']}"
            body.setdefault(case, []).append(f"{able['seconds'] / bare['seconds']:.2f}")
    head = ["no filter given; times the time of a kernel without filters", *machines()]
    return markdown(head, [[case, *cells] for case, cells in body.items()])


def _parts(name: str) -> Iterator[list[str]]:
    """What a benchmark printed, cut at empty lines."""
    for part in printed(name).split("\n\n"):
        yield part.splitlines()


def answers_table() -> str:
    """How many times the time of a plain search those with filters and real numbers take."""
    asked = {
        "one query, k = 10": "one query",
        "100 queries, k = 10": "100 queries",
        "one query, k = 10, 64 bits": "one query",
        "100 queries, k = 10, 64 bits": "100 queries",
    }
    found: dict[str, dict[str, str]] = {}
    for head, *lines in _parts("answers"):
        case = re.split(r"\s{2,}", head)[0]
        if case in asked:
            for line in lines:
                way, _, ratio, _ = re.split(r"\s{2,}", line.strip())
                found.setdefault(way, {})[asked[case]] = ratio
    columns = ["one query", "100 queries"]
    body = [
        [way, *(f"{float(ratios[column]):.2f}" for column in columns)]
        for way, ratios in found.items()
    ]
    return markdown(["1,000,000 codes of 64 bits, k = 10", *columns], body)


def encoding_table() -> str:
    """Rows encoded in a second of processor time, by a linear map and by random features."""
    lines = next(part for part in _parts("encoding") if "from rows to packed codes" in part[0])
    body = []
    for line in lines[2:]:
        d, linear, absolute, _, ratio, fourier = line.split()
        body.append([d, *(f"{int(n):,}" for n in (linear, absolute, fourier)), ratio.rstrip("x")])
    head = ["features of a row", "linear, rows/s", "absolute values, rows/s", "cosines, rows/s"]
    return markdown([*head, "absolute values: times the linear map's time"], body)


def evaluation_table() -> str:
    """How many times as fast as a stable sort of float distances mAP is computed."""
    found: dict[str, list[str]] = {}
    head = []
    for first, *lines in _parts("evaluation"):
        if bits := re.match(r"\d+ bits", first):
            head.append(bits[0])
            for line in lines:
                way, _, ratio, _, _ = re.split(r"\s{2,}", line)
                found.setdefault(way, []).append(ratio)
    return markdown(["mAP, times as fast", *head], [[way, *each] for way, each in found.items()])


def writes() -> dict[tuple[str, str], dict[int, float]]:
    """Single rows that were written a second, by who and what, and how many came at a time."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for block in printed("commits").split("\n\n"):
        head, *lines = block.splitlines()
        if head.startswith(("threads, single", "clients over")):
            for line in lines:
                at_once, kind, per_second = re.match(r"(\d+), (\w.*?)  +([\d,]+)", line).groups()  # type: ignore[union-attr]
                series = found.setdefault((head.split(",")[0], kind), {})
                series[int(at_once)] = float(per_second.replace(",", ""))
    return found


def tenths() -> list[tuple[float, float]]:
    """Milliseconds of a labelled add, p50 and p99, in each tenth of many."""
    lines = re.findall(r"^\d+ +([\d.]+) +([\d.]+) +[\d.]+ +[\d.]+ .*$", printed("commits"), re.M)
    return [(float(p50), float(p99)) for p50, p99 in lines]


def batches() -> dict[str, float]:
    """Items a second that batches add: ours, and Lance's plain append."""
    block = printed("commits").split("batches of 1,000")[1].split("\n\n")[0]
    found = re.findall(r"^(Lance|collection).*? ([\d,]+) +[\d,]+$", block, re.M)
    return {who: float(number.replace(",", "")) for who, number in found}


def shares() -> dict[int, tuple[float, float, float]]:
    """The service beside an empty route, by clients: the share, and its least and greatest."""
    wanted = r"^ +[\d,]+ +(\d+) +\d+ +\d+ +\d+ +([\d.]+) \(([\d.]+) to ([\d.]+)\)"
    found = re.findall(wanted, printed("serve_empty"), re.M)
    return {int(n): (float(share), float(low), float(high)) for n, share, low, high in found}
