"""Saved files: one zip holding ``header.json`` and ``.npy`` arrays; versioned, never pickled.

Any zip and NumPy can open such a file in fifty years. Every member carries a checksum, the file is
written beside its place and renamed into it, and equal contents give equal bytes. ``describe`` and
``rebuild`` turn an estimator (its parameters and what it has learned, parts within parts too) into
such a header and back.

A file may come from anybody. Nothing in it is compressed, so reading it takes no more memory than
it has bytes; every array has the size that it says before any memory is taken; and each estimator
is held to the rules of its class before it is used.
"""

import io
import json
import math
import os
import re
import struct
import uuid
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

import streamhash
from streamhash.errors import FileError, InputError
from streamhash.learned import free_memory

FORMAT_VERSION = 2
_ALIGNED = 64  # bytes: a line of the cache
_LONG = 4096  # bytes: a page of memory; less is not worth mapping
_LARGE = 1 << 30  # bytes from which on a member is written in the large form of zip
_FILLING = 0xD935  # the kind of extra field that Android's zipalign fills up with
_LARGEST_HEADER = 64 << 20  # bytes
_DEEPEST = 32  # parts within parts
_GENERATORS = {"PCG64": np.random.PCG64, "PCG64DXSM": np.random.PCG64DXSM}  # numbers only
_MODULE = re.compile(r"[A-Za-z_][\w.]{0,199}")  # a name that an error message can repeat
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date in the archive, so that equal models are equal files

Arrays = dict[str, NDArray[Any]]


def write(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Arrays
) -> None:
    """Write a file of this ``kind`` whole or not at all."""
    with whole_file(path) as temporary, temporary.open("xb") as file:
        _write_archive(file, kind, header, arrays)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to that becomes ``path`` at the end of the block, or goes away."""
    place = Path(path)
    temporary = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    try:
        yield temporary
        temporary.replace(place)
    except OSError as error:
        raise FileError(
            f"{place}: cannot be written ({error.strerror}); choose a folder that exists, "
            "that you may write to and that has room."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def to_bytes(kind: str, header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Return what ``write`` would put into a file."""
    file = io.BytesIO()
    _write_archive(file, kind, header, arrays)
    return file.getvalue()


def _write_archive(file: IO[bytes], kind: str, header: Mapping[str, Any], arrays: Arrays) -> None:
    top = {"streamhash": kind, "version": FORMAT_VERSION, "written_by": streamhash.__version__}
    # In one line: with indents json would be written by Python itself, five times as slowly.
    text = json.dumps({**top, **header}).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("header.json", _EPOCH), text)
        for name, array in arrays.items():
            _write_array(archive, file.tell(), f"{name}.npy", np.asarray(array))


def _write_array(archive: zipfile.ZipFile, at: int, name: str, array: NDArray[Any]) -> None:
    """Write an array as a member that begins ``at`` this place, a long one so that it maps."""
    member = zipfile.ZipInfo(name, _EPOCH)
    large = array.nbytes > _LARGE
    if array.nbytes >= _LONG:
        # Its head: 30 bytes, the name, an extra field that fills up, and one more if it is large.
        filling = -(at + 30 + len(name.encode()) + 4 + 20 * large) % _ALIGNED
        member.extra = struct.pack("<HH", _FILLING, filling) + bytes(filling)
    with archive.open(member, "w", force_zip64=large) as content:
        np.lib.format.write_array(content, array, allow_pickle=False)


def read(
    path: str | os.PathLike[str], kind: str, *, mapped: Collection[str] = ()
) -> tuple[dict[str, Any], Arrays]:
    """Read a file of this ``kind``: its header and its arrays.

    Of the arrays named in ``mapped``, the long ones are mapped to memory instead: shared with all
    who do so, their checksums not looked at; writing to them changes no file.
    """
    return _read_archive(Path(path), Path(path), kind, mapped)


def from_bytes(content: bytes, kind: str, *, place: str) -> tuple[dict[str, Any], Arrays]:
    """Undo ``to_bytes``; ``place`` is how an error calls what holds them."""
    return _read_archive(io.BytesIO(content), place, kind, ())


