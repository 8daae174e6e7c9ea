"""``streamhash live``: a collection that learns, stores and is searched at once."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from streamhash.cli import _console as console, _options as options
from streamhash.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from streamhash.live import Collection, SearchResult

STANDARD_INPUT = "-"
BATCH_SIZE = 2000
FORMATS = ("jsonl", "csv", "parquet", "npz", "npy", "mat")

Address = Annotated[
    str, Argument(metavar="COLLECTION", help="Folder or address (s3://…) of the collection.")
]
Format = Annotated[
    str | None,
    Option("--format", metavar="FORMAT", help=f"{', '.join(FORMATS)} (default: by ending)."),
]
Where = Annotated[str | None, Option(metavar="FILTER", help='Only such items: "price < 10".')]
Separator = Annotated[
    str | None,
    Option(
        "--label-separator", metavar="SIGN", help="What stands between several labels of a row."
    ),
]
Batch = Annotated[int, Option(metavar="N", min=1, help="Items read and stored at a time.")]
Jobs = Annotated[int, Option(metavar="N", min=1, help="Processes that encode.")]
Item = Annotated[str | None, Option("--id", metavar="ITEM", help="Id of one item, not a file.")]

app = typer.Typer(
    help="Keep a collection that learns while it is searched.",
    cls=console.Verbs,
    rich_markup_mode=None,
    no_args_is_help=True,
)


@app.command()
def create(
    collection: Address,
    method: options.Method = options.METHOD,
    bits: options.Bits = options.BITS,
    seed: options.Seed = 0,
    settings: options.Settings = None,
    changes: options.Changes = None,
    labels: Annotated[
        str | None,
        Option(metavar="HOW", help="Labels an item: one or several (default: as the first)."),
    ] = None,
    vectors: Annotated[str, Option(metavar="TYPE", help="Store float32 or float16.")] = "float32",
    refresh: Annotated[
        str,
        Option(metavar="WHEN", help="When to refresh: auto, auto=SHARE, gain, N items, manual."),
    ] = "auto",
    keep_learned: Annotated[
        bool, Option(help="Keep what was learned from items that are deleted.")
    ] = False,
    sample: Annotated[int, Option(metavar="N", help="Size of the sample for the gain.")] = 1000,
    durability: Annotated[
        str,
        Option(metavar="HOW", help="Survive a power cut (synced), or crashes only (process)."),
    ] = "synced",
    backend: Annotated[
        str | None,
        Option(metavar="ADDRESS", help="Search codes in Milvus: milvus://host:port/name."),
    ] = None,
) -> None:
    """Make an empty collection."""
    from streamhash.live import Collection

    hasher = options.make_hasher(method, bits, seed, settings, changes)
    Collection.create(
        collection,
        hasher,
        labels=labels,
        vectors=vectors,
        refresh=refresh,
        forget_deleted=not keep_learned,
        reservoir_size=sample,
        random_state=seed,
        durability=durability,
        backend=backend,
    ).close()
    typer.echo(
        f"{collection} is an empty collection: {type(hasher).__name__}, {hasher.n_bits} bits. "
        "Go on with streamhash live add."
    )


@app.command()
def add(
    collection: Address,
    file: Annotated[
        str, Argument(metavar="FILE", help="Items: a file, a data set, or - for standard input.")
    ],
    format: Format = None,
    id_column: options.IdColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
    label_column: options.LabelColumn = None,
    metadata_columns: Annotated[
        str | None,
        Option(
            metavar="NAMES",
            help="Columns to keep as metadata, with commas (default: all that are nothing else).",
        ),
    ] = None,
    labels: options.Labels = None,
    label_separator: Separator = None,
    first_id: Annotated[
        int | None, Option(metavar="N", min=0, help="Number items without ids, starting at N.")
    ] = None,
    existing: Annotated[
        str, Option(metavar="WHAT", help="Stored ids: refuse, skip, replace or update.")
    ] = "refuse",
    batch: Batch = BATCH_SIZE,
    mmap: options.Mmap = False,
) -> None:
    """Store items, and learn from those with labels.

    A file is checked as a whole first, so that a faulty file changes nothing. Standard input (-) is
    stored batch by batch as it arrives. Items without ids are numbered after those already stored.
    After a crash, the same command with --existing skip goes on.
    """
    from streamhash.live import add_from

    with _open(collection, mmap=mmap) as items, console.showing_progress("adding") as progress:
        read, stored = add_from(
            items,
            **_reading(
                file,
                format,
                ids=id_column,
                vector=vector_column,
                label=label_column,
                metadata=metadata_columns,
                features=feature_columns,
                ignore=ignore_columns,
            ),
            labels=labels,
            label_separator=label_separator,
            first_id=first_id,
            existing=existing,
            batch_size=batch,
            progress=progress,
        )
        number = items.model_number
        skipped = f"{read - stored:,} were there; " if read > stored else ""
        serves = (
            f"model {number} serves"
            if number
            else "they are searched by their vectors until more have labels"
        )
        typer.echo(
            f"{stored:,} items added to {collection}; {skipped}{len(items):,} in all; {serves}."
        )


@app.command()
def label(
    collection: Address,
    file: Annotated[
        str | None, Argument(metavar="[FILE]", help="Ids and labels: a file as for add, or -.")
    ] = None,
    item: Item = None,
    label: Annotated[
        list[str] | None, Option(metavar="LABEL", help="Its label; again for several.")
    ] = None,
    format: Format = None,
    id_column: options.IdColumn = None,
    label_column: options.LabelColumn = None,
    label_separator: Separator = None,
    batch: Batch = BATCH_SIZE,
) -> None:
    """Label items of the collection, and learn from them.

    A file is checked as a whole before anything is stored. An empty label removes the label.
    """
    from streamhash.files import label_from_text
    from streamhash.live import label_from

    if (file is None) != (item is not None) or (item is None) != (not label):
        raise InputError("label: pass a FILE with ids and labels, or --id ITEM --label LABEL.")
    with _open(collection) as items, console.showing_progress("labelling") as progress:
        if item is not None:
            given = [label_from_text(text) for text in label or ()]
            items.label(_ids(items, [item]), given if len(given) == 1 else [given])
            n = 1
        else:
            n = label_from(
                items,
                **_reading(str(file), format, ids=id_column, label=label_column),
                label_separator=label_separator,
                batch_size=batch,
                progress=progress,
            )
        labelled = items.status()["labelled"]
        typer.echo(f"{n:,} items labelled; {labelled:,} of {len(items):,} have labels.")


@app.command()
def feedback(
    collection: Address,
    file: Annotated[
        str | None, Argument(metavar="[FILE]", help="Judgements: JSON lines, or - for them.")
    ] = None,
    item: Item = None,
    query_id: Annotated[
        str | None, Option("--query-id", metavar="ITEM", help="Id of the item that asked.")
    ] = None,
    bad: Annotated[bool, Option("--bad", help="It is no good answer.")] = False,
    batch: Batch = BATCH_SIZE,
) -> None:
    """Judge answers, and learn from that.

    A line is {"id": 5, "query_id": 7, "good": true}, or has "query", a vector. A file is checked as
    a whole before anything is stored. An error is put right by the opposite judgement.
    """
    from io import TextIOWrapper

    from streamhash.live import feedback_from

    if (file is None) != (item is not None) or (item is None) != (query_id is None):
        raise InputError("feedback: pass a FILE of judgements, or --id ITEM --query-id ITEM.")
    if file is not None and bad:
        raise InputError("feedback: --bad is for one judgement; a file says it in each line.")
    with _open(collection) as items, console.showing_progress("judging") as progress:
        if item is not None:
            asked = _ids(items, [str(query_id)])
            n = items.feedback(query_id=asked, id=_ids(items, [item]), good=not bad)
        else:
            standard = TextIOWrapper(sys.stdin.buffer, "utf-8-sig", newline="")
            source: Any = standard if file == STANDARD_INPUT else str(file)
            n = feedback_from(items, source, batch_size=batch, progress=progress)
        facts = items.status()["feedback"]
    typer.echo(
        f"{n:,} answers judged; {facts['stored']:,} in all, {facts['learned']:,} of them learned."
    )


@app.command("set-metadata")
def set_metadata(
    collection: Address,
    file: Annotated[
        str | None, Argument(metavar="[FILE]", help="Ids and metadata: a file as for add, or -.")
    ] = None,
    item: Item = None,
    metadata: Annotated[
        str | None, Option(metavar="JSON", help='Its metadata: {"price": 9}; null for none.')
    ] = None,
    format: Format = None,
    id_column: options.IdColumn = None,
    metadata_columns: Annotated[
        str | None, Option(metavar="NAMES", help="Columns of metadata, with commas.")
    ] = None,
    batch: Batch = BATCH_SIZE,
) -> None:
    """Give items other metadata; vectors and labels stay, and nothing is learned.

    A file is checked as a whole before anything is stored.
    """
    import json

    from streamhash.live import metadata_from

    if (file is None) != (item is not None) or (item is None) != (metadata is None):
        raise InputError(
            "set-metadata: pass a FILE with ids and metadata, or --id ITEM --metadata JSON."
        )
    with _open(collection) as items, console.showing_progress("storing") as progress:
        if item is not None:
            try:
                value = json.loads(str(metadata))
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"set-metadata: --metadata {metadata} is no JSON ({error}); pass "
                    "'{\"price\": 9}', say."
                ) from error
            items.set_metadata(_ids(items, [item]), [value])
            n = 1
        else:
            reading = _reading(str(file), format, ids=id_column, metadata=metadata_columns)
            n = metadata_from(items, **reading, batch_size=batch, progress=progress)
    typer.echo(f"{n:,} items have other metadata.")


@app.command()
def delete(
    collection: Address,
    ids: Annotated[
        list[str] | None, Argument(metavar="[ID]...", help="Ids of the items to delete.")
    ] = None,
    file: Annotated[
        str | None, Option("--ids", metavar="FILE", help="File with an id on each line, or -.")
    ] = None,
) -> None:
    """Delete items, all of them or none.

    What was learned from them is forgotten, if the method can.
    """

    names = [*(ids or [])]
    if file is not None:
        text = sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text("utf-8-sig")
        names += [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise InputError("delete: no ids came; pass some, or --ids FILE.")
    with _open(collection) as items:
        items.delete(_ids(items, names))
        typer.echo(f"{len(names):,} items deleted; {len(items):,} are left.")


@app.command()
def get(
    collection: Address,
    ids: Annotated[list[str], Argument(metavar="ID...", help="Ids of the items.")],
    fields: options.Fields = None,
    vectors: Annotated[bool, Option("--vectors", help="Print the vectors, too.")] = False,
    as_json: options.Json = False,
) -> None:
    """Print items by their ids.

    Label, metadata and code; with --fields, these fields in columns of their own.
    """
    from streamhash.search import to_bit_strings

    with _open(collection, read_only=True) as items:
        found = []
        for item in items.get(_ids(items, ids)):
            code = None if item.code is None else to_bit_strings(item.code[None], items.n_bits)[0]
            facts: dict[str, Any] = {"id": item.id, "label": item.label}
            facts |= {"metadata": item.metadata, "code": code}
            found.append(facts | ({"vector": item.vector.tolist()} if vectors else {}))
        shown = _fields(items, "get", fields)
    for facts in found if shown is not None else []:
        facts["metadata"] = {name: (facts["metadata"] or {}).get(name) for name in shown or ()}
    if as_json:
        console.print_json(found)
        return
    rows = []
    for facts in found:
        metadata = facts.pop("metadata")
        columns = {"metadata": metadata} if shown is None else metadata
        rows.append({"id": facts.pop("id"), "label": facts.pop("label"), **columns, **facts})
    console.print_table([*rows[0]], ([*map(_text, row.values())] for row in rows))


@app.command()
def search(
    collection: Address,
    queries: Annotated[
        str | None, Argument(metavar="[QUERIES]", help="Vectors: a file as for add, or -.")
    ] = None,
    item: Item = None,
    k: options.Nearest = 10,
    format: Format = None,
    id_column: options.IdColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
    label_column: options.LabelColumn = None,
    where: Where = None,
    rescore: Annotated[
        int | None, Option(metavar="N", help="Score N candidates an answer exactly.")
    ] = None,
    by: Annotated[str, Option(metavar="WHAT", help="Score vectors or projections.")] = "vectors",
    metric: Annotated[
        str, Option(metavar="NAME", help="Score by cosine, dot or euclidean.")
    ] = "cosine",
    query: Annotated[
        str, Option(metavar="KIND", help="Compare the query's code, or its real values.")
    ] = "code",
    min_probability: Annotated[
        float | None, Option(metavar="P", help="Leave out answers that are less sure.")
    ] = None,
    radius: Annotated[
        int | None, Option(metavar="BITS", help="Leave out what is farther away.")
    ] = None,
    fields: options.Fields = None,
    mmap: options.Mmap = False,
    as_json: options.Json = False,
) -> None:
    """Find the nearest items of each query by Hamming distance.

    Queries are named by their ids, or else numbered from 0. Another process may be writing.
    """
    from streamhash.files import read_items

    if (queries is None) == (item is None):
        raise InputError("search: pass QUERIES, a file of vectors or -, or --id ITEM.")
    answers: list[dict[str, Any]] = []

    named: dict[str, Any] = {"where": where, "rescore": rescore, "by": by, "metric": metric}
    named |= {"query": query, "min_probability": min_probability, "radius": radius}

    def answer(names: Iterable[Any], found: "SearchResult") -> None:
        columns: dict[str, Any] = {"items": found.ids, "distances": found.distances}
        columns |= {"scores": found.scores, "probabilities": found.probabilities}
        for i, (name, labels) in enumerate(zip(names, found.labels, strict=True)):
            there = {what: v[i].tolist() for what, v in columns.items() if v is not None}
            there["labels"] = labels  # they end where there are no more items
            answers.append({"query": name, **{w: v[: len(labels)] for w, v in there.items()}})

    with _open(collection, read_only=True, mmap=mmap) as items:
        shown = _fields(items, "search", fields) or []
        if item is not None:  # the item itself is left out of its answer
            wanted = items.search_options(place="search", **named)
            names = _ids(items, [item])
            own, vectors = items.vectors_of(names)
            others = items.answer(vectors, min(k + 1, len(items)), wanted).without(own)
            answer(names, others.at_least(min_probability, place="search").result())
        else:
            reading = _reading(
                str(queries),
                format,
                ids=id_column,
                vector=vector_column,
                label=label_column,
                features=feature_columns,
                ignore=ignore_columns,
            )
            for piece in read_items(**reading, id_kind=items.id_kind, with_metadata=False):
                found = items.search(piece.vectors, min(k, max(1, len(items))), **named)
                answer(piece.ids or range(len(answers), len(answers) + piece.n), found)
        if shown:
            _add_fields(items, answers, shown)
    headings = {"items": "id", "distances": "distance", "scores": "score"}
    headings |= {"probabilities": "probability", "labels": "label"}
    columns = [text for what, text in headings.items() if answers and what in answers[0]]
    columns = columns or ["id", "distance", "label"]
    console.print_answers(answers, [*columns, *shown], as_json=as_json)


@app.command()
def predict(
    collection: Address,
    queries: Annotated[str, Argument(metavar="QUERIES", help="Vectors: a file as for add, or -.")],
    k: Annotated[int, Option("-k", help="Labelled neighbours that vote.", min=1)] = 10,
    format: Format = None,
    id_column: options.IdColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
    label_column: options.LabelColumn = None,
    as_json: options.Json = False,
) -> None:
    """Predict the label of each query by a vote of its neighbours, with its probability."""
    from streamhash.files import read_items

    found: list[dict[str, Any]] = []
    with _open(collection, read_only=True) as items:
        reading = _reading(
            queries,
            format,
            ids=id_column,
            vector=vector_column,
            label=label_column,
            features=feature_columns,
            ignore=ignore_columns,
        )
        for piece in read_items(**reading, id_kind=items.id_kind, with_metadata=False):
            names = piece.ids or range(len(found), len(found) + piece.n)
            for name, label, chance in zip(names, *items.predict(piece.vectors, k), strict=True):
                found.append({"query": name, "label": label, "probability": chance})
    if as_json:
        console.print_json(found)
        return
    headings = ("query", "label", "probability")
    console.print_table(headings, ([*row.values()] for row in found), numbers=headings[::2])


@app.command()
def refresh(
    collection: Address,
    jobs: Jobs = 1,
    scheduler: options.Scheduler = None,
    mmap: options.Mmap = False,
) -> None:
    """Encode all items with what has been learned, and search those codes.

    Searches use the old model until the new one takes over in one step. An interrupted refresh goes
    on where it stopped.
    """
    with (
        _open(collection, mmap=mmap) as items,
        _executor(jobs, scheduler) as executor,
        console.showing_progress("encoding") as progress,
    ):
        if not items.refresh(executor=executor, progress=progress):
            typer.echo(
                f"Model {items.model_number} serves all that has been learned: nothing to do."
            )
            return
        event = items.history().refreshes[-1]
    _print_refresh(event)


@app.command()
def revert(
    collection: Address,
    model: Annotated[
        int, Option(metavar="N", min=1, help="Number of a model that has served (see history).")
    ],
    jobs: Jobs = 1,
    scheduler: options.Scheduler = None,
    mmap: options.Mmap = False,
) -> None:
    """Encode all items with an older model, and search those codes.

    The learner stays as it is: rebuild makes a new one of the stored items.
    """
    with (
        _open(collection, mmap=mmap) as items,
        _executor(jobs, scheduler) as executor,
        console.showing_progress("encoding") as progress,
    ):
        if not items.revert(model, executor=executor, progress=progress):
            typer.echo(f"Model {items.model_number} serves, and is model {model}: nothing to do.")
            return
        event = items.history().refreshes[-1]
    _print_refresh(event)


@app.command()
def rebuild(
    collection: Address,
    method: Annotated[
        str | None,
        Option(metavar="NAME", help="Another method, as for create (default: the same as before)."),
    ] = None,
    bits: Annotated[
        int | None, Option(metavar="K", help="Length of the codes (default: as it is).")
    ] = None,
    seed: options.Seed = 0,
    settings: options.Settings = None,
    changes: options.Changes = None,
    jobs: Jobs = 1,
    scheduler: options.Scheduler = None,
    mmap: options.Mmap = False,
) -> None:
    """Learn anew from the stored items, perhaps by another method or length, and refresh.

    Searches use the old model meanwhile; what is added waits while items are learned.
    """
    from streamhash.lab import file_settings, find_methods, make_hasher

    if method is not None:
        options.method_names(method)  # for the processes that encode, as well
    with (
        _open(collection, mmap=mmap) as items,
        _executor(jobs, scheduler) as executor,
        console.showing_progress("learning and encoding") as progress,
    ):
        length = items.n_bits if bits is None else bits
        if method is not None:
            hasher = options.make_hasher(method, length, seed, settings, changes)
        else:
            before, fixed = items.hasher, ("n_bits", "random_state")
            own = {name: v for name, v in before.get_params().items() if name not in fixed}
            if settings is not None:
                own |= file_settings(settings, *find_methods(type(before)))
            own |= options.parse_changes(changes)
            hasher = make_hasher(type(before), length, seed, changes=own)
        if not items.rebuild(hasher, executor=executor, progress=progress):
            typer.echo(f"Model {items.model_number} serves on: it is what was learned anew.")
            return
        event = items.history().refreshes[-1]
    _print_refresh(event)


@contextmanager
def _executor(jobs: int, scheduler: str | None) -> "Iterator[Executor | None]":
    """Give what encodes in other processes, if that is wanted."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from streamhash.cluster import cluster_executor

    if scheduler is not None:
        with cluster_executor(scheduler) as executor:
            yield executor
    elif jobs > 1:  # processes that are begun anew, as threads may run in this one
        with ProcessPoolExecutor(
            jobs, get_context("spawn"), options.import_modules, (options.used_modules(),)
        ) as executor:
            yield executor
    else:
        yield None


