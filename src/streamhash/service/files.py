"""The addresses that take items as a file, and give them as one."""

import csv
import json
import logging
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Self

from fastapi import FastAPI, Query
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamhash.errors import FileError, InputError
from streamhash.files import Columns
from streamhash.live import Collection, add_from
from streamhash.service import models
from streamhash.service.answers import Json
from streamhash.service.description import BINARY, Responses, errors
from streamhash.service.routing import Here

FORMATS = ("jsonl", "csv", "parquet", "npy", "npz")  # of files that are taken
PIECE = 2**16  # bytes of a file that are sent at once
TYPES = {
    "jsonl": "application/jsonl",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
FILE_BODY = {"requestBody": {"content": {"application/octet-stream": {"schema": BINARY}}}}

Format = Literal["jsonl", "csv", "parquet", "npy", "npz"]
Written = Literal["jsonl", "csv", "parquet"]
Where = Annotated[str | None, Query(max_length=10_000)]
Name = Annotated[str | None, Query(max_length=1000)]


def add_files(app: FastAPI, prefix: str) -> None:
    """Add these addresses, which begin with ``prefix``."""
    written: Responses = {200: {"content": {kind: {"schema": BINARY} for kind in TYPES.values()}}}

    @app.post(
        f"{prefix}/files",
        response_model=models.FileAdded,
        responses=errors(400, 403, 409),
        openapi_extra=FILE_BODY,
    )
    async def add_file(
        here: Here,
        request: Request,
        format: Format,
        id_column: Name = None,
        vector_column: Name = None,
        label_column: Name = None,
        existing: Literal["refuse", "skip", "replace"] = "refuse",
    ) -> Response:
        """Add the items of a file, read as by `streamhash live add`; a fault changes nothing."""
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind != "application/octet-stream":  # which pages of other sites cannot send
            raise HTTPException(415, "send Content-Type: application/octet-stream.")
        columns = Columns(id=id_column, vector=vector_column, label=label_column)
        with tempfile.TemporaryDirectory(prefix="streamhash-") as folder:
            path = Path(folder) / f"items.{format}"
            with path.open("wb") as file:
                async for part in request.stream():
                    file.write(part)

            def add() -> models.FileAdded:
                with _Columns(str(path)) as taken:
                    loaded = add_from(here.collection, path, columns=columns, existing=existing)
                return models.FileAdded(read=loaded.read, added=loaded.stored, columns=taken.text)

            try:
                added = await here.changes.run_for(math.inf, add)  # nobody knows how many
            except (InputError, FileError) as error:
                text = str(error).replace(str(path), "the file")
                if isinstance(error, FileError):  # it is not the service's own
                    raise InputError(text) from None
                error.args = (text,)
                raise
        here.outdate_report()
        return Json(added.model_dump())

    @app.get(
        f"{prefix}/export",
        response_class=Response,
        responses=written | errors(400, 409),
    )
    async def export(
        here: Here, format: Written = "jsonl", where: Where = None, vectors: bool = False
    ) -> Response:
        """Return all items, or those a filter is true of, as a file."""
        folder = tempfile.TemporaryDirectory(prefix="streamhash-")
        path = Path(folder.name) / f"{here.name}.{format}"
        try:
            await here.reads.run(_write, here.collection, path, vectors, where)
        except BaseException:
            folder.cleanup()
            raise
        name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in here.name)
        headers = {"Content-Disposition": f'attachment; filename="{name}.{format}"'}
        return _File(path, folder, here.reads.run, media_type=TYPES[format], headers=headers)


class _Columns(logging.Handler):
    """Hears which columns of a file are what, as the reader says it."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.INFO)
        self._prefix = f"{name}: "
        self.text: str | None = None
        self._logger = logging.getLogger("streamhash.files")

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message.startswith(self._prefix):  # other files may be read at the same time
            self.text = message.removeprefix(self._prefix)

    def __enter__(self) -> Self:
        if not self._logger.isEnabledFor(logging.INFO):
            self._logger.setLevel(logging.INFO)  # what is written down is bounded by its handlers
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)


class _File(Response):
    """A file of its own folder, sent piece by piece; then both are gone."""

    def __init__(
        self,
        path: Path,
        folder: "tempfile.TemporaryDirectory[str]",
        run: Callable[..., Any],
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._path, self._folder, self._run = path, folder, run
        self.headers["Content-Length"] = str(path.stat().st_size)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        try:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            with self._path.open("rb") as file:
                while part := await self._run(file.read, PIECE):
                    body = {"type": "http.response.body", "body": part, "more_body": True}
                    await send(body)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._folder.cleanup()


def _write(collection: Collection, path: Path, vectors: bool, where: str | None) -> None:
    if path.suffix == ".parquet":
        collection.export(path, vectors=vectors, where=where)
        return
    write = _write_lines if path.suffix == ".jsonl" else _write_table
    with path.open("w", encoding="utf-8", newline="") as file:
        write(_items(collection, vectors, where), file)


def _items(collection: Collection, vectors: bool, where: str | None) -> Iterator[dict[str, Any]]:
    for batch in collection.scan(vectors=vectors, where=where):
        rows = batch.vectors.tolist() if vectors and batch.vectors is not None else None
        for i, (name, label, metadata) in enumerate(
            zip(batch.ids.tolist(), batch.labels, batch.metadata, strict=True)
        ):
            vector = {} if rows is None else {"vector": rows[i]}
            facts = metadata if isinstance(metadata, dict) else {}
            yield {"id": name, "label": label, **vector, "metadata": facts}


def _write_lines(items: Iterator[dict[str, Any]], file: IO[str]) -> None:
    """Write an object an item, with its metadata's fields beside id, label and vector."""
    for item in items:
        own = {name: value for name, value in item.items() if name != "metadata"}
        if own["label"] is None:
            del own["label"]
        file.write(json.dumps({**item["metadata"], **own}, ensure_ascii=False) + "\n")


def _write_table(items: Iterator[dict[str, Any]], file: IO[str]) -> None:
    """Write a row an item; columns are the fields that any item has."""
    kept = [*items]
    names = dict.fromkeys(name for item in kept for name in item["metadata"])
    writer = csv.writer(file)
    writer.writerow(["id", "label", *names, *(["vector"] if kept and "vector" in kept[0] else [])])
    for item in kept:
        facts = [_cell(item["metadata"].get(name)) for name in names]
        vector = [json.dumps(item["vector"])] if "vector" in item else []
        writer.writerow([_cell(item["id"]), _cell(item["label"]), *facts, *vector])


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict | tuple) else value
