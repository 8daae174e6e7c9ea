"""What is used of scikit-learn.

It imports pandas and ``scipy.stats``, half of the time in which a process starts, for functions
that nothing here calls; so they wait until somebody calls one.
"""

from streamhash.optional import imported_later

with imported_later("pandas", "scipy.stats"):
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
        clone,
    )
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import validate_data

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "NotFittedError",
    "TransformerMixin",
    "check_random_state",
    "clone",
    "validate_data",
]
