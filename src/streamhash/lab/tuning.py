"""An honest search for settings: on data of the stream alone, with the same budget for all.

Tried are the defaults and random draws from the method's ``search``, each on one split of the
stream; then the best few again on two splits more, and the best mean of the three is chosen. Test
queries take no part: rows that are queries of any test seed are left out (``split="validation"``).
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamhash.errors import InputError
from streamhash.lab.datasets import DataSet
from streamhash.lab.plan import Plan, find_method, plan_cell
from streamhash.lab.rows import Row, row_key

__all__ = ["Search", "best_changes", "candidates"]

FINALISTS = 3
SPLITS = 3  # on which each finalist is measured


@dataclass(frozen=True)
class Search:
    """The search for the settings of one method on one data set."""

    method: str
    data: DataSet
    n_bits: int = 64
    budget: int = 20
    metric: str = "map"
    seed: int = 0
    test_seeds: int = 3
    stream: int | None = None
    queries_per_class: int | None = None

    def first_round(self) -> list[Plan]:
        """Every candidate on the first split."""
        drawn = candidates(self.method, self.budget, self.seed)
        return [self._plan(changes, 0) for changes in drawn]

    def last_round(self, rows: Sequence[Row]) -> list[Plan]:
        """The best of the first round, on the other splits."""
        mine = [row for row in self._own(rows) if row["seed"] == 0]
        ranked = sorted(mine, key=lambda row: _score(row, self.metric), reverse=True)
        return [
            self._plan(row["changes"], split)
            for row in ranked[:FINALISTS]
            for split in range(1, SPLITS)
        ]

    def chosen(self, rows: Sequence[Row]) -> tuple[dict[str, Any], float]:
        """Return the changes of the finalist with the best mean, and that mean."""
        found = best_changes(list(self._own(rows)), self.metric)
        if found is None:
            raise InputError(
                f"tune: no setting of {self.method} could be measured on {self.data.name}; try one "
                "with streamhash bench to see why."
            )
        return found

    def _own(self, rows: Sequence[Row]) -> Iterator[Row]:
        keys = {
            row_key(self._plan(changes, split).identity())
            for changes in candidates(self.method, self.budget, self.seed)
            for split in range(SPLITS)
        }
        return (row for row in rows if row_key(row) in keys)

    def _plan(self, changes: dict[str, Any], split_seed: int) -> Plan:
        return plan_cell(
            self.method,
            self.data,
            self.n_bits,
            split_seed,
            changes=changes,
            stream=self.stream,
            queries_per_class=self.queries_per_class,
            checkpoints=1,
            split="validation",
            test_seeds=self.test_seeds,
        )


def candidates(method: str, budget: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return up to ``budget`` different sets of changes; the first is none, the defaults.

    >>> candidates("hcoh", 3)
    [{}, {'learning_rate': 0.106}, {'learning_rate': 0.582}]
    """
    space = find_method(method).search
    rng = np.random.default_rng([seed, zlib.crc32(method.encode())])
    found: list[dict[str, Any]] = [{}]
    for _ in range(20 * budget):  # a small space runs out of new ones
        if len(found) >= budget or not space:
            break
        changes = {name: choice.draw(rng) for name, choice in space.items()}
        if changes not in found:
            found.append(changes)
    return found


def best_changes(rows: Sequence[Row], metric: str) -> tuple[dict[str, Any], float] | None:
    """Return the changes with the best mean among those measured on every split."""
    scores: dict[str, list[float]] = {}
    changes: dict[str, dict[str, Any]] = {}
    for row in rows:
        key = row_key({**row, "seed": None, "parameters": {**row["parameters"], "random_state": 0}})
        scores.setdefault(key, []).append(_score(row, metric))
        changes[key] = row["changes"]
    full = {key: float(np.mean(found)) for key, found in scores.items() if len(found) >= SPLITS}
    if not full:
        return None
    best = max(full, key=lambda key: full[key])
    return changes[best], full[best]


def _score(row: Row, metric: str) -> float:
    value = row["metrics"].get(metric)
    return -1.0 if value is None else float(value)
