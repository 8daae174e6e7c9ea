"""Saved models and indexes as anybody might make them: changed, loaded and used, again and again.

Whatever is in a file, the outcome is a clear error or a model that encodes, learns on, and is saved
and loaded again; never a crash, another error, a hang, or much memory. A child process does the
work, many files each; this one starts it anew if it dies, and notes on which file.

    python benchmarks/fault_files.py --count 10000 --rows results/faults/files.jsonl
    python benchmarks/fault_files.py --count 10000 --rows results/faults/files.jsonl --bounds
"""

import argparse
import contextlib
import copy
import io
import json
import os
import resource
import selectors
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import streamhash
from streamhash import (
    HCOH,
    HMOH,
    LSH,
    SDOH,
    AnchorMap,
    CenterScale,
    HammingIndex,
    MIHash,
    OnlineHasher,
    SnapshotHasher,
    StreamhashError,
    StreamPipeline,
    storage,
)
from streamhash.codes import code_bytes
from streamhash.files import read_table
from streamhash.hashers import METHODS
from streamhash.search import from_numpy

WIDTH, BITS, CLASSES, ROWS = 12, 12, 4, 90
PATIENCE = 120.0  # seconds for a file
PATIENCE_AT_FIRST = 900.0  # for one as it was saved, whose kernels are compiled meanwhile
ROOM = 3 << 30  # bytes of address space a child may take beside what it begins with
MOST_GROWTH = 512 << 20  # bytes of memory
# Kernels that look at every index: compiled apart, as numba's cache does not tell them.
BOUNDS_CACHE = Path(__file__).parents[1] / ".cache" / "boundscheck"
BOUNDS = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(BOUNDS_CACHE)}

Arrays = dict[str, NDArray[Any]]
Tree = dict[str, Any]


# ------------------------------------------------------------------------------ what is changed


def rows() -> tuple[NDArray[np.float32], NDArray[Any]]:
    random = np.random.default_rng(5)
    y = random.integers(CLASSES, size=ROWS)
    X = random.standard_normal((CLASSES, WIDTH))[y] + random.standard_normal((ROWS, WIDTH))
    return np.asarray(X, np.float32), y


X, Y = rows()


def several_labels(y: NDArray[Any]) -> NDArray[Any]:
    one, other = np.eye(CLASSES, dtype=np.uint8)[np.stack([y, (y + 1) % CLASSES])]
    return np.asarray(one | other)


def small(name: str) -> OnlineHasher:
    options: Tree = {"n_bits": BITS, "random_state": 0, "batch_size": 30}
    options |= {
        "sdoh": {"memory": 40, "n_features": 64, "passes": 1},
        "mihash": {"reservoir_size": 40},
        "okh": {"n_anchors": 15},
        "hmoh": {"n_anchors": 15},
        "itq": {"sample_size": 50, "first_iterations": 5},
        "frosh": {"sketch_size": 16, "guides": 3},
    }.get(name, {})
    return METHODS[name](**options)


SUBJECTS: dict[str, Callable[[], OnlineHasher]] = {
    **{METHODS[name].__name__: lambda name=name: small(name) for name in METHODS},  # type: ignore[misc]
    "SDOH(plain)": lambda: SDOH(BITS, memory=0, features=None, n_anchors=10, random_state=0),
    "SDOH(rows)": lambda: SDOH(BITS, memory=30, features=None, class_scores=None, random_state=0),
    "HCOH(memory)": lambda: HCOH(BITS, memory=30, batch_size=30, random_state=0),
    "LSH(fourier)": lambda: LSH(BITS, features="fourier", random_state=0),
    "FROSH(mixed)": lambda: METHODS["frosh"](BITS, sketch_size=16, guides=0, random_state=0),
    "SnapshotHasher": lambda: SnapshotHasher(small("mihash"), reservoir_size=30, random_state=0),
    "StreamPipeline": lambda: StreamPipeline([CenterScale(), AnchorMap(10)], small("osh")),
}
MATRICES: dict[str, Callable[[], OnlineHasher]] = {
    "SDOH(matrix)": lambda: small("sdoh"),
    "MIHash(matrix)": lambda: MIHash(BITS, reservoir_size=40, memory=30, random_state=0),
    "HMOH(matrix)": lambda: HMOH(BITS, n_anchors=None, random_state=0),
    "AdaptHash(matrix)": lambda: small("adapthash"),
}
INDEXES = ("HammingIndex", "HammingIndex(strings)", "HammingIndex(mapped)")
ARCHIVES = ("codes.npz", "rows.npz")  # of NumPy: an index to be read, rows and their labels
NAMES = (*SUBJECTS, *MATRICES, *INDEXES, *ARCHIVES)


