"""``streamhash runbook``: a live collection through a runbook of big-ann-benchmarks."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from streamhash.cli import _options as options
from streamhash.cli._console import note, print_table, showing_progress
from streamhash.cli.lab import Data
from streamhash.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamhash import OnlineHasher
    from streamhash.lab import Task
    from streamhash.live import Collection

RESCORED = 10  # candidates for each answer
# How a collection is asked, by what tables call it.
WAYS: dict[str, dict[str, Any]] = {
    "Hamming": {},
    "real-valued": {"query": "real"},
    "rescored": {"rescore": RESCORED, "metric": "euclidean"},
}


class LiveRun:
    """A live collection as ``streamhash.lab.run_runbook`` calls it; tags are its ids.

    Its first model is made of the first items, however few; others by its policy.
    """

    ways: Sequence[str] = tuple(WAYS)

    def __init__(self, items: "Collection") -> None:
        self.items = items

    def insert(self, tags: "NDArray[Any]", X: "NDArray[Any]", y: "NDArray[Any] | None") -> None:
        """Add items, and learn from them."""
        self.items.add(tags, X, y)
        if not self.items.model_number:
            self.items.refresh()

    def delete(self, tags: "NDArray[Any]") -> None:
        """Delete items."""
        self.items.delete(tags)

    def replace(self, tags: "NDArray[Any]", X: "NDArray[Any]", y: "NDArray[Any] | None") -> None:
        """Put others in their place."""
        self.items.add(tags, X, y, existing="replace")

    def search(self, X: "NDArray[Any]", k: int, way: str) -> "NDArray[Any]":
        """Find the k nearest, in one of the ways."""
        return self.items.search(X, k, **WAYS[way]).ids

    def rank(self, X: "NDArray[Any]") -> "NDArray[Any]":
        """Put all items in the order of their codes."""
        return self.items.search(X, len(self.items)).ids


@contextmanager
def new_collection(
    hasher: "OnlineHasher", *, refresh: str | int, seed: int
) -> Iterator["Collection"]:
    """Make a collection in a folder that is deleted after it."""
    import tempfile

    from streamhash.live import Collection

    with (
        tempfile.TemporaryDirectory(prefix="streamhash-") as folder,
        Collection.create(
            os.path.join(folder, "items"),  # noqa: PTH118
            hasher,
            refresh=refresh,
            random_state=seed,
            durability="process",
        ) as items,
    ):
        yield items


def runbook(
    runbook: Annotated[
        str,
        Argument(metavar="FILE|KIND", help="A runbook (.yaml); or clustered, deleting, replacing."),
    ],
    data: Data = "digits",
    rows: Annotated[
        int | None, Option(metavar="N", min=1, help="Rows that come; the others are left out.")
    ] = None,
    name: Annotated[
        str | None, Option(metavar="NAME", help="Whose steps, if FILE has several data sets.")
    ] = None,
    method: options.Method = options.METHOD,
    bits: options.Bits = options.BITS,
    seed: options.Seed = 0,
    settings: options.Settings = None,
    changes: options.Changes = None,
    unlabelled: Annotated[
        bool, Option("--unlabelled", help="Give no labels: for methods that need none.")
    ] = False,
    refresh: Annotated[
        str,
        Option(metavar="WHEN", help="When to refresh: auto, auto=SHARE, gain, N items, manual."),
    ] = "auto",
    clusters: Annotated[
        int, Option(metavar="N", min=1, help="Clusters of a runbook that is made.")
    ] = 32,
    queries: Annotated[int, Option(metavar="N", min=1, help="Rows that ask, at most.")] = 500,
    query_file: Annotated[
        Path | None,
        Option(metavar="FILE", help="What asks (default: rows that the runbook leaves out)."),
    ] = None,
    nearest: options.Nearest = 10,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
    write: Annotated[
        Path | None, Option(metavar="FILE", help="Write the runbook that was made, as YAML.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Run a live collection through a runbook.

    Runbooks are those of the streaming track of big-ann-benchmarks: which rows of the data come,
    go and are replaced, and when 500 queries are asked. A KIND is made of the data by the track's
    rules. Every answer is held to the exact neighbours by Euclidean distance among what is there
    (recall), and to the labels (precision, mAP). The collection is deleted in the end.
    """
    from streamhash import lab

    if refresh.isdecimal():
        policy: str | int = int(refresh)
    else:
        policy = refresh
    hasher = options.make_hasher(method, bits, seed, settings, changes)
    if unlabelled and hasher.needs_labels:
        raise InputError(
            f"runbook: {type(hasher).__name__} learns from labels; leave out --unlabelled, or pass "
            "a method that needs none, such as --method itq."
        )
    columns = options.file_columns(
        vector=vector_column, features=feature_columns, ignore=ignore_columns
    )
    given = {"labels": labels, "column": label_column, "columns": columns}
    task = _task(
        runbook, data, given, name=name, rows=rows, clusters=clusters, queries=queries,
        query_file=query_file, seed=seed, unlabelled=unlabelled,
    )  # fmt: skip
    if write is not None:
        task.runbook.write(write)
        note(f"The runbook is in {write}.")
    steps = []
    with (
        new_collection(hasher, refresh=policy, seed=seed) as items,
        showing_progress("running") as progress,
    ):
        judge = lab.Judge(task, nearest)
        for step in lab.run_runbook(task, LiveRun(items), judge, labelled=not unlabelled):
            steps.append(step)
            progress(len(steps), len(task.runbook.steps))
    found = lab.summarise_run(steps, len(task.queries))
    if as_json:
        typer.echo(lab.to_json({**found, "steps": steps}))
        return
    _print(task, found, nearest)


