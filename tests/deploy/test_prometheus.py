"""What Prometheus and Grafana are given: every name in it is one that a real service has."""

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml
from sklearn.datasets import load_digits

from streamhash import Client

X, Y = load_digits(return_X_y=True)
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "streamhash.rules.yml"
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SERVICE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
READ, WRITE = "read-token-of-the-tests", "write-token-of-the-tests"
NAME = re.compile(r"\b(?:streamhash|process)_\w+")


def dashboard():
    return json.loads((DEPLOY / "grafana" / "streamhash.json").read_text(encoding="utf-8"))


def queries():
    """Return what the dashboard asks Prometheus for, by the titles of its panels and lines."""
    board = dashboard()
    found = {note["name"]: [note["expr"]] for note in board["annotations"]["list"]}
    for panel in board["panels"]:
        if panel["type"] != "row":
            found[panel["title"]] = [target["expr"] for target in panel["targets"]]
    return found


def alerts():
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def ask(url, path):
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {READ}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


@pytest.fixture(scope="module")
def url(start_service, make_digits):
    """A service to which something was added, and which was asked something."""
    tokens = {"STREAMHASH_READ_TOKEN": READ, "STREAMHASH_WRITE_TOKEN": WRITE}
    service = start_service("serve", make_digits(300), **tokens)
    with Client(service.url, token=WRITE) as client:
        client.add(range(1000, 1100), X[300:400], Y[300:400])
        client.search(X[:3], 5)
    return service.url


@pytest.fixture(scope="module")
def known(url):
    """The names of all that the service tells, as a query may have them."""
    text = ask(url, "/metrics")
    plain = re.findall(r"^# TYPE (\S+) (?:gauge|counter)$", text, re.MULTILINE)
    histograms = re.findall(r"^# TYPE (\S+) histogram$", text, re.MULTILINE)
    return {*plain, *(f"{name}_{end}" for name in histograms for end in ("bucket", "count", "sum"))}


@pytest.mark.slow
def test_every_name_in_dashboard_and_rules_is_one_the_service_has(known):
    board = [expression for each in queries().values() for expression in each]
    named = {name for text in (*board, *alerts().values()) for name in NAME.findall(text)}
    assert len(named) > 20
    assert named <= known
    variables = dashboard()["templating"]["list"][1:]
    assert {name for each in variables for name in NAME.findall(each["definition"])} <= known


@pytest.mark.slow
def test_the_documents_name_all_measures(known):
    section = SERVICE.split("\n## Metrics\n")[1].split("\n## ")[0]
    rows = "\n".join(line for line in section.splitlines() if line.startswith("| `"))
    documented = {f"streamhash_{name}" for name in re.findall(r"`(\w+)`", rows)}
    documented |= {*NAME.findall(section)} - {"streamhash_"}
    own = {name for name in known if name.startswith("streamhash_")}
    own = {re.sub(r"_(bucket|count|sum)$", "", name) for name in own}
    own = {name for name in own if not name.endswith("_created")}
    assert documented == own


def test_the_dashboard_is_whole():
    board = dashboard()
    numbers = [panel["id"] for panel in board["panels"]]
    assert len({*numbers}) == len(numbers)
    places = [
        (x, y)
        for panel in board["panels"]
        for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len({*places}) == len(places)  # no panel lies on another
    assert max(x for x, _ in places) < 24
    assert all(panel.get("description") for panel in board["panels"] if panel["type"] != "row")


def test_every_alert_is_explained():
    named = re.findall(r"^\| `(Streamhash\w+)` \|", OPERATIONS, re.MULTILINE)
    assert named == [*alerts()]


# ------------------------------------------------------------------- with Prometheus's own programs


def need(program):
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}, which Debian's package prometheus has")


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_rules():
    need("promtool")
    run("promtool", "check", "rules", RULES)


def test_alerts_come_when_they_should_and_not_before(tmp_path):
    need("promtool")
    text = (Path(__file__).parent / "rules.test.yml").read_text(encoding="utf-8")
    assert {*re.findall(r'alertname="(\w+)"\}', text)} == {*alerts()}
    (tmp_path / "rules.yml").write_text(text.replace("RULES", str(RULES)))
    run("promtool", "test", "rules", tmp_path / "rules.yml")


@pytest.fixture
def prometheus(url, tmp_path):
    """A real Prometheus with our settings, which reads the real service every second."""
    need("prometheus")
    folder = shutil.copytree(DEPLOY / "prometheus", tmp_path / "settings")
    text = (folder / "prometheus.yml").read_text(encoding="utf-8").replace("15s", "1s")
    (tmp_path / "token").write_text(READ)
    text = text.replace("/etc/prometheus/streamhash-read-token", str(tmp_path / "token"))
    text = text.replace("127.0.0.1:8000", url.removeprefix("http://"))
    (folder / "prometheus.yml").write_text(text)
    log = (tmp_path / "log").open("w+")
    process = subprocess.Popen(
        [
            *("prometheus", f"--config.file={folder}/prometheus.yml", "--log.level=info"),
            *(f"--storage.tsdb.path={tmp_path}/data", "--web.listen-address=127.0.0.1:0"),
        ],
        stdout=log,
        stderr=log,
    )
    try:
        address = None
        deadline = time.monotonic() + 60
        while address is None:
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.2)
            address = re.search(r"address=(127\.0\.0\.1:[1-9]\d*)", (tmp_path / "log").read_text())

        def query(expression):
            asked = urllib.parse.urlencode({"query": expression})
            with urllib.request.urlopen(f"http://{address[1]}/api/v1/query?{asked}") as answer:
                return json.load(answer)["data"]["result"]

        yield query
    finally:
        process.terminate()
        process.wait(60)
        log.close()


@pytest.mark.slow
def test_a_real_prometheus_fills_every_panel(prometheus):
    deadline = time.monotonic() + 60
    while len(prometheus('up{job="streamhash"} == 1')) < 1 or not prometheus(
        "rate(streamhash_requests_total[1m])"
    ):
        assert time.monotonic() < deadline, prometheus("up")
        time.sleep(0.5)
    variables = {"$instance": ".*", "$collection": ".*", "$__rate_interval": "1m"}
    empty = set()
    for title, expressions in queries().items():
        for expression in expressions:
            for name, value in variables.items():
                expression = expression.replace(name, value)
            if not prometheus(expression):
                empty.add(title)
    # Nothing was refused or refreshed, and nothing has drifted.
    assert empty == {"Refreshes", "Drifts", "Refused and failed"}
    assert prometheus("streamhash_items")[0]["metric"]["collection"] == "digits"
    assert not prometheus("ALERTS{alertstate='firing'}")
