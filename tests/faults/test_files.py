"""Saved files are hostile input: crafted ones, and some hundred changed ones of every kind.

The long run of it is ``python benchmarks/fault_files.py --count 10000``.
"""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import fault_files
import streamhash
from streamhash import FileError, HammingIndex, InputError, OnlineHasher, storage
from streamhash.base import Streaming
from streamhash.checks import ALL_CHECKS, CheckError
from streamhash.hashers import METHODS
from streamhash.learned import Array, Table
from streamhash.live.learner import Knowledge, Learner, Monitor

# ------------------------------------------------------------------------------ changed at random


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [False, True], ids=["plain", "bounds"])
def test_changed_files_are_refused_or_sound(bounds):
    """A crash, a hang, another error or much memory in any of them fails here."""
    count = 13 if not bounds else 5
    child = fault_files.Child(bounds=bounds)
    seen, faults = set(), []
    for i, name in enumerate(fault_files.NAMES):
        for case, outcome in fault_files.run(count, child, name=name, first=i * 1000):
            seen.add(outcome.partition(" ")[0])
            if fault_files.is_fault(outcome):
                faults.append((case, outcome))
    child.close()
    assert not faults
    assert seen == {"sound", "refused"}


def test_the_harness_sees_a_death_and_an_error(monkeypatch):
    child = fault_files.Child(bounds=False)
    monkeypatch.setattr(fault_files, "PATIENCE", 60.0)
    case = fault_files.Case("LSH", "values", 0)
    assert not fault_files.is_fault(child.outcome(case))
    child.process.kill()
    assert child.outcome(case) == "died with code -9"
    assert not fault_files.is_fault(child.outcome(case))  # another process
    child.close()
    assert fault_files.is_fault("IndexError: index is out of bounds")


# --------------------------------------------------------------------------- crafted on purpose


def crafted(name, change):
    """A saved model of a subject after a change to its header and arrays."""
    file = fault_files.taken_apart(fault_files.good_file(name))
    change(file.arrays, file.header["model"])
    return file.bytes()


def put(attribute, value, *, at=None):
    """Set values of an array: all of them, or those at a place."""

    def change(arrays, _):
        array = arrays[f"model.{attribute}"].copy()
        array[... if at is None else at] = value
        arrays[f"model.{attribute}"] = array

    return change


def cut(attribute, *size):
    def change(arrays, _):
        array = arrays[f"model.{attribute}"]
        arrays[f"model.{attribute}"] = np.zeros(
            size or (len(array) - 1, *array.shape[1:]), array.dtype
        )

    return change


def learned(*names, value):
    """Set a number in the header, by the names of the attributes on the way."""

    def change(_, model):
        for name in names[:-1]:
            model = model["learned"][name]
        model["learned"][names[-1]] = value

    return change


