"""Rebuild every table and figure in the documents from the rows in results/; type none by hand.

    python docs/rebuild.py           write what has changed
    python docs/rebuild.py --check   change nothing; exit 1 if something would change (a test)

A document holds a table between ``<!-- table: NAME -->`` and ``<!-- end -->``. Names: those of
``TABLES``, METHOD-mnist for a method beside the paper, experiment-NAME or experiment-NAME-SETTINGS
(-first for the first metric alone) for an experiment of the paper, verdict-NAME for whether its
claims hold, orders-DATA or orders-DATA-by-class for all methods in all orders of a stream,
leaderboard-NAME for a ranking,
and benchmark-NAME for what a benchmark printed. The options in ``cli.md`` are those that the verbs
have. The rows of the leaderboard that the package ships are written anew, too.
"""

import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from ann_tables import local_table
from answer_tables import quality_table
from calibration_tables import calibration_table, draw_calibration
from fault_tables import cost_table, fault_table, kill_places, request_table
from feedback_tables import draw_feedback, feedback_table
from leaderboard_tables import (
    SHIPPED,
    draw_leaderboard,
    protocol_table,
    ranking_table,
    shipped_text,
)
from live_tables import (
    alarm_table,
    draw_drift,
    drift_table,
    million_table,
    policy_table,
    price_table,
)
from option_tables import with_options
from order_tables import (
    ablation_table,
    draw_sorted,
    forgetting_table,
    noise_table,
    order_table,
    sorted_figure,
)
from performance_tables import (
    answers_table,
    encoding_table,
    evaluation_table,
    markdown,
    no_filter_table,
    peers_table,
    printed,
    search_table,
    threads_table,
)
from runbook_tables import (
    ann_table,
    cost_table as runbook_cost,
    draw_ann_benchmarks,
    draw_runbooks,
    full_table,
    labels_table,
    recall_table,
)
from scale_charts import draw_memory, draw_past_memory, draw_reencoding
from scale_tables import (
    memory_table,
    past_memory_milvus_table,
    past_memory_table,
    reencoding_table,
)
from sentence_tables import sentence_table
from streamhash.hashers import METHODS
from streamhash.lab import (
    Comparison,
    Line,
    compare,
    comparison_markdown,
    experiment_names,
    latest,
    read_experiment,
    read_folder,
    read_rows,
    summarise,
)
from streamhash.lab.experiment import Numbers
from streamhash.lab.report.sentences import closeness, verdicts
from successor_tables import defaults_table, labelled_table

ROOT = Path(__file__).parents[1]
PAPER = read_experiment("mnist-table")
BITS = PAPER.bits
HEAD = [f"{k} bits" for k in BITS]
PLAIN = "default memory=0 features=None"  # SDOH as it was by default up to version 0.1
KERNEL = f"{PLAIN} n_anchors=1000"
# Split and stream: the scenes have a longer one in the paper's table.
USUAL = {
    **{"split": "all", "stream": 20_000, "order": "shuffled", "label_noise": 0.0},
    "database_codes": "encoded",
}
ByBits = dict[int, Line]


@cache
def lines(data: str) -> dict[str, dict[str, ByBits]]:
    """Lines of a data set's rows by the usual protocol, by method, settings and code length."""
    found: dict[str, dict[str, ByBits]] = {}
    for line in summarise(read_rows(ROOT / "results" / data / "rows.jsonl")):
        row = line.rows[0]
        if not USUAL.items() <= row.items():
            continue
        changes = [f"{name}={value}" for name, value in row["changes"].items()]
        settings = " ".join([row["settings"], *changes])
        found.setdefault(row["method"], {}).setdefault(settings, {})[line.n_bits] = line
    return found


def published(numbers: Numbers, metric: str) -> list[str]:
    """Published numbers as cells."""
    values = numbers.values[metric]
    return [f"{values[k]:.3f}" if k in values else "–" for k in BITS]


def ours(by_bits: ByBits, metric: str) -> list[str]:
    """Our mean ± std as cells."""
    return [by_bits[k].text(metric) if k in by_bits else "–" for k in BITS]


def setting_name(settings: str) -> str:
    """How a table calls settings: ours, published settings, `n_anchors=1000`."""
    first, *changes = settings.split(" ")
    return ", ".join(["ours", f"{first} settings", *(f"`{change}`" for change in changes)])


