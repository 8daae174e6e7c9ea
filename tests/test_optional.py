"""What is said where an optional package is missing."""

import json
import sys

import pytest

from streamhash import MissingPartError
from streamhash.optional import import_optional


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
