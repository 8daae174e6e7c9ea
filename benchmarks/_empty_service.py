"""An empty FastAPI application beside the service: the same bodies, the same answers, no search.

Written as FastAPI's tutorial does it: a model of the body, whose JSON FastAPI reads and pydantic
checks, and a route. What is answered is there before: as bytes (``/ready-made``), the least that
any FastAPI route can do, or as plain values that FastAPI writes (``/plain``).

    python benchmarks/_empty_service.py ANSWER_FILE     prints the port that it listens at
"""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel


class Body(BaseModel):
    """What a search asks for."""

    vectors: list[list[float]]
    k: int = 10
    metadata: bool = True


def create_app(answer: bytes) -> FastAPI:
    app, values = FastAPI(), json.loads(answer)

    @app.post("/ready-made")
    async def ready_made(body: Body) -> Response:  # noqa: ARG001
        return Response(answer, media_type="application/json")

    @app.post("/plain")
    async def plain(body: Body) -> Any:  # noqa: ARG001
        return values

    return app


def main() -> None:
    app = create_app(Path(sys.argv[1]).read_bytes())
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # As streamhash.service.server has it, beside what bounds connections.
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
    )
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main()
