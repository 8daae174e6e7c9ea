"""The long runs of disks that fail, power that is cut and files that are damaged.

    python benchmarks/faults.py durable

Each is a run of ``tests/durability.py``; its row goes to results/faults/durable.jsonl: what was
tried, how often, what was lost. Kills (``benchmarks/faults.py --kills 1000``) add theirs.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from _machine import describe_machine

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "results" / "faults" / "durable.jsonl"


def keep(row: dict[str, object], seconds: float, rows: Path = ROWS) -> None:
    """Add a row to a file of them, and say it."""
    row = {**row, "seconds": round(seconds), "machine": describe_machine("pylance")}
    rows.parent.mkdir(parents=True, exist_ok=True)
    with rows.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row))


def try_out(*words: object) -> bool:
    """Run the harness; return whether nothing was lost."""
    start = time.perf_counter()
    command = [sys.executable, ROOT / "tests" / "durability.py", *words]
    ended = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=False)
    row = json.loads(ended.stdout.splitlines()[-1])
    keep(row, time.perf_counter() - start)
    return not row["lost"]


def run() -> None:
    """Try all, as ``faults.py durable`` does."""
    main(sys.argv[2:])


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--damages", type=int, default=1500, help="of small files, and of large")
    parser.add_argument("--step", type=int, default=1, help="fail every so-manieth call")
    arguments = parser.parse_args(words)
    whole = []
    if arguments.cuts:
        whole.append(try_out("cuts", "--n", arguments.cuts))
    if arguments.damages:
        whole.append(try_out("damage", "--n", arguments.damages))
        whole.append(try_out("damage", "--n", arguments.damages, "--large", "--seed", 1))
    if arguments.step:
        for mode in ("EIO once", "ENOSPC once", "EIO lasting", "ENOSPC lasting"):
            whole.append(try_out("writes", "--step", arguments.step, "--mode", mode))
    sys.exit(0 if all(whole) else 1)


if __name__ == "__main__":
    main()
