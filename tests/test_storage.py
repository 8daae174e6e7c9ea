"""Saved files: versioned, checked, whole or not there at all, and loadable for ever."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import streamhash
from quick import plain_sdoh
from streamhash import LSH, CenterScale, FileError, InputError, StreamPipeline, storage

FILES = (Path(__file__).parent / "files").glob("*.streamhash")
OLD_FILES = sorted(path for path in FILES if "index" not in path.name)  # those: test_search.py


def learned(seed=0):
    random = np.random.default_rng(seed)
    X, y = random.standard_normal((300, 8)).astype(np.float32), random.integers(3, size=300)
    return plain_sdoh(16, random_state=0).fit(X, y), X


@pytest.fixture
def saved(tmp_path):
    model, X = learned()
    path = tmp_path / "model.streamhash"
    model.save(path)
    return path, model, X


def test_a_file_opens_with_zip_and_numpy_alone(saved):
    path, model, _ = saved
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        with archive.open("model.W_.npy") as file:
            assert np.array_equal(np.lib.format.read_array(file, allow_pickle=False), model.W_)
    assert (header["streamhash"], header["version"]) == ("model", 2)
    assert header["model"]["class"] == "SDOH"
    assert header["model"]["parameters"]["n_bits"] == 16


def test_streamhash_load_opens_any_method(tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 4))
    for model in (LSH(8, random_state=0), StreamPipeline([CenterScale()], LSH(8, random_state=0))):
        path = tmp_path / "any"
        model.fit(X).save(path)
        loaded = streamhash.load(path)
        assert type(loaded) is type(model)
        assert np.array_equal(loaded.transform(X), model.transform(X))


def test_feature_names_survive(tmp_path):
    pandas = pytest.importorskip("pandas", reason="data frames are optional")
    frame = pandas.DataFrame(np.eye(6), columns=list("abcdef"))
    LSH(8, random_state=0).fit(frame).save(tmp_path / "named")
    loaded = streamhash.load(tmp_path / "named")
    assert loaded.feature_names_in_.tolist() == list("abcdef")
    loaded.transform(frame)
    with pytest.raises(InputError, match=r"LSH\.transform: The feature names should match"):
        loaded.transform(frame.rename(columns={"a": "z"}))


def test_loading_as_another_method_is_refused(saved):
    path, _, _ = saved
    with pytest.raises(FileError) as caught:
        LSH.load(path)
    assert str(caught.value) == f"{path}: holds a SDOH, not a LSH; load it with streamhash.load."


def test_a_missing_file_is_a_clear_error(tmp_path):
    path = tmp_path / "none"
    with pytest.raises(FileError) as caught:
        streamhash.load(path)
    assert (
        str(caught.value) == f"{path}: cannot be read (No such file or directory); check the path."
    )


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x03\x04 and then nothing"])
def test_a_foreign_file_is_a_clear_error(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(FileError, match="expected a streamhash model file, but it is corrupt or"):
        streamhash.load(path)


@pytest.mark.slow
def test_any_flipped_byte_is_noticed_or_harmless(saved):
    path, model, X = saved
    good = path.read_bytes()
    codes = model.transform(X)
    refused = 0
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x55
        path.write_bytes(bytes(bad))
        try:
            loaded = streamhash.load(path)
        except FileError:
            refused += 1
        else:  # a date or flag in the archive's directory
            assert np.array_equal(loaded.transform(X), codes)
    assert refused > 0.9 * len(good)


def test_every_truncation_is_refused(saved):
    path, _, _ = saved
    good = path.read_bytes()
    for length in range(0, len(good), max(1, len(good) // 100)):
        path.write_bytes(good[:length])
        with pytest.raises(FileError):
            streamhash.load(path)


def rewritten(path, change):
    header, arrays = storage.read(path, "model")
    change(header, arrays)
    storage.write(path, "model", header, arrays)


def test_a_newer_format_says_to_upgrade(saved):
    path, _, _ = saved
    rewritten(path, lambda header, _: header.update(version=3, written_by="9.0"))
    with pytest.raises(FileError) as caught:
        streamhash.load(path)
    assert str(caught.value) == (
        f"{path}: written by streamhash 9.0 in format 3, this version reads up to 2; "
        "upgrade streamhash."
    )


def test_an_unknown_class_is_never_imported(saved):
    path, _, _ = saved
    rewritten(path, lambda header, _: header["model"].update({"class": "os.system"}))
    with pytest.raises(FileError, match=r"holds a os\.system, which is not known here"):
        streamhash.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda _, arrays: arrays.pop("model.W_"),
        lambda header, _: header.pop("model"),
        lambda header, _: header["model"]["parameters"].update(nonsense=1),
        lambda header, _: header["model"].pop("learned"),
    ],
)
def test_an_incomplete_model_is_refused(saved, change):
    path, _, _ = saved
    rewritten(path, change)
    with pytest.raises(FileError, match=r"is incomplete .*save it again"):
        streamhash.load(path)


def test_pickled_arrays_are_refused(saved):
    path, _, _ = saved
    with zipfile.ZipFile(path, "a") as archive, archive.open("evil.npy", "w") as file:
        np.lib.format.write_array(file, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="corrupt or foreign"):
        streamhash.load(path)


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    path, _, _ = saved
    good = path.read_bytes()

    def disk_full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(FileError, match=r"cannot be written \(No space left on device\)"):
        learned(seed=1)[0].save(path)
    assert path.read_bytes() == good
    assert list(path.parent.iterdir()) == [path]


def test_saving_into_a_missing_folder_is_a_clear_error(saved, tmp_path):
    _, model, _ = saved
    with pytest.raises(FileError, match=r"cannot be written .*choose a folder that exists"):
        model.save(tmp_path / "no" / "model")


def test_what_needs_pickling_cannot_be_saved(saved, tmp_path):
    _, model, _ = saved
    model.thing_ = object()
    with pytest.raises(InputError, match=r"model\.thing_ is a object, which cannot be saved"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("path", OLD_FILES, ids=lambda path: path.stem)
def test_files_of_every_version_load(path):
    """Each file was written by the version in its name, beside the projections it gave then."""
    model = streamhash.load(path)
    then = np.load(path.with_suffix(".npz"))
    np.testing.assert_allclose(model.project(then["X"]), then["now"], atol=1e-4)
    model.partial_fit(then["X"], then["y"])
    # Steps that depend on signs may part on another machine's rounding, in a few bits.
    assert np.median(abs(model.project(then["X"]) - then["after"])) < 1e-3


def test_old_names_are_read_as_the_new_ones():
    kernel = streamhash.load(next(path for path in OLD_FILES if path.stem == "v1-sdoh_kernel"))
    assert kernel.n_anchors == 30
    assert [type(part).__name__ for part in kernel.parts_] == ["AnchorMap", "CenterScale"]
    for path in OLD_FILES:
        model = streamhash.load(path)
        assert isinstance(model.parts_, list)
        assert not hasattr(model, "scale_")
    assert storage.new_parameters("SketchHash", {"rotation": "redraw"}) == {"rotation": "released"}
    anchors = np.ones((3, 2))
    assert storage.new_parameters("HMOH", {"kernel": anchors}) == {"anchors": anchors}


def test_there_are_old_files():
    assert {path.stem.split("-")[0] for path in OLD_FILES} >= {"v1"}