@cache
def transcriptions() -> dict[str, dict[str, dict[str, float]]]:
    """MAP of plain transcriptions of later methods, by method, source and code length."""
    return tomllib.loads((ROOT / "results" / "transcriptions.toml").read_text(encoding="utf-8"))


def beside_the_paper(method: str) -> str:
    """A method on MNIST, mAP: paper, original program, ours. Precision@H2 is in results.md."""
    found = lines("mnist").get(method, {})
    body = [
        [numbers.source, *published(numbers, "map")]
        for numbers in PAPER.numbers
        if numbers.method == method
    ]
    for source, by_bits in transcriptions().get(method, {}).items():
        body.append(
            [source, *(f"{by_bits[f'{k}']:.3f}" if f"{k}" in by_bits else "–" for k in BITS)]
        )
    # Published settings first, then those with changes, then our defaults.
    for settings in sorted(found, key=lambda name: (name.split(" ")[0] == "default", name)):
        body.append([setting_name(settings), *ours(found[settings], "map")])
    return markdown([f"{METHODS[method].__name__}, MNIST, mAP", *HEAD], body)


def readme() -> str:
    """The paper's methods on MNIST, mAP: published settings beside its numbers, then our own."""
    found = lines("mnist")
    papers = {n.method: n for n in PAPER.numbers if n.source == "paper"}
    rows = []
    for entry in comparison("mnist-table").groups[0].entries:  # as the paper has them
        there = published(papers[entry.run.method], "map")
        cells = zip(ours(dict(entry.lines), "map"), there, strict=True)
        rows.append([entry.run.label, *(f"{cell} ({value})" for cell, value in cells)])
    for settings, title in (
        ("default", "SDOH, our default for any data"),
        (PLAIN, "SDOH, `memory=0, features=None`"),
        ("tuned", "SDOH, `memory=0, features=None`, tuned on the stream"),
    ):
        if settings in found["sdoh"]:
            rows.append([title, *ours(found["sdoh"][settings], "map")])
    return markdown(["MNIST, mAP", *HEAD], rows)


@cache
def all_lines() -> list[Line]:
    """Everything there is in results/."""
    return summarise(read_folder(ROOT / "results"))


@cache
def comparison(name: str) -> Comparison:
    """An experiment, on the first of its data sets that has results."""
    experiment = read_experiment(name)
    on_each = (compare(experiment, all_lines(), on.data) for on in experiment.protocols)
    return next(found for found in on_each if found.settings)


def experiment_table(rest: str) -> str:
    """The tables of an experiment, of some settings (mnist-table-published), of one metric.

    mnist-table-tuned-first has the first metric alone.
    """
    name = next(name for name in experiment_names() if rest.startswith(name))
    settings = rest.removeprefix(name).removesuffix("-first").removeprefix("-") or None
    data = comparison(name).data
    tables = comparison_markdown(read_experiment(name), all_lines(), data, settings)
    return tables.split("\n\n")[0] if rest.endswith("-first") else tables


def verdict(name: str) -> str:
    """What the paper says of an experiment, and whether it holds here."""
    found = comparison(name)
    items = [
        f"- With {each.settings} settings this {each.outcome}. {' '.join(each.sentences)}"
        for each in verdicts(found)
    ]
    said = [f"> {claim}" for claim in found.experiment.claims]
    return "\n".join([*said, "", *items, *(f"- {near}" for near in closeness(found))])


def all_verdicts() -> str:
    """Where what the paper says holds, of all experiments and all settings."""
    kinds = ("published", "tuned", "default")
    body = []
    for name in experiment_names():
        found = {each.settings: each.outcome for each in verdicts(comparison(name))}
        row = [name, comparison(name).data, *(found.get(kind, "") for kind in kinds)]
        body.append([cell.removeprefix("holds ").replace("does not hold", "not") for cell in row])
    return markdown(["the paper's claim holds …", "on", *kinds], body)


