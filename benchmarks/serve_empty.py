"""The service beside an empty FastAPI route: the same bodies and answers, without a search.

    python benchmarks/serve_empty.py                  10,000 and 1,000,000 items
    python benchmarks/serve_empty.py --items 10000    one size alone
    python benchmarks/serve_empty.py --linear         a hasher without random features

``wrk`` asks with 1, 8 and 64 connections, one search of one vector each, k = 10, as JSON with
labels and metadata, of 1,000 queries in turn. Routes take turns in every round: ours, an empty one
that answers with ready-made bytes, the least that FastAPI can do, and one that answers with plain
values, which FastAPI writes (``_empty_service.py``). A share is that of one round, of which the
median is told, the least and the greatest. Processor time is that of the serving process for each
request, which others on the machine change less.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from _machine import describe_machine
from serve_load import K, create, rows, service

CLIENTS, QUERIES = (1, 8, 64), 1000
EMPTY = Path(__file__).with_name("_empty_service.py")
OURS, READY, PLAIN = ROUTES = ("streamhash", "ready-made", "plain")
SCRIPT = """
local bodies, n = {}, 0
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
function request()
  n = n % #bodies + 1
  return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, bodies[n])
end
function done(summary, latency)
  local e = summary.errors
  local failed = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format("DONE %d %d %d %f %f", summary.requests, summary.duration, failed,
    latency.mean, latency:percentile(99)))
end
"""


class Served(NamedTuple):
    """A route, and the process that serves it."""

    url: str
    pid: int


class Measured(NamedTuple):
    """What ``wrk`` met in one round."""

    a_second: float
    cpu: float  # microseconds of the serving process, a request
    mean: float  # milliseconds that an answer took
    p99: float
    failed: int


def has_wrk() -> bool:
    """Whether ``wrk`` is there; says so if it is not, and nothing can be measured."""
    found = shutil.which("wrk") is not None
    if not found:
        print("wrk is missing, nothing is measured: apt-get install wrk")
    return found


def ask(served: Served, clients: int, seconds: int, folder: Path) -> Measured:
    script = str(folder / "ask.lua")
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "-s", script, served.url]
    environment, before = {**os.environ, "BODIES": str(folder / "bodies")}, processor(served.pid)
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    n, duration, failed, mean, p99 = said.stdout.rpartition("DONE ")[2].split()
    cpu = (processor(served.pid) - before) * 1e6 / max(int(n), 1)
    rate = int(n) / (int(duration) / 1e6)
    return Measured(rate, cpu, float(mean) / 1000, float(p99) / 1000, int(failed))


def processor(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    facts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def empty_service(answer: Path) -> Iterator[tuple[str, int]]:
    process = subprocess.Popen(
        [sys.executable, str(EMPTY), str(answer)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}", process.pid
    finally:
        process.terminate()
        process.communicate()


def post(url: str, body: str) -> bytes:
    kind = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, body.encode(), kind)) as answer:
        return bytes(answer.read())


def compare(n: int, rounds: int, seconds: int, *, linear: bool) -> bool:
    """Measure a service of ``n`` items beside the empty one; return whether nothing failed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        create(folder / "items", n, linear=linear)
        queries = rows(QUERIES, 7)[0].astype(np.float64).round(4).tolist()
        bodies = [json.dumps({"vectors": [query], "k": K}) for query in queries]
        (folder / "bodies").write_text("\n".join(bodies))
        (folder / "ask.lua").write_text(SCRIPT)
        with service(folder / "items") as (url, pid):
            answers = [post(f"{url}/api/search", body) for body in bodies]
            (folder / "answer").write_bytes(sorted(answers, key=len)[QUERIES // 2])
            with empty_service(folder / "answer") as (empty, empty_pid):
                served = {OURS: Served(f"{url}/api/search", pid)}
                served |= {each: Served(f"{empty}/{each}", empty_pid) for each in (READY, PLAIN)}
                good = [_compare(n, c, rounds, seconds, served, folder) for c in CLIENTS]
    return all(good)


def _compare(
    n: int, clients: int, rounds: int, seconds: int, served: dict[str, Served], folder: Path
) -> bool:
    for each in served.values():
        ask(each, clients, 1, folder)
    met = [
        {name: ask(each, clients, seconds, folder) for name, each in served.items()}
        for _ in range(rounds)
    ]

    def median(name: str, fact: str) -> float:
        return float(np.median([getattr(one[name], fact) for one in met]))

    shares = {
        name: sorted(one[OURS].a_second / one[name].a_second for one in met)
        for name in (READY, PLAIN)
    }
    told = "  ".join(
        f"{np.median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})" for found in shares.values()
    )
    tail = float(np.median([one[OURS].p99 / one[OURS].mean for one in met]))
    failed = sum(one.failed for each in met for one in each.values())
    rates = " ".join(f"{median(name, 'a_second'):>10.0f}" for name in ROUTES)
    cpu = " ".join(f"{median(name, 'cpu'):>10.0f}" for name in ROUTES)
    print(
        f"{n:>9,} {clients:>7} {rates}  {told}  {cpu}  {median(OURS, 'mean'):>8.2f} "
        f"{median(OURS, 'p99'):>7.2f} {tail:>8.1f} {failed:>6} {os.getloadavg()[0]:>5.1f}",
        flush=True,
    )
    return failed == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, action="append", help="a size; may repeat")
    parser.add_argument("--linear", action="store_true", help="codes without random features")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="of each route in a round")
    chosen = parser.parse_args()
    if not has_wrk():
        return 0
    print(describe_machine("fastapi", "starlette", "uvicorn", "pydantic"))
    print(
        f"{'':>17} {'searches a second':<32}  {'ours, as a share of':<40}  "
        f"{'processor µs a request':<32}  {'ours, milliseconds':<25}"
    )
    print(
        f"{'items':>9} {'clients':>7} {OURS:>10} {READY:>10} {PLAIN:>10}  {READY:<19}  {PLAIN:<19}"
        f"  {OURS:>10} {READY:>10} {PLAIN:>10}  {'mean':>8} {'p99':>7} {'p99/mean':>8} failed  load"
    )
    sizes = chosen.items or [10_000, 1_000_000]
    results = [compare(n, chosen.rounds, chosen.seconds, linear=chosen.linear) for n in sizes]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
