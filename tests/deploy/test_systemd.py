"""The units: systemd takes them, their commands run, and the service stops as they ask it to."""

import configparser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from sklearn.datasets import load_digits

from streamhash import SDOH, Client
from streamhash.live import Collection, backups, restore, verify

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("streamhash*"))
X, Y = load_digits(return_X_y=True)
WRITE = "write-token-of-the-tests"
PROGRAM = "#!/bin/sh\nexec {python} -c 'from streamhash.cli import main; main()' \"$@\"\n"


def read_unit(name):
    """Return the sections of a unit; where a name stands twice, the last."""
    parser = configparser.RawConfigParser(strict=False, delimiters="=")
    parser.optionxform = str
    text = (DEPLOY / "systemd" / name).read_text(encoding="utf-8")
    parser.read_string(text.replace("\\\n", " "))
    return parser


@pytest.fixture
def program(tmp_path):
    """streamhash as the units find it, but of these sources."""
    path = tmp_path / "bin" / "streamhash"
    path.parent.mkdir()
    path.write_text(PROGRAM.format(python=sys.executable))
    path.chmod(0o755)
    return path


@pytest.fixture
def state(tmp_path):
    """A folder with a collection that has learned, and the tokens beside it."""
    for kind in ("write", "read"):
        (tmp_path / f"{kind}-token").write_text(f"{kind}-token-of-the-tests\n")
    folder = tmp_path / "state" / "streamhash"
    hasher = SDOH(16, memory=0, features=None, random_state=0)
    with Collection.create(folder / "digits", hasher, refresh="manual") as items:
        items.add(range(300), X[:300], Y[:300])
    return folder


