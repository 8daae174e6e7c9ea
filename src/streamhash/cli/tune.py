"""``streamhash tune``: an honest search for settings, on data of the stream alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamhash.cli._options import Jobs, LabelColumn, Labels

if TYPE_CHECKING:
    from streamhash.lab import Row, Search

__all__ = ["run"]


def run(
    method: Annotated[
        str, typer.Argument(metavar="METHOD", help="Methods, with commas; or all.")
    ] = "all",
    data: Annotated[
        str, typer.Option("--data", metavar="NAME|FILE", help="A data set, or a file with labels.")
    ] = "digits",
    bits: Annotated[int, typer.Option("--bits", metavar="K", help="Length of the codes.")] = 64,
    budget: Annotated[
        int, typer.Option("--budget", metavar="N", min=1, help="Settings to try of each method.")
    ] = 20,
    metric: Annotated[
        str, typer.Option("--metric", metavar="NAME", help="What is to be best.")
    ] = "map",
    stream: Annotated[
        int | None,
        typer.Option("--stream", metavar="N", help="Rows of the stream to search with."),
    ] = None,
    queries_per_class: Annotated[
        int | None,
        typer.Option("--queries-per-class", metavar="T", help="Queries drawn from each class."),
    ] = None,
    test_seeds: Annotated[
        int,
        typer.Option(
            "--test-seeds", metavar="N", min=1, help="Seeds whose test queries are left out."
        ),
    ] = 3,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of the settings tried.")
    ] = 0,
    labels: Labels = None,
    label_column: LabelColumn = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of the rows, and of tuned.toml.")
    ] = Path("streamhash-tuning"),
    jobs: Jobs = None,
) -> None:
    """Search for the best settings on the stream alone.

    No test query takes part in it.
    The stream of the first seed is split again into queries, database and stream, without the
    queries of any test seed. The defaults and random settings are tried, the same number for each
    method, and the three best again on two more splits. Every trial is a row in DIR, what was found
    is in tuned.toml there, and a second call goes on where the first was stopped.
    """
    from streamhash.cli._cells import run_cells
    from streamhash.cli._console import note
    from streamhash.cli._values import choose_methods
    from streamhash.lab import ROWS_FILE, Search, append_row, latest, read_rows
    from streamhash.lab.datasets import load_data

    found = load_data(data, labels=labels, column=label_column)
    searches = [
        Search(
            name,
            found,
            bits,
            budget,
            metric,
            seed,
            test_seeds,
            stream,
            queries_per_class,
        )
        for name in choose_methods(method)
    ]
    path = out / ROWS_FILE

    def keep(row: "Row") -> None:
        append_row(path, row)

    def run_round(which: str) -> None:
        known = latest(read_rows(path))
        plans = [
            plan
            for search in searches
            for plan in (search.first_round() if which == "first" else search.last_round(known))
        ]
        run_cells(plans, known, jobs=jobs, keep=keep, is_long=True)

    run_round("first")
    run_round("last")
    text = _tell(searches, latest(read_rows(path)))
    (out / "tuned.toml").write_text(text, encoding="utf-8")
    typer.echo(text, nl=False)
    note(f"The settings are in {out / 'tuned.toml'}, every trial in {path}.")


def _tell(searches: "list[Search]", rows: "list[Row]") -> str:
    """Write what was found as TOML: one table a method, empty where the defaults are best."""
    first = searches[0]
    parts = [
        f"# Found by streamhash tune on {first.data.name} at {first.n_bits} bits, with "
        f"{first.budget} settings of each method:\n"
        f"# changes of the defaults with the best {first.metric} over three splits of the stream.\n"
    ]
    for search in searches:
        changes, value = search.chosen(rows)
        lines = [f"[{search.method}]  # {first.metric} {value:.3f} on the stream\n"]
        lines += [f"{name} = {_toml(value)}\n" for name, value in changes.items()]
        parts.append("".join(lines))
    return "\n".join(parts)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # TOML has no null: a text that no parameter takes stands for None.
    return '"none"' if value is None else repr(value).replace("'", '"')