def labels(name: str) -> NDArray[Any]:
    return several_labels(Y) if name in MATRICES else Y


def good_file(name: str) -> bytes:
    """A file of this subject, as it is saved."""
    if name in INDEXES:
        return _good_index(name)
    if name in ARCHIVES:
        two = np.arange(60, dtype=np.uint8).reshape(30, 2)
        codes: Arrays = {"codes": two, "ids": np.arange(30)}
        return _as_npz(codes if name == "codes.npz" else {"X": X, "y": Y})
    model = {**SUBJECTS, **MATRICES}[name]()
    times = 9 if name == "SDOH" else 1  # so many rows that they are summed
    model.partial_fit(np.tile(X[:61], (times, 1)), np.concatenate([labels(name)[:61]] * times))
    content: bytes = model.to_bytes()
    return content


def _as_npz(arrays: Arrays) -> bytes:
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    return out.getvalue()


def _good_index(name: str) -> bytes:
    index = HammingIndex(BITS)
    codes = LSH(BITS, random_state=0).fit(X).transform(X)
    numbers = np.arange(3, 3 + ROWS * 7, 7)
    index.add([f"é{i}" for i in numbers] if "strings" in name else numbers, codes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        index.save(path)
        return path.read_bytes()


# ------------------------------------------------------------------------------- how it is changed


class File(NamedTuple):
    """A file taken apart."""

    header: Tree
    arrays: Arrays

    def bytes(self) -> bytes:
        if not self.header:
            return _as_npz(self.arrays)
        top = ("streamhash", "version", "written_by")
        header = {key: value for key, value in self.header.items() if key not in top}
        return storage.to_bytes(self.header.get("streamhash", ""), header, self.arrays)


def taken_apart(content: bytes) -> File:
    header, arrays = _taken_apart(content)
    return File(copy.deepcopy(header), dict(arrays))


@lru_cache(maxsize=4)
def _taken_apart(content: bytes) -> File:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if "header.json" not in archive.namelist():
            return File({}, dict(np.load(io.BytesIO(content))))
        kind = json.loads(archive.read("header.json"))["streamhash"]
    return File(*storage.from_bytes(content, kind, place="file"))


ODD_NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 3, 7, 11, 13, 16, 64, 2**16, 2**31 - 1, 2**31, 2**47, 2**62, 2**63, 2**64),
    *(10**30, 1e300, -1e300, 1e-300, 3.4e38, 0.5, -0.5, float("nan"), float("inf"), float("-inf")),
    *(None, True, False, "", "text", "unit", [], {}, [1], {"list": [1, 2]}, {"tuple": []}),
    *({"array": "model.W_"}, {"array": "nowhere"}, {"objects": ["a", None]}, {"dict": {"a": 1}}),
]
ODD_FLOATS = [*(np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e30, -1e30, 1e-38, 0.0, -1.0, 1.0, 2.0)]
ODD_WHOLES = [*(-1, 0, 1, 2, 5, 64, 127, -128, 255, 2**15, 2**31 - 1, -(2**31), 2**47, 2**62)]
TYPES = ["f4", "f8", "f2", ">f4", "i1", "u1", "i4", "i8", "u8", "b1", "c8", "U3", "S2", "M8[s]"]
OTHER_CLASSES = (
    *(method.__name__ for method in METHODS.values()),
    *("CenterScale", "UnitRows", "AnchorMap", "RadialMap", "RandomFeatures", "ClassTable"),
    *("ClassMemory", "ClassSums", "Reservoir", "Codebook", "PairQueue", "FrequentDirections"),
    *("FastFrequentDirections", "SnapshotHasher", "StreamPipeline", "HammingIndex", "object"),
    *("OnlineHasher", "Streaming", "StreamPart", "Collection", "os.system", ""),
)


