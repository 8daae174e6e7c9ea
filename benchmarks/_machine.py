"""What a benchmark must say before its numbers: machine, versions, date."""

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path


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
