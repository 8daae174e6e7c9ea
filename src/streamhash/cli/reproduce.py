"""``streamhash reproduce``: the paper's tables and figures, run to the end."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamhash.cli._options import Jobs, Scheduler

if TYPE_CHECKING:
    from streamhash.lab import Experiment, Plan, Row

__all__ = ["run"]


def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Experiments, such as mnist-table; or all."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="NAME", help="Run on this data set of the experiment."),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", metavar="NAMES", help="Only these methods, with commas.")
    ] = "all",
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", min=1, help="How many seeds (default: 3)."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A quick look, not a result: short stream, 32 bits, 1 seed."),
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of the rows and the report.")
    ] = Path("streamhash-results"),
    jobs: Jobs = None,
    scheduler: Scheduler = None,
) -> None:
    """Run the paper's experiments, beside its numbers.

    Without a name, the experiments are listed. Rows are appended to DIR as they come; after Ctrl-C
    or a crash the same command goes on where it stopped. Experiments share their cells, so that the
    figures of a data set cost nothing after its table.
    """
    from streamhash.cli._console import note
    from streamhash.cli._values import choose_methods
    from streamhash.lab import (
        experiment_names,
        have_figures,
        read_experiment,
        read_folder,
        write_report,
    )

    if not names:
        _list()
        return
    chosen = experiment_names() if "all" in names else list(dict.fromkeys(names))
    experiments = [read_experiment(name) for name in chosen]
    if quick:
        note("A quick look: short streams, one seed. These are not the paper's experiments.")
        experiments = [experiment.quick() for experiment in experiments]
    by_data = _by_data(experiments, data, skip_missing="all" in names)
    methods = None if method == "all" else choose_methods(method)
    for name, on_it in by_data.items():
        try:
            _run_on(name, on_it, seeds, methods, out, jobs, scheduler)
        except KeyboardInterrupt:
            note(f"What is done is kept in {out}: the same command goes on from there.")
            raise
    rows = read_folder(out)
    for name, on_it in by_data.items():
        for experiment in on_it:
            _print(experiment, name, rows)
    page = write_report(rows, out, command=f"streamhash report {out.name}", figures=have_figures())
    typer.echo(f"The report is in {page}: open it in a browser.")


def _list() -> None:
    from rich import box
    from rich.table import Table

    from streamhash.cli._console import results
    from streamhash.lab import experiment_names, read_experiment
    from streamhash.lab.datasets import available

    here = {card.name for card in available() if card.here}
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("experiment", "what it shows", "would run on"):
        table.add_column(heading)
    for name in experiment_names():
        experiment = read_experiment(name)
        table.add_row(name, experiment.title, experiment.choose_data(here) or "data not here")
    results().print(table)


def _by_data(
    experiments: "Sequence[Experiment]", wanted: str | None, *, skip_missing: bool
) -> "dict[str, list[Experiment]]":
    """Decide on which data set each experiment runs, and gather those of one set."""
    from streamhash.cli._console import note
    from streamhash.lab.datasets import available, load_data

    here = {card.name for card in available() if card.here}
    found: dict[str, list[Experiment]] = {}
    for experiment in experiments:
        known = [protocol.data for protocol in experiment.protocols]
        if wanted is not None and skip_missing and wanted not in known:
            continue
        name = wanted or experiment.choose_data(here)
        if name is None:
            if not skip_missing:
                load_data(experiment.data)  # says where it was looked for, and how to get it
            note(f"{experiment.name} is left out: its data are not here (streamhash data).")
            continue
        protocol = experiment.protocol(name)
        if protocol.note:
            note(f"{experiment.name} on {name}: {protocol.note}.")
        found.setdefault(name, []).append(experiment)
    return found


def _run_on(
    name: str,
    experiments: "Sequence[Experiment]",
    seeds: int | None,
    methods: Sequence[str] | None,
    out: Path,
    jobs: int | None,
    scheduler: str | None,
) -> None:
    """Run the cells of all experiments on one data set, each cell once."""
    from streamhash.cli._cells import run_cells
    from streamhash.lab import ROWS_FILE, append_row, latest, read_rows, row_key
    from streamhash.lab.datasets import load_data

    data = load_data(name, rows=experiments[0].protocol(name).rows)
    plans: dict[str, Plan] = {}
    for experiment in experiments:
        for plan in experiment.plans(data, seeds, methods):
            plans.setdefault(row_key(plan.identity()), plan)
    path = out / name / ROWS_FILE
    run_cells(
        list(plans.values()),
        latest(read_rows(path)),
        jobs=jobs,
        scheduler=scheduler,
        keep=lambda row: append_row(path, row),
        is_long=True,
    )


def _print(experiment: "Experiment", data: str, rows: "Sequence[Row]") -> None:
    """Print an experiment's first metric, the paper's values in brackets."""
    from rich import box
    from rich.table import Table

    from streamhash.cli._console import results
    from streamhash.lab import summarise
    from streamhash.lab.summary import METRICS

    metric = experiment.metrics[0]
    heading = METRICS[metric][0] if metric in METRICS else metric
    title = f"{experiment.title}: {heading} on {data} (in brackets: the paper's)"
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("method", "settings", *(f"{bits} bits" for bits in experiment.bits)):
        table.add_column(name, justify="right" if name.endswith("bits") else "left")
    for run, by_bits in experiment.found(summarise(rows), data):
        cells = []
        for bits in experiment.bits:
            text = by_bits[bits].text(metric) if bits in by_bits else "–"
            paper = experiment.published(run.method, metric, bits) if run.is_papers else None
            cells.append(text if paper is None else f"{text} ({paper:.3f})")
        if by_bits:
            table.add_row(run.label, run.settings, *cells)
    results().print(title, table, sep="\n", style=None)
