"""Requests that mean no good, or are mistaken: each has its answer, and the service goes on."""

import json
import re
import socket
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamhash import InputError
from streamhash.live import Collection
from streamhash.service import Limits, Tokens, create_app, serve
from streamhash.service.frames import pack_frame

X, _ = load_digits(return_X_y=True)
READ, WRITE = "read-token-of-the-tests", "write-token-of-the-tests"
LIMITS = {
    "body": 200_000,
    "body_seconds": 1.5,
    "head_seconds": 1.5,
    "vectors": 100,
    "k": 600,
    "answers": 60_000,
    "requests": 24,
}
DOCS = Path(__file__).parents[2] / "docs" / "service.md"


@pytest.fixture(scope="module")
def port(start_service, make_digits):
    limits = [word for name, value in LIMITS.items() for word in ("--limit", f"{name}={value}")]
    service = start_service(
        *("serve", make_digits(300), "--allow-host", "hash.example", *limits),
        STREAMHASH_READ_TOKEN=READ,
        STREAMHASH_WRITE_TOKEN=WRITE,
    )
    yield service.port
    code, _, errors = service.stop()
    assert code == 0
    told = {line.split(maxsplit=2)[2] for line in errors.splitlines()}
    assert {line for line in told if " 503 " not in line} <= {"Invalid HTTP request received."}
    assert not any(secret in errors for secret in (READ, WRITE))


@pytest.fixture(scope="module")
def guarded(make_digits, ask_app):
    """The same in this process, called as an application."""
    with Collection.open(make_digits(300), background=True) as items:
        tokens, limits = Tokens(READ, WRITE), Limits(**LIMITS)
        yield ask_app(
            create_app(items, tokens=tokens, allowed_hosts=["hash.example"], limits=limits)
        )


