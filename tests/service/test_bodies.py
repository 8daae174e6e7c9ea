"""Bodies are read the same, small or large: as JSON says, within limits, up to the first fault."""

import json
import os
import signal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from streamhash.service.bodies import Form, RefusedBody, read_body, read_json
from streamhash.service.frames import pack_frame
from streamhash.service.reader import SMALL, BodyReader
from streamhash.storable import MetadataTexts

FORM = Form(["vectors", "queries", "ids", "labels", "metadata", "k", "left", "existing"], 100)


@pytest.fixture(scope="module")
def reader():
    reader = BodyReader(30)
    yield reader
    reader.close()


def padded(content: bytes) -> bytearray:
    """The same body, large: JSON may have white space anywhere outside of values."""
    return bytearray(content[:1] + b" " * SMALL + content[1:])


def plain(fields):
    kinds = (np.ndarray, MetadataTexts)
    return {
        name: each.tolist() if isinstance(each, kinds[0]) else each for name, each in fields.items()
    }


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)
values = st.recursive(st.none() | st.booleans() | numbers | texts, st.lists, max_leaves=5)
rows = st.integers(1, 4).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(-99, 99) | st.floats(-9, 9, width=32), min_size=n, max_size=n),
        min_size=1,
    )
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "vectors": rows | st.none(),
        "queries": rows | st.lists(numbers),
        "ids": st.lists(numbers | texts),
        "labels": st.lists(numbers | texts | st.none() | st.lists(numbers | texts)),
        "metadata": st.lists(st.none() | st.dictionaries(texts, values)),
        "k": numbers,
        "left": st.dictionaries(texts, numbers),
        "existing": texts,
    },
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(body=bodies, spaces=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_a_body_says_what_its_json_says_here_and_in_another_process(
    reader, body, spaces, ascii_only
):
    content = json.dumps(body, indent=spaces, ensure_ascii=ascii_only).encode()
    if body.get("metadata"):
        body["metadata"] = [each and json.loads(json.dumps(each)) for each in body["metadata"]]
    for fields in (read_json(content, FORM), reader.read(padded(content), FORM)):
        read = plain(fields)
        if "metadata" in read:
            assert isinstance(fields["metadata"], MetadataTexts)
            read["metadata"] = [text and json.loads(text) for text in read["metadata"]]
        assert [*sorted(read)] == [*sorted(body)]
        assert read == body


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"[]", 422),
        (b"{", 422),
        (b"{}x", 422),
        (b'{"k": 1,}', 422),
        (b'{"k" 1}', 422),
        (b'{"k": 1 "ids": []}', 422),
        (b"{'k': 1}", 422),
        (b"{1: 1}", 422),
        (b'{"ids": [1,]}', 422),
        (b'{"ids": [1 2]}', 422),
        (b'{"ids": [,]}', 422),
        (b'{"ids": [1', 422),
        (b'{"ids": [[1]]}', 422),
        (b'{"vectors": [[1], 2]}', 422),
        (b'{"vectors": [[true]]}', 422),
        (b'{"vectors": [[]]}', 422),
        (b'{"vectors": [["1"]]}', 422),
        (b'{"vectors": [[NaN]]}', 422),
        (b'{"vectors": [[1], [1, 2]]}', 400),
        (b'{"vectors": [[' + b"1" * 400 + b"]]}", 422),
        (b'{"vectors": ' + str([[1]] * 101).encode() + b"}", 413),
        (b'{"ids": ' + str([1] * 101).encode() + b"}", 413),
        (b'{"metadata": [' + b",".join([b"{}"] * 101) + b"]}", 413),
        (b'{"metadata": [1]}', 422),
        (b'{"k": {}}', 422),
        (b'{"k": []}', 422),
        (b'{"left": "' + b"a" * 20_000 + b'"}', 422),
        (b'{"k": "\xff"}', 422),
        (b"\xef\xbb\xbf{}", 422),
    ],
)
def test_a_fault_is_refused_the_same_here_and_in_another_process(reader, content, status):
    for read, body in ((read_json, content), (reader.read, padded(content or b"x"))):
        with pytest.raises(RefusedBody) as refused:
            read(body, FORM)
        assert refused.value.status == status
        assert refused.value.text.endswith(".")


def test_nothing_behind_a_fault_is_looked_at():
    for content in (b'{"x": \xff', b'{"k": [\xff', b'{"ids": [{\xff'):
        with pytest.raises(RefusedBody) as refused:
            read_json(content.replace(b"\xff", b"["), FORM)
        assert "not JSON" not in refused.value.text


def test_a_number_of_too_many_digits_is_told_without_advice_for_programmers(reader):
    content = b'{"k": ' + b"9" * 5000 + b"}"
    for read in (read_json, lambda content, form: reader.read(padded(content), form)):
        with pytest.raises(RefusedBody) as refused:
            read(content, FORM)
        assert refused.value.text == "body: a whole number has too many digits."


@pytest.mark.parametrize("n", [1, 100])
def test_a_raw_body_says_what_it_would_as_json(reader, n):
    X = np.random.default_rng(0).standard_normal((n, 5)).astype(np.float32)
    metadata = [{"a": "x" * 700, "é": None}] * n
    content = pack_frame({"ids": [*range(n)], "metadata": metadata, "shape": [n, 5]}, X)
    for read in (None, reader.read):
        fields = read_body(bytearray(content), FORM, raw=True, read=read)
        assert np.array_equal(fields["vectors"], X)
        assert [json.loads(text) for text in fields["metadata"]] == metadata
        assert fields["ids"] == [*range(n)]


def test_a_process_that_ended_is_started_again(reader):
    content = b'{"k": 1}'
    assert reader.read(padded(content), FORM) == {"k": 1}
    pid = reader._process.pid
    os.kill(pid, signal.SIGKILL)
    assert reader.read(padded(content), FORM) == {"k": 1}
    assert reader._process.pid != pid


def test_memory_of_the_process_is_bounded(reader):
    content = bytearray(b'{"metadata": [{"a": [' + b"[]," * 2_000_000 + b"[]]}]}")
    with pytest.raises(RefusedBody, match="too much memory to read") as refused:
        reader.read(content, FORM)
    assert refused.value.status == 413
    assert reader.read(padded(b'{"k": 1}'), FORM) == {"k": 1}


@pytest.mark.parametrize("number", [b"1,", b"1.5,", b'"a",'])
def test_one_vector_without_end_ends_neither_the_process_nor_takes_long(reader, number):
    assert reader.read(padded(b'{"k": 1}'), FORM) == {"k": 1}
    pid = reader._process.pid
    content = b'{"vectors": [[' + number * (2**23 // len(number)) + b"1]]}"
    status = 200
    try:
        reader.read(bytearray(content), FORM)
    except RefusedBody as refused:
        status = refused.status
    assert status == (422 if b"a" in number else 413)
    assert reader._process.pid == pid
