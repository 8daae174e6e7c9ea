"""``streamhash bench``: methods side by side by the papers' protocol."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamhash.cli._options import Changes, Jobs, Json, LabelColumn, Labels
from streamhash.errors import InputError

if TYPE_CHECKING:
    from streamhash.lab import Plan, Row

__all__ = ["run"]

QUICK_STREAM, QUICK_CHECKPOINTS = 2000, 3
SETTINGS = {
    **{name: [name] for name in ("default", "published", "tuned")},
    "both": ["default", "published"],
}


def run(
    data: Annotated[
        str, typer.Option("--data", metavar="NAME|FILE", help="A data set, or a file with labels.")
    ] = "digits",
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", min=1, help="Rows of a set that is made up."),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", metavar="NAMES", help="Methods, with commas; or all.")
    ] = "all",
    bits: Annotated[
        str, typer.Option("--bits", metavar="K,K", help="Lengths of the codes, with commas.")
    ] = "32",
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="How many seeds to run.")
    ] = 1,
    first_seed: Annotated[
        int, typer.Option("--first-seed", metavar="N", min=0, help="The first of the seeds.")
    ] = 0,
    settings: Annotated[
        str,
        typer.Option(
            "--settings", metavar="WHICH", help="Settings: default, published, both, or tuned."
        ),
    ] = "default",
    changes: Changes = None,
    stream: Annotated[
        int | None,
        typer.Option(
            "--stream", metavar="N", help="Instances to learn from (default: 20,000 at most)."
        ),
    ] = None,
    queries_per_class: Annotated[
        int | None,
        typer.Option(
            "--queries-per-class",
            metavar="T",
            help="Queries drawn from each class (default: 100, fewer for small data).",
        ),
    ] = None,
    checkpoints: Annotated[
        int | None,
        typer.Option(
            "--checkpoints", metavar="N", min=1, help="Looks at mAP on the way (default: 10)."
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            "--split",
            metavar="WHICH",
            help="all classes, unseen (a quarter is never learned), or validation.",
        ),
    ] = "all",
    test_seeds: Annotated[
        int,
        typer.Option(
            "--test-seeds", metavar="N", min=0, help="Seeds whose queries a validation leaves out."
        ),
    ] = 0,
    curve_metric: Annotated[
        str,
        typer.Option("--curve-metric", metavar="NAME", help="What is looked at: map or map@1000."),
    ] = "map",
    labels: Labels = None,
    label_column: LabelColumn = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Append the rows to rows.jsonl in this folder."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip the cells whose rows are there already.")
    ] = False,
    jobs: Jobs = None,
    as_json: Json = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A quick look: a stream of at most 2,000, 3 checkpoints."),
    ] = False,
) -> None:
    """Compare methods by the papers' protocol.

    Queries are drawn from each class, all the rest is the database, and the stream is its start.
    Each seed draws the split, the order of the stream and the method's start.
    """
    if resume and out is None:
        raise InputError("bench: --resume needs the folder with the rows; pass --out DIR.")
    if settings not in SETTINGS:
        raise InputError(f"bench: --settings {settings}: pass default, published, both or tuned.")
    from streamhash.cli._cells import run_cells
    from streamhash.cli._console import note, results
    from streamhash.cli._values import choose_methods, parse_changes, split_numbers
    from streamhash.lab import (
        ROWS_FILE,
        append_row,
        latest,
        read_rows,
        rich_table,
        summarise,
        to_json,
    )
    from streamhash.lab.datasets import load_data

    wanted = parse_changes(changes)
    if quick and checkpoints is None:
        checkpoints = QUICK_CHECKPOINTS
    given = {
        "queries_per_class": queries_per_class,
        "checkpoints": checkpoints,
        "stream": stream,
        "split": split,
        "test_seeds": test_seeds,
        "curve_metric": curve_metric,
    }
    found = load_data(data, labels=labels, column=label_column, rows=rows)
    plans = list(
        _plans(
            choose_methods(method),
            found,
            split_numbers("--bits", bits),
            range(first_seed, first_seed + seeds),
            SETTINGS[settings],
            wanted,
            {name: value for name, value in given.items() if value is not None},
        )
    )
    if quick and stream is None:
        plans = [replace(plan, stream=min(plan.stream, QUICK_STREAM)) for plan in plans]
    known: list[Row] = []
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        known = latest(read_rows(out / ROWS_FILE)) if resume else []

    def keep(row: "Row") -> None:
        if out is not None:
            append_row(out / ROWS_FILE, row)

    found_rows = run_cells(plans, known, jobs=jobs, keep=keep)
    if as_json:
        for row in found_rows:
            typer.echo(to_json(row))
        return
    results().print(rich_table(summarise(found_rows)))
    if out is not None:
        note(f"Rows are in {out / ROWS_FILE}.")


def _plans(
    methods: list[str],
    data: Any,
    bits: list[int],
    seeds: range,
    settings: list[str],
    changes: dict[str, Any],
    choices: dict[str, Any],
) -> "Iterator[Plan]":
    """Plan all cells; a parameter is set in the methods that have it, at least in one."""
    from streamhash.hashers import METHODS
    from streamhash.lab import make_hasher, plan_cell

    has = {name: set(METHODS[name]().get_params()) for name in methods}
    for name in changes:
        if not any(name in known for known in has.values()):
            make_hasher(methods[0], bits[0], 0, changes={name: changes[name]})  # says what it has
    for n_bits in bits:
        for method in methods:
            own = {name: value for name, value in changes.items() if name in has[method]}
            for which in settings:
                for seed in seeds:
                    yield plan_cell(
                        method, data, n_bits, seed, settings=which, changes=own, **choices
                    )