def _print_refresh(event: dict[str, Any]) -> None:
    changes = "" if event["flips"] is None else f"; {event['flips']:.1%} of all bits changed"
    typer.echo(
        f"Model {event['model']} serves {event['items']:,} items, of {event['learned']:,} learned "
        f"ones, after {event['seconds']:.1f} s{changes}."
    )


@app.command()
def status(collection: Address, as_json: options.Json = False) -> None:
    """Print the state of a collection.

    Items, models, quality, whether a refresh is worth it, and the balance of the bits.
    """

    with _open(collection, read_only=True) as items:
        facts = items.status()
    if as_json:
        console.print_json(facts)
        return
    from rich.table import Table

    from streamhash.cli._status import status_lines

    page = Table.grid(padding=(0, 3))
    for heading, what, value in status_lines(facts):
        if heading and page.row_count:
            page.add_row()
        page.add_row(f"[bold]{heading}[/]" if heading else "", what, value)
    page.add_row()
    console.results().print(page, end="")


@app.command()
def history(collection: Address, as_json: options.Json = False) -> None:
    """Print refreshes and alarms of drift.

    Oldest first; --json adds the quality over time.
    """
    from datetime import datetime

    with _open(collection, read_only=True) as items:
        happened = items.history()
    if as_json:
        console.print_json(happened._asdict())
        return
    rows = []
    for event in sorted([*happened.refreshes, *happened.drifts], key=lambda event: event["time"]):
        gain, flips, seconds = map(event.get, ("gain", "flips", "seconds"))
        row = (
            f"{datetime.fromtimestamp(event['time']).astimezone():%Y-%m-%d %H:%M:%S}",
            _what_happened(event),
            f"{event['labelled']:,}",
            None if gain is None else f"{gain:+.3f} bits",
            None if flips is None else f"{flips:.1%}",
            None if seconds is None else f"{seconds:.2f} s",
        )
        rows.append(row)
    numbers = ("labelled items", "gain", "bits changed", "took")
    console.print_table(("when", "what", *numbers), rows, numbers=numbers)


