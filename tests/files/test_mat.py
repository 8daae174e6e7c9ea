"""MATLAB files of both formats, in both orientations: as one's own file, and as named sets."""

import json
import logging
import pickle
import re
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array

from mat_files import save_73
from streamhash.errors import FileError, InputError, MissingDataError, MissingPartError
from streamhash.files import Columns, mat, read_items, read_table
from streamhash.lab.datasets import available, load_data, sets

RNG = np.random.default_rng(0)
X7 = RNG.standard_normal((7, 4))
Y7 = np.array([3, 1, 2, 3, 0, 1, 2])
PLACES = "Places205_AlexNet_fc7_PCA128.mat"
CIFAR = "CIFAR10_VGG16_fc7.mat"


def save_5(path, fields):
    savemat(path, fields)


def save_7(path, fields):
    savemat(path, fields, do_compression=True)


def save_73_packed(path, fields):
    save_73(path, fields, chunks=True, compression="gzip")


SAVERS = [save_5, save_7, save_73, save_73_packed]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder that is also the person's data folder, with an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMHASH_DATA", str(tmp_path))
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path / "cache"))
    sets._load_again.cache_clear()  # it keeps the last set by its name
    return tmp_path


def cached(folder):
    return sorted(path.name for path in (folder / "cache").rglob("*") if path.is_file())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("save", SAVERS)
class TestOwnFiles:
    @pytest.mark.parametrize("names", [("X", "y"), ("features", "labels"), ("pca_feats", "labels")])
    @pytest.mark.parametrize("turned", [False, True])
    @pytest.mark.parametrize("row_of_labels", [False, True])
    def test_either_orientation(self, save, names, turned, row_of_labels):
        labels = Y7[None] if row_of_labels else Y7[:, None]
        save("a.mat", {names[0]: X7.T if turned else X7, names[1]: labels.astype(float)})
        X, y = read_table("a.mat")
        assert X.dtype == np.float32
        assert np.array_equal(X, X7.astype(np.float32))
        assert y.dtype == np.int64
        assert y.tolist() == Y7.tolist()
        found = load_data("a.mat")
        assert (found.name, found.card.rows, found.card.features, found.card.classes) == (
            *("a", 7, 4),
            4,
        )
        assert np.array_equal(pickle.loads(pickle.dumps(found)).X, X)

    def test_items_piece_by_piece(self, save):
        save("a.mat", {"X": X7.T, "y": Y7})
        pieces = [*read_items("a.mat", size=3)]
        assert [piece.n for piece in pieces] == [3, 3, 1]
        assert np.array_equal(np.concatenate([piece.vectors for piece in pieces]), X7)
        assert [label for piece in pieces for label in piece.labels] == Y7.tolist()
        with pytest.raises(InputError, match=r"a\.mat is read without ids and metadata; use \.npz"):
            next(read_items("a.mat", columns=Columns(id="y")))

    @pytest.mark.parametrize("turned", [False, True])
    def test_training_and_test_rows(self, save, turned):
        parts = {"trainCNN": X7[:5], "testCNN": X7[5:]}
        parts = {name: X.T if turned else X for name, X in parts.items()}
        labels = {"trainLabels": Y7[:5, None], "testLabels": Y7[5:, None]}
        save("a.mat", parts | labels)
        X, y = read_table("a.mat")
        assert np.array_equal(X, X7.astype(np.float32))
        assert y.tolist() == Y7.tolist()

    def test_a_square_lies_as_matlab_shows_it(self, save):
        save("a.mat", {"X": X7[:4], "y": Y7[:4]})
        assert np.array_equal(read_table("a.mat")[0], X7[:4].astype(np.float32))

    def test_several_labels_a_row(self, save):
        matrix = RNG.integers(0, 2, (7, 3)).astype(float)
        for features, labels in [(X7, matrix), (X7.T, matrix.T), (X7.T, matrix)]:
            save("a.mat", {"X": features, "y": labels})
            X, y = read_table("a.mat")
            assert np.array_equal(X, X7.astype(np.float32))
            assert y.dtype == np.uint8
            assert np.array_equal(y, matrix)

    @pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int16, bool])
    def test_other_numbers(self, save, dtype):
        save("a.mat", {"X": (X7 > 0).astype(dtype), "y": Y7.astype(np.uint8)})
        X, y = read_table("a.mat")
        assert np.array_equal(X, X7 > 0)
        assert (X.dtype, y.dtype) == (np.float32, np.int64)

    def test_labels_of_another_name_or_none(self, save):
        save("a.mat", {"X": X7, "kind": Y7})
        assert read_table("a.mat")[1] is None
        assert read_table("a.mat", column="kind")[1].tolist() == Y7.tolist()
        with pytest.raises(InputError, match=r"no column 'sort' is in a\.mat, which has X 7×4, "):
            read_table("a.mat", column="sort")
        Path("y.txt").write_text("\n".join(map(str, Y7)))
        assert read_table("a.mat", labels="y.txt")[1].tolist() == Y7.tolist()

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"Z": X7, "y": Y7}, "a.mat has Z 7×4, y 1×7, where X or features or pca_feats with y"),
            ({"X": X7, "y": Y7[:6]}, "a.mat has X 7×4, y 1×6; save as many labels in y as there"),
            ({"trainCNN": X7, "trainLabels": Y7}, "testCNN, testLabels are wanted; save it with"),
            ({"X": X7, "y": Y7 + 0.5}, "has labels in y that are not whole numbers; number the"),
            ({"X": X7, "y": np.full(7, np.nan)}, "has labels in y that are not whole numbers;"),
            ({"X": np.zeros((2, 7, 4)), "y": Y7}, "save X as a matrix with at least one row."),
            (
                {
                    **{"trainCNN": X7, "trainLabels": Y7},
                    **{"testCNN": X7[:, :3], "testLabels": Y7},
                },
                "of several widths; save fields of the same features.",
            ),
        ],
    )
    def test_wrong_fields_are_named(self, save, fields, message):
        save("a.mat", fields)
        with pytest.raises(FileError, match=re.escape(message)):
            read_table("a.mat")

    def test_a_cut_or_damaged_file_is_refused(self, save):
        save("a.mat", {"X": RNG.standard_normal((70, 9)), "y": np.arange(70)})
        whole = Path("a.mat").read_bytes()
        for keep in np.linspace(0, len(whole) - 1, 23).astype(int):
            Path("a.mat").write_bytes(whole[:keep])
            with pytest.raises(FileError, match=r"a\.mat "):
                read_table("a.mat")
        for place in RNG.integers(0, len(whole), 60):
            damaged = bytearray(whole)
            damaged[place] ^= 255
            Path("a.mat").write_bytes(damaged)
            with suppress(FileError, InputError):  # where only a number has changed, it passes
                read_table("a.mat")


