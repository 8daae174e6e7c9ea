"""Milvus as the backend of a collection's codes, with a real server: over TLS, and with a token."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from itertools import count, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis.stateful import run_state_machine_as_test

from answer_twin import TwinItem, assert_found, find
from filter_machine import FilterMachine
from fuzzing import machine_settings
from streamhash import LSH, SDOH
from streamhash.errors import InputError, UnreachableError
from streamhash.live import Collection, view
from streamhash.live.backends.milvus import ROWS_RETURNED, Server
from streamhash.live.export import export_to_milvus
from streamhash.search import HammingIndex

pytestmark = pytest.mark.slow

TOKEN = "root:Milvus"  # of every new server
LEASE = 20  # seconds after which a killed server is forgotten; longer than tests stop one
FASTER = {  # than the defaults, which are made for clusters
    "common.session.ttl": LEASE,
    "proxy.timeTickInterval": 50,
    "queryCoord.checkInterval": 100,
    "queryCoord.distPullInterval": 50,
}


class MilvusServer:
    """The server of the package milvus, as a process that can be stopped, killed and started."""

    def __init__(self, folder: Path) -> None:
        from milvus import MilvusServer as Runner, MilvusServerConfig

        class Config(MilvusServerConfig):
            def try_bind_port(self, port):
                sock = socket.socket()
                # As the server does: else a port of a server that was killed is busy for a minute.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    sock.bind(("127.0.0.1", port))
                except OSError:
                    return None
                return sock

        self.certificate = folder / "certificate.pem"
        make_certificate(self.certificate, folder / "key.pem")
        security = {
            "authorization_enabled": True,
            "tls_mode": 1,
            "server_pem_path": str(self.certificate),
            "server_key_path": str(folder / "key.pem"),
            "ca_pem_path": str(self.certificate),
        }
        config = Config(data_dir=str(folder / "data"))
        # Its etcd listens at the ports 2379 and 2380 unless a file tells it others.
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        (folder / "etcd.yaml").write_text(
            f"listen-client-urls: {client}\nadvertise-client-urls: {client}\n"
            f"listen-peer-urls: {peer}\ninitial-advertise-peer-urls: {peer}\n"
            f"initial-cluster: default={peer}\n"
        )
        config.template_text = config.template_text.replace(
            "\netcd:\n", f"\netcd:\n  config:\n    path: {folder / 'etcd.yaml'}\n"
        )
        names = [name for name in config.configurable_items if name.endswith("_port")]
        *ports, self.health_port = free_ports(len(names) + 1)
        config.update(**dict(zip(names, ports, strict=True)))
        config.extra_configs.update(FASTER)
        for name, value in security.items():
            config.configurable_items[name][1] = value
        self.runner = Runner(config, wait_for_started=False)
        self.start()

    def start(self) -> None:
        self.runner.webservice_port = self.health_port
        self.runner.start()
        try:
            self.runner.wait_started(timeout=180_000)
        except BaseException:
            self.runner.stop()
            raise
        self.port = self.runner.listen_port

    def send(self, number: int) -> None:
        os.kill(self.runner.server_proc.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.runner.server_proc.wait()
        self.runner.stop()

    def address(self, name: str, **options: object) -> str:
        chosen = {"tls": 1, "token_env": "MILVUS_TEST_TOKEN", "timeout": 20, **options}
        return f"milvus://localhost:{self.port}/{name}?" + "&".join(
            f"{option}={value}" for option, value in chosen.items()
        )

    @property
    def options(self) -> dict[str, str]:
        return {"server_pem_path": str(self.certificate), "server_name": "localhost"}

    def connect(self, name: str, **options: object) -> Server:
        return Server(self.address(name, **options), self.options)


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def make_certificate(certificate, key):
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", key, "-out", certificate, "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    pytest.importorskip("pymilvus", reason="needs the client of Milvus")
    pytest.importorskip("milvus", reason="needs the server of Milvus, of the package milvus")
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, to make a certificate")
    folder = tmp_path_factory.mktemp("milvus")
    os.environ["MILVUS_TEST_TOKEN"] = TOKEN
    try:
        found = MilvusServer(folder)
    except (OSError, RuntimeError) as error:
        pytest.skip(f"the server of Milvus does not start here: {error}")
    yield found
    found.kill()
    shutil.rmtree(folder)


def stream(n, seed, shift=0.0):
    """Items of ten classes; a shift moves the classes, as drift does."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(7).standard_normal((10, 16))
    moved = centres + shift * np.random.default_rng(8).standard_normal((10, 16))
    y = random.integers(10, size=n)
    return (moved[y] + 0.4 * random.standard_normal((n, 16))).astype(np.float32), y


