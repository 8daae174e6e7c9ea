"""The scripts and notebooks of examples/: each runs as it is, and prints what it promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = {
    "own_embeddings": r"0 bits  sku-.*below 20:.*of the same kind: 0\.9\d+ by codes",
    "live_stream": r"alarms of drift.*before the change 0\.\d+, at it 0\.[0-2]\d+, .*and 0\.[5-9]",
    "compare_methods": r"32 bits  SDOH .*again: streamhash bench .*\\begin\{table\*\}",
    "own_method": r"Codewords keeps every check\nCodewords +mAP 0\.\d+ ± .*LSH ",
    "river_pipeline": r"features: 0\.\d+ of 1,24\d rows right\n32 bits: 0\.[5-9]\d+ of 1,24\d rows",
    "service_client": r"Serving 1,000 items\na 2 finds .*100 predictions: .*1,400 items, model",
}
NOTEBOOKS = ("first_look", "reading_results")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_anywhere(name, tmp_path):
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(SCRIPTS[name], done.stdout, re.DOTALL), done.stdout
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.iterdir()], "it leaves files behind"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_from_top_to_bottom(name, tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code), "outputs are not kept, as they would go stale"
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute(env={**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"})
    outputs = [output for cell in code for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    text = "".join(output.get("text", "") for output in outputs)
    wanted = {
        "first_look": r"trained +0\.9\d+ of ten neighbours",
        "reading_results": r"32 bits SDOH +mAP 0\.9\d+ ±.*SDOH minus HCOH \+",
    }
    assert re.search(wanted[name], text, re.DOTALL), text


def test_the_list_of_examples_leaves_none_out():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    files = {path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".ipynb")}
    assert files == {f"{name}.py" for name in SCRIPTS} | {f"{name}.ipynb" for name in NOTEBOOKS}
    assert all(f"`{name}`" in page for name in files)