def other_data() -> str:
    """The same defaults on the other data sets."""
    tables = []
    for data in ("cifar10-features", "miniplaces-features"):
        body = [
            [
                f"{METHODS[method].__name__}, {setting_name(settings).removeprefix('ours, ')}",
                *cells,
            ]
            for method, by_settings in lines(data).items()
            for settings, by_bits in by_settings.items()
            if settings in ("default", PLAIN, KERNEL)
            for cells in [ours(by_bits, "map")]
        ]
        tables.append(markdown([f"{data}, mAP", *HEAD], body))
    return "\n\n".join(tables)


def set_aside() -> str:
    """Our defaults on the queries that tuning never saw, beside the benchmark's."""
    held, usual = lines("mnist-set-aside"), lines("mnist")
    body = [
        [METHODS[method].__name__]
        + [
            by[k].text("map")
            for k in (32, 128)
            for by in (held[method]["default"], usual[method]["default"])
        ]
        for method in METHODS
        if method in held
    ]
    head = [f"{k} bits, {which}" for k in (32, 128) for which in ("set aside", "benchmark")]
    return markdown(["mAP, our defaults", *head], body)


def seconds() -> str:
    """Processor seconds to learn the MNIST stream, by default settings."""
    body = []
    for method, by_settings in lines("mnist").items():
        for settings in ("default", PLAIN):
            if settings not in by_settings:
                continue
            by_bits = by_settings[settings]
            cells = [f"{by_bits[k].seconds('learn'):.2f}" if k in by_bits else "–" for k in BITS]
            label = [METHODS[method].__name__, *settings.split(" ")[1:]]
            body.append([", ".join(label), *cells])
            machine = by_bits[min(by_bits)].rows[0]["machine"]["cpu"]
    return markdown([f"CPU s on {machine}", *HEAD], body)


def benchmark(name: str) -> str:
    """What a benchmark printed, as it is."""
    return f"```text\n{printed(name)}\n```"


def commits_table() -> str:
    """What single adds cost, where their time goes, and many at once, as the benchmark printed."""
    blocks = [block.strip("\n") for block in printed("commits").split("\n\n")]
    wanted = ("one row after", "where the time", "threads, single", "clients over")
    shown = "\n\n".join(block for block in blocks if block.startswith(wanted))
    return f"```text\n{shown}\n```"


# Folders of results/ that `make results` does not fill: trials, and what is run by itself.
APART = ("defaults", "findings", "mnist-set-aside", "tuning")


def hours_table() -> str:
    """What the cells of each folder of results/ took, and how many there are."""
    found: dict[str, list[tuple[float, float]]] = {}
    for path in sorted((ROOT / "results").rglob("rows.jsonl")):
        for row in latest(read_rows(path)):
            spent = row.get("seconds", {})
            if "learn" in spent:  # as rows of cells have it
                busy = sum(part.get("cpu", 0) for part in spent.values())
                whole = spent.get("cell", {}).get("wall", busy)  # not in the oldest rows
                name = path.relative_to(ROOT / "results").parts[0]
                found.setdefault(name, []).append((busy, whole))
    ours = {name: took for name, took in sorted(found.items()) if name not in APART}
    ours["**all of `make results`**"] = [each for took in ours.values() for each in took]
    cells = [
        [name, f"{len(took):,}", *(f"{sum(part) / 3600:.1f}" for part in zip(*took, strict=True))]
        for name, took in [*ours.items(), *((name, found[name]) for name in APART)]
    ]
    return markdown(["hours", "cells", "processor", "clock"], cells)


TABLES: dict[str, Callable[[], str]] = {
    "readme": readme,
    "verdicts": all_verdicts,
    "other-data": other_data,
    "search": search_table,
    "search-peers": peers_table,
    "search-threads": threads_table,
    "search-no-filter": no_filter_table,
    "hours": hours_table,
    "seconds": seconds,
    "answers": answers_table,
    "encoding": encoding_table,
    "commits": commits_table,
    "evaluation": evaluation_table,
    "memory": memory_table,
    "past-memory": past_memory_table,
    "past-memory-milvus": past_memory_milvus_table,
    "reencoding": reencoding_table,
    "set-aside": set_aside,
    "live-drift": drift_table,
    "calibration": calibration_table,
    "live-million": million_table,
    "live-alarms": alarm_table,
    "live-price": price_table,
    "live-policies": policy_table,
    "live-feedback": feedback_table,
    "sorted-stream": sorted_figure,
    "forgetting": forgetting_table,
    "ablation": ablation_table,
    "answer-quality": quality_table,
    "faults": fault_table,
    "fault-kills": kill_places,
    "fault-requests": request_table,
    "fault-cost": cost_table,
    "wrong-labels": noise_table,
    "sentence-codes": sentence_table,
    "ann-benchmarks": ann_table,
    "ann-benchmarks-local": local_table,
    "runbook-recall": recall_table,
    "runbook-labels": labels_table,
    "runbook-full": full_table,
    "runbook-cost": runbook_cost,
    "successor-defaults": defaults_table,
    "labelled": labelled_table,
    "leaderboard-protocol": protocol_table,
}


