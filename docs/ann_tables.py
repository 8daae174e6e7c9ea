"""The table of what ann-benchmarks' own runner measured, from the rows of its results."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from performance_tables import markdown

ROWS = Path(__file__).parents[1] / "results" / "ann_benchmarks" / "local.jsonl"
NAMES = ("streamhash-exact", "streamhash-buckets", "faiss-ivf", "bruteforce")


@cache
def local_rows() -> list[dict[str, Any]]:
    """The rows of benchmarks/ann_benchmarks_local.py."""
    return [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]


def local_table() -> str:
    """The fastest of each at a recall of .95 or more, by its clock, and how it was run."""
    rows = local_rows()
    sets = [*dict.fromkeys(row["data"] for row in rows)]
    body = []
    for name in NAMES:
        cells = []
        for data in sets:
            of = [row for row in rows if (row["data"], row["algorithm"]) == (data, name)]
            speeds = [
                max(
                    (
                        row["queries_per_second"]
                        for row in of
                        if row["batch"] == batch and row["recall"] >= 0.95
                    ),
                    default=None,
                )
                for batch in (False, True)
            ]
            cells.append(" / ".join("–" if speed is None else f"{speed:,.0f}" for speed in speeds))
        body.append([name, *cells])
    loads = [load for row in rows for load in row["load"]]
    machine = rows[0]["machine"]
    days = sorted({row["date"] for row in rows})
    one, many = (max(row["runs"] for row in rows if row["batch"] == batch) for batch in (0, 1))
    return (
        markdown(["queries/s at recall ≥ .95, by its clock: single / batch", *sets], body)
        + f"\n\n{machine['cpu']}, {machine['cores']} cores, load {min(loads):.1f} to "
        f"{max(loads):.1f}; {rows[0]['queries']} queries, the best of {one} runs (in batches "
        f"{many}, brute force 1); {' to '.join(dict.fromkeys([days[0], days[-1]]))}."
    )
