"""How a search is to go: which items count, what is compared with what, and in which order."""

from typing import Any, NamedTuple, Self

from streamhash.errors import InputError
from streamhash.live.filters import Filter
from streamhash.parameters import Choice, Maybe, Number, Whole, check_parameters

MOST_RESCORED = 1000  # candidates for each answer

RULES = {
    "rescore": Maybe(Whole(1, MOST_RESCORED)),
    "by": Choice("vectors", "projections"),
    "metric": Choice("cosine", "dot", "euclidean"),
    "query": Choice("code", "real"),
    "min_probability": Maybe(Number(at_least=0, at_most=1)),
    "radius": Maybe(Whole(0)),
}


class SearchOptions(NamedTuple):
    """Options of a search, checked; searches of equal ones can be one."""

    where: Filter | None = None  # only items that it is true of are found
    rescore: int | None = None  # so many candidates for each answer are scored exactly
    by: str = "vectors"  # what is scored
    metric: str = "cosine"  # and how
    query: str = "code"  # what is compared with the items' codes: the query's, or its projections
    min_probability: float | None = None  # answers that are less sure are left out
    radius: int | None = None  # and those that are farther away

    @classmethod
    def checked(cls, place: str, **options: Any) -> Self:
        """Return options that came from outside."""
        self = cls(**options)
        if self == cls():
            return self
        check_parameters(place, self._asdict(), RULES)
        if self.rescore is None and (self.by, self.metric) != (cls().by, cls().metric):
            raise InputError(
                f"{place}: by={self.by!r} and metric={self.metric!r} say how to rescore; pass "
                "rescore=4 with them."
            )
        if self.where is not None:
            self = self._replace(where=Filter.parse(self.where, place=f"{place}: where"))
        return self


PLAIN = SearchOptions()
