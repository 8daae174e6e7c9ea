"""The documents of the service: their commands run, and they leave nothing out."""

import json
import re
import shutil
import subprocess
import urllib.request
from dataclasses import fields

import pytest

from pages import read_page
from streamhash.service import Limits

pytestmark = pytest.mark.slow

DOCS = read_page("docs/service.md")


@pytest.fixture(scope="module")
def url(start_service, make_digits):
    return start_service("serve", make_digits(300)).url


def test_the_commands_run(url):
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    commands = re.findall(r"^\$ (curl .*)$", DOCS, re.MULTILINE)
    assert len(commands) == 11
    for command in commands:
        line = command.replace("http://127.0.0.1:8000", url)
        line = line.replace("--json", "-H 'Content-Type: application/json' -d")  # of curl 7.82
        done = subprocess.run(["bash", "-c", f"{line} -s"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "error" not in json.loads(done.stdout), f"{command}: {done.stdout}"


def test_every_address_and_limit_is_documented(url):
    with urllib.request.urlopen(f"{url}/openapi.json", timeout=30) as answer:
        document = json.load(answer)
    for path, operations in document["paths"].items():
        shown = path.replace("{id}", "ID").replace("{name}", "NAME")
        if not path.startswith("/api/collections"):
            shown = shown.replace("/api/", "…/")
        for method in operations:
            assert f"`{method.upper()} {shown}`" in DOCS or f"`{method.upper()} {shown}?" in DOCS
    for field in fields(Limits):
        assert f"`{field.name}`" in DOCS
