"""An honest search for settings: on data of the stream alone, with the same budget for all.

Tried are the defaults and random draws from the method's ``search``, each on one split of the
stream; then the best few again on two splits more, and the best mean of the three is chosen. Test
queries take no part: rows that are queries of any test seed are left out (``split="validation"``).
What was found for a data set is kept in ``experiments/tuned``.
"""

import tomllib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.lab.datasets import DataSet, load_data
from streamhash.lab.rows import ROWS_FILE, Row, latest, read_rows, row_key, seedless_key
from streamhash.lab.run import (
    Method,
    Plan,
    Running,
    find_method,
    fitting_methods,
    plan_cell,
    run_cells,
)

TUNED_FILE = "tuned.toml"
FINALISTS = 3
SPLITS = 3  # on which each finalist is measured


def tune(
    methods: Method | Sequence[Method] = "all",
    data: DataSet | str | Path = "digits",
    *,
    n_bits: int = 32,
    budget: int = 20,
    metric: str = "map",
    stream: int | None = None,
    queries_per_class: int | None = None,
    test_seeds: int = 3,
    random_state: int = 0,
    order: str | None = None,
    out: str | Path = "streamhash-tuning",
    **running: Unpack[Running],
) -> dict[str, dict[str, Any]]:
    """Search for the best settings on the stream alone, and return what to change, by method.

    Every trial is a row in ``out/rows.jsonl``, what was found is in ``out/tuned.toml``, and a
    second call goes on where the first was stopped.

    Parameters
    ----------
    methods, data : as :func:`~streamhash.lab.bench` takes them
    n_bits : length of the codes
    budget : settings to try of each method
    metric : what is to be best
    stream, queries_per_class : as :func:`~streamhash.lab.plan_cell` takes them
    test_seeds : seeds whose test queries are left out
    random_state : draws the settings that are tried
    order : in which the stream comes, as :func:`~streamhash.lab.plan_cell` takes it
    out : folder of the rows, and of ``tuned.toml``
    running : jobs, executor and progress, as :func:`~streamhash.lab.run_cells` takes them
    """
    found = data if isinstance(data, DataSet) else load_data(data)
    choices = (found, n_bits, budget, metric, random_state, test_seeds, stream, queries_per_class)
    names = fitting_methods(methods, found)
    searches = [SettingsSearch(name, *choices, order) for name in names]
    path = Path(out) / ROWS_FILE

    def run(plans: list[Plan]) -> list[Row]:
        run_cells(plans, rows_file=path, skip_failures=True, **running)
        return latest(read_rows(path))

    rows = run([plan for search in searches for plan in search.first_round()])
    rows = run([plan for search in searches for plan in search.last_round(rows)])
    chosen = {search.method: search.chosen(rows) for search in searches}
    text = [
        f"# Found by streamhash tune on {found.name} at {n_bits} bits, with {budget} settings of "
        f"each method:\n# changes of the defaults with the best {metric} over three splits of the "
        "stream.\n"
    ]
    for method, (changes, value) in chosen.items():
        heading = f'["{method}"]' if ":" in method else f"[{method}]"
        lines = [f"{name} = {_toml(value)}\n" for name, value in changes.items()]
        text.append(f"{heading}  # {metric} {value:.3f} on the stream\n" + "".join(lines))
    (Path(out) / TUNED_FILE).write_text("\n".join(text), encoding="utf-8")
    return {method: changes for method, (changes, _) in chosen.items()}


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # TOML has no null: a text that no parameter takes stands for None.
    return '"none"' if value is None else repr(value).replace("'", '"')


