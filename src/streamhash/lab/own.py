"""One's own experiments: a TOML file that says what to compare, on which data, and how.

    title = "Titles of our shop"
    methods = ["sdoh", "hcoh", "my_method:Mine"]
    bits = [32, 64]
    metrics = ["map", "precision@100"]

    [[on]]
    data = "titles.parquet"      # a data set, or a file beside this one
    label_column = "category"

    [[run]]                      # one more line, with parameters changed
    method = "sdoh"
    changes = { memory = 0, features = "none" }

Only ``methods`` and ``data`` must be there; what is left out is chosen as ``streamhash bench``
does. With one data set, all that is said of it may stand at the top, without ``[[on]]``. What was
printed elsewhere can stand beside: ``[[numbers]]``, with a ``method`` and, for each metric, a list
of values at the ``bits``.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.files import Columns
from streamhash.lab.datasets import is_named
from streamhash.lab.experiment import Experiment, Protocol, Values, read_changes, read_numbers
from streamhash.lab.rows import METRICS
from streamhash.lab.run import SETTINGS, find_methods, is_settings_file
from streamhash.lab.tuning import read_settings

TEXT, NUMBER, TEXTS, NUMBERS = "a text", "a whole number", "a list of texts", "a list of numbers"
TABLE, TABLES = "a table", "tables"
OF_COLUMNS = ("vector_column", "feature_columns", "ignore_columns")
ON = {
    **{"data": TEXT, "labels": TEXT, "label_column": TEXT, "settings": TEXTS, "note": TEXT},
    **dict.fromkeys(OF_COLUMNS, TEXT),
    **dict.fromkeys(("stream", "queries_per_class", "checkpoints", "rows"), NUMBER),
    **dict.fromkeys(("curve_metric", "split", "order", "database"), TEXT),
    "label_noise": "a number",
}
TOP = {
    **{"title": TEXT, "methods": TEXTS, "metrics": TEXTS, "bits": NUMBERS, "seeds": NUMBER},
    **{"on": TABLES, "run": TABLES, "numbers": TABLES, **ON},
}
RUN = {"method": TEXT, "settings": TEXT, "changes": TABLE, "bits": NUMBERS, "note": TEXT}
METRIC = re.compile(r"precision@(h?\d+)")


def read_own_experiment(path: str | Path) -> Experiment:
    """Read an experiment from a file of one's own."""
    place = Path(path)
    if not place.is_file():
        raise MissingDataError(f"reproduce: there is no file {place}; check the path.")
    try:
        given = tomllib.loads(place.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"reproduce: {place} is not TOML ({error}); mend it.") from error
    return _OwnFile(place).experiment(given)


