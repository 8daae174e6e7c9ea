"""The table of ``search.md`` on ways of scoring, from the rows of benchmarks/answer_quality.py."""

import json
from pathlib import Path
from typing import Any

from streamhash.lab.comparison import brief

FILE = Path(__file__).parents[1] / "results" / "answers" / "quality.jsonl"
SETS = ("mnist", "cifar10-features", "miniplaces-features", "reuters")
COLUMNS = {"map": "mAP", "right": "right of 10", "recall": "recall@10", "ms": "ms"}
BY_CLASS = "map_by_class"  # a column more of sets whose classes do not ask equally often
UNEQUAL = ("reuters",)
BITS = (32, 64, 128)
UNLEARNED = 0  # the bits of rows that the features alone make


def quality_table() -> str:
    """Each way of scoring on each set: three numbers where codes have 32, 64 and 128 bits."""
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault((row["data"], row["way"]), {})[row["bits"]] = row
    lines = []
    for data in SETS:
        ways = {way: by_bits for (name, way), by_bits in found.items() if name == data}
        if {*BITS, UNLEARNED} - {bits for by_bits in ways.values() for bits in by_bits}:
            continue  # not yet whole
        columns = dict(COLUMNS)
        if data in UNEQUAL:
            columns = {"map": "mAP", BY_CLASS: "mAP by class", **COLUMNS}
        facts = next(iter(next(iter(ways.values())).values()))
        title = f"{data}, {facts['items']:,} items, {facts['features']} features"
        lines += [
            "",
            "| " + " | ".join([title, *columns.values()]) + " |",
            "|---" + "|---:" * len(columns) + "|",
        ]
        for way, by_bits in sorted(ways.items(), key=lambda each: UNLEARNED in each[1]):
            cells = [
                " / ".join(_number(name, by_bits[bits][name]) for bits in sorted(by_bits))
                for name in columns
            ]
            lines.append("| " + " | ".join([way, *cells]) + " |")
    return "\n".join(lines[1:])


def _number(name: str, value: float) -> str:
    return f"{value:.3f}" if name == "ms" else brief(value)
