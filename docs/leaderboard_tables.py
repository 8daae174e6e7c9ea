"""The rankings of ``leaderboard.md``, their diagram, and the rows that the package ships."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from streamhash.lab import Leaderboard
from streamhash.lab.leaderboard import read_results, read_rules, write_shipped
from streamhash.lab.report.leaderboard import draw_ranks, ranking_markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SHIPPED", "draw_leaderboard", "protocol_table", "ranking_table", "shipped_text"]

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "src" / "streamhash" / "lab" / "leaderboard.jsonl"


@cache
def _board() -> Leaderboard:
    return Leaderboard(read_results(ROOT / "results"))


def shipped_text() -> str:
    """The rows of the leaderboard as the package has them."""
    return write_shipped(_board())


def ranking_table(name: str) -> str:
    """A ranking: table, tests, and who has no rank and why."""
    return ranking_markdown(_board(), _board().ranking(name))


def protocol_table() -> str:
    """The data sets of the leaderboard, with the protocol on each."""
    lines = [
        ["data set", "stream", "queries of each class", "labels a row", "checksum"],
        ["---", "---:", "---:", "---", "---"],
    ]
    for known in read_rules().sets.values():
        queries = str(known.queries_per_class) if known.queries_per_class else "the last rows"
        labels = "several" if known.several_labels else "one"
        lines.append([known.data, f"{known.stream:,}", queries, labels, f"`{known.checksum}`"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def draw_leaderboard() -> "Figure":
    """Draw the critical-difference diagram of the first ranking."""
    return draw_ranks(_board().ranking("one-label"))
