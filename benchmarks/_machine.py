"""What a benchmark says before its numbers: machine, versions, date; and where it keeps rows."""

import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "results" / "benchmarks"


def describe_machine(*packages: str) -> str:
    """CPU model and cores, versions of Python, streamhash and ``packages``, and the date."""
    model = platform.processor() or platform.machine()
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        lines = facts.read_text().splitlines()
        model = next((line.split(": ")[1] for line in lines if "model name" in line), model)
    names = ("streamhash", "numpy", "numba", *packages)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    date = datetime.datetime.now(datetime.UTC).date()
    return (
        f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}, {versions}; {date}"
    )


def keep_rows(name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows to results/benchmarks, a line each, with the load and the day."""
    facts = {"load": os.getloadavg()[0], "day": str(datetime.datetime.now(datetime.UTC).date())}
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({**row, **facts}) for row in rows]
    (FOLDER / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
