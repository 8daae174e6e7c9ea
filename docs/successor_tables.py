"""The tables on the methods after SDOH: how their defaults were chosen, from results/defaults."""

from pathlib import Path

from streamhash.hashers import METHODS
from streamhash.lab import read_rows
from streamhash.lab.comparison import brief
from streamhash.lab.rows import Row

__all__ = ["defaults_table", "labelled_table"]

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "defaults"
LABELLED = ROOT / "results" / "labelled"
SETS = ("digits", "mnist", "cifar10-features", "miniplaces-features")
NOT_SETTINGS = ("n_bits", "random_state")


def defaults_table() -> str:
    """Every trial on data of the stream, by what differs from the default that was chosen."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for data in SETS:
        for row in read_rows(FOLDER / data / "rows.jsonl"):
            assert (row["split"], row["n_bits"], row["seed"]) == ("validation", 32, 0)
            found.setdefault((row["method"], _changes(row)), {})[data] = row["metrics"]["map"]
    names = [*METHODS]
    lines = [["validation, mAP, 32 bits", *SETS], ["---", *["---:"] * len(SETS)]]
    for method, changes in sorted(found, key=lambda each: (names.index(each[0]), each[1] != "")):
        cells = found[method, changes]
        label = f"{METHODS[method].__name__}, {changes or '**default**'}"
        lines.append([label, *(brief(cells[data]) if data in cells else "–" for data in SETS)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _changes(row: Row) -> str:
    """What a row's settings change in the default of today."""
    default = METHODS[row["method"]]().get_params(deep=False)
    changed = [
        f"`{name}={value}`"
        for name, value in sorted(row["parameters"].items())
        if name not in NOT_SETTINGS and default.get(name) != value
    ]
    return ", ".join(changed)


def labelled_table() -> str:
    """MAP with the database encoded and labelled, for all methods whose labels have codes."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    sets = ("mnist", "cifar10-features")
    for data in sets:
        for row in read_rows(LABELLED / data / "rows.jsonl"):
            assert (row["settings"], row["n_bits"], row["seed"]) == ("default", 32, 0)
            cells = found.setdefault(row["method"], {})
            cells[data, row["database_codes"]] = row["metrics"]["map"]
    columns = [(data, codes) for data in sets for codes in ("encoded", "labelled")]
    lines = [["mAP, 32 bits", *(f"{data}, database {codes}" for data, codes in columns)]]
    lines.append(["---", *["---:"] * len(columns)])
    for name, method in METHODS.items():
        if method.has_label_codes and name in found:
            values = [found[name].get(column) for column in columns]
            lines.append([method.__name__, *("–" if v is None else brief(v) for v in values)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
