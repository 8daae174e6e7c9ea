"""Hostile requests to a real service: nobody else waits, memory stays within bounds, it goes on.

The long form, with bodies as large as they may be, is ``benchmarks/faults.py service``.
"""

import pytest

import fault_service as faults
from _service import exchange, serving
from fault_requests import attack

pytestmark = pytest.mark.slow

SIZE = 2**20  # bytes of a body
MB = 2**20
LONGEST = 1.0  # seconds that /health may take, on a machine that does other things too
LIMITS = {"answer_seconds": 4, "unread": 24 * MB}


@pytest.fixture(scope="module")
def service():
    limits = [word for name, value in LIMITS.items() for word in ("--limit", f"{name}={value}")]
    with serving(1000, *limits) as service:
        yield service


@pytest.mark.parametrize("name", faults.SINGLE)
def test_no_request_holds_up_the_others(service, name):
    seen = faults.try_single(service, name, SIZE)
    assert seen.result in faults.SINGLE[name].statuses
    assert seen.longest < LONGEST
    answers = 80 * MB if "neighbours" in name else 0  # 15 or 30 MB, and what they are made of
    assert seen.peak < 8 * SIZE + 24 * MB + answers


@pytest.mark.parametrize("name", faults.FLOODS)
def test_nobody_fills_its_memory_without_a_token(service, name):
    seen = faults.try_flood(service, name, 60 * MB)
    assert seen.result < 30 * MB  # most of these lie in the system's own buffers
    assert seen.longest < LONGEST
    assert seen.peak < 16 * MB


def test_answers_that_are_never_read_are_bounded_and_dropped(service):
    seen = faults.try_unread(service, 5, 2.5 * LIMITS["answer_seconds"])
    assert set(seen.result) <= {"dropped", "refused"}
    assert seen.result["dropped"] >= 1
    assert seen.longest < LONGEST
    assert seen.peak < LIMITS["unread"] + 5 * 60 * MB
    assert exchange(service.port, faults.SINGLE["a long list"].make(0))[0] == 200


def test_requests_made_up_at_random_are_answered_or_refused(service):
    found = attack(service, 1000, seed=0)
    assert found["failures"] == []
    assert sum(found["statuses"].values()) == 1000
    assert found["statuses"]["200"] > 100
    assert found["statuses"]["422"] > 100
    assert found["items_answered"] > 900
