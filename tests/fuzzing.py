"""How long state-machine tests run: the same few cases every time, or random ones in ``make fuzz``.

``STREAMHASH_FUZZ=20`` means twenty times as many examples, with seeds that no one has chosen. What
fails is printed, with the line that plays it again.
"""

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("STREAMHASH_FUZZ", "0"))


def machine_settings(examples: int, steps: int) -> settings:
    """Settings of a state machine that tries so many examples of at most so many steps."""
    return settings(
        max_examples=examples * max(TIMES, 1),
        stateful_step_count=steps,
        deadline=None,
        derandomize=not TIMES,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
