"""What a result was made on and with: numbers without it cannot be compared."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from streamhash.threads import get_threads

__all__ = ["describe_machine"]


def describe_machine() -> dict[str, Any]:
    """Describe this machine: processor, cores, threads in use, and the versions that matter."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "threads": get_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba", "scikit-learn")},
    }


def _cpu_model() -> str:
    """Name the processor; Linux keeps the name out of reach of ``platform``."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
