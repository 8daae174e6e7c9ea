"""Verbs for files of one's own: ``fit``, ``encode``, ``search``, ``evaluate``; and ``methods``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from streamhash.cli import _console as console, _options as options
from streamhash.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from streamhash import OnlineHasher
    from streamhash.codes import Codes
    from streamhash.files import Columns, Piece

ROWS_LEARNED_AT_ONCE = 2000  # about: between two steps of the progress bar
ROWS_ENCODED_AT_ONCE = 8192
WORST_CLASSES = 10  # that evaluate shows


def methods(as_json: options.Json = False) -> None:
    """List the methods, their papers and the labels they need."""
    from streamhash.hashers import METHODS

    listed: list[dict[str, Any]] = [
        {
            "name": name,
            "class": method.__name__,
            "reference": method.reference,
            "year": method.year,
            "needs_labels": method.needs_labels,
            "multi_label": method.multi_label,
            "published_for": list(method.settings),
            "page": f"docs/methods/{name}.md",
            "parameters": method().get_params(deep=False),
        }
        for name, method in METHODS.items()
    ]
    if as_json:
        console.print_json(listed)
        return
    rows = []
    for one in listed:
        paper = one["reference"].removesuffix(f" {one['year']}")
        labels = "one or several" if one["multi_label"] else "one"
        needed = labels if one["needs_labels"] else "none"
        rows.append((one["name"], paper, one["year"], needed, one["page"]))
    console.print_table(("method", "paper", "year", "labels", "page"), rows)


def fit(
    context: typer.Context,
    file: Annotated[
        str, Argument(metavar="FILE", help="Features with labels: a file, or a data set.")
    ],
    model: Annotated[Path, Option(metavar="FILE", help="The model to save.")],
    method: options.Method = options.METHOD,
    bits: options.Bits = options.BITS,
    seed: options.Seed = 0,
    settings: options.Settings = None,
    changes: options.Changes = None,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
    go_on: Annotated[
        bool, Option("--continue", help="Load the model, and continue learning.")
    ] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace an existing model.")] = False,
) -> None:
    """Learn a model from the rows of a file.

    The file is the stream, read in its order: shuffle rows that are sorted by class first.
    """
    if model.exists() and not go_on and not overwrite:
        raise InputError(
            f"fit: {model} is there already; pass --continue to go on learning with it, or "
            "--overwrite to replace it."
        )
    named = ("bits", "seed", "settings", "changes", *(["method"] if ":" not in method else []))
    sources = map(context.get_parameter_source, named)
    if go_on and any(source is not None and source.name != "DEFAULT" for source in sources):
        raise InputError(
            "fit: --continue takes method, bits, seed and parameters from the model; leave out "
            "--method, --bits, --seed, --settings and --set."
        )
    if go_on:
        hasher = options.load_model(model, method if ":" in method else None)
    else:
        hasher = options.make_hasher(method, bits, seed, settings, changes)
    columns = options.file_columns(
        label=label_column, vector=vector_column, features=feature_columns, ignore=ignore_columns
    )
    read = _read(file, columns, labels)
    X, y = read.vectors, read.labels
    assert X is not None  # it was asked for
    if y is None and hasher.needs_labels:
        raise InputError(
            f"fit: {file} has no labels, and {type(hasher).__name__} learns from them; pass "
            "--labels FILE or --label-column NAME."
        )
    # Whole stages in every piece: a shorter piece would be a stage of its own.
    size = hasher.batch_size * max(1, ROWS_LEARNED_AT_ONCE // hasher.batch_size)
    for rows in console.slices_with_progress("learning", len(X), size):
        hasher.partial_fit(X[rows], None if y is None else y[rows])
    hasher.save(model)
    typer.echo(
        f"{type(hasher).__name__} with {hasher.n_bits} bits has learned from "
        f"{hasher.n_samples_seen_:,} rows; saved in {model}."
    )


def encode(
    model: options.Model,
    file: Annotated[str, Argument(metavar="FILE", help="Features: a file, or a data set.")],
    out: Annotated[Path, Option(metavar="FILE", help="The .npy file to write.")],
    method: options.ModelMethod = None,
    label_column: options.LabelColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
) -> None:
    """Encode the rows of a file into packed codes, 8 bits a byte."""
    if out.suffix != ".npy":
        raise InputError(f"encode: --out {out}: codes are saved as .npy; name it so.")
    import numpy as np

    from streamhash.storage import whole_file

    hasher = options.load_model(model, method)
    columns = options.file_columns(
        label=label_column, vector=vector_column, features=feature_columns, ignore=ignore_columns
    )
    codes = _encode(hasher, _read(file, columns).vectors)
    with whole_file(out) as temporary, temporary.open("wb") as written:
        np.save(written, codes)
    typer.echo(f"{len(codes):,} codes of {hasher.n_bits} bits; saved in {out}.")


def search(
    model: options.Model,
    database: Annotated[str, Argument(metavar="DATABASE", help="Codes or features to search in.")],
    queries: Annotated[str, Argument(metavar="QUERIES", help="Codes or features to search for.")],
    k: options.Nearest = 10,
    fields: options.Fields = None,
    method: options.ModelMethod = None,
    label_column: options.LabelColumn = None,
    id_column: options.IdColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
    as_json: options.Json = False,
) -> None:
    """Find the nearest items of each query by Hamming distance.

    Items and queries are named by their ids, or else by their row in the file, from 0. Codes are
    .npy files of encode; any other file holds features and is encoded first.
    """
    from streamhash import HammingIndex

    hasher = options.load_model(model, method)
    columns = options.file_columns(
        ids=id_column,
        label=label_column,
        vector=vector_column,
        features=feature_columns,
        ignore=ignore_columns,
    )
    index = HammingIndex(hasher.n_bits)
    items = _read(database, columns, parts=("id", "vector", *(["metadata"] if fields else [])))
    index.add(items.ids, _codes(hasher, database, items.vectors))
    asked = _read(queries, columns, parts=("id", "vector"))
    codes = _codes(hasher, queries, asked.vectors)
    distances, found = index.search(codes, k=min(k, len(index)))
    answers: list[dict[str, Any]] = [
        {"query": query, "items": near, "distances": far}
        for query, near, far in zip(
            asked.ids or range(len(codes)), found.tolist(), distances.tolist(), strict=True
        )
    ]
    shown = options.split_names(fields or "")
    if shown:
        names = items.ids or range(len(index))
        metadata = dict(zip(names, items.metadata or [None] * len(index), strict=True))
        if shown == ["*"]:
            shown = sorted({name for each in metadata.values() for name in each or ()})
        options.check_fields("search", shown, metadata.values())
        for answer in answers:
            near = [metadata[name] for name in answer["items"]]
            answer |= {name: [(each or {}).get(name) for each in near] for name in shown}
    console.print_answers(answers, ("item", "distance", *shown), as_json=as_json)


def evaluate(
    model: options.Model,
    database: Annotated[str, Option(metavar="FILE", help="Features to search in, with labels.")],
    queries: Annotated[str, Option(metavar="FILE", help="Features to search for, with labels.")],
    database_labels: Annotated[
        Path | None, Option(metavar="FILE", help="Labels of the database.")
    ] = None,
    query_labels: Annotated[
        Path | None, Option(metavar="FILE", help="Labels of the queries.")
    ] = None,
    method: options.ModelMethod = None,
    label_column: options.LabelColumn = None,
    vector_column: options.VectorColumn = None,
    feature_columns: options.FeatureColumns = None,
    ignore_columns: options.IgnoreColumns = None,
    as_json: options.Json = False,
) -> None:
    """Measure a model on files with labels.

    Means over the queries and over the classes, and the worst classes.
    AUC is a mean over the stream: streamhash bench measures it.
    """
    from streamhash import evaluate
    from streamhash.metrics import evaluate_by_class

    hasher = options.load_model(model, method)

    columns = options.file_columns(
        label=label_column, vector=vector_column, features=feature_columns, ignore=ignore_columns
    )

    def encoded(name: str, labels: Path | None, option: str) -> "tuple[NDArray[Any], NDArray[Any]]":
        read = _read(name, columns if labels is None else columns._replace(label=None), labels)
        if read.labels is None:
            raise InputError(
                f"evaluate: {name} has no labels; pass {option} FILE or --label-column NAME."
            )
        return _encode(hasher, read.vectors), read.labels

    asked = encoded(queries, query_labels, "--query-labels")
    searched = encoded(database, database_labels, "--database-labels")
    metrics, classes = evaluate(*asked, *searched), evaluate_by_class(*asked, *searched)
    means = {name: _class_mean(classes.values(), name) for name in metrics}
    if as_json:
        by_class = [{"label": label, **values} for label, values in classes.items()]
        console.print_json({**metrics, "class_means": means, "classes": by_class})
        return
    heading = {
        name: name.replace("map", "mAP").replace("precision", "P").replace("@h", "@H")
        for name in metrics
    }
    rows = [(heading[name], f"{metrics[name]:.4f}", f"{means[name]:.4f}") for name in metrics]
    kinds = ("mean over queries", "mean over classes")
    console.print_table(("metric", *kinds), rows, numbers=kinds)
    shown = [name for name in ("map", "precision@h2", "precision@10") if name in metrics]
    worst = sorted(classes.items(), key=lambda found: found[1]["map"])[:WORST_CLASSES]
    typer.echo(f"The worst {len(worst)} of {len(classes)} classes:")
    console.print_table(
        ("class", "queries", *(heading[name] for name in shown)),
        [(label, each["queries"], *(f"{each[n]:.4f}" for n in shown)) for label, each in worst],
        numbers=("queries", *(heading[name] for name in shown)),
    )


def _class_mean(classes: "Iterable[dict[str, float]]", name: str) -> float:
    """Return the mean over the classes for which a metric is defined."""
    values = [each[name] for each in classes if each[name] == each[name]]
    return sum(values) / len(values) if values else float("nan")


def _read(
    name: str,
    columns: "Columns",
    labels: Path | None = None,
    parts: tuple[str, ...] = ("vector", "label"),
) -> "Piece":
    """Read features, and what else is asked for, of a file, or of a data set by its name."""
    from streamhash.files import Piece, read_whole
    from streamhash.lab.datasets import is_named, load_data

    if labels is not None and columns.label is not None:
        raise InputError(
            f"--labels {labels} and --label-column {columns.label} both name the labels; pass one "
            "of them."
        )
    if not is_named(name):
        return read_whole(name, labels=labels, columns=columns, parts=parts, place="read_table")
    data = load_data(name, labels=labels, columns=columns)
    return Piece(data.X, labels=data.y)


def _codes(hasher: "OnlineHasher", name: str, X: "NDArray[Any] | None") -> "Codes":
    """Return codes, a ``.npy`` of uint8 as wide as the model's; or encode features."""
    from streamhash.codes import code_bytes

    assert X is not None  # it was asked for
    width = code_bytes(hasher.n_bits)
    is_codes = name.endswith(".npy") and X.dtype == "uint8" and X.shape[1] == width
    return X if is_codes else _encode(hasher, X)


def _encode(hasher: "OnlineHasher", X: "NDArray[Any] | None") -> "Codes":
    """Encode rows piece by piece, so that a mapped file is never in memory as a whole."""
    import numpy as np

    assert X is not None  # it was asked for

    pieces = console.slices_with_progress("encoding", len(X), ROWS_ENCODED_AT_ONCE)
    return np.concatenate([hasher.transform(X[rows]) for rows in pieces])