def _task(
    which: str,
    data: str,
    given: dict[str, Any],
    *,
    name: str | None,
    rows: int | None,
    clusters: int,
    queries: int,
    query_file: Path | None,
    seed: int,
    unlabelled: bool,
) -> "Task":
    """Return the runbook with its data: a file's, or one made of the data."""
    from streamhash import lab
    from streamhash.lab.runbooks import RULES

    is_file = which not in RULES
    if not is_file and (name is not None or query_file is not None):
        option = "--name" if name is not None else "--query-file"
        raise InputError(f"runbook: {option} is for a FILE, and {which} is made; leave it out.")
    if is_file and rows is not None:
        raise InputError("runbook: --rows is for a runbook that is made; FILE names its rows.")
    book = lab.read_runbook(which, name) if is_file else None
    X, y, stream_labels, title = _read(data, given, unlabelled)
    if book is None:
        return lab.make_task(
            which, X, y, data=title, stream_labels=stream_labels, n_items=rows,
            n_clusters=clusters, n_queries=queries, random_state=seed,
        )  # fmt: skip
    asked = None
    if query_file is not None:
        asked = _read(str(query_file), {**given, "labels": None}, unlabelled)[:2]
    return lab.file_task(
        book, X, y, stream_labels=stream_labels, queries=asked, n_queries=queries, random_state=seed
    )


def _read(
    data: str, given: dict[str, Any], unlabelled: bool
) -> tuple["NDArray[Any]", "NDArray[Any] | None", "NDArray[Any] | None", str]:
    """Return features, labels, those that the stream gives, and a name."""
    from streamhash.files import read_table
    from streamhash.lab.datasets import is_named, load_data

    if unlabelled and not is_named(data):
        X, y = read_table(Path(data), **given)
        return X.astype("float32", copy=False), y, None, Path(data).stem
    found = load_data(data, **given)
    return found.X, found.y, found.stream_labels, found.name


def _print(task: "Task", found: dict[str, Any], k: int) -> None:
    ways = [
        (way, each["recall"], each["last_recall"], each["precision"], each["ms"])
        for way, each in found["ways"].items()
    ]
    headings = (f"recall@{k}", "at the end", f"right of {k}", "ms a query")
    print_table(("answers", *headings), ways, numbers=headings)
    if "map" in found:
        typer.echo(
            f"mAP by label {found['map']:.3f}, {found['last_map']:.3f} at the end; as a mean over "
            f"the classes {found['map_by_class']:.3f}, {found['last_map_by_class']:.3f} at the end."
        )
    for operation in ("insert", "delete", "replace"):
        if operation in found:
            n, speed = found[operation].values()
            typer.echo(f"{operation}: {n:,} items, {speed:,.0f} a second of processor time.")
    steps = task.runbook.steps
    n_searches = sum(step.operation == "search" for step in steps)
    typer.echo(
        f"{len(steps)} steps, {n_searches} of them searches for {len(task.queries)} queries; "
        "means over these."
    )
