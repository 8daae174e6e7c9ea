"""Extreme items in a collection: clipped, refused or left out; and the way back to a model."""

import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from command_line import run
from streamhash import HCOH, LSH, SDOH, ExtremeRowsError, InputError, NotFoundError
from streamhash.live import Collection, refresh
from streamhash.service import create_app

FILL = 9.96921e36


def stream(n=400, d=8, classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    X = 3 * np.eye(classes, d)[y] + random.standard_normal((n, d))
    return X.astype(np.float32), y.tolist()


X, Y = stream()


def hasher():
    return SDOH(16, batch_size=20, n_features=32, memory=60, random_state=0)


@pytest.fixture
def items(tmp_path):
    with Collection.create(tmp_path / "items", hasher(), refresh="manual") as made:
        yield made


def add(items, rows, start=None, y=Y):
    first = len(items) if start is None else start
    return items.add(range(first, first + len(rows)), rows, y[first : first + len(rows)])


def precision(items):
    """Of rows that are not in it."""
    rows, wanted = stream(100, seed=1)
    _, ids = items.search(rows, 5)
    found = np.array([items.labels(row) for row in ids])
    return (found == np.array(wanted)[:, None]).mean()


def coded_by_one_model(items):
    stored = items.get(items.ids)
    codes = items.model().transform(np.array([item.vector for item in stored]))
    return np.array_equal(codes, [item.code for item in stored])


# Extreme items ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "at"),
    [(hasher(), 0), (HCOH(16, batch_size=20, random_state=0), 150), (hasher(), 299)],
)
def test_one_extreme_item_is_clipped_counted_and_can_be_found(tmp_path, method, at):
    rows = X[:300].copy()
    rows[at], rows[(at + 7) % 300, 2] = -FILL, FILL
    with Collection.create(tmp_path / "items", method) as items:
        for start in range(0, 300, 50):
            add(items, rows[start : start + 50])
        items.refresh()
        assert precision(items) > 0.8
        status = items.status()["learner"]
        assert (status["clipped"], status["left_out"]) == (9, 0)
        assert coded_by_one_model(items)
        assert np.array_equal(items.get([at])[0].vector, rows[at])  # stored as it came
    with Collection.open(tmp_path / "items", read_only=True) as items:
        assert items.status()["learner"]["clipped"] == 9


def test_a_piece_that_would_wreck_the_learner_is_refused_by_name(items):
    add(items, X[:100])
    before = items._learner.hasher_.to_bytes(), items.status()["version"]
    bad = X[100:200].copy()
    bad[10:50, 3] = FILL
    labels = [*Y[100:]]
    labels[0] = None  # is not learned, but counts as a row of the call
    with pytest.raises(ExtremeRowsError, match=r"^Collection\.add: rows 10, 11, .* 30 more of X"):
        items.add(range(100, 200), bad, labels[:100])
    assert (items._learner.hasher_.to_bytes(), items.status()["version"]) == before
    assert len(items) == 100
    items.add(range(100, 200), bad)  # without labels they are stored, and found
    with pytest.raises(ExtremeRowsError, match=r"^Collection\.label: rows 10, 11, "):
        items.label(range(100, 200), Y[100:200])
    assert items.status()["labelled"] == 100


def test_extreme_items_that_came_one_by_one_are_left_out_and_block_nothing(tmp_path, caplog):
    rows = X.copy()
    rows[100:160, 3] = FILL
    method = HCOH(16, batch_size=100, random_state=0)
    with Collection.create(tmp_path / "items", method, refresh="manual") as items:
        add(items, rows[:100])
        for i in range(100, 200):
            add(items, rows[i : i + 1])
        learner = items.status()["learner"]
        assert (learner["learned"], learner["waiting"], learner["left_out"]) == (200, 0, 60)
        assert "60 items are not learned from" in caplog.text
        add(items, rows[200:])
        items.refresh()
        assert precision(items) > 0.8


