"""The tables of ``performance.md``, from what benchmarks keep in results/benchmarks.

A benchmark keeps rows, ``NAME.jsonl``, or what it printed, ``NAME.txt``. A section of the page has
a function here for its table, and one in ``charts.py`` for its chart.
"""

import json
import re
from collections.abc import Iterator, Sequence
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
