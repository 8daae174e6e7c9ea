"""Running the service: the socket, the process's signals, threads and memory."""

import ctypes
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike, fspath
from pathlib import Path, PurePath

import uvicorn

from streamhash.errors import InputError
from streamhash.live import Collection
from streamhash.parameters import Choice, check_parameters
from streamhash.service import logs
from streamhash.service.app import create_app
from streamhash.service.guard import LOOPBACK, Limits, Tokens
from streamhash.service.protocol import bounded_protocol

logger = logging.getLogger(__name__)

M_MMAP_THRESHOLD = -3  # of glibc's mallopt
# That a thread works before one that waits has its turn; Python's own is 0.005. A search in the
# loop lets go of the interpreter some 15 times, and may wait for a turn of others each time.
TURN_SECONDS = 0.0002


def serve(
    collection: Collection | str | PathLike[str],
    *more: Collection | str | PathLike[str],
    host: str = "127.0.0.1",
    port: int = 8000,
    read_only: bool = False,
    mmap: bool | str | PathLike[str] = False,
    tokens: Tokens | None = None,
    allowed_hosts: Iterable[str] = (),
    limits: Limits | None = None,
    log_level: str | None = None,
    log_format: str = "text",
    started: Callable[[str, int], None] | None = None,
) -> None:
    """Serve collections over HTTP until SIGTERM or Ctrl-C.

    Requests that run then are answered first, and all that was acknowledged is stored.

    Parameters
    ----------
    collection, more : Collection or path
        Each one that is open, or where one is; or, once, a folder of collections: in that, some may
        be created and dropped over HTTP. They go by the names of their folders.
    host : str
        Where to listen; any other address than this machine's own needs a token.
    port : int
        0 takes a free one.
    read_only : bool
        Open the path to read only, beside another process that writes.
    mmap : bool or path
        Have codes, ids and labels in mapped files, as ``Collection.open`` does.
    tokens : Tokens
        What opens the service; by default it is open.
    allowed_hosts : names
        Other names that it goes by, behind a proxy.
    limits : Limits
    log_level : "debug", "info", "warning", "error" or None
        From which level on to write to standard error, a line a request at "info"; None leaves it
        to the program's own settings of ``logging``.
    log_format : "text" or "json"
    started : function
        Called with the service's address and the number of items when it answers.
    """
    tokens, limits = tokens or Tokens(), limits or Limits()
    if host not in LOOPBACK and not tokens:
        raise InputError(
            f"serve: --host {host} lets other machines in, and no token is set; put one into a "
            "file for --write-token-file (or --read-token-file), or into STREAMHASH_WRITE_TOKEN."
        )
    check_parameters(
        "serve",
        {"log_level": log_level, "log_format": log_format},
        {"log_level": Choice(None, *logs.LEVELS), "log_format": Choice(*logs.FORMATS)},
    )
    if log_level is not None:
        logs.set_up(log_level, log_format)
    with ExitStack() as opened, _listen(host, port) as listening:
        collections, folder = _open([collection, *more], opened, read_only, mmap)
        name, actual = listening.getsockname()[:2]
        address = f"http://{f'[{name}]' if ':' in name else name}:{actual}/"
        app = create_app(
            collections,
            folder=None if read_only else folder,
            tokens=tokens,
            host=host,
            allowed_hosts=allowed_hosts,
            limits=limits,
        )
        n_items = sum(map(len, collections.values()))
        config = uvicorn.Config(
            app,
            http=bounded_protocol(limits),
            ws="none",
            lifespan="on",
            log_config=None,
            log_level=None if log_level else "warning",
            access_log=False,  # the guard's own
            server_header=False,
            proxy_headers=False,  # nothing here depends on who asks
            timeout_keep_alive=75,  # seconds of a connection without a request
            timeout_graceful_shutdown=60,  # seconds that running requests have to end
        )
        return_freed_memory()
        with _quiet_signals(), _short_turns(), _short_collections():
            _Server(config, lambda: started and started(address, n_items)).run([listening])


def _open(
    given: list[Collection | str | PathLike[str]],
    opened: ExitStack,
    read_only: bool,
    mmap: bool | str | PathLike[str],
) -> tuple[dict[str, Collection], Path | None]:
    """Open collections, until ``opened`` is closed; return them, and the folder of them if any."""
    collections: dict[str, Collection] = {}
    folder: Path | None = None

    def put(address: str, collection: Collection) -> None:
        name = PurePath(address).name
        if name in collections:
            raise InputError(
                f"serve: two collections are called {name!r}, {collections[name].address} and "
                f"{address}; rename the folder of one."
            )
        collections[name] = collection

    def open_one(address: str) -> None:
        collection = Collection.open(address, read_only=read_only, background=True, mmap=mmap)
        put(address, opened.enter_context(collection))

    for each in given:
        if isinstance(each, Collection):
            put(each.address, each)
        elif Collection.is_at(each) or not Path(each).is_dir():
            open_one(fspath(each))  # or there is an error
        elif folder is not None:
            raise InputError(
                f"serve: {folder} and {fspath(each)} are both folders of collections; one can be "
                "served, beside single collections."
            )
        else:
            folder = Path(each)
            for path in sorted(folder.iterdir()):
                if Collection.is_at(path):
                    open_one(fspath(path))
                elif not path.name.startswith("."):
                    logger.warning("serve: %s is no collection, and is passed over.", path)
    return collections, folder


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._call_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._call_started()
        _tell_systemd("READY=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _tell_systemd("STOPPING=1")
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # every second
            for connection in [*self.server_state.connections]:
                connection.drop_slow_reader()  # type: ignore[union-attr]
        return await super().on_tick(counter)


def _tell_systemd(state: str) -> None:
    """Tell systemd, if it has started this process with ``Type=notify``."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # a name, and no file
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(state.encode(), address)
    except OSError as error:
        logger.warning("serve: systemd could not be told %s: %s", state, error)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"serve: cannot listen at {host} port {port} ({reason}); choose another --port."
        ) from error
    # Connections inherit it. asyncio sets it only where a socket names its protocol, which those of
    # create_server do not; without it, answers in two parts wait 40 ms for an acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def return_freed_memory() -> None:
    """Let large arrays go back to the system as soon as they are freed.

    glibc does so at first, but keeps ever larger ones the more of them it has seen. Every refresh
    then leaves other gaps behind: after 15 of them, 100,000 items took 667 MB instead of 430.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:  # None where the C library is another one
            mallopt(M_MMAP_THRESHOLD, 2**20)


@contextmanager
def _quiet_signals() -> Iterator[None]:
    """Let uvicorn end by a signal without ending the process: the collection is still open.

    It raises what it has caught once more, at the end; so that is caught here.
    """
    names = (signal.SIGTERM, signal.SIGINT)
    before = {name: signal.signal(name, lambda *_: None) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@contextmanager
def _short_turns() -> Iterator[None]:
    """Let threads take turns more often: one that writes a long answer holds up the loop less."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def _short_collections() -> Iterator[None]:
    """Let Python look for garbage among what is made from now on only.

    Else it goes now and then through all modules and their functions, some 200,000 objects, and no
    thread does anything meanwhile: 100 ms and more.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