@pytest.mark.usefixtures("folder")
class TestFormats:
    def test_a_foreign_file_is_refused(self):
        Path("a.mat").write_text("not at all")
        with pytest.raises(FileError) as caught:
            read_table("a.mat")
        assert str(caught.value) == (
            "read_table: a.mat cannot be read as a MATLAB file (it does not begin as one); save "
            "it again, or copy it again if it came from elsewhere."
        )

    def test_damaged_tags_that_crash_scipy_are_refused(self):
        save_5("a.mat", {"X": X7, "y": Y7})
        whole = Path("a.mat").read_bytes()
        start = whole.index(b"\x01\x00\x01\x00X\x00\x00\x00") + 8  # after the name comes the tag
        assert whole[start] == 9  # of doubles
        for kind in (0, 8, 10, 11, 14, 15, 16, 18, 255):
            Path("a.mat").write_bytes(whole[:start] + bytes([kind]) + whole[start + 1 :])
            with pytest.raises(FileError, match=r"matrix in byte 136 does not hold numbers"):
                read_table("a.mat")

    def test_other_fields_beside_are_left_alone(self):
        beside = {"note": "text", "cells": np.array([[1, "a"]], object), "s": {"a": 1}, "z": [1j]}
        save_5("a.mat", {**beside, "X": X7, "y": Y7})
        assert np.array_equal(read_table("a.mat")[0], X7.astype(np.float32))

    def test_fields_that_are_no_numbers_do_not_count(self):
        savemat("a.mat", {"X": np.array([["text"]], object), "features": csc_array(X7), "y": Y7})
        with pytest.raises(FileError, match=r"a\.mat has y 1×7, where X or features"):
            read_table("a.mat")

    def test_hdf5_by_other_programs(self):
        h5py = pytest.importorskip("h5py")
        with h5py.File("a.mat", "w") as file:
            file["X"], file["y"] = X7, Y7  # rows first, labels of one dimension
        X, y = read_table("a.mat")
        assert np.array_equal(X, X7.astype(np.float32))
        assert y.tolist() == Y7.tolist()

    def test_without_h5py_the_next_step_is_said(self, monkeypatch):
        save_73("a.mat", {"X": X7, "y": Y7})
        monkeypatch.setitem(sys.modules, "h5py", None)
        with pytest.raises(MissingPartError) as caught:
            read_table("a.mat")
        assert str(caught.value) == (
            "read_table: a.mat is of MATLAB's format 7.3 and needs h5py, which is not installed; "
            'run pip install "streamhash[mat]", or save it in MATLAB with -v7.'
        )

    @pytest.mark.parametrize("save", SAVERS)
    @pytest.mark.parametrize("turned", [False, True])
    def test_many_chunks_are_one_matrix(self, save, turned, monkeypatch):
        monkeypatch.setattr(mat, "CHUNK_BYTES", 2000)
        values = RNG.standard_normal((301, 9))
        save("a.mat", {"X": values.T if turned else values, "y": np.arange(301)})
        X, y = read_table("a.mat")
        assert np.array_equal(X, values.astype(np.float32))
        assert y.tolist() == list(range(301))