CRAFTED = {
    "FROSH: rows beyond the chunk": ("FROSH", put("sketch_.picked_", 10**6), "picked_"),
    "FROSH: rows before it": ("FROSH", put("sketch_.picked_", -5), "picked_"),
    "FROSH: a short chunk": ("FROSH", cut("sketch_.flips_", 3), "flips_"),
    "FROSH: a short block": ("FROSH", cut("sketch_.waiting_"), "waiting_"),
    "FROSH: a narrow sketch": ("FROSH", cut("sketch_.S_", 16, 3), "S_|waiting_"),
    "FROSH: far in the chunk": (
        "FROSH",
        learned("sketch_", "n_in_chunk_", value=10**6),
        "more rows are in a chunk",
    ),
    "FROSH: signs that are none": ("FROSH", put("sketch_.flips_", 77), "flips_"),
    "HCOH: an order beyond its matrix": ("HCOH", put("codebook_.order_", 10**7), "order_"),
    "HCOH: a negative order": ("HCOH", put("codebook_.order_", -1, at=2), "order_"),
    "HCOH: a size without a matrix": ("HCOH", learned("codebook_", "size_", value=2**20), "order_"),
    "HCOH: a short projection": ("HCOH", cut("codebook_.projection_"), "projection_"),
    "HCOH: narrow targets": ("HCOH", cut("codebook_.targets_", 4, 3), "targets_"),
    "HMOH: targets that are no signs": ("HMOH", put("codebook_.targets_", 7.0), "targets_"),
    "HMOH: a total of another shape": ("HMOH", cut("total_"), "total_"),
    "OSH: targets of another type": (
        "OSH",
        lambda arrays, _: arrays.update({"model.codebook_.targets_": np.ones((4, 12))}),
        "targets_ is float64",
    ),
    "MIHash: more filled than there is room": (
        "MIHash",
        learned("reservoir_", "n_filled_", value=10**6),
        "n_filled_",
    ),
    "MIHash: a short sample": ("MIHash", cut("reservoir_.rows_"), "rows_"),
    "MIHash: short keys": ("MIHash", cut("reservoir_.keys_"), "keys_"),
    "MIHash: short labels": ("MIHash", cut("reservoir_.labels_"), "labels_"),
    "MIHash: labels beyond the classes": ("MIHash", put("reservoir_.labels_", 10**6), "labels_"),
    "SDOH: products of another width": ("SDOH", cut("sums_.products_"), "products_"),
    "SDOH: classes beyond the counts": ("SDOH", put("memory_.labels_", 99), "labels_"),
    "SDOH: signs of another block": ("SDOH", cut("parts_.1.signs_", 1, 3, 8), "signs_"),
    "LSH: not a number": ("LSH", put("W_", np.nan, at=0), "W_ has values that are not finite"),
    "LSH: an attribute more": ("LSH", learned("evil_", value=1), "evil_ is not among what a LSH"),
    "LSH: a method": ("LSH", learned("transform", value=1), "no name of what is learned"),
    "LSH: its class": ("LSH", learned("__class__", value=1), "no name of what is learned"),
    "LSH: an attribute less": ("LSH", lambda _, model: model["learned"].pop("W_"), "W_|nothing"),
    "LSH: other parts": ("LSH", learned("parts_", value={"list": []}), "parts_"),
    "LSH: a parameter out of range": (
        "LSH",
        lambda _, model: model["parameters"].update(n_bits=10**6),
        "n_bits=1000000 must be",
    ),
    "LSH: an array that nothing names": (
        "LSH",
        lambda arrays, _: arrays.update(extra=np.ones(3)),
        "holds extra, which nothing in it names",
    ),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_model_is_refused(name):
    subject, change, match = CRAFTED[name]
    with pytest.raises(FileError, match=match):
        OnlineHasher.from_bytes(crafted(subject, change))


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "SFC64", "SeedSequence", "seed", "ranf", ""])
def test_only_two_sources_of_random_numbers_can_be_made(kind):
    def change(_, model):
        state = model["learned"]["random_"]["generator"]
        state["bit_generator"] = kind

    with pytest.raises(FileError):
        OnlineHasher.from_bytes(crafted("HCOH", change))


@pytest.mark.parametrize("value", [-1, 2**200, 0.5, None, "1", [1], True])
def test_their_states_are_whole_numbers(value):
    def change(_, model):
        model["learned"]["random_"]["generator"]["state"]["inc"] = value

    with pytest.raises(FileError):
        OnlineHasher.from_bytes(crafted("HCOH", change))


def test_a_source_that_cannot_be_saved_says_so():
    model = fault_files.small("hcoh").fit(fault_files.X, fault_files.Y)
    model.random_ = np.random.Generator(np.random.MT19937(0))
    with pytest.raises(InputError, match="draws from MT19937, whose state cannot be saved"):
        model.to_bytes()


# ------------------------------------------------------------------------------------- archives


