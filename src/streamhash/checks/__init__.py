"""Public checks that any hasher can be run through, ours and yours alike.

>>> from streamhash import LSH
>>> from streamhash.checks import check_hasher
>>> check_hasher(LSH(n_bits=12, random_state=0))

Each check is a function of a hasher that is not learned yet (it is cloned, never changed) and
raises AssertionError when the hasher breaks the contract. ``ALL_CHECKS`` maps their names to them,
for use with ``pytest.mark.parametrize``. A hasher that cannot keep a check is exempted by name
*with the reason*: ``check_hasher(MyHasher(), exempt={"scales_do_not_matter": "raw features"})``.
"""

from collections.abc import Callable, Mapping

from streamhash.base import OnlineHasher
from streamhash.checks import encoding, inputs, learning, saving

__all__ = ["ALL_CHECKS", "check_hasher"]

Check = Callable[[OnlineHasher], None]

ALL_CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): check
    for room in (encoding, inputs, learning, saving)
    for name, check in vars(room).items()
    if name.startswith("check_")
}


def check_hasher(hasher: OnlineHasher, *, exempt: Mapping[str, str] | None = None) -> None:
    """Run every check on a hasher; ``exempt`` names checks to leave out, each with a reason."""
    reasons = exempt or {}
    unknown = set(reasons) - set(ALL_CHECKS)
    if unknown:
        raise ValueError(f"check_hasher: no check is called {', '.join(sorted(unknown))}.")
    for name, check in ALL_CHECKS.items():
        if not reasons.get(name):
            check(hasher)
