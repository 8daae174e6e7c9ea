"""The verbs of experiments: demo, bench, reproduce, tune, report and leaderboard."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from streamhash.cli import _options as options
from streamhash.cli._console import note, print_table, progress_bar, results
from streamhash.cli.serve import Port, say_address
from streamhash.errors import InputError, MissingPartError

if TYPE_CHECKING:
    from streamhash.lab import Comparison, Leaderboard, Progress, Ranking, Report

DEMO_MARK = ".streamhash-demo"  # a file that marks a folder as the demo's own
SETTINGS = {
    **{name: [name] for name in ("default", "published", "tuned")},
    "both": ["default", "published"],
}

Data = Annotated[str, Option(metavar="NAME|FILE", help="A data set, or a file with labels.")]
Stream = Annotated[
    int | None,
    Option(metavar="N", help="Instances to learn from (default: 20,000 at most)."),
]
QueriesPerClass = Annotated[
    int | None,
    Option(
        metavar="T", help="Queries drawn from each class (default: 100, fewer of rare classes)."
    ),
]


def demo(
    out: Annotated[
        Path | None,
        Option(metavar="DIR", help="Folder for the report, or for the collections."),
    ] = None,
    seed: options.Seed = 0,
    serve: Annotated[
        bool,
        Option(
            "--serve", help="Serve news or digits that keep arriving, and a page to watch them."
        ),
    ] = False,
    port: Port = 8000,
) -> None:
    """Try every method on the embedded digits.

    Prints a table of the five metrics, and writes figures and a page that shows them into the
    folder. An earlier report of the demo is replaced; any other folder is left alone.

    With --serve: a live collection behind HTTP, which learns while labelled items keep arriving.
    They are the news of the data set reuters, if its file is there, else digits, of which some have
    labels; and, beside them, synthetic embeddings with a long tail of classes.
    """
    if serve:
        _serve_demo(out, seed, port)
        return
    folder = out or Path("streamhash-demo")
    if folder.exists() and not (folder / DEMO_MARK).exists() and any(folder.iterdir()):
        raise InputError(
            f"demo: {folder} is there and not a report of the demo; choose another folder with "
            "--out."
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DEMO_MARK).touch()
    from streamhash import lab

    (folder / lab.ROWS_FILE).unlink(missing_ok=True)
    with _cells() as progress:
        rows = lab.bench(n_bits=options.BITS, seeds=[seed], out=folder, progress=progress)
    results().print(lab.rich_table(lab.summarise(rows)))
    command = "streamhash demo" + (f" --seed {seed}" if seed else "")
    _write(lab.Report.of(rows), folder, command, optional=True)


def _serve_demo(folder: Path | None, seed: int, port: int) -> None:
    import tempfile

    from streamhash.service import serve
    from streamhash.service.demo import make_demos, streaming_all

    demos = make_demos(seed)
    for each in demos:
        typer.echo(f"{each.name}: {each.about}", err=True)
        if each.source is not None:
            typer.echo(each.source, err=True)
    with (
        tempfile.TemporaryDirectory(prefix="streamhash-") as temporary,
        streaming_all(demos, folder or temporary) as collections,
    ):
        serve(*collections, port=port, log_level="warning", started=say_address)
    typer.echo("Stopped.")


def bench(
    data: Data = "digits",
    rows: Annotated[
        int | None, Option(metavar="N", min=1, help="Rows of a set that is made up.")
    ] = None,
    method: Annotated[
        str,
        Option(metavar="NAMES", help="Methods, with commas; all; or package.module:Class."),
    ] = "all",
    bits: Annotated[
        str, Option(metavar="K,K", help="Lengths of the codes, with commas.")
    ] = f"{options.BITS}",
    seeds: Annotated[int, Option(metavar="N", min=1, help="How many seeds to run.")] = 1,
    first_seed: Annotated[int, Option(metavar="N", min=0, help="The first of the seeds.")] = 0,
    settings: Annotated[
        str,
        Option(metavar="WHICH", help="Settings: default, published, both, tuned, or a .toml file."),
    ] = "default",
    changes: options.Changes = None,
    order: Annotated[
        str | None,
        Option(
            metavar="NAMES",
            help="Orders of the stream, with commas: shuffled, sorted, halves, runs, single, "
            "natural (default: shuffled, natural for a set in order of time).",
        ),
    ] = None,
    label_noise: Annotated[
        float,
        Option(metavar="SHARE", help="Share of the stream's labels that is drawn at random."),
    ] = 0.0,
    database: Annotated[
        str,
        Option(
            metavar="WHICH",
            help="Codes of the database: encoded, or labelled (those of its labels, as later "
            "papers do).",
        ),
    ] = "encoded",
    stream: Stream = None,
    queries_per_class: QueriesPerClass = None,
    query_share: Annotated[
        float | None,
        Option(
            metavar="SHARE",
            help="Share of a class's rows that ask at most (default: 0.2 if some are rare).",
        ),
    ] = None,
    checkpoints: Annotated[
        int | None, Option(metavar="N", min=1, help="Looks at mAP on the way (default: 10).")
    ] = None,
    split: Annotated[
        str,
        Option(
            metavar="WHICH", help="all classes, unseen (a quarter is never learned), or validation."
        ),
    ] = "all",
    test_seeds: Annotated[
        int, Option(metavar="N", min=0, help="Seeds whose queries a validation leaves out.")
    ] = 0,
    curve_metric: Annotated[
        str, Option(metavar="NAME", help="What is looked at: map or map@1000.")
    ] = "map",
    curve_by_class: Annotated[
        bool, Option("--curve-by-class", help="Keep each class's quality at the checkpoints too.")
    ] = False,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="Append the rows to rows.jsonl in this folder.")
    ] = None,
    resume: Annotated[
        bool, Option("--resume", help="Skip the cells whose rows are there already.")
    ] = False,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
    quick: Annotated[
        bool, Option("--quick", help="A quick look: a stream of at most 2,000, 3 checkpoints.")
    ] = False,
) -> None:
    """Compare methods by the papers' protocol.

    Queries are drawn from each class, all the rest is the database, and the stream is its start.
    Each seed draws the split, the order of the stream and the method's start. A stream can also
    come class by class, row by row, or with wrong labels; results are judged by the true ones.
    """
    if resume and out is None:
        raise InputError("bench: --resume needs the folder with the rows; pass --out DIR.")
    if settings not in SETTINGS and not settings.endswith(".toml"):
        raise InputError(
            f"bench: --settings {settings}: pass default, published, both, tuned, or a .toml file."
        )
    from streamhash import lab
    from streamhash.lab.datasets import load_data

    wanted = options.parse_changes(changes)
    methods, lengths = _methods(method), options.split_numbers("--bits", bits)
    columns = options.file_columns(
        vector=vector_column, features=feature_columns, ignore=ignore_columns
    )
    found = load_data(data, labels=labels, column=label_column, rows=rows, columns=columns)
    n_run = 0
    with _cells() as show:

        def progress(state: "Progress") -> None:
            nonlocal n_run
            n_run = state.n_total
            show(state)

        made = lab.bench(
            methods,
            found,
            n_bits=lengths,
            seeds=range(first_seed, first_seed + seeds),
            settings=SETTINGS.get(settings, [settings]),
            changes=wanted,
            order=None if order is None else options.split_names(order) or order,
            label_noise=label_noise,
            database=database,
            stream=stream,
            quick=quick,
            checkpoints=checkpoints,
            out=out,
            resume=resume,
            jobs=jobs,
            progress=progress,
            queries_per_class=queries_per_class,
            query_share=query_share,
            split=split,
            test_seeds=test_seeds,
            curve_metric=curve_metric,
            curve_by_class=curve_by_class,
        )
    if as_json:
        for row in made:
            typer.echo(lab.to_json(row))
        return
    results().print(lab.rich_table(lab.summarise(made)))
    if out is not None:
        kept = f"; {n_run} cells were run, {len(made) - n_run} had their rows" if resume else ""
        note(f"Rows are in {out / lab.ROWS_FILE}{kept}.")


def reproduce(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="[NAME]...", help="Experiments, such as mnist-table; all; or your own .toml."
        ),
    ] = None,
    data: Annotated[
        str | None, Option(metavar="NAME", help="Run on this data set of the experiment.")
    ] = None,
    method: Annotated[
        str, Option(metavar="NAMES", help="Only these methods, with commas.")
    ] = "all",
    bits: Annotated[
        str | None,
        Option(metavar="K,K", help="Lengths of the codes (default: the experiment's)."),
    ] = None,
    seeds: Annotated[
        int | None, Option(metavar="N", min=1, help="How many seeds (default: 3).")
    ] = None,
    first_seed: Annotated[int, Option(metavar="N", min=0, help="The first of the seeds.")] = 0,
    quick: Annotated[
        bool, Option("--quick", help="A quick look, not a result: short stream, 32 bits, 1 seed.")
    ] = False,
    out: Annotated[Path, Option(metavar="DIR", help="Folder of the rows and the report.")] = Path(
        "streamhash-results"
    ),
    jobs: options.Jobs = None,
    scheduler: options.Scheduler = None,
) -> None:
    """Run the paper's experiments, beside its numbers; or your own.

    Without a name, the experiments are listed; your own is a .toml file. Rows are appended to DIR
    as they come; after Ctrl-C or a crash the same command goes on where it stopped. Experiments
    share their cells, so that the figures of a data set cost nothing after its table.
    """
    from streamhash import lab
    from streamhash.cluster import cluster_executor
    from streamhash.lab.datasets import available

    if not names:
        here = {card.name for card in available() if card.here}
        all_of_them = [lab.read_experiment(name) for name in lab.experiment_names()]
        print_table(
            ("experiment", "what it shows", "would run on"),
            [(e.name, e.title, e.choose_data(here) or "data not here") for e in all_of_them],
        )
        return
    if quick:
        note("A quick look: short streams, one seed. These are not the paper's experiments.")
    options.find_modules_here()  # of which an own experiment may name methods
    try:
        with (
            _cells(is_long=True) as progress,
            cluster_executor(scheduler) if scheduler else nullcontext() as executor,
        ):
            comparisons = lab.reproduce(
                names,
                data=data,
                methods=_methods(method),
                n_bits=None if bits is None else options.split_numbers("--bits", bits),
                seeds=seeds,
                first_seed=first_seed,
                quick=quick,
                out=out,
                jobs=jobs,
                executor=executor,
                progress=progress,
            )
    except KeyboardInterrupt:
        note(f"What is done is kept in {out}: the same command goes on from there.")
        raise
    for comparison in comparisons:
        metrics = comparison.experiment.metrics
        for metric in metrics[:1] if comparison.experiment.paper else metrics:
            _print_metric(comparison, metric)
        for which in comparison.settings:
            if why := comparison.why_unjudged(which):
                typer.echo(f"With {which} settings these do not compare: {why}.")
    report = lab.Report.of(lab.read_folder(out))
    _write(report, out, f"streamhash report {out.name}", optional=True)


def _print_metric(comparison: "Comparison", metric: str) -> None:
    """Print an experiment's values of a metric, the paper's in brackets."""
    from streamhash.lab.comparison import heading

    lengths = comparison.experiment.bits
    rows = []
    for entry in comparison.entries():
        cells = [entry.lines[k].text(metric) if k in entry.lines else "–" for k in lengths]
        papers = [comparison.paper(entry.run, metric, k) for k in lengths]
        beside = [f" ({paper:.3f})" if paper is not None else "" for paper in papers]
        both = [cell + paper for cell, paper in zip(cells, beside, strict=True)]
        rows.append([entry.run.label, entry.run.settings, *both])
    on = f"{heading(metric)} on {comparison.data}"
    if comparison.experiment.numbers:
        on += " (in brackets: the paper's)"
    results().print(f"{comparison.experiment.title}: {on}", style=None)
    columns = [f"{bits} bits" for bits in lengths]
    print_table(["method", "settings", *columns], rows, numbers=columns)


def tune(
    method: Annotated[
        str,
        Argument(metavar="METHOD", help="Methods, with commas; all; or package.module:Class."),
    ] = "all",
    data: Data = "digits",
    bits: options.Bits = options.BITS,
    budget: Annotated[int, Option(metavar="N", min=1, help="Settings to try of each method.")] = 20,
    metric: Annotated[str, Option(metavar="NAME", help="What is to be best.")] = "map",
    stream: Stream = None,
    queries_per_class: QueriesPerClass = None,
    test_seeds: Annotated[
        int, Option(metavar="N", min=1, help="Seeds whose test queries are left out.")
    ] = 3,
    seed: Annotated[int, Option(metavar="N", min=0, help="Seed of the settings tried.")] = 0,
    order: Annotated[
        str | None, Option(metavar="NAME", help="Order of the stream, one of those of bench.")
    ] = None,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
    out: Annotated[Path, Option(metavar="DIR", help="Folder of the rows, and of tuned.toml.")] = (
        Path("streamhash-tuning")
    ),
    jobs: options.Jobs = None,
) -> None:
    """Search for the best settings on the stream alone.

    No test query takes part in it.
    The stream of the first seed is split again into queries, database and stream, without the
    queries of any test seed. The defaults and random settings are tried, the same number for each
    method, and the three best again on two more splits. Every trial is a row in DIR, what was found
    is in tuned.toml there, and a second call goes on where the first was stopped.
    """
    from streamhash import lab
    from streamhash.lab.datasets import load_data
    from streamhash.lab.tuning import TUNED_FILE

    columns = options.file_columns(
        vector=vector_column, features=feature_columns, ignore=ignore_columns
    )
    found = load_data(data, labels=labels, column=label_column, columns=columns)
    with _cells(is_long=True) as progress:
        lab.tune(
            _methods(method),
            found,
            n_bits=bits,
            budget=budget,
            metric=metric,
            stream=stream,
            queries_per_class=queries_per_class,
            test_seeds=test_seeds,
            random_state=seed,
            order=order,
            out=out,
            jobs=jobs,
            progress=progress,
        )
    typer.echo((out / TUNED_FILE).read_text(encoding="utf-8"), nl=False)
    note(f"The settings are in {out / TUNED_FILE}, every trial in {out / lab.ROWS_FILE}.")


def report(
    folder: Annotated[
        Path,
        Argument(
            metavar="DIR", help="A folder with the rows.jsonl of bench, or with such folders."
        ),
    ],
    markdown: Annotated[
        bool, Option("--markdown", help="Print the tables in Markdown, and write nothing.")
    ] = False,
    latex: Annotated[
        bool, Option("--latex", help="Print the tables in LaTeX, and write nothing.")
    ] = False,
) -> None:
    """Make tables, figures and a page from the rows of bench.

    Rows of an experiment of a paper stand beside the paper's numbers, all others by data set and
    code length. How many rows went where is said on standard error.
    """
    from streamhash import lab

    made = lab.Report.of(lab.read_folder(folder))
    if (markdown or latex) and made.has_lines:
        typer.echo(made.markdown() if markdown else made.latex(), nl=False)
    else:
        _write(made, folder, f"streamhash report {folder.name}", account=True)


def leaderboard(
    rows: Annotated[
        list[Path] | None,
        Argument(metavar="[ROWS]...", help="Rows to add: files of --add, or folders of bench."),
    ] = None,
    add: Annotated[
        str | None,
        Option(metavar="PATH", help="Run the fixed part for a method, package.module:Class."),
    ] = None,
    data: Annotated[
        str | None,
        Option(metavar="NAMES", help="With --add: only these data sets, with commas."),
    ] = None,
    metric: Annotated[
        str, Option(metavar="NAME", help="What methods are ranked by: map or map_by_class.")
    ] = "map",
    out: Annotated[Path, Option(metavar="DIR", help="Folder of the page and the tables.")] = Path(
        "streamhash-leaderboard"
    ),
    jobs: options.Jobs = None,
) -> None:
    """Rank methods over data sets and streams; add yours.

    Writes a page that ranks what its reader chooses, tables, and the critical-difference diagram.
    The rows of the methods of streamhash come with the package.

    With --add a method of your own runs the fixed part: seed 0, default settings, on the data sets
    that are on this machine. Its rows are appended to a file in DIR; stopped, the same command goes
    on. Send that file to be added.
    """
    import time

    from streamhash import lab
    from streamhash.lab.leaderboard import read_given
    from streamhash.lab.report.leaderboard import check_folder

    if data is not None and add is None:
        raise InputError("leaderboard: --data is for --add; choose data sets in the page.")
    check_folder(out)
    given, left_out = read_given(rows or [])
    if left_out:
        kinds = ", ".join(f"{what} {number:,}" for what, number in left_out.most_common())
        note(f"Rows of the folders that fit no block, by what does not fit: {kinds}.")
    if add is None:
        board = lab.read_leaderboard(given)
        others = {row["method"] for row in given} - set(lab.read_leaderboard().methods)
        newcomer = others.pop() if len(others) == 1 else None
    else:
        (method,) = options.method_names(add)
        began = time.monotonic()
        with _cells(is_long=True) as progress:
            made = lab.add_method(
                method,
                out,
                rows=given,
                data=None if data is None else options.split_names(data),
                jobs=jobs,
                progress=progress,
            )
        board, newcomer = made.board, made.method
        for name, why in made.skipped.items():
            note(f"Skipped {name}: {why}.")
        note(f"The rows are in {made.rows_file}; it took {time.monotonic() - began:.0f} s.")
    rankings = board.rankings(newcomer, metric)
    for ranking in rankings if newcomer is not None else rankings[:1]:
        _print_ranking(board, ranking, newcomer)
    try:
        page = lab.write_leaderboard(board, out, newcomer=newcomer)
    except MissingPartError as error:
        note(str(error))
        return
    typer.echo(f"The leaderboard is in {page}: open it in a browser.")


def _print_ranking(board: "Leaderboard", ranking: "Ranking", newcomer: str | None) -> None:
    """Print a ranking, what the tests say, and where a newcomer stands."""
    from streamhash.lab.report.leaderboard import placement, ranking_head, ranking_rows, sentences

    results().print(ranking.part.title, style=None)
    head = ("place", *ranking_head(board, ranking)[1:])
    print_table(head, [*ranking_rows(board, ranking)], numbers=(head[0], *head[3:]))
    for sentence in sentences(ranking):
        typer.echo(sentence)
    if newcomer in ranking.methods:
        typer.echo(placement(ranking, newcomer))


def _methods(names: str) -> "str | list[str]":
    """Split the names of methods; all of them are not split."""
    return "all" if names == "all" else options.method_names(names)


@contextmanager
def _cells(*, is_long: bool = False) -> "Iterator[Callable[[Progress], None]]":
    """Draw a bar of cells with the time left; without a terminal, a line for each of a long run."""
    with progress_bar() as bar:
        task = bar.add_task("", total=None)

        def show(state: "Progress") -> None:
            bar.update(task, completed=state.n_done, total=state.n_total, description=str(state))
            if bar.disable and is_long and state.plan is not None:
                note(f"{state.n_done}/{state.n_total} {state}")

        yield show


def _write(
    made: "Report", folder: Path, command: str, *, optional: bool = False, account: bool = False
) -> None:
    """Write the report and say where it is; an ``optional`` one may lack its packages."""
    from streamhash.lab import have_figures

    try:
        page = made.write(folder, command=command, figures=have_figures())
    except MissingPartError as error:
        if not optional:
            raise
        note(str(error))
        return
    if account:
        note(made.account())
    if not have_figures():
        note('The report has no figures; for them, run pip install "streamhash[plots]".')
    typer.echo(f"The report is in {page}: open it in a browser.")