def archive(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as out:
        for name, content in members:
            out.writestr(name, content)
    return path


def header(kind="model", **more):
    top = {"streamhash": kind, "version": 2, "written_by": "0.2.0"}
    return ("header.json", json.dumps({**top, "model": {}, **more}))


def array_of(shape, n_bytes, dtype="<f4"):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        out, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return out.getvalue() + bytes(n_bytes)


ARCHIVES = {
    "more than is there": [("a.npy", array_of((2**33,), 64))],
    "less than is there": [("a.npy", array_of((4,), 64))],
    "a size that overflows": [("a.npy", array_of((2**40, 2**40), 64))],
    "items of no bytes": [("a.npy", array_of((2**60,), 0, "|V0"))],
    "texts of no bytes": [("a.npy", array_of((2**60,), 0, "<U0"))],
    "records": [("a.npy", array_of((4,), 64, [("x", "<f4")]))],
    "a member of another kind": [("program.py", "print(1)")],
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_breaks_its_promises_is_refused(name, tmp_path):
    path = archive(tmp_path / "model", [header(), *ARCHIVES[name]])
    with pytest.raises(FileError, match="corrupt or foreign"):
        streamhash.load(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(tmp_path):
    member = ("a.npy", array_of((4,), 16))
    with pytest.raises(FileError, match="a name comes twice"):
        streamhash.load(archive(tmp_path / "model", [header(), member, member]))


def test_parts_that_lie_over_each_other_are_refused(tmp_path):
    """A list of members may name the same bytes many times: a small file with much in it."""
    path = archive(tmp_path / "model", [header(), ("a.npy", array_of((2**18,), 2**20))])
    content = path.read_bytes()
    start = content.index(b"PK\1\2", len(content) - 400)
    entry = content[content.rindex(b"PK\1\2") : content.rindex(b"PK\5\6")]
    names = [entry.replace(b"a.npy", f"{i}.npy".encode()) for i in "bcdefgh"]
    end = bytearray(content[content.rindex(b"PK\5\6") :])
    listed = content[start : content.rindex(b"PK\5\6")] + b"".join(names)
    end[8:16] = (2 + len(names)).to_bytes(2, "little") * 2 + len(listed).to_bytes(4, "little")
    path.write_bytes(content[:start] + listed + bytes(end))
    with pytest.raises(FileError, match="its parts are longer than it is"):
        streamhash.load(path)


def test_a_compressed_file_takes_no_memory(tmp_path):
    """22 MB took 4.3 GB."""
    zeros = array_of((2**26,), 2**28)
    path = archive(tmp_path / "model", [header(), ("a.npy", zeros)], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2 << 20
    program = (
        "import resource, sys, streamhash\n"
        "from streamhash.errors import FileError\n"
        "streamhash.OnlineHasher\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    streamhash.load(sys.argv[1])\n"
        "except FileError as error:\n    assert 'is compressed' in str(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(grown) < 64 << 10  # KiB


def test_parts_within_parts_without_end_are_refused(tmp_path):
    for depth in (40, 3000, 200_000):
        text = '{"list": [' * depth + "1" + "]}" * depth
        content = header()[1].replace('"model": {}', f'"model": {text}')
        with pytest.raises(FileError):
            streamhash.load(archive(tmp_path / "model", [("header.json", content)]))


# ---------------------------------------------------------------------------------------- indexes


def index_file(tmp_path, ids, change):
    index = HammingIndex(12)
    index.add(ids, np.arange(6, dtype=np.uint8).reshape(3, 2) * 16)
    path = tmp_path / "index"
    index.save(path)
    top, arrays = storage.read(path, "index")
    change(top, arrays)
    storage.write(path, "index", top, arrays)
    return path


ENDS = {
    "over each other": [4, 1, 4],
    "negative": [-3, 2, 4],
    "too far": [1, 2, 10**9],
    "too short": [1, 2, 3],
}


@pytest.mark.parametrize("name", ENDS)
def test_strings_that_do_not_lie_end_to_end_are_refused(name, tmp_path):
    def change(_, arrays):
        arrays["id_ends"] = np.array(ENDS[name])

    with pytest.raises(FileError, match="ids that overlap"):
        HammingIndex.load(index_file(tmp_path, ["a", "b", "cd"], change))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1, "3", None, True, [1]])
def test_the_next_id_is_a_whole_number(value, tmp_path):
    path = index_file(tmp_path, [1, 2, 3], lambda top, _: top.update(next_id=value))
    with pytest.raises(FileError, match="does not fit together"):
        HammingIndex.load(path)


# ------------------------------------------------------------------------------------- statements


def every_class():
    def below(cls):
        for child in cls.__subclasses__():
            yield child
            yield from below(child)

    return {cls for cls in below(Streaming) if cls.__module__.startswith("streamhash.")}


def test_every_class_states_what_it_learns():
    assert {*METHODS.values(), Learner, Knowledge, Monitor} <= every_class()
    bases = {"HasherAround"}  # of hashers that state it themselves
    silent = [c.__name__ for c in every_class() if not c.states_all and c.__name__ not in bases]
    assert silent == []


class Stated(OnlineHasher):
    """A method of somebody else, with a statement that is wrong."""

    needs_labels = False
    learns = Table(W_=Array(np.float32, "D", "k"))

    def _start(self, X, y):  # noqa: ARG002
        self.W_ = np.ones((X.shape[1], self.n_bits))

    def _learn(self, X, y):
        pass


class Silent(Stated):
    """The same, with one attribute more than its base states, and no statement of its own."""

    def _start(self, X, y):  # noqa: ARG002
        self.W_ = np.ones((X.shape[1], self.n_bits), np.float32)
        self.more_ = np.zeros(3)


def test_an_author_finds_out_that_a_statement_is_wrong():
    with pytest.raises(CheckError, match=r"Stated\.W_ is float64 of shape \(24, 32\), not float32"):
        ALL_CHECKS["a_model_fits_its_own_statement"](Stated())


def test_a_method_without_a_statement_still_loads():
    model = Silent(8).fit(fault_files.X)
    loaded = OnlineHasher.from_bytes(model.to_bytes())
    assert np.array_equal(loaded.more_, model.more_)
    model.more_ = np.array([np.nan])
    with pytest.raises(FileError, match=r"Silent\.more_ has values that are not finite"):
        OnlineHasher.from_bytes(model.to_bytes())
