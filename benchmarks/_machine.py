"""What a benchmark says before its numbers: machine, versions, date; and where it keeps rows."""

import datetime
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_name

FOLDER = Path(__file__).parents[1] / "results" / "benchmarks"


def cpu_model() -> str:
    """What the processor calls itself; of AMD, whose virtual ones have no number, which Zen."""
    model = platform.processor() or platform.machine()
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        lines = facts.read_text().splitlines()
        model = next((line.split(": ")[1] for line in lines if "model name" in line), model)
    zen = re.fullmatch(r"znver(\d+)", get_host_cpu_name())
    return f"{model} Zen {zen[1]}" if zen else model


def describe_machine(*packages: str) -> str:
    """CPU model and cores, versions of Python, streamhash and ``packages``, and the date."""
    names = ("streamhash", "numpy", "numba", *packages)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    date = datetime.datetime.now(datetime.UTC).date()
    python = f"Python {platform.python_version()}, {versions}"
    return f"{cpu_model()}, {os.cpu_count()} cores; {python}; {date}"


def keep_rows(name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows to results/benchmarks, a line each, in place of this machine's last ones."""
    day = str(datetime.datetime.now(datetime.UTC).date())
    facts = {"machine": cpu_model(), "load": os.getloadavg()[0], "day": day}
    path = FOLDER / f"{name}.jsonl"
    before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    lines = [line for line in before if json.loads(line)["machine"] != facts["machine"]]
    lines += [json.dumps({**row, **facts}) for row in rows]
    FOLDER.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
