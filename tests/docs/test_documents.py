"""Documents that cannot rot: their examples run, their tables are those of the rows."""

import doctest
import re
import shutil
import subprocess
import sys

import pytest

from pages import ROOT, blocks, commands, read_page, run_command
from streamhash.hashers import METHODS

README = read_page("README.md")
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readme_example_prints_what_it_says(empty_folder):
    (example,) = blocks("README.md", "python")
    test = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
    assert len(test.examples) > 8
    report = []
    results = doctest.DocTestRunner().run(test, out=report.append)
    assert results.failed == 0, "".join(report)
    assert (empty_folder / "digits.streamhash").exists()


@pytest.mark.slow
def test_the_commands_of_the_readme_run(empty_folder):
    shown = [command for command, _ in commands("README.md")]
    assert len(shown) == 10
    for command in shown:
        assert run_command(command, empty_folder).strip(), command
    assert (empty_folder / "codes.npy").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1], ids=["without labels", "with labels"])
def test_the_methods_of_the_contributing_page_keep_the_contract(number):
    examples = blocks("CONTRIBUTING.md", "python")
    assert len(examples) == 2
    names = {"__name__": "contributing"}
    exec(examples[number], names)
    method = names[["MeanSigns", "Codewords"][number]]
    assert method.__mro__[1].__name__ == "OnlineHasher"
    assert method.needs_labels == bool(number)


def test_the_supervised_method_of_the_contributing_page_learns():
    from sklearn.datasets import load_digits

    from streamhash import LSH, mean_average_precision

    names = {"__name__": "contributing"}
    exec(blocks("CONTRIBUTING.md", "python")[1].replace("check_hasher(", "print("), names)
    X, y = load_digits(return_X_y=True)
    found = {}
    for method in (names["Codewords"], LSH):
        hasher = method(32, random_state=0).fit(X[:1400], [f"digit {label}" for label in y[:1400]])
        codes = hasher.transform(X)
        found[method] = mean_average_precision(codes[1400:], y[1400:], codes[:1400], y[:1400])
    assert found[names["Codewords"]] > found[LSH] + 0.1


def test_the_experiment_of_the_contributing_page_can_be_read(empty_folder, monkeypatch):
    from streamhash.lab import read_experiment

    (text,) = blocks("CONTRIBUTING.md", "toml")
    (empty_folder / "mine.toml").write_text(text, encoding="utf-8")
    (empty_folder / "my_method.py").write_text(
        "from streamhash import LSH\nclass Codewords(LSH):\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(empty_folder))
    experiment = read_experiment("mine.toml")
    assert [run.label for run in experiment.runs("mine")] == [
        *("SDOH", "HCOH", "Codewords", "SDOH, memory=0, features=None"),
    ]


@pytest.mark.slow
def test_tables_are_those_of_the_rows():
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "rebuild.py"), "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"run python docs/rebuild.py: {done.stdout}{done.stderr}"


def test_the_tables_of_search_have_every_measurement(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from performance_tables import chosen, machines, search_table, times_ours

    cells = [re.split(r" [|/] ", line) for line in search_table().splitlines()]
    for measured in machines().values():
        for part in ("nearest", "within"):
            for data in ("clustered", "uniform"):
                for bits in (64, 128, 256, 512):
                    line = next(each for each in cells if each[0] == f"| {bits} bits, {data}")
                    for queries in (1, 200):
                        facts = {"part": part, "data": data, "bits": bits, "queries": queries}
                        ratio = f"{times_ours(measured, 'faiss', **facts):.1f}"
                        assert ratio in [each.removesuffix(" |") for each in line]
        assert len(chosen(measured, part="threads")) == 8


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_its_page_and_its_row_in_the_readme(name):
    assert (ROOT / "docs" / "methods" / f"{name}.md").exists()
    assert f"docs/methods/{name}.md" in README
    method = METHODS[name]
    assert method.reference
    assert str(method.year) in method.reference
    assert method.__doc__


def test_make_has_the_two_commands():
    make = shutil.which("make")
    assert make
    for target in ("demo", "test"):
        done = subprocess.run([make, "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert f"make {target}" in README


def test_no_conflict_of_versions_was_left():
    marks = ("<" * 7 + " ", ">" * 7 + " ")
    for path in DOCUMENTS:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if line.startswith(marks)], path
