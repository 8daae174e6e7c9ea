"""What is said where an optional package is missing."""

import json
import subprocess
import sys

import pytest

from streamhash import MissingPartError
from streamhash.optional import import_optional, imported_later


def test_a_module_that_is_there_is_returned():
    assert import_optional("json", extra="files", place="a test") is json


@pytest.mark.parametrize(
    ("name", "otherwise", "message"),
    [
        (
            "pyarrow.parquet",
            "",
            'x.parquet needs pyarrow, which is not installed; run pip install "streamhash[some]".',
        ),
        (
            "PIL.Image",
            "pass a .npy",
            'x.parquet needs Pillow, which is not installed; run pip install "streamhash[some]", '
            "or pass a .npy.",
        ),
    ],
)
def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch, name, otherwise, message):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPartError) as error:
        import_optional(name, extra="some", place="x.parquet", otherwise=otherwise)
    assert str(error.value) == message
    assert isinstance(error.value.__cause__, ImportError)


def test_what_scikit_learn_imports_unused_comes_when_it_is_used():
    """In a process of its own, where nothing has imported it yet."""
    code = """
import sys
import streamhash
hasher = streamhash.SDOH(8)
assert "sklearn" in sys.modules
assert "pandas" not in sys.modules and "scipy.stats" not in sys.modules

from streamhash.lab.datasets import load_data
load_data("digits")
assert "scipy.stats" not in sys.modules

import numpy as np
from sklearn.preprocessing import PowerTransformer, QuantileTransformer
rows = np.arange(60.0).reshape(20, 3) ** 2
normal = QuantileTransformer(n_quantiles=20, output_distribution="normal").fit_transform(rows)
assert abs(normal[5, 0] + 0.63) < 0.01
from scipy.stats import norm
assert norm.cdf(0) == 0.5
import scipy.stats
assert scipy.stats is sys.modules["scipy.stats"] and scipy.stats.norm is norm

import pandas
from sklearn.utils import fixes
assert sys.modules["pandas"] is pandas and fixes.pd.DataFrame is pandas.DataFrame
hasher.fit(pandas.DataFrame(rows, columns=["a", "b", "c"]), np.arange(20) % 2)
assert list(hasher.feature_names_in_) == ["a", "b", "c"]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_module_that_was_imported_before_is_kept_and_one_that_is_not_there_is_missing():
    with imported_later("json", "no_such_module"):
        assert sys.modules["json"] is json
        with pytest.raises(ImportError):
            import no_such_module  # noqa: F401
