"""The table of ``guides/quantisation.md``, from the rows of benchmarks/sentence_codes.py."""

import json
from pathlib import Path

import numpy as np

from streamhash.lab.comparison import brief

FILE = Path(__file__).parents[1] / "results" / "answers" / "sentences.jsonl"
COLUMNS = {"topic@10": "topic@10", "map": "mAP", "kept@10": "kept@10", "kept@100": "kept@100"}


def sentence_table() -> str:
    """Each way at each length: means over the seeds."""
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault((row["way"], row["bits"]), []).append(row)
    lines = [
        "| codes | bytes | " + " | ".join(COLUMNS.values()) + " |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    order = list(dict.fromkeys(way for way, _ in found))
    for way, bits in sorted(found, key=lambda each: (order.index(each[0]), each[1])):
        rows = found[way, bits]
        means = [brief(float(np.mean([row[name] for row in rows]))) for name in COLUMNS]
        is_alone = [each for each, _ in found].count(way) == 1
        named = way if is_alone else f"{way}, {bits} bits"
        lines.append("| " + " | ".join([named, f"{bits // 8:,}", *means]) + " |")
    return "\n".join(lines)