def expected(collection, X, k):
    """Distances and ids by the plain rule: all codes are looked at, what was added first wins."""
    ids = collection.ids
    codes = np.array([item.code for item in collection.get(ids)])
    queries = collection.encode(X)
    distances = np.bitwise_count(queries[:, None] ^ codes[None]).sum(axis=2)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, axis=1), np.array(ids)[order]


def assert_exact(collection, X=None, ks=(1, 10, 100)):
    X = stream(8, seed=99)[0] if X is None else X
    for k in ks:
        distances, ids = collection.search(X, k)
        wanted = expected(collection, X, k)
        np.testing.assert_array_equal(distances, wanted[0])
        np.testing.assert_array_equal(ids, wanted[1])


def wait_until(condition, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come in time"
        time.sleep(0.1)


# --------------------------------------------------------------------------------- the address


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://localhost/x", "it does not name a server"),
        ("milvus://user:secret@localhost/x", "it would keep a secret; name the variable"),
        ("milvus://localhost/two-words", "the name 'two-words' is not of letters, digits and"),
        ("milvus://localhost/x?index=HNSW", "index=HNSW is none of BIN_FLAT, BIN_IVF_FLAT"),
        ("milvus://localhost/x?nlist=0", "nlist=0 is not from 1 to 65536"),
        ("milvus://localhost/x?tls=yes", "tls=yes is none of 0, 1"),
        ("milvus://localhost/x?token=root", "there is no option token"),
    ],
)
def test_a_wrong_address_is_refused_and_nothing_is_made(tmp_path, address, reason):
    with pytest.raises(InputError) as error:
        Collection.create(tmp_path / "c", SDOH(16), backend=address)
    assert str(error.value).startswith(
        f"Collection.create: {address!r} is not an address of Milvus"
    )
    assert reason in str(error.value)
    assert not (tmp_path / "c").exists()


def test_a_token_that_is_not_there_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    with pytest.raises(InputError, match="the environment has no variable NO_SUCH_TOKEN; set it"):
        Collection.create(
            tmp_path / "c", SDOH(16), backend="milvus://localhost:1/x?token_env=NO_SUCH_TOKEN"
        )


def test_a_server_that_is_not_there_is_an_error_at_once(tmp_path):
    pytest.importorskip("pymilvus")
    port = free_ports(1)[0]
    with pytest.raises(UnreachableError, match=f"localhost:{port}/x: Milvus does not answer"):
        Collection.create(
            tmp_path / "c", SDOH(16), backend=f"milvus://localhost:{port}/x?timeout=2"
        )
    assert not (tmp_path / "c").exists()


def test_a_wrong_token_is_refused(tmp_path, server):
    options = {**server.options, "token": "root:wrong"}
    with pytest.raises(UnreachableError, match="token and TLS are right"):
        Collection.create(
            tmp_path / "c", SDOH(16), backend=server.address("denied"), backend_options=options
        )


# -------------------------------------------------------------------------------------- search


