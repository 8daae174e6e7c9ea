"""Downloads, from real HTTP servers on this machine that behave well, badly or not at all."""

import gzip
import hashlib
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.io import savemat

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.lab.datasets import fetch, load_data, mnist

N_TRAIN, N_TEST = 30, 12


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Return an empty cache; requests to this machine take no proxy."""
    monkeypatch.delenv("STREAMHASH_DATA", raising=False)
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path


@pytest.fixture
def small(monkeypatch):
    """Stand in for MNIST with four small files of its format: {name.gz: compressed bytes}."""
    rng = np.random.default_rng(0)
    files, served = [], {}
    for real in mnist.FILES:
        n = N_TRAIN if "train" in real.name else N_TEST
        shape = (n, 28, 28) if "images" in real.name else (n,)
        header = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">i4").tobytes()
        content = header + rng.integers(0, 10, shape, dtype=np.uint8).tobytes()
        files.append(real._replace(size=len(content), md5=hashlib.md5(content).hexdigest()))
        served[real.name] = gzip.compress(content)
    monkeypatch.setattr(mnist, "FILES", tuple(files))
    return served


@contextmanager
def serve(files, *, cut=0, status=200):
    """Serve files from 127.0.0.1; ``cut`` drops so many bytes from the end of each answer."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.rsplit("/", 1)[-1]
            asked.append(name)
            self.send_response(status if name in files else 404)
            data = files.get(name, b"")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) - cut])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mnist/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def dead():
    """Return the address of a port where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_fetch_then_load(cache, small):
    with serve(small) as (url, asked):
        folder = fetch("mnist", mirrors=[url])
    assert folder == cache / "mnist"
    assert files_in(cache) == sorted(small) == sorted(asked)
    data = load_data("mnist")
    assert data.X.shape == (N_TRAIN + N_TEST, 784)
    images = gzip.decompress(small["t10k-images-idx3-ubyte.gz"])[16:]
    assert np.array_equal(
        data.X[N_TRAIN:].ravel(), np.frombuffer(images, np.uint8) / np.float32(255)
    )
    labels = gzip.decompress(small["train-labels-idx1-ubyte.gz"])[8:]
    assert data.y[:N_TRAIN].tolist() == list(labels)


@pytest.mark.usefixtures("cache")
def test_load_fetches_only_when_asked(small, monkeypatch):
    with serve(small) as (url, asked):
        monkeypatch.setattr(mnist, "MIRRORS", (url,))
        with pytest.raises(MissingDataError, match="run streamhash data fetch mnist"):
            load_data("mnist")
        assert asked == []
        assert len(load_data("mnist", fetch=True).X) == N_TRAIN + N_TEST
        assert len(asked) == 4
        load_data("mnist", fetch=True)
        assert len(asked) == 4


def test_what_is_there_is_not_fetched_again(cache, small):
    with serve(small) as (url, asked):
        fetch("mnist", mirrors=[url])
        (cache / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(b"damaged since")
        asked.clear()
        fetch("mnist", mirrors=[url])
    assert asked == ["t10k-labels-idx1-ubyte.gz"]


def one_bit_off(data):
    content = bytearray(gzip.decompress(data))
    content[-1] ^= 1
    return gzip.compress(bytes(content))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        pytest.param(one_bit_off, "MD5 .* instead of", id="one-bit-off"),
        pytest.param(lambda data: data[:-10], "not a whole gzip file", id="cut-short"),
        pytest.param(lambda _: b"<html>", "not a whole gzip file", id="a-web-page"),
        pytest.param(lambda _: b"", "0 bytes instead of", id="nothing"),
        pytest.param(
            lambda data: gzip.compress(gzip.decompress(data) + b"0"), "more than", id="too-long"
        ),
        pytest.param(
            lambda data: gzip.compress(gzip.decompress(data)[:-1]), "bytes instead of", id="short"
        ),
    ],
)
def test_a_corrupt_download_leaves_nothing_behind(cache, small, damage, reason):
    broken = {name: damage(data) for name, data in small.items()}
    with serve(broken) as (url, _), pytest.raises(MissingDataError, match=reason):
        fetch("mnist", mirrors=[url])
    assert files_in(cache) == []


def test_a_truncated_answer_leaves_nothing_behind(cache, small):
    with serve(small, cut=20) as (url, _), pytest.raises(MissingDataError, match="no mirror gave"):
        fetch("mnist", mirrors=[url])
    assert files_in(cache) == []


def test_a_good_mirror_makes_up_for_bad_ones(cache, small, dead):
    broken = {name: one_bit_off(data) for name, data in small.items()}
    with serve(broken) as (bad, asked_bad), serve({}) as (empty, _), serve(small) as (good, asked):
        fetch("mnist", mirrors=[dead, bad, empty, good])
    assert files_in(cache) == sorted(small)
    assert len(asked) == 4
    assert len(asked_bad) == 1  # the mirror that answered well is asked first from then on


def test_no_mirror_says_what_to_do(cache, small, dead):
    with serve(small, status=503) as (url, _), pytest.raises(MissingDataError) as caught:
        fetch("mnist", mirrors=[dead, url])
    message = str(caught.value)
    assert message.startswith(f"fetch: no mirror gave train-images-idx3-ubyte.gz ({dead}train-")
    assert f"; {url}train-images-idx3-ubyte.gz: HTTP Error 503" in message
    assert message.endswith(
        "try again when this machine is online, or get the four files elsewhere and set "
        "STREAMHASH_DATA to their folder."
    )
    assert files_in(cache) == []


def test_a_silent_mirror_is_given_up(cache, small):
    with socket.socket() as silent, serve(small) as (good, _):
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        fetch("mnist", mirrors=[f"http://127.0.0.1:{silent.getsockname()[1]}", good], timeout=0.2)
    assert files_in(cache) == sorted(small)


def test_a_cache_that_cannot_be_written(cache, small, monkeypatch):
    (cache / "taken").write_text("a file, not a folder")
    monkeypatch.setenv("STREAMHASH_CACHE", str(cache / "taken"))
    with serve(small) as (url, _), pytest.raises(MissingDataError, match="set STREAMHASH_CACHE"):
        fetch("mnist", mirrors=[url])


def test_a_full_disk_leaves_nothing_behind(cache, small, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with serve(small) as (url, _), pytest.raises(MissingDataError, match="No space left"):
        fetch("mnist", mirrors=[url])
    assert files_in(cache) == []


def test_a_damaged_file_in_the_cache_is_refused_on_loading(cache, small):
    with serve(small) as (url, _):
        fetch("mnist", mirrors=[url])
    path = cache / "mnist" / "train-labels-idx1-ubyte.gz"
    path.write_bytes(one_bit_off(path.read_bytes()))
    with pytest.raises(FileError, match=r"train-labels.*MD5 .*; delete it and run streamhash"):
        load_data("mnist")


def mat_file(path, **fields):
    savemat(path, fields)
    return path.read_bytes()


def places(path, d=128):
    rng = np.random.default_rng(0)
    fields = {"pca_feats": rng.standard_normal((60, d)), "labels": np.arange(60) % 3}
    return mat_file(path, **fields), fields


PLACES = "Places205_AlexNet_fc7_PCA128.mat"


def test_features_of_the_authors_are_fetched_though_no_checksum_is_known(cache, tmp_path):
    content, fields = places(tmp_path / "made.mat")
    with serve({PLACES: content}) as (url, asked):
        assert fetch("places205", mirrors=[url]) == cache / "places205"
        assert fetch("places205", mirrors=[url]) == cache / "places205"
        assert asked == [PLACES]
    data = load_data("places205")
    np.testing.assert_array_equal(data.X, fields["pca_feats"].astype(np.float32))
    np.testing.assert_array_equal(data.y, fields["labels"])
    assert data.card.checksum == f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_what_is_not_the_authors_file_is_not_kept(cache, tmp_path, dead):
    other = places(tmp_path / "other.mat", d=64)[0]
    right = places(tmp_path / "right.mat")[0]
    wrong = {"other": ({PLACES: other}, 0), "text": ({PLACES: b"<html>gone</html>"}, 0)}
    wrong |= {"cut": ({PLACES: right}, 100), "absent": ({}, 0)}
    for files, cut in wrong.values():
        with serve(files, cut=cut) as (url, _), pytest.raises(MissingDataError) as caught:
            fetch("places205", mirrors=[dead, url])
        assert f"no mirror gave {PLACES}" in str(caught.value)
        assert "set STREAMHASH_DATA to its folder" in str(caught.value)
        assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".mat"]
        assert not (cache / "places205" / PLACES).exists()
    with serve({PLACES: right}) as (url, _):  # another mirror may have it
        fetch("places205", mirrors=[dead, url])
    assert len(load_data("places205").y) == 60


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("imagenet", InputError, "fetch: 'imagenet' is not a data set; pass one of digits, mnist"),
        ("digits", InputError, "fetch: 'digits' needs no download; use load_data"),
        ("cifar10-features", MissingDataError, "it has no public download: get the file"),
    ],
)
@pytest.mark.usefixtures("cache")
def test_only_public_sets_are_fetched(name, error, message):
    with pytest.raises(error, match=message):
        fetch(name)
