"""The Dockerfile's steps, run as a script, and what compose makes of the image.

No daemon is needed: files are copied to a folder that stands for the image's root, programs are
installed into a new virtual environment, and the service runs as whoever runs the tests. What
streamhash needs is not installed once more, but taken from the environment of the tests.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from streamhash import __version__

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TOKEN = "write-token-of-the-tests"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def steps():
    """Return the Dockerfile's instructions, each with what follows it on its lines."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.lstrip().startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def only(name):
    (rest,) = [rest for instruction, rest in steps() if instruction == name]
    return rest


def health_command():
    return json.loads(re.search(r"\bCMD (\[.*\])", only("HEALTHCHECK"))[1])


class Image:
    """A folder that stands for the image's root, made by the Dockerfile's steps."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root
        self.environment = {"PATH": f"{root}/shims:{root}/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        venv.create(root / "venv", with_pip=True)
        own = next((root / "venv").glob("lib/python*/site-packages"))
        (own / "tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        for name in ("group", "gshadow", "passwd", "shadow"):
            (root / "etc").mkdir(exist_ok=True)
            (root / "etc" / name).touch()
        python = root / "venv" / "bin" / "python"
        self.shim("pip", f'[ "$1" = install ]; shift; exec {python} -m pip install --no-deps "$@"')
        for name in ("groupadd", "useradd"):
            self.shim(name, f'exec /usr/sbin/{name} --prefix {root} "$@"')
        for instruction, rest in steps():
            getattr(self, f"do_{instruction.lower()}", lambda _: None)(rest)

    def shim(self, name: str, text: str) -> None:
        path = self.root / "shims" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\nset -e\n{text}\n")
        path.chmod(0o755)

    def inside(self, text: str) -> str:
        """Let the image's paths mean those below its root here."""
        return re.sub(r"(?<![\w/])/(usr/src|var)/", rf"{self.root}/\1/", text)

    def do_arg(self, rest):
        self.do_env(rest)

    def do_env(self, rest):
        pairs = dict(part.split("=", 1) for part in shlex.split(self.inside(rest)))
        self.environment |= pairs

    def do_workdir(self, rest):
        self.folder = Path(self.inside(rest))
        self.folder.mkdir(parents=True, exist_ok=True)

    def do_copy(self, rest):
        *sources, target = rest.split()
        ignored = shutil.ignore_patterns("__pycache__", "*.nb?")
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, self.folder / target, ignore=ignored)
            else:
                shutil.copy(ROOT / source, self.folder / target)

    def do_run(self, rest):
        done = self.run(["sh", "-ec", self.inside(rest)])
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, command, **environment):
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def command(self, port: int) -> list[str]:
        """What a container of this image runs, at another port."""
        words = json.loads(only("ENTRYPOINT")) + json.loads(only("CMD"))
        assert words[-2:] == ["--port", "8000"]
        return [*map(self.inside, words[:-1]), str(port)]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("the steps make a user, for which one has to be root")
    return Image(tmp_path_factory.mktemp("image"))


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.mark.slow
def test_the_steps_make_an_image_that_serves_is_healthy_and_stops(image, port):
    program = image.root / "venv" / "bin" / "streamhash"
    assert __version__ in image.run([program, "--version"]).stdout
    where = image.run(["python", "-c", "import streamhash; print(streamhash.__file__)"]).stdout
    assert where.startswith(str(image.root / "venv"))  # and not what the tests import
    assert ":10001:10001:" in (image.root / "etc" / "passwd").read_text()
    data, cache = (image.root / f"var/{name}/streamhash" for name in ("lib", "cache"))
    assert (data.stat().st_uid, cache.stat().st_uid) == (10001, 10001)
    assert not [*data.iterdir()]
    refused = image.run(image.command(port))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "lets other machines in, and no token is set" in refused.stderr

    health = [part.replace(":8000/", f":{port}/") for part in health_command()]
    assert health != health_command()
    assert image.run(health).returncode != 0
    service = subprocess.Popen(
        image.command(port),
        cwd=image.folder,
        env=image.environment | {"STREAMHASH_WRITE_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert service.stdout.readline().startswith("Serving 0 items at http://0.0.0.0:")
        assert image.run(health).returncode == 0
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/collections",
            b'{"name": "shop", "method": "lsh"}',
            {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 201
        assert [path.name for path in data.iterdir()] == ["shop"]
    finally:
        service.send_signal(signal.Signals[only("STOPSIGNAL")])
        out, _ = service.communicate(timeout=60)
    assert (service.returncode, out) == (0, "Stopped.\n")
    assert image.run(health).returncode != 0


@pytest.mark.slow
def test_a_service_that_hangs_is_unhealthy(port):
    """It takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", port)):
        command = [part.replace(":8000/", f":{port}/") for part in health_command()]
        start = time.monotonic()
        done = subprocess.run([sys.executable, *command[1:]], capture_output=True, timeout=60)
    assert done.returncode != 0
    assert time.monotonic() - start > 3


def test_the_image_is_pinned_unprivileged_and_holds_no_secret():
    kinds = [instruction for instruction, _ in steps()]
    assert re.fullmatch(r"python:\d+\.\d+-slim-\w+", only("FROM"))
    (user,) = [n for n, kind in enumerate(kinds) if kind == "USER"]
    assert only("USER") == "10001:10001"
    assert "RUN" not in kinds[user:]  # nothing is done as root after it
    assert not {"ADD", "SHELL"} & {*kinds}
    assert "TOKEN" not in "\n".join(rest for _, rest in steps())
    assert "PIP_NO_CACHE_DIR=1" in only("ENV")
    assert only("EXPOSE") in only("CMD")


def test_nothing_but_what_is_copied_goes_to_the_builder():
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    assert lines[0] == "*"
    allowed = {line[1:] for line in lines if line.startswith("!")}
    sources = {part for kind, rest in steps() if kind == "COPY" for part in rest.split()[:-1]}
    assert allowed == sources
    assert all((ROOT / name).exists() for name in allowed)
    ignored = [line.removeprefix("**/") for line in lines[1:] if not line.startswith("!")]
    assert any(fnmatch("scan.search-1.py311.nbi", pattern) for pattern in ignored)


# ------------------------------------------------------------------------------------------ compose


def test_compose_runs_what_the_image_has():
    services, image = COMPOSE["services"], dict(steps())
    service = services["streamhash"]
    assert (DEPLOY / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]).exists()
    volumes = {part.rsplit(":", 1)[-1] for part in service["volumes"]}
    assert volumes == {*json.loads(image["VOLUME"])}
    assert {part.split(":")[0] for part in service["volumes"]} <= {*COMPOSE["volumes"]}
    assert service["ports"] == [f"127.0.0.1:{image['EXPOSE']}:{image['EXPOSE']}"]
    assert service["image"] == services["backup"]["image"]
    assert service["image"].split(":")[1] == ".".join(__version__.split(".")[:2])
    for name in service["secrets"]:
        kind = name.split("-")[0]
        assert f"--{kind}-token-file=/run/secrets/{name}" in service["command"]
        assert COMPOSE["secrets"][name]["file"].startswith("./secrets/")
    for each in (service, services["backup"]):
        assert each["read_only"]
        assert each["cap_drop"] == ["ALL"]
        assert each["security_opt"] == ["no-new-privileges:true"]
    assert service["stop_grace_period"] == "2m"  # more than the minute that running requests have


def test_what_is_optional_is_a_profile():
    profiles = {name: each.get("profiles") for name, each in COMPOSE["services"].items()}
    assert profiles == {"streamhash": None, "backup": ["backup"], "milvus": ["milvus"]}
    assert re.fullmatch(r"milvusdb/milvus:v[\d.]+", COMPOSE["services"]["milvus"]["image"])
    assert COMPOSE["services"]["milvus"]["image"].split(":v")[1] in (
        ROOT / "pyproject.toml"
    ).read_text(encoding="utf-8")  # the version that the tests run against


def test_compose_takes_the_file():
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        pytest.skip("there is no docker compose")
    command = ["docker", "compose", "-f", str(DEPLOY / "compose.yaml"), "--profile", "*", "config"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_options_of_the_service_are_those_it_has(tmp_path):
    for kind in ("write", "read"):
        (tmp_path / f"{kind}-token").write_text(f"{kind}-token-of-the-tests\n")
    command = [
        word.replace("/run/secrets", str(tmp_path)).replace("/var/lib/streamhash", str(tmp_path))
        for word in COMPOSE["services"]["streamhash"]["command"]
    ]
    main = "from streamhash.cli import main; main()"
    command[command.index("--port=8000")] = "--port=0"
    with subprocess.Popen(
        [sys.executable, "-c", main, *command], stdout=subprocess.PIPE, text=True
    ) as service:
        line = service.stdout.readline()
        service.terminate()
        assert line.startswith("Serving 0 items at http://0.0.0.0:")