def table(name: str) -> str:
    """Make the table of this name."""
    if name in TABLES:
        return TABLES[name]()
    if name.startswith("experiment-"):
        return experiment_table(name.removeprefix("experiment-"))
    if name.startswith("verdict-"):
        return verdict(name.removeprefix("verdict-"))
    if name.startswith("leaderboard-"):
        return ranking_table(name.removeprefix("leaderboard-"))
    if name.startswith("orders-"):
        return order_table(name.removeprefix("orders-"))
    if name.startswith("benchmark-"):
        return benchmark(name.removeprefix("benchmark-").replace("-", "_"))
    return beside_the_paper(name.removesuffix("-mnist"))


FIGURES = ("mnist-precision", "mnist-curve")  # shown in results.md, with published settings


def draw() -> None:
    """Draw the README's figure, quality against instances seen, those of the paper, and search."""
    from charts import draw_search, draw_service, draw_writes
    from streamhash.lab.report.figures import draw_comparison, draw_curves, save_png

    found = lines("mnist")
    folder = ROOT / "docs" / "figures"
    folder.mkdir(exist_ok=True)
    save_png(draw_memory(), folder / "scale-memory.png", dpi=110)
    save_png(draw_past_memory(), folder / "scale-past-memory.png", dpi=110)
    save_png(draw_reencoding(), folder / "scale-encoding.png", dpi=110)
    save_png(draw_search(), folder / "search.png", dpi=150)
    save_png(draw_writes(), folder / "writes.png", dpi=150)
    save_png(draw_service(), folder / "service.png", dpi=110)
    wanted = [found[name]["default"][32] for name in METHODS if "default" in found.get(name, {})]
    wanted = [line for line in wanted if len(line.rows[0]["curve"]) > 1]  # looked at on the way
    wanted.append(replace(found["sdoh"][PLAIN][32], label="SDOH 0.1"))
    save_png(draw_curves(wanted), folder / "mnist-defaults.png")
    save_png(draw_drift(), folder / "live-drift.png", dpi=110)
    save_png(draw_calibration(), folder / "calibration.png", dpi=110)
    save_png(draw_feedback(), folder / "feedback.png", dpi=110)
    save_png(draw_leaderboard(), folder / "leaderboard.png", dpi=110)
    save_png(draw_runbooks(), folder / "runbooks.png", dpi=110)
    save_png(draw_ann_benchmarks(), folder / "ann-benchmarks.png", dpi=110)
    if (along_classes := draw_sorted()) is not None:
        save_png(along_classes, folder / "sorted-stream.png", dpi=110)
    for name in FIGURES:
        picture = draw_comparison(comparison(name), "published")
        assert picture is not None
        save_png(picture, folder / f"{name}-published.png", dpi=110)


PLACE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rebuilt(text: str) -> str:
    """Return a document with all its tables made anew."""
    return PLACE.sub(lambda place: f"{place[1]}{table(place[2])}\n{place[3]}", text)


def main() -> int:
    """Rebuild or check all documents."""
    stale = []
    shipped = shipped_text()
    if SHIPPED.read_text(encoding="utf-8") != shipped:
        stale.append(str(SHIPPED.relative_to(ROOT)))
        if "--check" not in sys.argv:
            SHIPPED.write_text(shipped, encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        before = path.read_text(encoding="utf-8")
        after = rebuilt(before)
        if path.name == "cli.md":
            after = with_options(after)
        if after != before:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(after, encoding="utf-8")
    if "--check" not in sys.argv:
        draw()
    sys.stdout.write("".join(f"{name}\n" for name in stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