@pytest.fixture
def start(program, state):
    """Run the unit's own command, at a free port; return the process and its address."""
    started = []

    def start(*before):
        line = read_unit("streamhash.service")["Service"]["ExecStart"]
        words = line.replace("%S", str(state.parent)).replace("%d", str(state.parents[1])).split()
        assert words[0] == "/opt/streamhash/bin/streamhash"
        words[0], words[words.index("--port") + 1] = str(program), "0"
        process = subprocess.Popen(
            [*before, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        started.append(process)
        said = process.stdout.readline()
        assert " at http" in said, said
        return process, said.split(" at ")[1].split("/ ")[0]

    yield start
    for process in started:
        if process.poll() is None:
            end(process)
        process.stdout.close()


def end(process, name=signal.SIGTERM):
    """Ask a service to stop, be it below strace, which passes no signal on; return what it says."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    traced = "strace" in str(process.args[0]) and children.read_text().split()
    os.kill(int(traced[0]) if traced else process.pid, name)
    try:
        return process.communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def analyze(*arguments):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    environment = {**os.environ, "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture
def installed(program, tmp_path):
    """The units with paths that are here: systemd looks whether there is such a program."""
    folder = tmp_path / "units"
    folder.mkdir()
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace(
            "/opt/streamhash/bin/streamhash", str(program)
        )
        text = text.replace("/opt/streamhash/share/backup.sh", str(DEPLOY / "backup.sh"))
        (folder / unit.name).write_text(text)
    return folder


def test_systemd_takes_the_units(installed):
    assert len(UNITS) == 3
    done = analyze("verify", "--man=no", *installed.iterdir())
    assert (done.returncode, done.stderr) == (0, "")
    wrong = installed / "wrong.service"
    wrong.write_text((installed / "streamhash.service").read_text().replace("strict", "strictest"))
    assert "strictest" in analyze("verify", "--man=no", wrong).stderr  # or the test shows nothing


@pytest.mark.parametrize("name", ["streamhash.service", "streamhash-backup.service"])
def test_the_units_may_do_little(installed, name):
    done = analyze("security", "--offline=true", "--no-pager", installed / name)
    exposure = float(re.search(r"Overall exposure level for .*: ([\d.]+)", done.stdout)[1])
    assert exposure <= 1.5, done.stdout


def test_the_timer_comes_every_day():
    done = analyze(
        "calendar", "--iterations=3", read_unit("streamhash-backup.timer")["Timer"]["OnCalendar"]
    )
    assert done.returncode == 0, done.stderr
    days = re.findall(r"(?:Next elapse|Iteration #\d|Iter\. #\d): \w+ (\S+)", done.stdout)
    assert len({*days}) == 3


def test_user_and_folder_can_be_made(tmp_path):
    if os.geteuid() != 0 or shutil.which("systemd-sysusers") is None:
        pytest.skip("needs root, and systemd-sysusers")
    (tmp_path / "etc").mkdir()
    own = DEPLOY / "systemd"
    for command in (
        ["systemd-sysusers", f"--root={tmp_path}", own / "sysusers.conf"],
        ["systemd-tmpfiles", "--create", f"--root={tmp_path}", own / "tmpfiles.conf"],
    ):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    users = (tmp_path / "etc" / "passwd").read_text().splitlines()
    (user,) = [line.split(":") for line in users if line.startswith("streamhash:")]
    folder = tmp_path / "var" / "backups" / "streamhash"
    assert folder.stat().st_uid == int(user[2])
    unit = read_unit("streamhash-backup.service")["Service"]
    assert str(folder).endswith(unit["ReadWritePaths"])
    assert unit["ExecStart"].split()[-1] == unit["ReadWritePaths"]
    assert unit["User"] == read_unit("streamhash.service")["Service"]["User"] == user[0]


@pytest.mark.slow
def test_a_stop_folds_the_log_and_loses_nothing(start, state):
    unit = read_unit("streamhash.service")["Service"]
    process, url = start()
    with Client(url, token=WRITE) as client:
        for n in range(20):
            client.add([1000 + n], X[n : n + 1], Y[n : n + 1])
        assert client.status()["log_bytes"] > 0
    begin = time.monotonic()
    out = end(process, signal.Signals[unit["KillSignal"]])
    assert (process.returncode, out) == (0, "Stopped.\n")
    assert time.monotonic() - begin < 30
    assert unit["TimeoutStopSec"] == "5min"
    with Collection.open(state / "digits", read_only=True) as items:
        assert items.status()["log_bytes"] == 0
        assert [n for n in range(1000, 1020) if n in items] == [*range(1000, 1020)]


def system_calls(name):
    """Return the calls of a set of systemd's, and of the sets in it."""
    text = analyze("syscall-filter", name).stdout
    words = [line.split("#")[0].split() for line in text.splitlines()[1:]]
    found = set()
    for word, *_ in filter(None, words):
        found |= system_calls(word) if word.startswith("@") else {word}
    return found


@pytest.mark.slow
def test_the_filter_lets_pass_all_that_the_service_does(start, tmp_path):
    if shutil.which("strace") is None:
        pytest.skip("there is no strace")
    text = (DEPLOY / "systemd" / "streamhash.service").read_text(encoding="utf-8")
    filters = re.findall(r"^SystemCallFilter=(.*)$", text, re.MULTILINE)
    assert filters == ["@system-service", "~@privileged"]
    allowed = system_calls("@system-service") - system_calls("@privileged")
    assert "read" in allowed
    assert "setuid" not in allowed
    traced = tmp_path / "traced"
    process, url = start("strace", "-f", "-qq", "-c", "-o", str(traced))
    with Client(url, token=WRITE) as client:
        client.add([1000], X[:1], Y[:1])
        client.add(range(2000, 2300), X[300:600], Y[300:600])
        client.search(X[:5], 3)
        assert client.refresh()
        body = json.dumps({"vectors": X[:900].tolist(), "k": 2}).encode()  # read by a process
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {WRITE}"}
        request = urllib.request.Request(f"{url}/api/search", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
    assert end(process) == "Stopped.\n"
    lines = [line.split() for line in traced.read_text().splitlines()[2:]]
    used = {words[-1] for words in lines if words and words[-1].isidentifier()} - {"total"}
    assert {"read", "mmap", "fsync"} <= used
    assert used <= allowed


# ------------------------------------------------------------------------------------------ backups


def back_up(program, *arguments, **environment):
    path = f"{program.parent}:{os.environ['PATH']}"
    return subprocess.run(
        [str(DEPLOY / "backup.sh"), *map(str, arguments)],
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_every_collection_is_backed_up_while_it_is_served(start, program, state, tmp_path):
    with Collection.create(state / "news", SDOH(16, memory=0, features=None)) as items:
        items.add(["a", "b"], X[:2])
    target = tmp_path / "backups"
    process, url = start()
    request = urllib.request.Request(
        f"{url}/api/collections/digits/items",
        json.dumps({"ids": [1000], "vectors": X[:1].tolist()}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {WRITE}"},
    )
    with urllib.request.urlopen(request, timeout=60):
        pass
    for _ in range(2):
        done = back_up(program, state, target, KEEP="1")
        assert done.returncode == 0, done.stderr
    end(process)
    assert [len(backups(target / name)) for name in ("digits", "news")] == [1, 1]
    restore(target / "digits", tmp_path / "again")
    assert not verify(tmp_path / "again").damages
    with Collection.open(tmp_path / "again") as items:
        assert (len(items), 1000 in items) == (301, True)


@pytest.mark.slow
def test_one_that_fails_does_not_keep_the_others_from_theirs(program, state, tmp_path):
    shutil.copytree(state / "digits", state / "broken")
    shutil.rmtree(state / "broken" / "items.lance")
    done = back_up(program, state, tmp_path / "backups")
    assert done.returncode == 1
    assert f"{state}/broken was not backed up" in done.stderr
    assert len(backups(tmp_path / "backups" / "digits")) == 1
    (tmp_path / "empty").mkdir()
    done = back_up(program, tmp_path / "empty", tmp_path / "backups")
    assert (done.returncode, done.stderr) == (
        1,
        f"there is no collection in {tmp_path}/empty\n",
    )
    assert back_up(program).returncode == 2