def _read_archive(
    file: Path | IO[bytes], place: Path | str, kind: str, mapped: Collection[str]
) -> tuple[dict[str, Any], Arrays]:
    wanted = f"expected a streamhash {kind} file"
    try:
        with zipfile.ZipFile(file) as archive:
            members = _members(archive)
            header = json.loads(archive.read("header.json"))
            if not isinstance(header, dict) or header.get("streamhash") != kind:
                found = header.get("streamhash") if isinstance(header, dict) else None
                raise FileError(f"{place}: {wanted}, but this is {found or 'another file'}.")
            if header["version"] > FORMAT_VERSION:
                raise FileError(
                    f"{place}: written by streamhash {header['written_by']} in format "
                    f"{header['version']}, this version reads up to {FORMAT_VERSION}; "
                    "upgrade streamhash."
                )
            arrays = {}
            for member in members:
                name = member.filename.removesuffix(".npy")
                array = _map_array(file, member) if name in mapped else None
                arrays[name] = _read_array(archive, member) if array is None else array
    except OSError as error:
        raise FileError(f"{place}: cannot be read ({error.strerror}); check the path.") from error
    except FileError:
        raise
    except Exception as error:  # a broken archive may raise nearly anything
        raise FileError(
            f"{place}: {wanted}, but it is corrupt or foreign ({error}); save it again."
        ) from error
    return header, arrays


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the arrays in an archive, if it is one that ``write`` may have written."""
    found = archive.infolist()
    for member in found:
        name = member.filename
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise ValueError(f"{name} is compressed")
        if name != "header.json" and not name.endswith(".npy"):
            raise ValueError(f"{name} has no place in it")
        if name == "header.json" and member.file_size > _LARGEST_HEADER:
            raise ValueError(f"{name} is too long")
    if len({member.filename for member in found}) < len(found):
        raise ValueError("a name comes twice")
    last = max((member.header_offset for member in found), default=0)
    if sum(member.file_size for member in found) > archive.start_dir or last > archive.start_dir:
        raise ValueError("its parts are longer than it is")
    return [member for member in found if member.filename != "header.json"]


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    content = io.BytesIO(archive.read(member))
    read_array_header(content, member.file_size, member.filename)
    content.seek(0)
    return np.lib.format.read_array(content, allow_pickle=False)


def read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read an array of an archive of NumPy's, compressed or not; its size is looked at first."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as member:
        read_array_header(member, size, name)
    free = free_memory()
    if free is not None and size > free:
        raise ValueError(f"{name} takes {size >> 20} MiB of memory, {free >> 20} are free")
    with archive.open(name) as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        member.read(1)  # the end, where zipfile compares the checksum
    return array


def read_array_header(
    file: IO[bytes], n_bytes: int, name: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read how an array of so many bytes, its header included, begins: shape, order and type.

    One that says another size than it has is refused, before memory is taken for it.
    """
    start = file.tell()
    major, _ = np.lib.format.read_magic(file)
    read_header = (
        np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    )
    shape, by_columns, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError(f"{name} holds pickled Python objects")
    if dtype.kind == "V" or dtype.itemsize == 0:
        raise ValueError(f"{name} holds {dtype}, not numbers or text")
    n_items = math.prod(shape)
    if min(shape, default=0) < 0 or n_items * dtype.itemsize != n_bytes - (file.tell() - start):
        raise ValueError(f"{name} has another size than it says")
    return shape, by_columns, dtype


def _map_array(place: Path | IO[bytes], member: zipfile.ZipInfo) -> NDArray[Any] | None:
    """Map the array in a member of the file; None if it is empty or not aligned."""
    if not isinstance(place, Path):
        return None
    with place.open("rb") as file:
        file.seek(member.header_offset)
        head = file.read(30)
        if head[:4] != b"PK\3\4":
            return None
        name_length, extra_length = struct.unpack("<HH", head[26:])
        file.seek(member.header_offset + 30 + name_length + extra_length)
        shape, by_columns, dtype = read_array_header(file, member.file_size, member.filename)
        offset = file.tell()
    if 0 in shape or offset % _ALIGNED or by_columns:
        return None
    # Copy on write: an array that is read-only would be another type to the compiled kernels.
    return np.memmap(place, dtype, "c", offset, shape).view(np.ndarray)