def _what_happened(event: dict[str, Any]) -> str:
    if "model" not in event:
        return "drift found"
    older = event["reverted_to"]
    return f"model {event['model']} serves" + ("" if older is None else f", model {older} again")


@app.command()
def verify(
    collection: Annotated[
        str, Argument(metavar="COLLECTION", help="A collection, or a backup: a .tar or a folder.")
    ],
    no_codes: Annotated[
        bool, Option("--no-codes", help="Read files only, and encode no vector to compare codes.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Compare every file with its checksum, and every code with its vector.

    Exits with 1 if anything is damaged. Others may read and write meanwhile.
    """
    from streamhash.live import verify as verify_files

    found = verify_files(collection, codes=not no_codes)
    damages = [damage._asdict() for damage in found.damages]
    if as_json:
        console.print_json({**found._asdict(), "damages": damages})
    else:
        for damage in found.damages:
            typer.echo(f"{damage.file}: {damage.problem}")
        without = (
            f", {found.without_checksum:,} without a checksum" if found.without_checksum else ""
        )
        wrong = (
            f"{len(damages):,} damaged: restore a backup with streamhash live restore"
            if damages
            else "all are whole"
        )
        typer.echo(f"{found.files:,} files, {found.bytes / 1e6:,.1f} MB{without}: {wrong}.")
    if damages:
        raise typer.Exit(1)


@app.command()
def backup(
    collection: Address,
    target: Annotated[
        str, Argument(metavar="TARGET", help="A new .tar, or a folder or address of backups.")
    ],
    keep: Annotated[
        int | None, Option(metavar="N", help="In a folder, keep the last N backups only.")
    ] = None,
) -> None:
    """Copy a collection as it is at one moment, while others use it.

    To a .tar, which is a file of its own; or to a folder, here or in an object store (s3://…),
    where each backup adds only what is new since the others.
    """
    from streamhash.live import backup as make_backup

    with console.showing_progress("copying") as progress:
        made = make_backup(collection, target, keep=keep, progress=progress)
    where = target if made.name == Path(target).name else f"{target}, as {made.name}"
    typer.echo(
        f"{made.items:,} items are in {where}: {made.files:,} files, {made.bytes / 1e6:,.1f} MB, "
        f"{made.new_bytes / 1e6:,.1f} MB written."
    )


@app.command()
def backups(
    source: Annotated[str, Argument(metavar="SOURCE", help="A folder or address of backups.")],
    as_json: options.Json = False,
) -> None:
    """List backups, the last one last."""
    from streamhash.live import backups as list_backups

    found = list_backups(source)
    if as_json:
        shown = ("name", "made", "items", "model", "files", "bytes")
        console.print_json([{name: getattr(each, name) for name in shown} for each in found])
        return
    for each in found:
        typer.echo(
            f"{each.name}  {each.items:,} items, model {each.model}, {each.bytes / 1e6:,.1f} MB"
        )
    if not found:
        typer.echo(f"{source} has no backups.")


@app.command()
def restore(
    source: Annotated[str, Argument(metavar="BACKUP", help="A .tar, or a folder of backups.")],
    collection: Annotated[
        str, Argument(metavar="COLLECTION", help="The folder to make, which is not there yet.")
    ],
    name: Annotated[
        str | None,
        Option(metavar="NAME", help="Which of a folder, or how it begins (default: the last)."),
    ] = None,
) -> None:
    """Make a collection of a backup; every file is compared with its checksum."""
    from streamhash.live import restore as restore_backup

    with console.showing_progress("restoring") as progress:
        found = restore_backup(source, collection, name=name, progress=progress)
    typer.echo(f"{collection} has {found.items:,} items again, as of {found.made}.")


@app.command()
def export(
    collection: Address,
    to: Annotated[
        str, Option(metavar="FILE", help="A .parquet, .npz or .faiss, or milvus://host:port/name.")
    ],
    vectors: Annotated[
        bool, Option("--vectors", help="Write the vectors as well (not to .faiss).")
    ] = False,
    where: Where = None,
    feedback: Annotated[
        bool, Option("--feedback", help="Write judged answers, as JSON lines, not items.")
    ] = False,
) -> None:
    """Write all items to a file for other programs.

    The items of one moment are written; another process may be writing.
    """
    from streamhash.live.export import NAMES

    with _open(collection, read_only=True) as items:
        if feedback:
            if vectors or where is not None:
                raise InputError("export: --feedback goes without --vectors and --where.")
            typer.echo(f"{items.export_feedback(to):,} judgements are in {to}.")
            return
        n = items.export(to, vectors=vectors, where=where)
        is_named = Path(to).suffix.lower() == ".faiss" and items.id_kind == "strings"
    beside = f" Their ids are in {to}{NAMES}." if is_named else ""
    typer.echo(f"{n:,} items are in {to}.{beside}")


def _open(address: str, *, read_only: bool = False, mmap: bool = False) -> "Collection":
    from streamhash.live import Collection

    return Collection.open(address, read_only=read_only, mmap=mmap)


def _reading(name: str, format: str | None, **columns: str | None) -> dict[str, Any]:
    """Return what ``read_items`` needs to read a file, standard input, or a data set."""
    from io import TextIOWrapper

    from streamhash.lab.datasets import is_named, load_data

    if format is not None and format not in FORMATS:
        raise InputError(f"--format {format}: pass one of {', '.join(FORMATS)}.")
    source: Any = name
    if name == STANDARD_INPUT:
        format = format or "jsonl"
        source = TextIOWrapper(sys.stdin.buffer, "utf-8-sig", newline="")
    elif is_named(name):
        data = load_data(name)
        source = data.X, data.y
    return {"source": source, "format": format, "columns": options.file_columns(**columns)}


def _fields(items: "Collection", place: str, names: str | None) -> list[str] | None:
    """Return the fields to show, all of them for *; None if none are asked for."""
    if names is None:
        return None
    known = [*items.status()["fields"]]
    if names.strip() == "*":
        return known
    shown = options.split_names(names)
    options.check_fields(place, shown, [dict.fromkeys(known)])
    return shown


def _add_fields(items: "Collection", answers: list[dict[str, Any]], shown: list[str]) -> None:
    """Put fields of the metadata beside the items that were found, in the order of the answers."""
    ids = list(dict.fromkeys(name for answer in answers for name in answer["items"]))
    metadata = {item.id: item.metadata or {} for item in items.get(ids)}
    for answer in answers:
        found = [metadata[name] for name in answer["items"]]
        answer |= {name: [_text(each.get(name)) for each in found] for name in shown}


def _text(value: Any) -> Any:
    """Return a value as a cell of a table: lists and dicts as JSON."""
    import json

    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _ids(items: "Collection", texts: list[str]) -> list[Any]:
    """Turn what was typed into ids of the kind that the collection has."""
    from streamhash.files import ids_from_text

    return ids_from_text(texts, items.id_kind)
