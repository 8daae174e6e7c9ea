"""Verbs for files of one's own: ``fit``, ``encode``, ``search``, ``evaluate``; and ``methods``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from streamhash.cli import _console as console, _options as options
from streamhash.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from streamhash import OnlineHasher
    from streamhash.codes import Codes

ROWS_LEARNED_AT_ONCE = 2000  # about: between two steps of the progress bar
ROWS_ENCODED_AT_ONCE = 8192


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
    changes: options.Changes = None,
    labels: options.Labels = None,
    label_column: options.LabelColumn = None,
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
    sources = map(context.get_parameter_source, ("method", "bits", "seed", "changes"))
    if go_on and any(source is not None and source.name != "DEFAULT" for source in sources):
        raise InputError(
            "fit: --continue takes method, bits, seed and parameters from the model; leave out "
            "--method, --bits, --seed and --set."
        )
    from streamhash import load
    from streamhash.lab import make_hasher

    own = options.parse_changes(changes)
    hasher = load(model) if go_on else make_hasher(method, bits, seed, changes=own)
    X, y = _read(file, labels, label_column)
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
    label_column: options.LabelColumn = None,
) -> None:
    """Encode the rows of a file into packed codes, 8 bits a byte."""
    if out.suffix != ".npy":
        raise InputError(f"encode: --out {out}: codes are saved as .npy; name it so.")
    import numpy as np

    from streamhash import load
    from streamhash.storage import whole_file

    hasher = load(model)
    X, _ = _read(file, label_column=label_column)
    codes = _encode(hasher, X)
    with whole_file(out) as temporary, temporary.open("wb") as written:
        np.save(written, codes)
    typer.echo(f"{len(codes):,} codes of {hasher.n_bits} bits; saved in {out}.")


def search(
    model: options.Model,
    database: Annotated[str, Argument(metavar="DATABASE", help="Codes or features to search in.")],
    queries: Annotated[str, Argument(metavar="QUERIES", help="Codes or features to search for.")],
    k: options.Nearest = 10,
    label_column: options.LabelColumn = None,
    as_json: options.Json = False,
) -> None:
    """Find the nearest items of each query by Hamming distance.

    Items and queries are named by their row in the file, from 0. Codes are .npy files of encode;
    any other file holds features and is encoded first.
    """
    from streamhash import HammingIndex, load

    hasher = load(model)
    index = HammingIndex(hasher.n_bits)
    index.add(None, _read_codes(hasher, database, label_column))
    codes = _read_codes(hasher, queries, label_column)
    distances, items = index.search(codes, k=min(k, len(index)))
    answers = [
        {"query": query, "items": near, "distances": far}
        for query, (near, far) in enumerate(zip(items.tolist(), distances.tolist(), strict=True))
    ]
    console.print_answers(answers, ("item", "distance"), as_json=as_json)


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
    label_column: options.LabelColumn = None,
    as_json: options.Json = False,
) -> None:
    """Measure a model on files with labels.

    AUC is a mean over the stream: streamhash bench measures it.
    """
    from streamhash import evaluate, load

    hasher = load(model)

    def encoded(name: str, labels: Path | None, option: str) -> "tuple[NDArray[Any], NDArray[Any]]":
        X, y = _read(name, labels, label_column if labels is None else None)
        if y is None:
            raise InputError(
                f"evaluate: {name} has no labels; pass {option} FILE or --label-column NAME."
            )
        return _encode(hasher, X), y

    metrics = evaluate(
        *encoded(queries, query_labels, "--query-labels"),
        *encoded(database, database_labels, "--database-labels"),
    )
    if as_json:
        console.print_json(metrics)
        return
    rows = []
    for name, value in metrics.items():
        heading = name.replace("map", "mAP").replace("precision", "P").replace("@h", "@H")
        rows.append((heading, f"{value:.4f}"))
    console.print_table(("metric", "value"), rows, numbers=("value",))


def _read(
    name: str, labels: Path | None = None, label_column: str | None = None
) -> "tuple[NDArray[Any], NDArray[Any] | None]":
    """Read features and labels of a file, or of a data set by its name."""
    from streamhash.files import read_table
    from streamhash.lab.datasets import is_named, load_data

    if not is_named(name):
        return read_table(name, labels=labels, column=label_column)
    data = load_data(name, labels=labels, column=label_column)
    return data.X, data.y


def _read_codes(hasher: "OnlineHasher", name: str, label_column: str | None) -> "Codes":
    """Read codes, a ``.npy`` of uint8 as wide as the model's; or read features and encode them."""
    from streamhash.codes import code_bytes

    X, _ = _read(name, label_column=label_column)
    width = code_bytes(hasher.n_bits)
    is_codes = name.endswith(".npy") and X.dtype == "uint8" and X.shape[1] == width
    return X if is_codes else _encode(hasher, X)


def _encode(hasher: "OnlineHasher", X: "NDArray[Any]") -> "Codes":
    """Encode rows piece by piece, so that a mapped file is never in memory as a whole."""
    import numpy as np

    pieces = console.slices_with_progress("encoding", len(X), ROWS_ENCODED_AT_ONCE)
    return np.concatenate([hasher.transform(X[rows]) for rows in pieces])
