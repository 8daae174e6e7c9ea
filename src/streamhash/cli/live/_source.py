"""Where items come from: a file, standard input, or the name of a data set."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from streamhash.errors import InputError

if TYPE_CHECKING:
    from streamhash.files.items import Piece
    from streamhash.live import Collection

__all__ = ["BATCH", "STANDARD_INPUT", "Source", "parse_ids"]

STANDARD_INPUT = "-"
BATCH = 2000  # items, unless --batch says otherwise
FORMS = ("jsonl", "csv", "parquet", "npz", "npy")


class Source(NamedTuple):
    """What the options say of a file of items."""

    name: str
    form: str | None = None
    id_column: str | None = None
    vector_column: str | None = None
    label_column: str | None = None
    metadata_columns: str | None = None
    labels: Path | None = None
    batch: int = BATCH

    @property
    def is_file(self) -> bool:
        """Whether it can be read a second time."""
        return self.name != STANDARD_INPUT

    def pieces(self, items: "Collection", *, with_vectors: bool = True) -> "Iterator[Piece]":
        """Read the items, with ids of the kind that the collection has."""
        import io
        import sys

        from streamhash.cli._values import split_names
        from streamhash.files.items import Columns, read_items

        if self.form is not None and self.form not in FORMS:
            raise InputError(f"--format {self.form}: pass one of {', '.join(FORMS)}.")
        columns = Columns(
            self.id_column,
            self.vector_column,
            self.label_column,
            tuple(split_names(self.metadata_columns or "")),
        )
        form, where = self.form, self.name
        if not self.is_file:
            form = form or "jsonl"
            where = io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", newline="")  # type: ignore[assignment]
        return read_items(
            where,
            form=form,
            columns=columns,
            labels=self.labels,
            id_kind=items.id_kind,
            with_vectors=with_vectors,
            size=self.batch,
        )


def parse_ids(items: "Collection", texts: list[str]) -> list[Any]:
    """Turn what was typed into ids of the kind that the collection has."""
    from streamhash.files.items import ids_from_text

    return ids_from_text(texts, items.id_kind)