def places(n=30):
    labels = RNG.integers(0, 205, (n, 1)).astype(float)
    return {"labels": labels, "pca_feats": RNG.standard_normal((n, 128))}


class TestNamedSets:
    @pytest.mark.parametrize("save", SAVERS)
    def test_places205(self, folder, save, caplog):
        caplog.set_level(logging.WARNING)
        fields = places()
        save(folder / PLACES, fields)
        found = load_data("places205")
        assert isinstance(found.X, np.memmap)
        assert not found.X.flags.writeable
        assert np.array_equal(found.X, fields["pca_feats"].astype(np.float32))
        assert found.y.dtype == np.int64
        assert np.array_equal(found.y, fields["labels"][:, 0])
        assert found.card.rows == 30
        assert found.card.where == str(folder)
        assert re.fullmatch("sha256:[0-9a-f]{64}", found.card.checksum)
        assert np.array_equal(load_data("places205").X, found.X)
        assert np.array_equal(pickle.loads(pickle.dumps(found)).X, found.X)
        assert caplog.messages == [
            f"streamhash: converting {PLACES} for quick use, into {folder}/cache/places205 (only "
            "the first time)"
        ]
        assert cached(folder) == ["X.npy", "about.json", "y.npy"]
        (about,) = folder.rglob("about.json")
        assert json.loads(about.read_text()).keys() == {"file", "bytes", "modified", "checksum"}

    @pytest.mark.parametrize("save", SAVERS)
    def test_cifar10(self, folder, save):
        (folder / "cifar10-vgg16").mkdir()
        train, test = RNG.random((5, 4096)), RNG.random((3, 4096))
        fields = {"trainCNN": train.T, "trainLabels": np.arange(5.0)}
        save(
            folder / "cifar10-vgg16" / CIFAR,
            fields | {"testCNN": test.T, "testLabels": np.arange(3.0)},
        )
        found = load_data("cifar10-vgg16")
        assert np.array_equal(found.X, np.concatenate([train, test]).astype(np.float32))
        assert found.y.tolist() == [0, 1, 2, 3, 4, 0, 1, 2]

    def test_a_changed_file_is_converted_anew(self, folder):
        save_5(folder / PLACES, places(20))
        first = load_data("places205")
        save_5(folder / PLACES, places(25))
        second = load_data("places205")
        assert (len(first.X), len(second.X)) == (20, 25)
        assert first.card.checksum != second.card.checksum

    @pytest.mark.parametrize("save", SAVERS)
    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"feats": X7}, "has feats 7×4, where X or features or pca_feats with y or labels, or"),
            ({"pca_feats": X7, "labels": Y7}, "where 128 features with a label a row are"),
            ({"pca_feats": RNG.random((7, 128))}, "where 128 features with a label a row are"),
        ],
    )
    def test_foreign_files_are_refused_and_leave_nothing(self, folder, save, fields, message):
        save(folder / PLACES, fields)
        with pytest.raises(FileError, match=re.escape(message)):
            load_data("places205")
        assert cached(folder) == []

    @pytest.mark.parametrize("save", SAVERS)
    def test_damage_met_in_the_middle_leaves_nothing(self, folder, save, monkeypatch):
        monkeypatch.setattr(mat, "CHUNK_BYTES", 2**14)
        save(folder / PLACES, places(400))
        content = (folder / PLACES).read_bytes()
        (folder / PLACES).write_bytes(content[: len(content) // 2])
        with pytest.raises(FileError, match=r"load_data: .*cannot be read as a MATLAB file"):
            load_data("places205")
        assert cached(folder) == []
        assert list(folder.rglob("*.part")) == []

    def test_memory_is_bounded_by_the_chunk(self, folder, monkeypatch):
        monkeypatch.setattr(mat, "CHUNK_BYTES", 2**16)
        save_73(folder / PLACES, places(20_000), chunks=True)
        tracemalloc.start()
        try:
            load_data("places205")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 20_000 * 128 * 4 / 4  # a quarter of X

    @pytest.mark.usefixtures("folder")
    def test_missing_files_are_named(self):
        for name, file in [("places205", PLACES), ("cifar10-vgg16", CIFAR)]:
            with pytest.raises(
                MissingDataError, match=rf"\({file}\) is not in .*data fetch {name}"
            ):
                load_data(name)

    def test_cards_say_that_the_checksum_is_unknown(self):
        for card in available():
            if card.name in ("places205", "cifar10-vgg16"):
                assert card.checksum is None
                assert "its checksum is unknown to us" in card.note