@dataclass(frozen=True)
class SettingsSearch:
    """The search for the settings of one method on one data set."""

    method: str
    data: DataSet
    n_bits: int = 32
    budget: int = 20
    metric: str = "map"
    random_state: int = 0
    test_seeds: int = 3
    stream: int | None = None
    queries_per_class: int | None = None
    order: str | None = None

    def first_round(self) -> list[Plan]:
        """Every candidate on the first split."""
        return [self._plan(changes, 0) for changes in self._candidates()]

    def last_round(self, rows: Sequence[Row]) -> list[Plan]:
        """The best of the first round, on the other splits."""
        mine = [row for row in self._own(rows) if row["seed"] == 0]
        ranked = sorted(mine, key=lambda row: _score(row, self.metric), reverse=True)
        best, splits = ranked[:FINALISTS], range(1, SPLITS)
        return [self._plan(row["changes"], split) for row in best for split in splits]

    def chosen(self, rows: Sequence[Row]) -> tuple[dict[str, Any], float]:
        """Return the changes of the finalist with the best mean, and that mean."""
        found = best_changes(list(self._own(rows)), self.metric)
        if found is None:
            raise InputError(
                f"tune: no setting of {self.method} could be measured on {self.data.name}; try one "
                "with streamhash bench to see why."
            )
        return found

    def _candidates(self) -> list[dict[str, Any]]:
        return candidates(self.method, self.budget, self.random_state)

    def _own(self, rows: Sequence[Row]) -> Iterator[Row]:
        keys = {
            row_key(self._plan(changes, split).identity())
            for changes in self._candidates()
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
            order=self.order,
        )


def candidates(method: str, budget: int, random_state: int = 0) -> list[dict[str, Any]]:
    """Return up to ``budget`` different sets of changes; the first is none, the defaults.

    >>> candidates("hcoh", 3)
    [{}, {'learning_rate': 0.106}, {'learning_rate': 0.582}]
    """
    space = find_method(method).search
    rng = np.random.default_rng([random_state, zlib.crc32(method.encode())])
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
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(seedless_key(row), []).append(row)
    means = [
        (float(np.mean([_score(row, metric) for row in members])), members[-1]["changes"])
        for members in alike.values()
        if len(members) >= SPLITS
    ]
    if not means:
        return None
    best, changes = max(means, key=lambda pair: pair[0])
    return changes, best


def _score(row: Row, metric: str) -> float:
    value = row["metrics"].get(metric)
    return -1.0 if value is None else float(value)


def tuned_settings(data: str, method: str) -> dict[str, Any]:
    """Return what was changed in the defaults of ``method`` for the data set ``data``.

    Nothing for a method without anything to search for.
    """
    found = _tuned(data)
    if method not in found:
        known = ", ".join(found) or "no method"
        raise InputError(
            f"there are no tuned settings of {method} for {data}: {known} has some; run streamhash "
            f"tune {method} --data {data} and pass what it finds with --settings FILE."
        )
    return found[method]


def is_tuned(data: str, method: str) -> bool:
    """Whether there are tuned settings of ``method`` for the data set ``data``."""
    return method in _tuned(data)


def read_settings(path: str | Path) -> dict[str, dict[str, Any]]:
    """Read settings by method from a TOML file, as ``tune`` writes it: a table for each method.

    They are changes of the defaults; "none" stands for None, which TOML does not have.
    """
    place = Path(path)
    if not place.is_file():
        raise MissingDataError(f"settings: there is no file {place}; check the path.")
    return _settings(place.read_text(encoding="utf-8", errors="replace"), str(place))


def file_settings(path: str | Path, method: str) -> dict[str, Any]:
    """Return the settings of one method in a file; it must have some."""
    found = read_settings(path)
    if method not in found:
        raise InputError(
            f"settings: {path} has none of {method}, but of {', '.join(found) or 'no method'}; "
            f'pass another method, or write a table ["{method}"] into it.'
        )
    return found[method]


def _settings(text: str, place: str) -> dict[str, dict[str, Any]]:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"settings: {place} is not TOML ({error}); mend it.") from error
    for name, values in found.items():
        if not isinstance(values, dict):
            raise FileError(
                f"settings: {place} sets {name} for no method; put it into a table of a method, "
                "such as [sdoh]."
            )
    return {
        method: {name: None if value == "none" else value for name, value in values.items()}
        for method, values in found.items()
    }


@cache
def _tuned(data: str) -> dict[str, dict[str, Any]]:
    place = files("streamhash.lab").joinpath("experiments", "tuned", f"{data}.toml")
    return _settings(place.read_text(encoding="utf-8"), place.name) if place.is_file() else {}
