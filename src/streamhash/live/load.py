"""Items and labels of whole files into a collection, batch by batch."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple

from numpy.typing import NDArray

from streamhash.errors import InputError, NotFoundError, StreamhashError
from streamhash.files import Columns, Piece, read_items
from streamhash.live.collection import Collection, Judgement
from streamhash.storable import check_metadata

logger = logging.getLogger(__name__)

BATCH_SIZE = 2000

Source = str | Path | IO[str] | tuple[NDArray[Any], NDArray[Any] | None]
Progress = Callable[[int, int | None], None]  # items so far, and in all if that is known


class Loaded(NamedTuple):
    """How many items came, and how many of them were stored."""

    read: int
    stored: int


def add_from(
    collection: Collection,
    source: Source,
    *,
    format: str | None = None,
    columns: Columns = Columns(),  # noqa: B008  it cannot change
    labels: Path | None = None,
    label_separator: str | None = None,
    first_id: int | None = None,
    existing: str = "refuse",
    batch_size: int = BATCH_SIZE,
    progress: Progress = lambda *_: None,
) -> Loaded:
    """Add the items of a file, ``batch_size`` at a time, each batch in one commit.

    A file is read twice: the first time all of it is checked, so that a file with a fault changes
    nothing. Text that is open, such as standard input, is stored batch by batch as it comes. After
    a crash, the same call with ``existing="skip"`` goes on where it stopped.

    Parameters
    ----------
    source, format, columns, labels, label_separator : as for ``streamhash.files.read_items``; if a
        file has a list of labels, all its labels are lists
    first_id : number items without ids by their row, from this number on
    existing : "refuse", "skip", "replace" or "update"
        Items whose ids are there, as for ``Collection.add``.
    progress : called with the items read so far, and with all of them once that is known

    >>> import io, tempfile
    >>> from streamhash import LSH, Collection
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Collection.create(f"{folder}/items", LSH(8, random_state=0)) as items:
    ...         text = io.StringIO('{"id": "a", "vector": [1, 2]}\\n{"id": "b", "vector": [3, 4]}')
    ...         add_from(items, text, format="jsonl")
    Loaded(read=2, stored=2)
    """

    def batches() -> Iterator[Piece]:
        read = read_items(
            source,
            format=format,
            columns=columns,
            labels=labels,
            label_separator=label_separator,
            id_kind=collection.id_kind,
            size=batch_size,
        )
        return _with_ids(read, first_id, needed=existing != "refuse")

    total, several = None, False
    if isinstance(source, str | Path | tuple):
        total, several = _check_items(batches(), collection, existing, progress)
    read = stored = 0
    try:
        for piece in _with_lists(batches(), several):
            stored += collection.add(
                piece.ids, piece.vectors, piece.labels, metadata=piece.metadata, existing=existing
            )
            read += piece.n
            progress(read, total)
    except StreamhashError as error:
        if not stored:
            raise
        raise type(error)(
            f"{error} The {stored:,} items before are stored; mend it, and add the rest."
        ) from error
    except KeyboardInterrupt:
        logger.warning("%s items are stored; the same again with existing=skip goes on.", stored)
        raise
    collection.catch_up()
    return Loaded(read, stored)


def label_from(
    collection: Collection,
    source: Source,
    *,
    format: str | None = None,
    columns: Columns = Columns(),  # noqa: B008  it cannot change
    label_separator: str | None = None,
    batch_size: int = BATCH_SIZE,
    progress: Progress = lambda *_: None,
) -> int:
    """Label items by a file of ids and labels; return how many.

    A file is checked as a whole before anything is stored; open text is stored as it comes.
    """

    def batches() -> Iterator[Piece]:
        for piece in read_items(
            source,
            format=format,
            columns=columns,
            label_separator=label_separator,
            id_kind=collection.id_kind,
            with_vectors=False,
            with_metadata=False,
            size=batch_size,
        ):
            _check_labels(piece, collection, source)
            yield piece

    total, several = None, False
    if isinstance(source, str | Path | tuple):
        found = [(piece.n, _has_lists(piece)) for piece in batches()]
        total, several = sum(n for n, _ in found), any(lists for _, lists in found)
    n = 0
    for piece in _with_lists(batches(), several):
        collection.label(piece.ids, piece.labels)
        n += piece.n
        progress(n, total)
    return n


def metadata_from(
    collection: Collection,
    source: Source,
    *,
    format: str | None = None,
    columns: Columns = Columns(),  # noqa: B008  it cannot change
    batch_size: int = BATCH_SIZE,
    progress: Progress = lambda *_: None,
) -> int:
    """Give the items of a file other metadata, as ``set_metadata`` does; return how many.

    The file is read as by ``label_from``: all of it is checked first.
    """

    def batches() -> Iterator[Piece]:
        for piece in read_items(
            source,
            format=format,
            columns=columns,
            id_kind=collection.id_kind,
            with_vectors=False,
            size=batch_size,
        ):
            _check_metadata(piece, collection, source)
            yield piece

    total, n = None, 0
    if isinstance(source, str | Path | tuple):
        total = sum(piece.n for piece in batches())
    for piece in batches():
        collection.set_metadata(piece.ids, piece.metadata)
        n += piece.n
        progress(n, total)
    return n


def feedback_from(
    collection: Collection,
    source: str | Path | IO[str],
    *,
    batch_size: int = BATCH_SIZE,
    progress: Progress = lambda *_: None,
) -> int:
    """Store the judgements of JSON lines, as ``export_feedback`` writes them; return how many.

    A line has ``id``, ``good`` (true if left out) and either ``query_id`` or ``query``, a vector. A
    file is checked as a whole first, so that a faulty one changes nothing; text that is open, such
    as standard input, is stored batch by batch as it comes.
    """
    total = None
    if isinstance(source, str | Path):
        with Path(source).open(encoding="utf-8-sig") as file:
            total = sum(
                _check_judgements(each, collection) for each in _judgements(file, batch_size)
            )
        with Path(source).open(encoding="utf-8-sig") as file:
            return _store_judgements(collection, file, batch_size, total, progress)
    return _store_judgements(collection, source, batch_size, total, progress)


def _store_judgements(
    collection: Collection, lines: IO[str], size: int, total: int | None, progress: Progress
) -> int:
    n = 0
    for piece in _judgements(lines, size):
        _check_judgements(piece, collection)
        # Those that follow each other in one way are one call.
        for is_item, run in groupby(piece, lambda each: each.query is None):
            judged = [*run]
            name = "query_id" if is_item else "query"
            asked = [each.query_id if is_item else each.query for each in judged]
            ids, good = [each.id for each in judged], [each.good for each in judged]
            collection.feedback(**{name: asked}, id=ids, good=good)
        n += len(piece)
        progress(n, total)
    return n


def _judgements(lines: IO[str], size: int) -> Iterator[list[Judgement]]:
    piece: list[Judgement] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            said = json.loads(line)
            known = {"good": True, "query_id": None, "query": None, **said}
            piece.append(Judgement(**known))
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(
                f"feedback: line {number} is no judgement ({error}); pass JSON such as "
                '{"id": 5, "query_id": 7, "good": true}.'
            ) from error
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece


def _check_judgements(piece: list[Judgement], collection: Collection) -> int:
    for is_item, run in groupby(piece, lambda each: each.query is None):
        judged = [*run]
        asked = [each.query_id if is_item else each.query for each in judged]
        collection.check_feedback(
            **{"query_id" if is_item else "query": asked},
            id=[each.id for each in judged],
            good=[each.good for each in judged],
        )
    return len(piece)


def _check_metadata(piece: Piece, collection: Collection, source: Source) -> None:
    if piece.ids is None or piece.metadata is None:
        place = source if isinstance(source, str | Path) else "the text"
        part = "ids" if piece.ids is None else "metadata"
        raise InputError(f"set-metadata: {place} has no {part}; name their columns.")
    unknown = next((each for each in piece.ids if each not in collection), None)
    if unknown is not None:
        raise NotFoundError(
            f"set-metadata: id {unknown!r} is not in this collection; add it first."
        )
    check_metadata(piece.metadata, len(piece.ids), place="set-metadata")


def _has_lists(piece: Piece) -> bool:
    return any(isinstance(label, list) for label in piece.labels or ())


def _with_lists(pieces: Iterable[Piece], several: bool) -> Iterator[Piece]:
    """Make every label of a file a list if one is: the first tells what a collection has."""
    for piece in pieces:
        labels = piece.labels
        if several and labels is not None:
            labels = [
                label if label is None or isinstance(label, list) else [label] for label in labels
            ]
        yield piece._replace(labels=labels)


def _with_ids(pieces: Iterable[Piece], first: int | None, *, needed: bool) -> Iterator[Piece]:
    for piece in pieces:
        if piece.ids is not None and first is not None:
            raise InputError("add: the items have ids of their own; leave out first_id.")
        if piece.ids is None and first is None and needed:
            raise InputError(
                "add: the items have no ids, so nobody can tell which are there already; pass "
                "first_id (--first-id N) as when they were added first, or leave out existing."
            )
        if first is None:
            yield piece
        else:
            yield piece._replace(ids=range(first, first + piece.n))
            first += piece.n


def _check_items(
    pieces: Iterable[Piece], collection: Collection, existing: str, progress: Progress
) -> tuple[int, bool]:
    """Refuse a file before anything of it is stored; tell its items, and if they have lists."""
    seen: set[Any] = set()
    widths: set[int] = set()
    n, several = 0, False
    for piece in pieces:
        collection.check(
            piece.ids, piece.vectors, piece.labels, metadata=piece.metadata, existing=existing
        )
        if piece.vectors is not None:
            widths.add(piece.vectors.shape[1])
        if len(widths) > 1:
            first, second = sorted(widths)
            raise InputError(
                f"add: vectors of {first} and of {second} numbers came; pass one length."
            )
        for each in piece.ids or ():
            if existing == "refuse" and each in seen:
                raise InputError(f"add: id {each!r} came twice; pass each id once.")
            if seen and isinstance(each, str) != isinstance(next(iter(seen)), str):
                raise InputError("add: ids are whole numbers and strings; pass one kind.")
            seen.add(each)
        n, several = n + piece.n, several or _has_lists(piece)
        progress(n, None)
    return n, several


def _check_labels(piece: Piece, collection: Collection, source: Source) -> None:
    if piece.ids is None or piece.labels is None:
        part = "id" if piece.ids is None else "label"
        place = source if isinstance(source, str | Path) else "the text"
        raise InputError(
            f"label: {place} has no {part}s; name their column (--{part}-column NAME)."
        )
    collection.check_labels(piece.labels, len(piece.ids), place="label")
    unknown = next((each for each in piece.ids if each not in collection), None)
    if unknown is not None:
        raise NotFoundError(f"label: id {unknown!r} is not in this collection; add it first.")