def test_exact_search_gives_the_lowest_keys_of_any_number_of_equals(server):
    random, n_bits = np.random.default_rng(0), 12  # that do not fill their bytes
    codes = np.packbits(
        random.integers(2, size=(ROWS_RETURNED + 4000, n_bits), dtype=np.uint8), axis=1
    )
    codes[: ROWS_RETURNED + 3000] = codes[0]  # more at one distance than Milvus tells of
    keys = random.permutation(len(codes)) + (3 << 32)
    connection = server.connect("ties")
    table = connection.table(1, n_bits)
    table.create()
    table.put(keys, codes)
    table.put(keys[:100], codes[:100])  # once more changes nothing
    gone = keys[:2000]
    table.delete(gone)
    index = HammingIndex(n_bits)
    index.add(keys[2000:], codes[2000:])
    assert table.count() == len(index)
    np.testing.assert_array_equal(table.keys(), index.ids)
    queries = np.concatenate([codes[:1], codes[-1:], codes[:1] ^ 128])
    for k in (1, 300):
        for ours, theirs in zip(table.search(queries, k), index.search(queries, k), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(InputError, match="Milvus finds at most 16384 neighbours, k=16385 came"):
        table.search(queries, ROWS_RETURNED + 1)
    connection.drop(1)


def test_what_a_table_lacks_and_has_too_much_is_found_by_counting(server, monkeypatch):
    connection = server.connect("difference")
    table = connection.table(1, 16)
    table.create()
    wanted = np.delete(np.arange(1000), [3, 500, 501])

    def found(after=-1):
        return [keys.tolist() for keys in table.difference(wanted, after)]

    def refuse(*_):
        raise AssertionError("all keys are read")

    assert found() == [[], wanted.tolist()]  # it is empty
    table.put(wanted, np.zeros((len(wanted), 2), np.uint8))
    with monkeypatch.context() as patched:
        patched.setattr(table, "keys", refuse)
        assert found() == [[], []]
        table.put(np.array([500, 1000]), np.zeros((2, 2), np.uint8))
        assert found() == [[500], []]  # 1000 is above the last wanted
    table.delete(np.array([10]))  # as many as are wanted, but not the same
    assert found() == [[500], [10]]
    wanted = wanted[wanted > 10]
    assert found(after=10) == [[500], []]
    monkeypatch.setattr("streamhash.live.backends.milvus.GAPS_NAMED", 0)
    table.delete(np.array([20]))
    assert found(after=10) == [[500], [20]]
    connection.drop(1)


def test_an_index_of_cells_finds_the_same_when_all_cells_are_looked_at(tmp_path, server):
    address = server.address("cells", index="BIN_IVF_FLAT", nlist=8, nprobe=8)
    X, y = stream(600, seed=1)
    with Collection.create(
        tmp_path / "c", SDOH(32), backend=address, backend_options=server.options
    ) as items:
        items.add([f"item {i}" for i in range(600)], X, y)
        distances, ids = items.search(X[:20], 5)
        np.testing.assert_array_equal(distances, expected(items, X[:20], 5)[0])
        assert all(isinstance(name, str) for name in ids.ravel())
        assert items._view.now.backend.table.index_type() == "BIN_IVF_FLAT"


def test_of_the_items_of_a_call_some_ask_the_server(tmp_path, server):
    X, y = stream(400, seed=2)
    with Collection.create(
        tmp_path / "c", SDOH(32), backend=server.address("asked"), backend_options=server.options
    ) as items:
        items.add(range(300), X[:300], y[:300])
        asked = items._learner.monitor_.n_answers_  # none, before there is a model
        items.add(range(300, 400), X[300:], y[300:])
        assert items._learner.monitor_.n_answers_ - asked == 25  # every fourth: 32 at most
        items.label([300], y[:1])
        assert items._learner.monitor_.n_answers_ - asked == 26


# ---------------------------------------------------------- the same in both backends, with a kill

WRITER = """
import sys
import numpy as np
sys.path.insert(0, {tests!r})
from streamhash.live import Collection
with Collection.open({path!r}, backend_options={options!r}) as items:
    for part in range(4):
        rows = np.load({data!r})
        some = slice(400 * part, 400 * part + 400)
        items.add(np.arange(1600)[some], rows["X"][some], rows["y"][some], existing="skip")
        print("added", part, flush=True)
    items.delete(range(100))
    print("refreshing", flush=True)
    items.refresh()
    print("done", flush=True)
"""


def run_writer(path, data, options, kill_after=None, wait=0.0):
    """Write in another process; kill it so long after it has said something."""
    text = WRITER.format(tests=".", path=str(path), data=str(data), options=options)
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.strip() == kill_after:
            time.sleep(wait)
            process.kill()
    process.stdout.close()
    assert process.wait(timeout=180) == (0 if kill_after is None else -signal.SIGKILL)


@pytest.mark.parametrize("kind", ["memory", "milvus"])
def test_drift_refresh_and_a_kill_with_either_backend(tmp_path, server, kind):
    X, y = map(np.concatenate, zip(stream(800, 1), stream(800, 2, shift=2.0), strict=True))
    data = tmp_path / "stream.npz"
    np.savez(data, X=X, y=y)
    options = server.options if kind == "milvus" else None
    backend = server.address("killed") if kind == "milvus" else None
    path = tmp_path / "c"
    Collection.create(
        path, SDOH(32, random_state=0), refresh="manual", backend=backend, backend_options=options
    ).close()
    run_writer(path, data, options, kill_after="added 1")
    with Collection.open(path, backend_options=options) as items:
        assert len(items) >= 800  # what it said is stored, is there
        assert_exact(items)
    run_writer(path, data, options, kill_after="refreshing", wait=0.3 if backend else 0.0)
    with Collection.open(path, backend_options=options) as items:
        assert len(items) == 1500
        assert_exact(items)
        number = items.model_number
        assert items.refresh() == (number == 1)  # the refresh goes on, if it was not through
        assert items.model_number == 2
        assert_exact(items)
        distances, ids = items.search(X[:50], 20)
    kept = Path(tmp_path.parent, "answers.npz")
    if kept.exists():  # of the other backend: the same, to the last id
        other = np.load(kept)
        np.testing.assert_array_equal(distances, other["distances"])
        np.testing.assert_array_equal(ids, other["ids"])
    np.savez(kept, distances=distances, ids=ids)


# ----------------------------------------------------------------------------- a server away


@pytest.fixture
def restarted(server):
    """Leaves the server running, whatever a test does to it."""
    yield
    if not server.runner.running:
        server.start()


@contextmanager
def in_milvus(path, server, name, **options):
    """A collection that lives in Milvus, with a model, of 900 items."""
    X, y = stream(900, seed=1)
    with Collection.create(
        path,
        SDOH(32, random_state=0),
        refresh="manual",
        backend=server.address(name, **options),
        backend_options=server.options,
    ) as items:
        items.add(range(900), X, y)
        assert items.model_number == 1
        yield items


def test_what_is_changed_while_the_server_is_stopped_comes_by_itself(tmp_path, server):
    with in_milvus(tmp_path / "c", server, "stopped", timeout=2) as items:
        X, y = stream(300, seed=2)
        server.send(signal.SIGSTOP)
        try:
            items.add(range(900, 1200), X, y)
            items.delete(range(50))
            items.label([60], [3])
            items.add([70], X[:1], y[:1], existing="replace")
            assert len(items) == 1150  # stored, and counted
            with pytest.raises(
                UnreachableError, match="Nothing is lost: what is stored is sent when"
            ):
                items.search(X[:1], 1)
            status = items.status()["backend"]
            assert (status["reachable"], status["lag"]) == (False, 300 + 50 + 2)
            assert status["address"] == f"milvus://localhost:{server.port}/stopped"
        finally:
            server.send(signal.SIGCONT)
        well = {**status, "reachable": True, "lag": 0, "error": None}
        wait_until(lambda: items.status()["backend"] == well)  # nobody has asked for anything
        assert_exact(items)


@pytest.mark.usefixtures("restarted")
def test_a_dropped_collection_leaves_its_server_or_all_is_as_it_was(tmp_path, server):
    with in_milvus(tmp_path / "c", server, "dropped", timeout=2) as items:
        items.refresh()
        server.send(signal.SIGSTOP)
        try:
            with pytest.raises(UnreachableError):
                items.drop()
        finally:
            server.send(signal.SIGCONT)
        assert len(items) == 900

        def is_back():
            try:
                return bool(items.search(stream(1, seed=1)[0], 1))
            except UnreachableError:
                return False

        wait_until(is_back)
        assert_exact(items)
        items.drop()
    assert not (tmp_path / "c").exists()
    assert server.connect("dropped").numbers() == []
    with in_milvus(tmp_path / "c", server, "dropped"):  # the name is free again
        pass


@pytest.mark.usefixtures("restarted")
def test_a_server_killed_in_the_middle_of_a_refresh(tmp_path, server):
    with in_milvus(tmp_path / "c", server, "cut_off") as items:
        X, y = stream(6000, seed=3, shift=1.0)
        for part in range(2):  # fragments enough for the refresh to come in pieces
            some = slice(3000 * part, 3000 * part + 3000)
            items.add(np.arange(1000, 7000)[some], X[some], y[some])
        seen = []

        def kill(done, total):
            if not seen:
                server.kill()
            seen.append((done, total))

        with pytest.raises(UnreachableError):
            items.refresh(progress=kill)
        assert 0 < seen[0][0] < seen[0][1] == 6900
        assert items.model_number == 1
        assert items.status()["refresh"]["interrupted"]
        items.add([8000], X[:1], y[:1])
        items.delete([1])
        with pytest.raises(UnreachableError):
            items.search(X[:1], 1)
        items.close()
        path, options = items._journal.address, server.options
        with Collection.open(path, backend_options=options) as again:  # without a server, too
            assert again.status()["backend"]["lag"] is None  # nobody knows
            assert 8000 in again
            server.start()
            wait_until(lambda: again.status()["backend"]["reachable"])
            assert again.model_number == 1
            assert_exact(again, ks=(10,))
            before = again.encoded_items
            assert again.refresh()
            assert 0 < again.encoded_items - before < 6900  # the rest
            assert again.model_number == 2
            assert_exact(again, ks=(10,))


def test_a_copy_has_the_codes_of_all_items_in_their_order(tmp_path, server):
    X, y = stream(600, seed=6)
    with Collection.create(tmp_path / "c", SDOH(32, random_state=0)) as items:
        items.add([f"item {i}" for i in range(600)], X, y)
        items.delete(["item 3"])
        address = server.address("copied")
        assert export_to_milvus(items, address, server.options) == 599
        hits = server.connect("copied").call(
            "search",
            "copied",
            data=[code.tobytes() for code in items.encode(X[:9])],
            limit=1,
            consistency_level="Strong",
        )
        assert [hit[0]["distance"] for hit in hits] == items.search(X[:9], 1)[0][:, 0].tolist()
        place = hits[0].ids[0]
        assert (items.get([items.ids[place]])[0].code == items.encode(X[:1])).all()
        with pytest.raises(InputError, match="this name is taken there, by copied_model_1"):
            export_to_milvus(items, address, server.options)


def test_a_copy_to_a_server_that_is_not_there_is_refused_in_one_line(tmp_path):
    X, y = stream(600, seed=6)
    with Collection.create(tmp_path / "c", SDOH(32, random_state=0)) as items:
        items.add(range(600), X, y)
    (port,) = free_ports(1)
    program = "from streamhash.cli import main; main()"
    to = f"milvus://localhost:{port}/x?timeout=2"
    words = ["live", "export", str(tmp_path / "c"), "--to", to]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"localhost:{port}" in done.stderr


def test_searches_never_see_two_models_and_old_ones_are_dropped(tmp_path, server):
    with in_milvus(tmp_path / "c", server, "two") as items:
        X, y = stream(1200, seed=4, shift=1.0)
        queries = stream(3, seed=5)[0]
        reader = Collection.open(
            items._journal.address, read_only=True, backend_options=server.options
        )
        right, wrong, through = [], [], threading.Event()

        def look(collection):
            while not through.is_set():
                number = collection.model_number
                distances, ids = collection.search(queries, 5)
                names, place = np.unique(ids, return_inverse=True)
                codes = np.array([item.code for item in collection.get(names.tolist())])[place]
                mine = np.bitwise_count(
                    collection.encode(queries)[:, None] ^ codes.reshape(3, 5, -1)
                )
                if number == collection.model_number:  # else there was a change in between
                    fits = np.array_equal(mine.sum(axis=2), distances)
                    (right if fits else wrong).append(number)

        def watch(collection):
            try:
                look(collection)
            except BaseException as error:  # noqa: BLE001  raised at the end
                wrong.append(error)

        threads = [threading.Thread(target=partial(watch, each)) for each in (items, reader)]
        for thread in threads:
            thread.start()
        items.add(range(900, 2100), X, y)
        items.refresh()
        wait_until(lambda: right.count(2) > 3 or wrong)
        through.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert {1, 2} == set(right)
        name = items._view.now.backend.address.name
        other = server.connect(name)
        items._view.now.backend.drop_replaced()
        assert other.numbers() == [2]
        # Another program, by the plain name.
        code = items.encode(queries[:1])[0].tobytes()
        hits = other.call("search", name, data=[code], limit=1, consistency_level="Strong")
        assert int(hits[0][0]["distance"]) == items.search(queries[:1], 1)[0][0, 0]
        assert reader.status()["backend"]["lag"] == 0
        reader.close()
        with pytest.raises(
            InputError, match=f"this name is taken there, by {name}_model_2; choose"
        ):
            Collection.create(
                Path(items._journal.address).with_name("d"),
                SDOH(16),
                backend=server.address(name),
                backend_options=server.options,
            )


@pytest.mark.parametrize(
    "named", [10_000, 7], ids=["named at once", "looked through, then by parts"]
)
def test_filters_are_exact(tmp_path, server, monkeypatch, named):
    monkeypatch.setattr(view, "NAMED_KEYS", named)
    monkeypatch.setattr(view, "SHARED_LIMIT", 40)  # of 300 items
    X, y = stream(300, seed=5)
    with Collection.create(
        tmp_path / "c",
        SDOH(16, random_state=0),
        refresh="manual",
        backend=server.address(f"filters_{named}"),
        backend_options=server.options,
    ) as items:
        items.add(range(300), X, y, metadata=[{"n": n} for n in range(300)])
        items.add([7, 8], X[7:9], y[7:9], metadata=[{"n": 1000}] * 2, existing="replace")
        items.delete([20, 21])
        assert items.model_number
        for where, matches in [
            ("n < 5", lambda i: i < 5),
            ("n >= 30", lambda i: i >= 30 or i in (7, 8)),
            (f"label = {y[0]}", lambda i: y[i] == y[0]),
            ("id IN (8, 20, 250)", lambda i: i in (8, 250)),
            ("n = -1", lambda _: False),
        ]:
            for k in (1, 20):
                far, ids = expected(items, X[:8], 300)
                found = items.search(X[:8], k, where=where)
                for q in range(8):
                    kept = [each for each in zip(far[q], ids[q], strict=True) if matches(each[1])]
                    kept = (kept + [(2**31 - 1, -1)] * k)[:k]
                    pairs = zip(found.distances[q], found.ids[q], strict=True)
                    assert [*pairs] == kept, (where, k)


def test_filters_by_calls_in_any_order(server):
    numbers = count()

    class InMilvus(FilterMachine):
        backend_options = server.options

        def address(self):
            return server.address(f"machine_{next(numbers)}")

    run_state_machine_as_test(InMilvus, settings=machine_settings(examples=3, steps=12))


# ----------------------------------------------------------------------------------- its answers


def test_filtered_and_rescored_answers_are_those_of_numpy(server, tmp_path):
    X, y = stream(120, seed=3)
    with Collection.create(
        tmp_path / "c",
        LSH(16, batch_size=20, random_state=0),
        backend=server.address("answers"),
        backend_options=server.options,
    ) as c:
        extra = [{"n": n} for n in range(120)]
        c.add(range(120), X, y, metadata=extra)
        c.delete([3, 77])
        c.add([5], X[50:51], y[50:51], metadata=[{"n": 500}], existing="replace")
        there = {n: TwinItem(n, X[n], y[n], extra[n]) for n in range(120) if n not in (3, 5, 77)}
        there[5] = TwinItem(5, X[50], y[50], {"n": 500})
        queries, model = np.concatenate([stream(3, seed=4)[0], X[50:51]]), c.model()
        conditions = {None: None, "n >= 100": lambda item: item.metadata["n"] >= 100}
        conditions["n > 1000"] = lambda _: False
        ways = [
            {"rescore": times, "by": by, "metric": metric}
            for times in (1, 3)
            for by in ("vectors", "projections")
            for metric in ("cosine", "dot", "euclidean")
        ]
        for (where, matches), way, k in product(conditions.items(), [{}, *ways], (4, 130)):
            wanted = [
                find(model, [*there.values()], query, k, matches=matches, **way)
                for query in queries
            ]
            assert_found(c.search(queries, k, where=where, **way), wanted, k)
        with pytest.raises(InputError, match=r"query='real' needs the codes in memory.*rescore=4"):
            c.search(queries, 3, query="real")