def describe(value: Any, arrays: Arrays, place: str) -> Any:
    """Turn a value into JSON, putting the arrays in it into ``arrays`` under their ``place``."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        arrays[place] = value
        return {"array": place}
    if isinstance(value, list | tuple | np.ndarray):
        kind = {np.ndarray: "objects", tuple: "tuple"}.get(type(value), "list")
        return {kind: [describe(item, arrays, f"{place}.{i}") for i, item in enumerate(value)]}
    if isinstance(value, dict):
        return {"dict": {k: describe(v, arrays, f"{place}.{k}") for k, v in value.items()}}
    if isinstance(value, np.random.Generator):
        state = value.bit_generator.state
        if state["bit_generator"] not in _GENERATORS:
            raise InputError(
                f"save: {place} draws from {state['bit_generator']}, whose state cannot be saved; "
                "use np.random.default_rng."
            )
        return {"generator": state}
    if isinstance(value, np.random.RandomState):
        return None  # a shared source of seeds: what was drawn from it is in the learned state
    if hasattr(value, "get_params") and hasattr(value, "learned"):
        return {
            "class": type(value).__name__,
            **_origin(type(value)),
            "parameters": {
                name: describe(item, arrays, f"{place}.parameters.{name}")
                for name, item in value.get_params(deep=False).items()
            },
            "learned": {
                name: describe(item, arrays, f"{place}.{name}")
                for name, item in value.learned().items()
            },
        }
    raise InputError(
        f"save: {place} is a {type(value).__name__}, which cannot be saved without pickling; "
        "use numbers, strings, arrays or streamhash parts."
    )


def _origin(cls: type) -> dict[str, str]:
    """Name the module of a class that is not streamhash's: for whoever is to import it."""
    own = cls.__module__.partition(".")[0] == streamhash.__name__
    return {} if own else {"module": cls.__module__}


def rebuild(
    header: Mapping[str, Any], arrays: Arrays, classes: Callable[[], Iterable[type]]
) -> Any:
    """Undo ``describe`` of a header's model, in any format.

    A file may name ``classes``, those known at the moment, and the estimators of ``streamhash``.
    Nothing is imported because a file names it.
    """
    rebuilding = _Rebuilding(arrays, classes, header["version"])
    model = rebuilding.value(header["model"])
    if unused := arrays.keys() - rebuilding.used:
        raise FileError(f"holds {min(unused)}, which nothing in it names; save it again.")
    return model


def is_learned(name: str) -> bool:
    """Whether an attribute of this name is one that was learned."""
    return name[:1] != "_" and name[-1:] == "_" and name.isidentifier()


