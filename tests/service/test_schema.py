"""The service against its own description: requests made up from it, valid ones and others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from streamhash import SDOH
from streamhash.live import Collection

pytestmark = pytest.mark.slow

HOOKS = Path(__file__).parents[1] / "files" / "schemathesis_hooks.py"
CONFIG = Path(__file__).parents[1] / "files" / "schemathesis.toml"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A collection of vectors that are short, so that requests are."""
    path = tmp_path_factory.mktemp("small") / "items"
    rng = np.random.default_rng(0)
    with Collection.create(path, SDOH(16, random_state=0), refresh="manual") as items:
        items.add(range(400), rng.standard_normal((400, 3)), rng.integers(0, 2, 400))
    return path


def test_no_request_made_from_the_description_is_answered_otherwise(start_service, small, tmp_path):
    pytest.importorskip("schemathesis")
    service = start_service("serve", small)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG)),
            *("run", f"{service.url}/openapi.json", "--no-color"),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS), "NO_COLOR": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    made, passed = re.search(r"(\d+) generated, (\d+) passed", done.stdout).groups()
    assert int(made) == int(passed) > 300
    code, _, errors = service.stop()
    assert code == 0
    told = {line.split(maxsplit=2)[2] for line in errors.splitlines()}
    told = {line for line in told if "take their place whole" not in line}  # as was asked for
    assert told <= {"Invalid HTTP request received."}