def test_an_extreme_first_item_that_was_learned_alone_blocks_nothing(items):
    rows = X.copy()
    rows[0] = FILL
    add(items, rows[:1])
    items.refresh()  # learns it, as there is nothing else
    add(items, rows[1:300])
    items.refresh()
    assert items.status()["learner"]["left_out"] == 1
    assert precision(items) > 0.8


def test_methods_without_labels_look_at_all_items(tmp_path):
    with Collection.create(tmp_path / "items", LSH(16, random_state=0)) as items:
        bad = X[:200].copy()
        bad[50:100] = FILL
        with pytest.raises(ExtremeRowsError, match="rows 50, 51, "):
            items.add(range(200), bad)


# The way back ----------------------------------------------------------------------------------


def models_of(items):
    """Two models: one of all, one of a learner whose labels are of no use."""
    add(items, X[:200])
    items.refresh()
    good = items.model().to_bytes(), items.model_number
    wrong = np.random.default_rng(0).permutation(Y[200:]).tolist()
    items.add(range(200, 400), X[200:], wrong)
    items.refresh()
    return good


def test_an_older_model_serves_again(items):
    content, number = models_of(items)
    learner = items._learner.hasher_.to_bytes()
    assert items.model_number == number + 1
    seen = []
    assert items.revert(number, progress=lambda *done: seen.append(done))
    assert items.model_number == number + 2
    assert items.model().to_bytes() == content
    assert coded_by_one_model(items)
    assert seen[-1] == (400, 400)
    assert items._learner.hasher_.to_bytes() == learner
    last = items.history().refreshes[-1]
    assert (last["model"], last["reverted_to"], last["items"]) == (number + 2, number, 400)
    assert [event["reverted_to"] for event in items.history().refreshes[:-1]] == [None, None]
    assert items.models()[-1][1]["reverted_to"] == number
    assert not items.revert(number)  # it serves already
    assert not items.revert(number + 2)
    with pytest.raises(NotFoundError, match="no model 17"):
        items.revert(17)
    with pytest.raises(InputError, match="model=0"):
        items.revert(0)
    add(items, X[:20], start=1000, y=Y * 3)  # new items get its codes
    assert coded_by_one_model(items)


@pytest.mark.parametrize("policy", ["gain", 40])
def test_the_policy_waits_until_the_learner_is_better(tmp_path, policy):
    method = SDOH(16, batch_size=20, memory=0, features=None, random_state=0)
    with Collection.create(tmp_path / "items", method, refresh=policy, random_state=0) as items:
        add(items, X[:200])
        items.refresh()
        number, good = items.model_number, precision(items)
        # The learner is spoilt by labels that mean nothing.
        wrong = np.random.default_rng(0).integers(3, size=2000).tolist()
        items.add(range(5000, 7000), np.tile(X, (5, 1)), wrong)
        items.refresh()
        items.delete(range(5000, 7000))
        items.revert(number)
        assert not items.is_refresh_due()
        served = items.model_number
        add(items, X[200:260])  # more than 40: its codes are no better yet
        assert items.model_number == served or items.history().refreshes[-1]["gain"] > 0
        assert precision(items) > good - 0.1
    with Collection.open(tmp_path / "items") as items:  # and after it was closed
        assert items.history().refreshes[-1]["model"] == items.model_number


def test_a_refresh_by_hand_serves_the_learner_again(items):
    _, number = models_of(items)
    items.revert(number)
    assert items.refresh()
    assert items.status()["serving"]["reverted_to"] is None