def send(port, method, path, headers, body=b"", *, seconds=20):
    """Send a request as it is, byte for byte; return status, headers and content."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return read_answer(connection)


def read_answer(connection):
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            return 0, {}, received
        received += part
    head, _, content = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    while len(content) < int(headers.get("content-length", 0)):
        content += connection.recv(65536)
    return int(status.split()[1]), headers, content


def request(method="GET", path="/api/models", body=None, *, token=WRITE, **headers):
    """Return method, path, headers and content of a request; a header that is None is left out."""
    sent = {"Host": "127.0.0.1:8000", "Connection": "close"}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    content = b""
    if body is not None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    return method, path, {name: value for name, value in sent.items() if value is not None}, content


def ask(port, *arguments, **named):
    return send(port, *request(*arguments, **named))


ROW = X[0].tolist()
RAW = {"Content_Type": "application/octet-stream"}
DEEP = b'{"vectors":' + b"[" * 90_000 + b"]" * 90_000 + b"}"
DEEP_METADATA = (
    (b'{"vectors":[' + json.dumps(ROW).encode() + b'],"metadata":[' + b'{"a":' * 9_000 + b"1")
    + b"}" * 9_000
    + b"]}"
)
NESTED = {}
for _ in range(300):
    NESTED = {"a": NESTED}
GOOD = pack_frame({"k": 1, "shape": [1, 64]}, X[:1].astype(np.float32))
NAN = np.full((1, 64), np.nan, np.float32)

SEARCH, ADD = ("POST", "/api/search"), ("POST", "/api/items")
# What is sent; the status and the code of the answer. docs/service.md has the same list in words.
HOSTILE = {
    "an item put with the read token": (
        ("PUT", "/api/items/get", {"vector": ROW}),
        {"token": READ},
        403,
        "forbidden",
    ),
    "a collection made with the read token": (
        ("POST", "/api/collections", {"name": "new"}),
        {"token": READ},
        403,
        "forbidden",
    ),
    "a collection dropped with the read token": (
        ("DELETE", "/api/collections/digits"),
        {"token": READ},
        403,
        "forbidden",
    ),
    "a collection that is not there": (("GET", "/api/collections/x/status"), {}, 404, "not_found"),
    "a collection of another folder": (
        ("GET", "/api/collections/..%2Fdigits/status"),
        {},
        404,
        "not_found",
    ),
    "a collection called by a path": (
        ("POST", "/api/collections", {"name": "../new"}),
        {},
        422,
        "invalid",
    ),
    "an order by no field": (("GET", "/api/items?sort=nothing"), {}, 400, "bad_input"),
    "a file that is none": (
        ("POST", "/api/files?format=parquet", b"no parquet"),
        {"Content_Type": "application/octet-stream"},
        400,
        "bad_input",
    ),
    "a file of another site": (
        ("POST", "/api/files?format=jsonl", b"{}"),
        {"Content_Type": "text/plain"},
        415,
        "unsupported_type",
    ),
    "an item changed to what is none": (
        ("PATCH", "/api/items/3", {"vector": "text"}),
        {},
        422,
        "invalid",
    ),
    "no token": ((), {"token": None}, 401, "unauthorized"),
    "a wrong token": ((), {"token": "x" * 24}, 401, "unauthorized"),
    "the beginning of a token": ((), {"token": WRITE[:-1]}, 401, "unauthorized"),
    "a token in another scheme": ((), {"Authorization": f"Basic {WRITE}"}, 401, "unauthorized"),
    "no token for an address that is not there": (
        ("GET", "/nothing"),
        {"token": None},
        401,
        "unauthorized",
    ),
    "a write with the read token": (
        ("POST", "/api/items/delete", {"ids": [1]}),
        {"token": READ},
        403,
        "forbidden",
    ),
    "a refresh with the read token": (
        ("POST", "/api/refresh", {}),
        {"token": READ},
        403,
        "forbidden",
    ),
    "the Host of another site": ((), {"Host": "evil.example"}, 421, "wrong_host"),
    "a Host that begins like ours": ((), {"Host": "localhost.evil.example"}, 421, "wrong_host"),
    "a Host that begins like an IPv6 address": (
        (),
        {"Host": "[::1].evil.example"},
        421,
        "wrong_host",
    ),
    "a Host with a name before it": ((), {"Host": "evil.example@localhost"}, 421, "wrong_host"),
    "no Host": ((), {"Host": None}, 421, "wrong_host"),
    "what is not even HTTP": (("NOT", "HTTP\r\n\r\n"), {}, 400, "bad_input"),
    "an address that is not there": (("GET", "/api/nothing"), {}, 404, "not_found"),
    "a method that is not there": (("DELETE", "/api/items"), {}, 405, "method_not_allowed"),
    "a form of another site": (
        (*SEARCH, b"k=1"),
        {"Content_Type": "application/x-www-form-urlencoded"},
        415,
        "unsupported_type",
    ),
    "text of another site": (
        ("POST", "/api/refresh", b"{}"),
        {"Content_Type": "text/plain"},
        415,
        "unsupported_type",
    ),
    "a body without a type": (
        (*SEARCH, {"ids": [1]}),
        {"Content_Type": None},
        415,
        "unsupported_type",
    ),
    "raw numbers where there are none": (
        ("POST", "/api/labels", GOOD),
        RAW,
        415,
        "unsupported_type",
    ),
    "path tricks in the page's files": (
        ("GET", "/static/../../../../etc/passwd"),
        {},
        404,
        "not_found",
    ),
    "encoded path tricks": (
        ("GET", "/static/%2e%2e%2f%2e%2e%2fpyproject.toml"),
        {},
        404,
        "not_found",
    ),
    "a path as an id": (("GET", "/api/items/..%2F..%2Fetc%2Fpasswd"), {}, 404, "not_found"),
    "a zero byte in an id": (("GET", "/api/items/%00/image"), {}, 404, "not_found"),
    "a negative id": (("GET", "/api/items/-1"), {}, 404, "not_found"),
    "a huge id": (("GET", f"/api/items/{'9' * 60}"), {}, 404, "not_found"),
    "a page beyond all bounds": (("GET", "/api/items?limit=1000000"), {}, 422, "invalid"),
    "an offset that is no number": (("GET", "/api/items?offset=a"), {}, 422, "invalid"),
    "no body": ((*SEARCH, b""), {}, 422, "invalid"),
    "bad JSON": ((*SEARCH, b'{"vectors": [[1,'), {}, 422, "invalid"),
    "JSON that is no object": ((*SEARCH, b"[1, 2]"), {}, 422, "invalid"),
    "bytes that are no text": ((*SEARCH, b'{"ids": ["\xff\xfe"]}'), {}, 422, "invalid"),
    "half of a surrogate pair": ((*ADD, b'{"ids": ["\\ud800"]}'), {}, 422, "invalid"),
    "JSON that is too deep": ((*SEARCH, DEEP), {}, 422, "invalid"),
    "metadata that are too deep": ((*ADD, DEEP_METADATA), {}, 422, "invalid"),
    "words for numbers": ((*SEARCH, {"vectors": [["1"] * 64]}), {}, 422, "invalid"),
    "a flat vector": ((*SEARCH, {"vectors": ROW}), {}, 422, "invalid"),
    "rows of several widths": ((*SEARCH, {"vectors": [ROW, [1.0]]}), {}, 400, "bad_input"),
    "a wrong width": ((*SEARCH, {"vectors": [[1.0] * 63]}), {}, 400, "bad_input"),
    "NaN as JSON": ((*SEARCH, b'{"vectors": [[NaN]]}'), {}, 422, "invalid"),
    "a number that float32 cannot hold": (
        (*SEARCH, {"vectors": [[1e300] * 64]}),
        {},
        400,
        "bad_input",
    ),
    "NaN as raw numbers": (
        (*SEARCH, pack_frame({"shape": [1, 64]}, NAN)),
        RAW,
        400,
        "bad_input",
    ),
    "a raw body that is cut off": ((*SEARCH, GOOD[:-4]), RAW, 422, "invalid"),
    "a raw body with more behind it": ((*SEARCH, GOOD + b"1234"), RAW, 422, "invalid"),
    "a raw head that is longer than all": ((*SEARCH, b"\xff\xff\xff\xff{}"), RAW, 422, "invalid"),
    "a raw shape beyond all bounds": (
        (*SEARCH, pack_frame({"shape": [2**31 - 1, 2**31 - 1]})),
        RAW,
        422,
        "invalid",
    ),
    "a raw shape below zero": (
        (*SEARCH, pack_frame({"shape": [-1, -64]})),
        RAW,
        422,
        "invalid",
    ),
    "neither vectors nor ids": ((*SEARCH, {"k": 3}), {}, 422, "invalid"),
    "a name twice": ((*SEARCH, b'{"ids": [1], "ids": [2]}'), {}, 422, "invalid"),
    "a number of many digits": (
        (*SEARCH, b'{"ids": [1], "k": ' + b"1" * 5000 + b"}"),
        {},
        422,
        "invalid",
    ),
    "an id of many digits": ((*SEARCH, b'{"ids": [' + b"1" * 4000 + b"]}"), {}, 422, "invalid"),
    "ids that are none": ((*SEARCH, {"ids": [-1] * 60}), {}, 422, "invalid"),
    "half of a surrogate pair in metadata": (
        (*ADD, b'{"vectors": [[1]], "metadata": [{"a": "\\ud800"}]}'),
        {},
        422,
        "invalid",
    ),
    "half of a surrogate pair in raw metadata": (
        (*ADD, pack_frame({"shape": [1, 64], "metadata": [{"a": "\ud800"}]}, X[:1].astype("f4"))),
        RAW,
        422,
        "invalid",
    ),
    "raw metadata that are too deep": (
        (*ADD, pack_frame({"shape": [1, 64], "metadata": [NESTED]}, X[:1].astype("f4"))),
        RAW,
        422,
        "invalid",
    ),
    "metadata with a huge number": (
        (*ADD, {"vectors": [ROW], "metadata": [{"a": 2**64}]}),
        {},
        422,
        "invalid",
    ),
    "a name that is not known": ((*SEARCH, {"ids": [1], "K": 3}), {}, 422, "invalid"),
    "k = 0": ((*SEARCH, {"ids": [1], "k": 0}), {}, 422, "invalid"),
    "k as true": ((*SEARCH, {"ids": [1], "k": True}), {}, 422, "invalid"),
    "k beyond all bounds": ((*SEARCH, {"ids": [1], "k": 10**9}), {}, 413, "too_large"),
    "too many ids": ((*SEARCH, {"ids": [1] * 101}), {}, 413, "too_large"),
    "too many vectors": ((*SEARCH, {"vectors": [[1.0] * 64] * 101}), {}, 413, "too_large"),
    "too many answers": (
        (*SEARCH, {"vectors": [[1.0] * 64] * 100, "k": 601}),
        {},
        413,
        "too_large",
    ),
    "an id that is not there": ((*SEARCH, {"ids": [99999]}), {}, 404, "not_found"),
    "an id twice": ((*SEARCH, {"ids": [1, 1]}), {}, 400, "bad_input"),
    "ids of another kind": ((*ADD, {"ids": ["a"], "vectors": [ROW]}), {}, 400, "bad_input"),
    "fewer ids than vectors": ((*ADD, {"ids": [900], "vectors": [ROW] * 2}), {}, 400, "bad_input"),
    "fewer labels than ids": (
        ("POST", "/api/labels", {"ids": [1, 2], "labels": [1]}),
        {},
        400,
        "bad_input",
    ),
    "a list of labels where items have one": (
        ("POST", "/api/labels", {"ids": [1], "labels": [["a"]]}),
        {},
        400,
        "bad_input",
    ),
    "a list in a list of labels": (
        ("POST", "/api/labels", {"ids": [1], "labels": [["a", ["b"]]]}),
        {},
        422,
        "invalid",
    ),
    "too many labels of an item": (
        ("POST", "/api/labels", {"ids": [1], "labels": [["a"] * 1001]}),
        {},
        413,
        "too_large",
    ),
    "metadata of an item that is not there": (
        ("POST", "/api/metadata", {"ids": [99999], "metadata": [{}]}),
        {},
        404,
        "not_found",
    ),
    "fewer metadata than ids": (
        ("POST", "/api/metadata", {"ids": [1, 2], "metadata": [{}]}),
        {},
        400,
        "bad_input",
    ),
    "metadata that is text": (
        ("POST", "/api/metadata", {"ids": [1], "metadata": "a"}),
        {},
        422,
        "invalid",
    ),
    "feedback with the read token": (
        ("POST", "/api/feedback", {"ids": [1], "query_ids": [2]}),
        {"token": READ},
        403,
        "forbidden",
    ),
    "feedback without a query": (("POST", "/api/feedback", {"ids": [1]}), {}, 422, "invalid"),
    "feedback on a vector and an item at once": (
        ("POST", "/api/feedback", {"ids": [1], "query_ids": [2], "vectors": [ROW]}),
        {},
        422,
        "invalid",
    ),
    "a judgement that is neither good nor bad": (
        ("POST", "/api/feedback", {"ids": [1], "query_ids": [2], "good": ["yes"]}),
        {},
        422,
        "invalid",
    ),
    "fewer judgements than ids": (
        ("POST", "/api/feedback", {"ids": [1, 3], "query_ids": [2], "good": [True]}),
        {},
        400,
        "bad_input",
    ),
    "an answer to itself": (
        ("POST", "/api/feedback", {"ids": [1], "query_ids": [1]}),
        {},
        400,
        "bad_input",
    ),
    "feedback on an item that is not there": (
        ("POST", "/api/feedback", {"ids": [99999], "query_ids": [1]}),
        {},
        404,
        "not_found",
    ),
    "feedback on a vector of a wrong width": (
        ("POST", "/api/feedback", {"ids": [1], "vectors": [[1.0]]}),
        {},
        400,
        "bad_input",
    ),
    "too many judgements": (
        ("POST", "/api/feedback", {"ids": [1] * 101, "query_ids": [2]}),
        {},
        413,
        "too_large",
    ),
    "an id that is there": ((*ADD, {"ids": [1], "vectors": [ROW]}), {}, 409, "conflict"),
    "a model that never was": ((*SEARCH, {"ids": [1], "model": 99}), {}, 404, "not_found"),
    "a method that never was": (
        (
            "POST",
            "/api/compare",
            {"queries": [1], "left": {"model": 1}, "right": {"method": "__import__"}},
        ),
        {},
        404,
        "not_found",
    ),
    "a head that is too long": (("GET", "/" + "a" * 70_000), {}, 431, "head_too_large"),
    "too many header lines": ((), {f"X{i}": "a" * 90 for i in range(800)}, 431, "head_too_large"),
    "a body that says it is huge": (
        (*SEARCH, b"{}"),
        {"Content_Length": str(10**12)},
        413,
        "too_large",
    ),
    "a huge body in chunks": (
        (*SEARCH, b"".join(b"8000\r\n" + b" " * 0x8000 + b"\r\n" for _ in range(8)) + b"0\r\n\r\n"),
        {"Content_Length": None, "Transfer_Encoding": "chunked"},
        413,
        "too_large",
    ),
}


def check(answer, status, code):
    got, headers, content = answer
    assert got == status, content
    error = json.loads(content)["error"]
    assert error["code"] == code
    assert error["message"]
    assert set(error) == {"code", "message"}
    assert headers["content-type"] == "application/json"
    assert headers["x-content-type-options"] == "nosniff"
    assert b"Traceback" not in content


BY_THE_SERVER = ("what is not even HTTP", "a head that is too long", "too many header lines")


@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in BY_THE_SERVER])
def test_each_hostile_request_has_its_answer(guarded, name):
    arguments, named, status, code = HOSTILE[name]
    check(guarded(*request(*arguments, **named)), status, code)


@pytest.mark.slow
def test_each_has_the_same_answer_from_a_process_byte_for_byte_as_sent(port):
    for arguments, named, status, code in HOSTILE.values():
        check(ask(port, *arguments, **named), status, code)
        assert ask(port, token=READ)[0] == 200  # and it goes on


def test_the_list_in_the_documents_is_this_one():
    section = DOCS.read_text(encoding="utf-8").split("\n## Hostile requests\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)[1:]
    documented = {name: answer for answer, names in rows for name in names.split("; ")}
    assert documented == {
        name: f"{status} `{code}`" for name, (_, _, status, code) in HOSTILE.items()
    } | {
        "a body that is too slow": "408 `too_slow`",
        "a head that is too slow": "the connection is closed",
        "requests whose answers are never read": "the connection is closed",
        "an answer that is never read": "the connection is closed",
    }


def test_tokens_open_what_they_are_for(guarded):
    def status(*arguments, **named):
        return guarded(*request(*arguments, **named))[0]

    for token in (READ, WRITE):
        assert status(*SEARCH, {"ids": [1], "k": 1}, token=token) == 200
        assert status("GET", "/metrics", token=token) == 200
        assert status(*SEARCH, GOOD, token=token, **RAW) == 200
    assert status("POST", "/api/labels", {"ids": [1], "labels": [1]}) == 200
    for host in ("hash.example", "HASH.example:8000", "localhost", "[::1]:8000"):
        assert status(Host=host, token=READ) == 200
    for path in ("/health", "/ready", "/openapi.json", "/", "/static/main.js"):
        assert status("GET", path, token=None) == 200


@pytest.mark.parametrize(
    ("host", "allowed", "taken", "refused"),
    [
        ("127.0.0.1", [], ["127.0.0.1", "localhost:80", "[::1]"], ["0.0.0.0", "a.example", "::1"]),
        ("0.0.0.0", [], ["anything.example", "192.0.2.1"], []),
        ("0.0.0.0", ["A.example"], ["a.example", "0.0.0.0", "127.0.0.1"], ["b.example"]),
        ("::", ["*.example"], ["a.example", "[::]:8000"], ["example.org"]),
    ],
)
def test_names_of_the_service(library, ask_app, host, allowed, taken, refused):
    ask = ask_app(create_app(library, host=host, allowed_hosts=allowed))
    for name in taken:
        assert ask("GET", "/health", {"Host": name})[0] == 200
    for name in refused:
        assert ask("GET", "/health", {"Host": name})[0] == 421


def test_the_page_may_load_nothing_from_elsewhere(guarded):
    _, headers, _ = guarded(*request("GET", "/", token=None))
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def begin(port, head, part=b""):
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(head + part)
    return connection


def search_head(port, length):
    return (
        f"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {READ}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


@pytest.mark.slow
def test_a_slow_body_is_given_up(port):
    with begin(port, search_head(port, 1000), b'{"k":') as connection:
        status, headers, content = read_answer(connection)
        assert (status, json.loads(content)["error"]["code"]) == (408, "too_slow")
        assert headers["connection"] == "close"


@pytest.mark.slow
def test_a_slow_head_is_given_up_however_it_drips(port):
    start = time.monotonic()
    with begin(port, b"GET /health HTTP/1.1\r\nX: ") as connection:
        connection.settimeout(0.2)
        while True:
            try:
                connection.sendall(b"x")
                if connection.recv(100) == b"":
                    break
            except TimeoutError:
                assert time.monotonic() - start < 15
            except OSError:
                break


@pytest.mark.slow
def test_too_many_requests_are_refused_and_then_it_recovers(port):
    slow = [begin(port, search_head(port, 1000), b"{") for _ in range(LIMITS["requests"])]
    time.sleep(0.3)
    status, headers, content = ask(port)
    assert (status, json.loads(content)["error"]["code"]) == (503, "overloaded")
    assert headers["retry-after"] == "1"
    assert ask(port, "GET", "/health")[0] == 200
    for connection in slow:
        connection.close()
    deadline = time.monotonic() + 20
    while ask(port)[0] != 200:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_it_does_not_listen_to_others_without_a_token(tmp_path, host):
    with pytest.raises(InputError, match=f"--host {host} lets other machines in, and no token is"):
        serve(tmp_path, host=host)


@pytest.mark.parametrize("token", ["short", "é" * 20, "with\nnewline" * 3])
def test_tokens_that_are_of_no_use_are_refused(token):
    with pytest.raises(InputError, match="token"):
        Tokens(read=token)
    with pytest.raises(InputError, match="same"):
        Tokens(read=READ, write=READ)


@pytest.mark.parametrize("name", ["a*b", "*example.org", "a.*"])
def test_a_pattern_of_hosts_that_means_nothing_is_refused(library, name):
    with pytest.raises(InputError, match=r"a star stands for all hosts, or first and before a dot"):
        create_app(library, allowed_hosts=[name])
