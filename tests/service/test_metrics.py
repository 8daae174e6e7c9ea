"""What Prometheus reads of a service, and what systemd is told."""

import json
import re
import shutil
import socket

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash import SDOH, __version__
from streamhash.live import Collection
from streamhash.service import create_app

X, Y = load_digits(return_X_y=True)
HOST = {"Host": "localhost"}


@pytest.fixture
def served(tmp_path):
    """Two collections that are served: one that has learned, and an empty one."""
    hasher = SDOH(16, random_state=0)
    with (
        Collection.create(tmp_path / "digits", hasher, refresh="manual") as digits,
        Collection.create(tmp_path / "empty", SDOH(16)) as empty,
    ):
        digits.add(range(300), X[:300], Y[:300])
        yield {"digits": digits, "empty": empty}


def measures(ask):
    """Return the lines of /metrics, by their names with labels."""
    status, _, content = ask("GET", "/metrics", HOST)
    assert status == 200
    lines = [line for line in content.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def post(ask, path, body):
    headers = {**HOST, "Content-Type": "application/json"}
    status, _, content = ask("POST", path, headers, json.dumps(body).encode())
    assert status == 200, content


def test_measures_are_those_of_each_collection(served, ask_app):
    ask, digits = ask_app(create_app(served)), served["digits"]
    post(ask, "/api/collections/digits/items", {"vectors": X[300:305].tolist()})
    post(ask, "/api/collections/digits/search", {"ids": [1], "k": 3})
    found, status = measures(ask), digits.status()

    def of(name, collection="digits"):
        return found.get(f'streamhash_{name}{{collection="{collection}"}}')

    assert of("added_items_total") == 5
    assert of("search_queries_total") == 1
    assert of("items") == 305
    assert of("labelled_items") == 300
    assert of("learned_items") + of("waiting_items") == 300
    assert of("serving_model") == 1
    assert of("refresh_timestamp_seconds") == status["serving"]["since"]
    assert of("prequential_precision") == status["quality"]["precision"]
    assert of("disk_bytes") == status["disk_bytes"] > of("log_bytes") == status["log_bytes"] > 0
    assert (of("readable"), of("writable"), of("backend_reachable")) == (1, 1, 1)
    for name in ("refresh_running", "refresh_failed", "backend_lag"):
        assert of(name) == 0
    assert of("refresh_gain") == status["refresh"]["precision_gain"]
    assert of("drift_timestamp_seconds") is None
    assert of("items", "empty") == of("serving_model", "empty") == of("log_bytes", "empty") == 0
    assert of("refresh_timestamp_seconds", "empty") is None  # there was none yet
    assert found[f'streamhash_build_info{{version="{__version__}"}}'] == 1


def test_the_log_is_empty_once_it_is_folded(served, ask_app):
    ask, name = ask_app(create_app(served)), 'streamhash_log_bytes{collection="digits"}'
    served["digits"].add([1000], X[:1], [0])
    assert measures(ask)[name] > 0
    served["digits"].refresh()  # which begins with that
    assert measures(ask)[name] == 0


def test_an_alarm_of_drift_is_seen(served, ask_app):
    ask, digits, random = ask_app(create_app(served)), served["digits"], np.random.default_rng(0)
    digits.add(range(300, 1200), X[300:1200], Y[300:1200])
    name = '{collection="digits"}'
    assert measures(ask)["streamhash_drifts_total" + name] == 0
    digits.add(range(2000, 2900), X[300:1200], random.permutation(Y[300:1200]))
    drifts, found = digits.history().drifts, measures(ask)
    assert found["streamhash_drifts_total" + name] == len(drifts) > 0
    assert found["streamhash_drift_timestamp_seconds" + name] == drifts[-1]["time"]


def test_a_collection_that_cannot_be_read_hides_no_other(served, ask_app, tmp_path, caplog):
    address = served["digits"].status()["address"]
    with Collection.open(address, read_only=True) as reader:
        ask = ask_app(create_app({"digits": reader, "empty": served["empty"]}))
        assert measures(ask)['streamhash_readable{collection="digits"}'] == 1
        served["digits"].add([1000], X[:1])  # something to follow
        served["digits"].close()
        shutil.move(address, tmp_path / "elsewhere")
        found = measures(ask)
        assert found['streamhash_readable{collection="digits"}'] == 0
        assert 'streamhash_items{collection="digits"}' not in found
        assert found['streamhash_readable{collection="empty"}'] == 1
        assert "metrics: digits cannot be read" in caplog.text
        shutil.move(tmp_path / "elsewhere", address)
        assert measures(ask)['streamhash_items{collection="digits"}'] == 301


@pytest.mark.slow
def test_systemd_is_told_when_it_answers_and_when_it_stops(start_service, make_digits, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        service = start_service("serve", make_digits(50), NOTIFY_SOCKET=str(tmp_path / "notify"))
        assert manager.recv(100) == b"READY=1"
        service.stop()
        assert manager.recv(100) == b"STOPPING=1"


@pytest.mark.slow
def test_a_manager_that_is_gone_stops_nothing(start_service, make_digits, tmp_path):
    service = start_service("serve", make_digits(50), NOTIFY_SOCKET=str(tmp_path / "gone"))
    code, out, errors = service.stop()
    assert (code, out) == (0, "Stopped.\n")
    assert re.search("systemd could not be told READY=1", errors)