@dataclass(frozen=True)
class _Rebuilding:
    arrays: Arrays
    classes: Callable[[], Iterable[type]]
    version: int
    used: set[str] = field(default_factory=set)

    def value(self, description: Any, depth: int = 0) -> Any:
        if isinstance(description, list) or depth > _DEEPEST:
            raise ValueError("a list where none can be" if depth <= _DEEPEST else "too deep")
        if not isinstance(description, dict):
            return description
        if "class" in description:
            return self._estimator(description["class"], description, depth + 1)
        ((kind, content),) = description.items()
        if kind == "array":
            self.used.add(content)
            return self.arrays[content]
        if kind == "generator":
            return _generator(content)
        if kind == "dict":
            return {name: self.value(item, depth + 1) for name, item in content.items()}
        if kind not in ("list", "tuple", "objects") or not isinstance(content, list):
            raise ValueError(f"a {kind} is not known")
        values = [self.value(item, depth + 1) for item in content]
        if kind == "objects":
            return np.fromiter(values, object, len(values))
        return tuple(values) if kind == "tuple" else values

    def _estimator(self, name: str, description: Mapping[str, Any], depth: int) -> Any:
        found = self._class(name, description.get("module"))
        parameters, learned = (
            {key: self.value(item, depth) for key, item in description[kind].items()}
            for kind in ("parameters", "learned")
        )
        if self.version == 1:
            parameters = {**_OLD_DEFAULTS.get(name.lower(), {}), **new_parameters(name, parameters)}
            learned = _new_learned(name, learned)
        estimator = found(**parameters)
        estimator.check_parameters()
        for key, value in learned.items():
            if not is_learned(key):
                raise ValueError(f"{name}.{key} is no name of what is learned")
            setattr(estimator, key, value)
        estimator.check_learned()
        return estimator

    def _class(self, name: str, module: Any) -> Any:
        """Find a class among those that are known: of several with its name, its module's."""
        if module is None and name in streamhash.__all__:
            own = getattr(streamhash, name)
            if hasattr(own, "get_params"):
                return own
        known: dict[str, Any] = {}
        for each in self.classes():
            if known.get(each.__name__) is None or each.__module__ == module:
                known[each.__name__] = each
        if hasattr(known.get(name), "get_params"):
            return known[name]
        if isinstance(module, str) and _MODULE.fullmatch(module):
            raise FileError(
                f"holds a {name} of {module}, which is not known here; import {module} first: a "
                "file imports nothing by itself."
            )
        raise FileError(
            f"holds a {name}, which is not known here; import the module that defines it "
            f"first, or upgrade streamhash. Known: {', '.join(sorted(known))}."
        )


def _generator(state: Mapping[str, Any]) -> np.random.Generator:
    """Make a source of random numbers that goes on from a state; of two kinds, all of numbers."""
    bits = _GENERATORS[state["bit_generator"]]()
    wanted = bits.state
    numbers = (*state["state"].values(), state["has_uint32"], state["uinteger"])
    are_known = state.keys() == wanted.keys() and state["state"].keys() == wanted["state"].keys()
    if not are_known or not all(type(each) is int and 0 <= each < 2**128 for each in numbers):
        raise ValueError("a state of random numbers that cannot be")
    bits.state = state
    return np.random.Generator(bits)


# Format 1, written up to version 0.1. Of a method: an old name, the new name and new values.
_OLD_PARAMETERS: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    "sdoh": {"kernel": ("n_anchors", {})},
    "hmoh": {"kernel": ("n_anchors", {})},
    "okh": {"anchors": ("n_anchors", {})},
    "bsodh": {"absent_classes": ("absent_classes", {"repelled": "released"})},
    "sketchhash": {"rotation": ("rotation", {"redraw": "released"})},
    "frosh": {"rotation": ("rotation", {"redraw": "released"})},
}


# What a method did then, where its defaults have changed since.
_OLD_DEFAULTS: dict[str, dict[str, Any]] = {"sdoh": {"memory": 0, "features": None}}


def new_parameters(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a method as they are called now, from those of version 0.1.

    >>> new_parameters("okh", {"n_bits": 16, "anchors": 300})
    {'n_bits': 16, 'n_anchors': 300}
    """
    renamed = {}
    for old, value in parameters.items():
        new, values = _OLD_PARAMETERS.get(name.lower(), {}).get(old, (old, {}))
        if isinstance(value, np.ndarray) and new == "n_anchors":
            new = "anchors"
        renamed[new] = values.get(value, value) if isinstance(value, str) else value
    return renamed


def _new_learned(name: str, learned: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a hasher has learned as it is called now: the parts that prepare its features."""
    if "n_stages_" not in learned or "parts_" in learned:
        return {**learned}
    kept = {**learned, "parts_": []}
    if name in ("AdaptHash", "BSODH", "HCOH", "LSH", "MIHash", "OSH"):
        scale = kept.pop("scale_")
        kept["parts_"] = [] if scale is None else [scale]
    return kept
