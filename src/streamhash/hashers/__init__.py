"""The methods: one file each, named after the method."""

from streamhash.base import OnlineHasher
from streamhash.hashers.lsh import LSH
from streamhash.hashers.sdoh import SDOH

__all__ = ["LSH", "METHODS", "SDOH"]

# By the names that the command line uses, in the order of their listing.
METHODS: dict[str, type[OnlineHasher]] = {"sdoh": SDOH, "lsh": LSH}