def test_a_revert_takes_the_place_of_an_interrupted_refresh(items, monkeypatch):
    content, number = models_of(items)
    add(items, X[:20], start=1000, y=Y * 3)

    class StopError(Exception):
        pass

    def stop(*_):
        raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(refresh.Refresher, "_finish", stop)
        with pytest.raises(StopError):
            items.refresh()
        assert items.status()["refresh"]["interrupted"]
        with pytest.raises(StopError):
            items.revert(number)
        interrupted = items._journal.pending
        with pytest.raises(StopError):
            items.revert(number)
        assert items._journal.pending == interrupted  # it goes on with the same
    assert items.refresh()  # whoever asks, an interrupted one is finished first
    assert (items.model_number, items.model().to_bytes()) == (interrupted, content)
    assert not items.status()["refresh"]["interrupted"]
    assert coded_by_one_model(items)


def test_searches_go_on_with_one_model_meanwhile(items):
    _, number = models_of(items)
    other = items.model_number
    rows = X[:50]
    expected = {n: items.model(n).transform(rows).tobytes() for n in (number, other)}
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(lambda: [items.revert(n) for n in (number, other, number)])
        while not running.done():
            moment = items._view.now
            assert moment.model.transform(rows).tobytes() in expected.values()
            distances, _ = items.search(rows, 1)
            assert (distances == 0).all()
        assert running.result() == [True, True, True]


@pytest.mark.slow
def test_killed_in_the_middle_of_a_revert(tmp_path):
    path = tmp_path / "items"
    with Collection.create(path, hasher(), refresh="manual") as items:
        content, number = models_of(items)
    program = textwrap.dedent(f"""
        import os, signal
        from streamhash.live import Collection, refresh
        items = Collection.open({str(path)!r})
        usual = refresh.Refresher._finish
        def finish(self, work, start):
            if {{late}}:
                usual(self, work, start)
            os.kill(os.getpid(), signal.SIGKILL)
        refresh.Refresher._finish = finish
        items.revert({number})
    """)
    for late in (False, True):
        code = program.replace("{late}", str(late)).replace("{{late}}", str(late))
        ended = subprocess.run([sys.executable, "-c", code], env=os.environ, check=False)
        assert ended.returncode == -9
        with Collection.open(path) as items:
            assert coded_by_one_model(items)
            assert items.status()["refresh"]["interrupted"] != late
            assert items.model_number == number + (2 if late else 1)
    with Collection.open(path) as items:
        assert items.model().to_bytes() == content
        assert items.history().refreshes[-1]["reverted_to"] == number


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Collection.create("items", hasher(), refresh="manual") as items:
        rows = X[:200].copy()
        rows[5, 2] = FILL
        add(items, rows)
        items.refresh()
        add(items, X[200:])
        items.refresh()
    done = run("live", "revert", "items", "--model", "1")
    assert done.stdout.startswith("Model 3 serves 400 items, of 200 learned ones, after ")
    assert run("live", "revert", "items", "--model", "1").stdout == (
        "Model 3 serves, and is model 1: nothing to do.\n"
    )
    assert "model 3 serves, model 1 again" in run("live", "history", "items").stdout
    status = run("live", "status", "items").stdout
    assert "1 values were replaced before learning" in status
    assert "model 3, model 1 again, as learned from 200 items" in status
    wrong = run("live", "revert", "items", "--model", "9")
    assert wrong.exit_code == 2
    assert "there is no model 9" in wrong.stderr


def test_over_http(items, ask_app):
    content, number = models_of(items)
    ask = ask_app(create_app(items))
    headers = {"Host": "127.0.0.1:8000", "Content-Type": "application/json"}

    def call(**body):
        status, _, answer = ask("POST", "/api/revert", headers, json.dumps(body).encode())
        return status, json.loads(answer)

    assert call(model=number, wait=True) == (200, {"running": False, "changed": True})
    assert items.model().to_bytes() == content
    assert call(model=number, wait=True) == (200, {"running": False, "changed": False})
    status, answer = call(model=99, wait=True)
    assert (status, "no model 99" in answer["error"]["message"]) == (404, True)
    assert [call(model=0, wait=True)[0], call()[0]] == [400, 422]
    assert items.status()["serving"]["reverted_to"] == number
