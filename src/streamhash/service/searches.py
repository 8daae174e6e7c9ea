"""The addresses that search a collection, encode, predict and compare."""

from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, Query
from numpy.typing import NDArray
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from streamhash.errors import InputError
from streamhash.live.search import PLAIN
from streamhash.service import models
from streamhash.service.answers import Json, write_json
from streamhash.service.batching import Found
from streamhash.service.description import BINARY, content, errors
from streamhash.service.frames import TYPE, pack_frame
from streamhash.service.guard import Limits, header
from streamhash.service.routing import Here
from streamhash.service.served import Served
from streamhash.storable import check_vectors

NUMBERS_AT_ONCE = 100_000  # that are checked at once; more of them in a thread
NEIGHBOURS_AT_ONCE = 1_000  # that are written at once; more of them in a thread


async def _search(here: Served, body: models.SearchBody, *, metadata: bool, alone: bool) -> Found:
    """Search for vectors, or for those of stored items."""
    if (body.vectors is None) == (body.ids is None):
        raise HTTPException(422, "pass either vectors or ids.")
    k, number, own, limits = int(body.k), body.model, None, here.limits
    asked = {name: getattr(body, name) for name in models.OPTIONS & body.model_fields_set}
    options = here.collection.search_options(place="search", **asked)
    if body.vectors is not None:
        limits.check(len(body.vectors), k, rescore=options.rescore, what="vectors")
        width = here.collection.n_features
        check = partial(check_vectors, body.vectors, width, "float32", place="search: vectors")
        few = isinstance(body.vectors, np.ndarray) and body.vectors.size <= NUMBERS_AT_ONCE
        rows = check() if few else await here.reads.run(check)
    else:
        limits.check(len(body.ids or []), k, rescore=options.rescore)
        own, rows = await here.reads.run(here.collection.vectors_of, body.ids)
    if number is not None and number != here.collection.model_number:
        if options != PLAIN:
            raise InputError(f"search: model={number}, an older one, takes no other options.")
        search = here.comparison.search
        return await here.heavy.run(search, number, rows, own, k, metadata=metadata)
    wanted = k if own is None else k + 1
    found = await here.searches.search(rows, wanted, options, metadata=metadata, alone=alone)
    if own is None and options.min_probability is None:
        return found
    answer = found.answer if own is None else found.answer.without(own)
    answer = answer.at_least(options.min_probability, place="search")
    return found._replace(answer=answer, batch=None, start=0)


def _raw_found(found: Found) -> Response:
    answer, ids = found.answer, found.answer.ids()
    shape = [*answer.keys.shape]
    head: dict[str, Any] = {"model": answer.model, "sample": found.sample, "shape": shape}
    head |= {"code_bytes": answer.codes.shape[1], "labels": answer.labels()}
    arrays: list[NDArray[Any]] = [answer.codes, answer.distances]
    if answer.distances.dtype != np.int32:  # before there is a model
        head["distances"] = str(answer.distances.dtype)
    if ids.dtype == object:  # strings are not of one length
        head["ids"] = ids.tolist()
    else:
        arrays.append(ids)
    more = {"scores": answer.scores, "probabilities": answer.probabilities}
    head["more"] = [name for name, values in more.items() if values is not None]
    arrays += [values for values in more.values() if values is not None]
    return Response(pack_frame(head, *arrays), media_type=TYPE)


def add_searches(app: FastAPI, prefix: str, limits: Limits) -> None:
    """Add these addresses, which begin with ``prefix``."""
    faults, raw_answer = errors(400, 404, 409), content(TYPE, BINARY)

    @app.post(f"{prefix}/encode", response_model=models.Encoded, responses=raw_answer | faults)
    async def encode(here: Here, body: models.EncodeBody, request: Request) -> Response:
        """Return the codes of vectors by the model that serves."""
        limits.check(len(body.vectors), what="vectors")
        raw = TYPE in request.headers.get("accept", "")

        def answer() -> Response:
            number = here.collection.model_number
            codes = here.collection.model(number).transform(body.vectors)
            if raw:
                head = {"model": number, "shape": [*codes.shape]}
                return Response(pack_frame(head, codes), media_type=TYPE)
            texts = [code.tobytes().hex() for code in codes]
            return Json(here.write({"model": number, "codes": texts}))

        return await here.reads.run(answer)

    @app.post(f"{prefix}/search", response_model=models.Found, responses=raw_answer | faults)
    async def search(here: Here, body: models.SearchBody, request: Request) -> Response:
        """Find the nearest items of vectors, or of stored items."""
        raw = TYPE in header(request.scope, b"accept")
        is_alone = request.scope.get("is_alone")  # of the server; others may not tell
        alone = is_alone is not None and is_alone()
        found = await _search(here, body, metadata=body.metadata and not raw, alone=alone)

        def answer() -> Response:
            if raw:
                return _raw_found(found)
            text = found.text()
            if text is None or len(text) > limits.answer:
                facts = {"model": found.answer.model, "sample": found.sample}
                whole = {**facts, "codes": found.codes(), "results": found.results()}
                text = write_json(whole, limits.answer, levels=3)
            return Json(text)

        few = found.answer.keys.size <= NEIGHBOURS_AT_ONCE
        return answer() if few else await here.answers.run(answer)

    @app.post(f"{prefix}/predict", response_model=models.Predicted, responses=faults)
    async def predict(here: Here, body: models.PredictBody) -> Response:
        """Predict the labels of vectors by a vote of their neighbours."""
        limits.check(len(body.vectors), int(body.k), what="vectors")

        def write() -> bytearray:
            return here.write(here.collection.predict(body.vectors, int(body.k))._asdict())

        return Json(await here.reads.run(write))

    @app.post(f"{prefix}/compare", response_model=models.Comparison, responses=faults)
    async def compare(here: Here, body: models.CompareBody) -> Response:
        """Answer the same queries by two models or methods, on a sample of the items."""
        n = int(body.n_queries) if body.queries is None else len(body.queries)
        limits.check(n, int(body.k), what="queries")
        compare = here.comparison.compare
        return Json(await here.heavy.run(lambda: here.write(compare(body), 4)))

    @app.get(f"{prefix}/quality", response_model=models.Quality, responses=faults)
    async def quality(
        here: Here,
        k: Annotated[int, Query(ge=1, le=limits.k)] = 10,
        seed: Annotated[int, Query(ge=0, lt=2**32)] = 0,
    ) -> Response:
        """Tell which classes are found badly, by queries of each on a sample of the items."""
        by_class = here.comparison.by_class
        return Json(await here.heavy.run(lambda: here.write(by_class(k, seed))))