class _OwnFile:
    """A file that is read; errors name it."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def experiment(self, given: Mapping[str, Any]) -> Experiment:
        self._check(given, TOP, "")
        if not given.get("methods"):
            raise self._error('names no methods; write methods = ["sdoh", "lsh"], say')
        bits = tuple(given.get("bits", (32,)))
        top = {name: given[name] for name in ON if name in given}
        places = given.get("on", [{}])
        runs = [self._run(run, bits) for run in given.get("run", ())]
        methods = tuple(find_methods(list(given["methods"])))
        protocols = []
        for each in places:
            self._check(each, ON, "[[on]]: ")
            protocol, more = self._protocol({**top, **each}, methods, bits)
            protocols.append(protocol)
            runs += more
        metrics = tuple(given.get("metrics", ("map",)))
        for metric in metrics:
            if metric not in METRICS and not METRIC.fullmatch(metric):
                known = ", ".join(METRICS)
                raise self._error(f"asks for {metric!r}; choose from {known}, precision@10, say")
        return Experiment(
            name=self._place.stem,
            title=given.get("title", self._place.stem),
            kind="table",
            where="",
            paper="",
            bits=bits,
            metrics=metrics,
            methods=methods,
            protocols=tuple(protocols),
            extra_runs=tuple(runs),
            numbers=self._numbers(given, bits),
            seeds=given.get("seeds", 3),
        )

    def _protocol(
        self, on: dict[str, Any], methods: tuple[str, ...], bits: tuple[int, ...]
    ) -> tuple[Protocol, list[Values]]:
        """Return how to run on a data set, and the runs with settings of a file."""
        if "data" not in on:
            raise self._error('names no data; write data = "digits", or the path of a file')
        name, runs, kinds = on.pop("data"), [], []
        for which in on.pop("settings", ["default"]):
            if is_settings_file(which):
                found = read_settings(self._place.parent / which)
                runs += [
                    self._run(
                        {"method": method, "changes": found[method], "note": f"as {which} says"},
                        bits,
                    )
                    for method in methods
                    if method in found
                ]
            elif which in SETTINGS:
                kinds.append(which)
            else:
                known = ", ".join(SETTINGS)
                raise self._error(f"has settings {which!r}; pass {known}, or a .toml file")
        columns = Columns(
            vector=on.pop("vector_column", None),
            features=on.pop("feature_columns", ()),
            ignore=on.pop("ignore_columns", ()),
        ).split()
        if "labels" in on:
            on["labels"] = str(self._place.parent / on["labels"])
        file = None if is_named(name) else str(self._place.parent / name)
        name = name if file is None else Path(name).stem
        protocol = Protocol(name, settings=tuple(kinds), file=file, columns=columns, **on)
        return protocol, runs

    def _run(self, run: Mapping[str, Any], bits: tuple[int, ...]) -> Values:
        self._check(run, RUN, "[[run]]: ")
        if "method" not in run:
            raise self._error('has a [[run]] without a method; write method = "sdoh", say')
        (method,) = find_methods(run["method"])
        settings = run.get("settings", "default")
        if settings not in SETTINGS:
            raise self._error(
                f"has a [[run]] with settings {settings!r}; pass {', '.join(SETTINGS)}"
            )
        own = {"method": method, "settings": settings, "bits": tuple(run.get("bits", bits))}
        return {**run, **own, "changes": read_changes(run)}

    def _numbers(self, given: Mapping[str, Any], bits: tuple[int, ...]) -> Any:
        for line in given.get("numbers", ()):
            lists = {name: line[name] for name in line if name not in ("method", "source")}
            if "method" not in line or any(
                not isinstance(values, list) or len(values) != len(bits)
                for values in lists.values()
            ):
                raise self._error(
                    f"has [[numbers]] {line!r}; write a method and, for each metric, a list of "
                    f"{len(bits)} values, nan where there is none"
                )
        lines = [
            {"source": "paper", **line, "method": find_methods(line["method"])[0]}
            for line in given.get("numbers", ())
        ]
        return read_numbers(lines, bits)

    def _check(self, given: Any, known: Mapping[str, str], place: str) -> None:
        """Refuse what is unknown, or of another kind than it has to be."""
        if not isinstance(given, Mapping):
            raise self._error(f"{place}{given!r} is no table")
        for name, value in given.items():
            if name not in known:
                raise self._error(f"{place}{name!r} is unknown; choose from {', '.join(known)}")
            if not _is(value, known[name]):
                raise self._error(f"{place}{name} = {value!r}; write {known[name]}")

    def _error(self, text: str) -> InputError:
        return InputError(f"reproduce: {self._place}: {text}.")


def _is(value: Any, kind: str) -> bool:
    if kind in (TEXTS, NUMBERS, TABLES):
        one = {TEXTS: TEXT, NUMBERS: NUMBER, TABLES: TABLE}[kind]
        return isinstance(value, list) and bool(value) and all(_is(each, one) for each in value)
    kinds: dict[str, tuple[type, ...]] = {TEXT: (str,), NUMBER: (int,), TABLE: (dict,)}
    return isinstance(value, kinds.get(kind, (int, float))) and not isinstance(value, bool)