def _one_of(random: np.random.Generator, options: Any) -> Any:
    choices = [*options]
    return choices[int(random.integers(len(choices)))]


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a header below the model: what holds it, and its key."""
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree))
    for key in [*keys]:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _nodes(tree[key])


def _model(file: File) -> Any:
    return file.header.get("model", file.header)


def _some_array(file: File, random: np.random.Generator) -> str:
    return str(_one_of(random, file.arrays))


def _set_values(file: File, random: np.random.Generator) -> None:
    name = _some_array(file, random)
    array = file.arrays[name].copy()
    if not array.size:
        file.arrays[name] = np.zeros((3,) * max(array.ndim, 1), array.dtype)
        return
    if array.dtype.kind not in "fiub":
        return
    odd = _one_of(random, ODD_FLOATS if array.dtype.kind == "f" else ODD_WHOLES)
    with np.errstate(all="ignore"):
        value = np.array([odd]).astype(array.dtype)[0]
    if random.random() < 0.3:
        array[...] = value
    else:
        flat = array.reshape(-1)
        flat[random.integers(array.size, size=int(random.integers(1, 4)))] = value
        array = flat.reshape(array.shape)
    file.arrays[name] = array


def _flip_sealed(file: File, random: np.random.Generator) -> None:
    name = _some_array(file, random)
    array = file.arrays[name]
    raw = bytearray(np.ascontiguousarray(array).tobytes())
    for _ in range(int(random.integers(1, 9)) if raw else 0):
        raw[int(random.integers(len(raw)))] ^= 1 << int(random.integers(8))
    file.arrays[name] = np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)


def _change_type(file: File, random: np.random.Generator) -> None:
    name = _some_array(file, random)
    with np.errstate(all="ignore"):
        try:
            file.arrays[name] = file.arrays[name].astype(_one_of(random, TYPES))
        except (ValueError, TypeError, OverflowError, RuntimeError):
            file.arrays[name] = np.zeros(file.arrays[name].shape, _one_of(random, TYPES[:10]))


def _change_shape(file: File, random: np.random.Generator) -> None:
    name = _some_array(file, random)
    array = file.arrays[name]
    changes: list[Callable[[], NDArray[Any]]] = [
        lambda: array[:-1],
        lambda: np.concatenate([array, array[-1:]]),
        lambda: np.concatenate([array, array, array]),
        lambda: array[:0],
        lambda: array[None],
        lambda: array.T,
        lambda: array.reshape(-1),
        lambda: array[..., :-1],
        lambda: np.repeat(array, 2, axis=-1),
        lambda: array.reshape(-1)[0],
        lambda: array[::-1],
        lambda: np.asfortranarray(array),
        lambda: np.zeros((0, 2**40), array.dtype),
        lambda: np.zeros(4096, array.dtype),
    ]
    try:
        file.arrays[name] = np.asarray(_one_of(random, changes)())
    except (IndexError, ValueError):
        file.arrays[name] = np.zeros(3, array.dtype)


def _swap(file: File, random: np.random.Generator) -> None:
    one, other = _some_array(file, random), _some_array(file, random)
    file.arrays[one], file.arrays[other] = file.arrays[other], file.arrays[one]


def _drop(file: File, random: np.random.Generator) -> None:
    if random.random() < 0.3:
        del file.arrays[_some_array(file, random)]
        return
    holder, key = _one_of(random, _nodes(_model(file)))
    del holder[key]


def _add(file: File, random: np.random.Generator) -> None:
    holders = [holder for holder, _ in _nodes(_model(file)) if isinstance(holder, dict)]
    key = _one_of(random, ["W_", "evil_", "__class__", "transform", "_x", "n_", "labels_", "size_",
                           "n_bits", "random_state", "memory_", "codebook_", "a b_"])  # fmt: skip
    _one_of(random, holders)[key] = copy.deepcopy(_one_of(random, ODD_NUMBERS))
    if random.random() < 0.3:
        file.arrays[f"model.{key}"] = np.zeros(5, np.float32)


def _change_number(file: File, random: np.random.Generator) -> None:
    holder, key = _one_of(random, _nodes(_model(file)))
    holder[key] = copy.deepcopy(_one_of(random, ODD_NUMBERS))


def _change_class(file: File, random: np.random.Generator) -> None:
    places = [holder for holder, key in _nodes({"model": _model(file)}) if key == "class"]
    if places:
        _one_of(random, places)["class"] = _one_of(random, OTHER_CLASSES)
    _exchange(file, random)


def _exchange(file: File, random: np.random.Generator) -> None:
    """Put one part of the header into the place of another."""
    nodes = [*_nodes(_model(file))]
    (to, key), (source, other) = _one_of(random, nodes), _one_of(random, nodes)
    to[key] = copy.deepcopy(source[other])


def _change_generator(file: File, random: np.random.Generator) -> None:
    places = [holder[key] for holder, key in _nodes(_model(file)) if key == "generator"]
    if not places:
        return _change_number(file, random)
    state = _one_of(random, places)
    if random.random() < 0.5:
        kinds = [np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM]
        other = _one_of(random, kinds)(1).state
        state.clear()
        state.update(json.loads(json.dumps(other, default=lambda array: array.tolist())))
        return None
    holder, key = _one_of(random, _nodes(state))
    holder[key] = _one_of(
        random, [*ODD_NUMBERS[:30], 2**127, 2**128, "PCG64", "seed", "default_rng"]
    )
    return None


CHANGES: dict[str, Callable[[File, np.random.Generator], None]] = {
    "values": _set_values,
    "bits of arrays": _flip_sealed,
    "types": _change_type,
    "shapes": _change_shape,
    "swapped arrays": _swap,
    "dropped parts": _drop,
    "added parts": _add,
    "numbers": _change_number,
    "classes": _change_class,
    "generators": _change_generator,
}


def _flip_raw(content: bytes, random: np.random.Generator) -> bytes:
    raw = bytearray(content)
    for _ in range(int(random.integers(1, 9))):
        raw[int(random.integers(len(raw)))] ^= 1 << int(random.integers(8))
    return bytes(raw)


def _cut(content: bytes, random: np.random.Generator) -> bytes:
    a, b = sorted(random.integers(len(content) + 1, size=2).tolist())
    parts = [content[:a], content[:a] + content[b:], content[:b] + content[a:], content[a:b]]
    return bytes(_one_of(random, parts))


def _promise(content: bytes, random: np.random.Generator) -> bytes:
    """An archive that promises other sizes, is compressed, or has members twice."""
    file = taken_apart(content)
    header = json.dumps(file.header).encode() if file.header else None
    chosen, how = _some_array(file, random), int(random.integers(6))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if how == 0 else 0) as archive:
        if header is not None:
            archive.writestr("header.json", header)
        for name, array in file.arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array)
            raw = member.getvalue()
            if name == chosen and how == 1:
                raw = _other_shape(array, _one_of(random, [(2**40,), (2**33, 2), (3,), (-1,), ()]))
            elif name == chosen and how == 2:
                raw += bytes(1000)
            archive.writestr(f"{name}.npy", raw)
            if name == chosen and how == 3:
                archive.writestr(f"{name}.npy ", raw)
        if how == 4:
            archive.writestr("zeros.npy", np.lib.format.magic(1, 0) + bytes(1 << 16))
    raw_bytes = bytearray(out.getvalue())
    if how == 3:  # the same name twice, which zipfile would not write without a warning
        raw_bytes = bytearray(bytes(raw_bytes).replace(b".npy ", b".npy\0"))
    if how == 5:  # sizes in the list of members
        at = bytes(raw_bytes).rfind(b"PK\1\2")
        size = int(_one_of(random, [0, 1, 2**31, 2**32 - 1, 2**32 - 2]))
        struct.pack_into("<II", raw_bytes, at + 20, size, size)
    return bytes(raw_bytes)


def _other_shape(array: NDArray[Any], shape: tuple[int, ...]) -> bytes:
    out = io.BytesIO()
    text = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, text)
    return out.getvalue() + array.tobytes()


RAW: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    "bits of files": _flip_raw,
    "cut files": _cut,
    "promises": _promise,
}
AS_IT_IS = "as it is"
KINDS = (*CHANGES, *RAW)
OF_ARRAYS = (*[*CHANGES][:5], *RAW)  # where there is no header


def changed(content: bytes, kind: str, random: np.random.Generator) -> bytes:
    """A file changed in one way, or in two of them."""
    if kind in RAW:
        return RAW[kind](content, random)
    file = taken_apart(content)
    CHANGES[kind](file, random)
    if random.random() < 0.2 and file.arrays:
        CHANGES[kind](file, random)
    return file.bytes()


# ----------------------------------------------------------------------------------- how it is used


def use(name: str, content: bytes) -> str:
    """Load a file and use what is in it; return what came of it, ``refused ...`` or ``sound``.

    Any error but streamhash's own is raised.
    """
    verb = "load"
    try:
        if name in INDEXES:
            return _use_index(name, content)
        if name in ARCHIVES:
            return _use_archive(name, content)
        model = OnlineHasher.from_bytes(content)
        is_started = hasattr(model, "n_features_in_")
        verb = "transform"
        if is_started:
            _check_codes(model)
        verb = "partial_fit"
        model.partial_fit(X[61:], labels(name)[61:])
        verb = "transform again"
        _check_codes(model)
        verb = "save"
        again = model.to_bytes()
    except StreamhashError:
        return f"refused by {verb}"
    loaded = OnlineHasher.from_bytes(again)  # what has learned can be loaded again
    if not np.array_equal(loaded.transform(X[:5]), model.transform(X[:5])):
        raise AssertionError("saved and loaded, it encodes otherwise")
    return "sound"


def _check_codes(model: OnlineHasher) -> None:
    codes, projections = model.transform(X[:5]), model.project(X[:5])
    if codes.shape != (5, code_bytes(model.n_bits)) or projections.shape != (5, model.n_bits):
        raise AssertionError(f"codes of shape {codes.shape}")


def _use_index(name: str, content: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        path.write_bytes(content)
        verb = "load"
        try:
            index = HammingIndex.load(path, mmap="mapped" in name)
            verb = "search"
            queries = np.zeros((3, code_bytes(index.n_bits)), np.uint8)
            index.search(queries, 5)
            index.range_search(queries, index.n_bits)
            verb = "add"
            ids = None if index.ids.dtype != object else ["new", "other", "last"]
            index.add(ids, queries)
            index.delete(index.ids[-1:])
            index.search(queries, 500)
            verb = "save"
            index.save(path)
        except StreamhashError:
            return f"refused by {verb}"
        # With mmap, ids are taken as they are, as looking at them would read them all.
        if "mapped" not in name:
            HammingIndex.load(path)
    return "sound"


def _use_archive(name: str, content: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            if name == "codes.npz":
                index = from_numpy(path)
                index.search(np.zeros((1, code_bytes(index.n_bits)), np.uint8), 3)
            else:
                rows, y = read_table(path)
                LSH(BITS).fit(rows, y)
        except StreamhashError:
            return "refused by load"
    return "sound"


# --------------------------------------------------------------------------------------- the child


def work() -> None:
    """Read cases, a line of JSON each, and write what came of them."""
    # Nothing but the answers goes to the real standard output.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    np.seterr(all="ignore")
    files = {}
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    address = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (address + ROOM, address + ROOM))
    for line in sys.stdin:
        name, kind, seed = json.loads(line)
        if kind == AS_IT_IS:
            files[name] = good_file(name)
            answers.write(json.dumps(use(name, files[name])) + "\n")
            used = max(used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            continue
        random = np.random.default_rng([seed, KINDS.index(kind), NAMES.index(name)])
        try:
            outcome = use(name, changed(files[name], kind, random))
        except Exception as error:  # noqa: BLE001  that is what is looked for
            outcome = f"{type(error).__name__}: {error}"[:300]
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if (now - used) * 1024 > MOST_GROWTH:
            outcome = f"took {(now - used) >> 10} MiB"
        used = max(used, now)
        answers.write(json.dumps(outcome) + "\n")


# -------------------------------------------------------------------------------------- the parent


class Case(NamedTuple):
    name: str
    kind: str
    seed: int


class Child:
    """A process that uses files, started again after each death."""

    def __init__(self, *, bounds: bool) -> None:
        quiet = {"STREAMHASH_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        self.environment = {**(BOUNDS if bounds else os.environ), **quiet}
        self.process: subprocess.Popen[str] | None = None
        self.names: set[str] = set()  # that the process has made files of

    def outcome(self, case: Case) -> str:
        """What came of a case."""
        if case.name not in self.names:
            first = self._outcome(Case(case.name, AS_IT_IS, 0), PATIENCE_AT_FIRST)
            if first != "sound":
                return f"as it is, {first}"
            self.names.add(case.name)
        return self._outcome(case, PATIENCE)

    def _outcome(self, case: Case, patience: float) -> str:
        process = self.process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            try:
                process.stdin.write(json.dumps(case) + "\n")
                process.stdin.flush()
                if not selector.select(patience):
                    self.close(kill=True)
                    return f"hung for {patience:.0f} s"
            except BrokenPipeError:
                pass
            line = process.stdout.readline()
        if line:
            return str(json.loads(line))
        self.close()
        return f"died with code {process.returncode}"

    def _start(self) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )
        return self.process

    def close(self, *, kill: bool = False) -> None:
        """End the process."""
        if self.process is not None:
            if kill:
                self.process.kill()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            self.process.wait()
            self.process, self.names = None, set()


def is_fault(outcome: str) -> bool:
    return outcome != "sound" and not outcome.startswith("refused")


def run(count: int, child: Child, *, name: str, first: int = 0) -> Iterator[tuple[Case, str]]:
    """Use so many changed files of a subject, the kinds of change in turn."""
    kinds = OF_ARRAYS if name in ARCHIVES else KINDS
    for i in range(first, first + count):
        case = Case(name, kinds[i % len(kinds)], i)
        yield case, child.outcome(case)


def measure(count: int, names: Any, *, bounds: bool, first: int) -> Iterator[Tree]:
    """Rows of results: of each subject, how many files were used, and what came of them."""
    child = Child(bounds=bounds)
    for name in names:
        begun, outcomes, faults = time.time(), Counter[str](), []
        for case, outcome in run(count, child, name=name, first=first):
            outcomes["fault" if is_fault(outcome) else outcome] += 1
            if is_fault(outcome):
                faults.append({"case": list(case), "outcome": outcome})
        yield {
            "fault": "changed files",
            "subject": name,
            "bounds_check": bounds,
            "tried": count,
            "sound": outcomes["sound"],
            "refused": sum(n for text, n in outcomes.items() if text.startswith("refused")),
            "lost": outcomes["fault"],
            "outcomes": dict(outcomes.most_common()),
            "faults": faults[:20],
            "seconds": round(time.time() - begun, 1),
        }
    child.close()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Changed files of every method and index.")
    parser.add_argument("--count", type=int, default=200, help="files of each subject")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--bounds", action="store_true", help="kernels look at every index")
    parser.add_argument("--rows", type=Path, help="append rows of results to this file")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work:
        work()
        return
    from _machine import describe_machine

    for row in measure(options.count, options.names, bounds=options.bounds, first=options.first):
        print(f"{row['subject']:24} {row['tried']:6} tried, {row['sound']:6} sound, "
              f"{row['refused']:6} refused, {row['lost']} lost, {row['seconds']} s")  # fmt: skip
        for fault in row["faults"]:
            print("   ", fault)
        if options.rows:
            options.rows.parent.mkdir(parents=True, exist_ok=True)
            row |= {"version": streamhash.__version__, "machine": describe_machine()}
            with options.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
