"""Features of images: every source of images, resuming, what is refused, and CIFAR-10's files."""

import gzip
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import cifar
from extract import extract_features
from streamhash.errors import FileError, InputError, MissingDataError, MissingPartError
from streamhash.lab.datasets import load_data

SCRIPTS = Path(__file__).parents[2] / "examples" / "image_features"

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (50, 4, 5, 3), dtype=np.uint8)
EXTRACTOR = "import numpy as np\ndef means(batch):\n    return batch.mean(axis=(1, 2))\n"


def means(batch):
    assert batch.flags.writeable
    assert batch.flags.c_contiguous
    return batch.mean(axis=(1, 2))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STREAMHASH_DATA", raising=False)
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def cifar_files():
    """Return small files of CIFAR-10's binary version: {name: bytes}, with images and labels."""
    images = RNG.integers(0, 256, (24, 32, 32, 3), dtype=np.uint8)
    labels = RNG.integers(0, 10, 24, dtype=np.uint8)
    rows = np.concatenate([labels[:, None], images.transpose(0, 3, 1, 2).reshape(24, -1)], axis=1)
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    return {name: rows[4 * i : 4 * i + 4].tobytes() for i, name in enumerate(names)}, images, labels


def archive(files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as file:
        for name, data in files.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return content.getvalue()


def names_in(path):
    return sorted(found.name for found in Path(path).iterdir())


@pytest.mark.usefixtures("folder")
class TestSources:
    @pytest.mark.parametrize("batch_size", [1, 7, 256])
    def test_an_array(self, batch_size):
        y = np.arange(50) % 3
        made = extract_features(IMAGES, means, "f.npy", labels=y, batch_size=batch_size)
        assert made == (Path("f.npy"), Path("f.labels.npy"))
        found = load_data("f.npy", labels="f.labels.npy")
        assert isinstance(found.X, np.memmap)
        assert found.X.dtype == np.float32
        assert np.array_equal(found.X, means(IMAGES).astype(np.float32))
        assert np.array_equal(found.y, y)
        assert names_in(".") == ["f.labels.npy", "f.npy"]

    def test_an_array_file_without_labels(self):
        np.save("images.npy", IMAGES)
        assert extract_features("images.npy", means, "f.npy") == (Path("f.npy"), None)
        assert np.array_equal(np.load("f.npy"), means(IMAGES).astype(np.float32))
        Path("y.txt").write_text("cat\ndog\n" * 25)
        extract_features("images.npy", means, "g.npy", labels="y.txt")
        assert load_data("g.npy", labels="g.labels.npy").y[:2].tolist() == ["cat", "dog"]

    def test_cifar_as_archive_and_as_folder(self, cifar_files):
        files, images, labels = cifar_files
        Path("cifar-10-binary.tar.gz").write_bytes(archive(files))
        Path("cifar").mkdir()
        for name, data in files.items():
            Path("cifar", name).write_bytes(data)
        for source in ("cifar-10-binary.tar.gz", "cifar"):
            out = f"{source}.npy"
            _, beside = extract_features(source, means, out, batch_size=10)
            assert np.array_equal(np.load(out), means(images).astype(np.float32))
            assert np.array_equal(np.load(beside), labels)

    def test_a_folder_of_class_folders(self):
        pillow = pytest.importorskip("PIL.Image")
        for i, kind in enumerate(["dog", "cat", "dog"]):
            Path("pictures", kind).mkdir(parents=True, exist_ok=True)
            pillow.fromarray(IMAGES[i]).save(f"pictures/{kind}/{i}.png")
        Path("pictures/dog/notes.txt").write_text("no picture")
        _, beside = extract_features("pictures", means, "f.npy")
        assert np.array_equal(np.load("f.npy"), means(IMAGES[[1, 0, 2]]).astype(np.float32))
        assert np.load(beside).tolist() == ["cat", "dog", "dog"]
        pillow.fromarray(IMAGES[0, :2, :3]).save("pictures/dog/9.png")
        with pytest.raises(InputError, match=r"9\.png is 3 × 2 and .*1\.png is 5 × 4; resize all"):
            extract_features("pictures", means, "g.npy")
        Path("pictures/dog/9.png").write_bytes(b"no picture")
        with pytest.raises(FileError, match=r"9\.png cannot be read as a picture"):
            extract_features("pictures", means, "g.npy", batch_size=1)

    def test_pictures_without_pillow(self, monkeypatch):
        Path("pictures/cat").mkdir(parents=True)
        Path("pictures/cat/1.png").touch()
        monkeypatch.setitem(sys.modules, "PIL", None)
        monkeypatch.setitem(sys.modules, "PIL.Image", None)
        with pytest.raises(MissingPartError, match=r"needs Pillow.*streamhash\[images\]"):
            extract_features("pictures", means, "f.npy")

    def test_a_file_larger_than_a_batch_is_not_in_memory(self):
        np.save("images.npy", np.zeros((2000, 32, 32, 3), np.uint8))
        extract_features("images.npy", means, "first.npy")  # loads what is loaded at its first use
        tracemalloc.start()
        try:
            extract_features("images.npy", means, "f.npy", batch_size=10)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 2000 * 32 * 32 * 3 / 4


@pytest.mark.usefixtures("folder")
class TestResuming:
    def test_it_goes_on_where_it_was_stopped(self):
        seen = []

        class Means:
            stop_at = 20

            def __call__(self, batch):
                if len(seen) >= self.stop_at:
                    raise KeyboardInterrupt
                seen.extend(batch)
                return means(batch)

        extractor = Means()
        with pytest.raises(KeyboardInterrupt):
            extract_features(IMAGES, extractor, "f.npy", batch_size=10)
        assert names_in(".") == ["f.npy.part", "f.npy.part.json"]
        extractor.stop_at = 1000
        counts = []
        extract_features(
            IMAGES, extractor, "f.npy", batch_size=7, progress=lambda *count: counts.append(count)
        )
        assert len(seen) == 50  # no image twice
        assert counts[0] == (27, 50)
        assert counts[-1] == (50, 50)
        assert np.array_equal(np.load("f.npy"), means(IMAGES).astype(np.float32))
        assert names_in(".") == ["f.npy"]

    @pytest.mark.slow
    def test_it_survives_being_killed(self):
        Path("own.py").write_text(
            EXTRACTOR + "import os\nleft = [3]\n"
            "def killed(batch):\n"
            "    left[0] -= 1\n"
            "    if not left[0] and os.environ.get('KILL'): os.kill(os.getpid(), 9)\n"
            "    return means(batch)\n"
        )
        np.save("images.npy", IMAGES)
        code = (
            "import os; os.environ['KILL'] = '1'\n"
            f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\n"
            "from extract import extract_features\n"
            "extract_features('images.npy', 'own:killed', 'f.npy', batch_size=10)"
        )
        done = subprocess.run([sys.executable, "-c", code], check=False)
        assert done.returncode == -9
        assert not Path("f.npy").exists()
        subprocess.run([sys.executable, "-c", code.replace("'1'", "''")], check=True)
        assert np.array_equal(np.load("f.npy"), means(IMAGES).astype(np.float32))

    def test_other_images_or_another_extractor_do_not_go_on(self):
        def stopped(batch):
            if batch[0, 0, 0, 0] == IMAGES[10, 0, 0, 0]:
                raise RuntimeError("stopped")
            return means(batch)

        with pytest.raises(RuntimeError, match="stopped"):
            extract_features(IMAGES, stopped, "f.npy", batch_size=10)
        with pytest.raises(InputError, match=r"f\.npy\.part was begun with images 50×4×5×3 .*stop"):
            extract_features(IMAGES, means, "f.npy")
        with pytest.raises(InputError, match=r"now it is images 40×4×5×3 .*; delete it to begin"):
            extract_features(IMAGES[:40], stopped, "f.npy")
        Path("f.npy.part").unlink()
        extract_features(IMAGES, means, "f.npy")


@pytest.mark.usefixtures("folder")
class TestRefusals:
    @pytest.mark.parametrize(
        ("result", "message"),
        [
            (lambda b: b, "gave uint8 of shape (50, 4, 5, 3) for 50 images; return numbers of"),
            (lambda b: means(b)[1:], "gave float64 of shape (49, 3) for 50 images; return numbers"),
            (lambda b: means(b)[0], "shape (3,) for 50 images; return numbers of shape (50, featu"),
            (lambda b: means(b)[:, :0], "shape (50, 0) for 50 images"),
            (lambda b: np.array([["a"]] * len(b)), "the extractor gave <U1 of shape (50, 1)"),
            (lambda _: None, "the extractor gave object of shape ()"),
            (
                lambda b: np.where(b[:, 0, 0] == b[7, 0, 0], np.nan, 1),
                "NaN or infinity for image 7",
            ),
            (lambda b: means(b) * 1e39, "NaN or infinity for image 0; mend the extractor"),
        ],
    )
    def test_what_the_extractor_gives(self, result, message):
        with pytest.raises(InputError, match=re.escape(message)):
            extract_features(IMAGES, result, "f.npy")
        assert not Path("f.npy").exists()

    def test_a_width_that_changes(self):
        widths = iter([3, 2])
        with pytest.raises(InputError, match=r"shape \(25, 2\) .* return numbers of shape \(25, 3"):
            extract_features(IMAGES, lambda b: means(b)[:, : next(widths)], "f.npy", batch_size=25)

    @pytest.mark.parametrize(
        ("images", "error", "message"),
        [
            (IMAGES[0], InputError, "images is uint8 of shape (4, 5, 3); pass uint8 of shape"),
            (IMAGES / 255, InputError, "images is float64 of shape (50, 4, 5, 3); pass uint8"),
            (IMAGES[:0], InputError, "images is uint8 of shape (0, 4, 5, 3)"),
            ("nowhere", MissingDataError, "there is no file or folder nowhere; check the path."),
            ("a.txt", InputError, "a.txt is neither a .npy file, nor cifar-10-binary.tar.gz, nor"),
            ("a.npy", FileError, "a.npy cannot be read as .npy"),
            ("empty", InputError, "empty has no sub-folders with pictures; put those of each"),
        ],
    )
    def test_images_of_no_use(self, images, error, message):
        Path("a.txt").touch()
        Path("a.npy").write_text("not an array")
        Path("empty").mkdir()
        with pytest.raises(error, match=re.escape(message)):
            extract_features(images, means, "f.npy")

    def test_cifars_python_version_is_refused_with_the_reason(self):
        Path("cifar-10-batches-py").mkdir()
        Path("cifar-10-batches-py/data_batch_1").touch()
        Path("cifar-10-python.tar.gz").write_bytes(archive({"data_batch_1": b""}))
        for name in ("cifar-10-batches-py", "cifar-10-python.tar.gz"):
            with pytest.raises(FileError) as caught:
                extract_features(name, means, "f.npy")
            assert str(caught.value) == (
                f"extract_features: {name} cannot be read as CIFAR-10's binary version (it is the "
                "python version, of pickled objects, which are never loaded, as they can run "
                "code); get cifar-10-binary.tar.gz: python examples/image_features/cifar.py."
            )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda files: files.pop("test_batch.bin"), "it has no test_batch.bin"),
            (lambda files: files.update({"test_batch.bin": b"1234"}), "has 4 bytes, which are no"),
            (lambda files: files.update({"test_batch.bin": b"\x0b" * 3073}), "a label above 9"),
        ],
    )
    def test_a_damaged_cifar_archive(self, cifar_files, change, message):
        files, _, _ = cifar_files
        change(files)
        Path("a.tar.gz").write_bytes(archive(files))
        with pytest.raises(FileError, match=message):
            extract_features("a.tar.gz", means, "f.npy")

    def test_a_cut_cifar_archive(self, cifar_files):
        content = archive(cifar_files[0])
        for keep in (0, 10, len(content) // 2, len(content) - 20):
            Path("a.tar.gz").write_bytes(content[:keep])
            with pytest.raises(FileError, match="cannot be read as CIFAR-10's binary version"):
                extract_features("a.tar.gz", means, "f.npy")

    @pytest.mark.parametrize(
        ("extractor", "message"),
        [
            ("nomodule:f", "extractor='nomodule:f' cannot be loaded (No module named 'nomodule')"),
            ("math:nothing", "cannot be loaded (module 'math' has no attribute 'nothing'); pass"),
            ("math", "extractor='math' cannot be loaded"),
            ("math:pi", "extractor='math:pi' is no function; name one that is."),
        ],
    )
    def test_extractors_that_are_not_there(self, extractor, message):
        with pytest.raises(InputError, match=re.escape(message)):
            extract_features(IMAGES, extractor, "f.npy")

    def test_other_arguments(self):
        Path("there.npy").touch()
        Path("g.labels.npy").touch()
        for out, more, message in [
            ("f.npz", {}, "out='f.npz' does not end in .npy; choose such a name."),
            ("there.npy", {}, "there.npy is there already; delete it, or choose another name."),
            ("g.npy", {}, "g.labels.npy is there already; delete it, or choose another name."),
            ("f.npy", {"batch_size": 0}, "batch_size=0 must be a whole number from 1 up"),
            ("f.npy", {"labels": [1, 2]}, "labels are int64 of shape (2,) for 50 images; pass one"),
        ]:
            with pytest.raises(InputError, match=re.escape(message)):
                extract_features(IMAGES, means, out, **more)


@pytest.mark.usefixtures("folder")
class TestScript:
    def run(self, *words):
        return subprocess.run(
            [sys.executable, SCRIPTS / "extract.py", *words], capture_output=True, text=True
        )

    def test_features(self):
        np.save("images.npy", IMAGES)
        Path("y.txt").write_text("1\n2\n" * 25)
        Path("own_extractor.py").write_text(EXTRACTOR)
        words = ["--images", "images.npy", "--extractor"]
        done = self.run(*words, "own_extractor:means", "--out", "f.npy", "--labels", "y.txt")
        assert (done.returncode, done.stderr.strip()) == (0, "50 of 50 images")
        assert done.stdout == (
            "\nThe features are in f.npy: use them with --data f.npy --labels f.labels.npy.\n"
        )
        assert load_data("f.npy", labels="f.labels.npy").X.shape == (50, 3)

    def test_what_is_wrong_is_one_line(self):
        np.save("images.npy", IMAGES)
        done = self.run("--images", "images.npy", "--extractor", "math:pi", "--out", "g.npy")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            "extract_features: extractor='math:pi' is no function; name one that is.\n"
        )


def one_bit_off(data):
    content = bytearray(gzip.decompress(data))
    content[-1] ^= 1
    return gzip.compress(bytes(content))


@pytest.fixture
def small_cifar(cifar_files, monkeypatch):
    """Stand in for CIFAR-10's archive with a small one: (bytes, images, labels)."""
    files, images, labels = cifar_files
    data = archive(files)
    known = cifar.ARCHIVE._replace(size=len(data), md5=hashlib.md5(data).hexdigest())
    monkeypatch.setattr(cifar, "ARCHIVE", known)
    return data, images, labels


class TestFetching:
    def test_fetch_then_extract_pixels(self, folder, small_cifar):
        data, images, labels = small_cifar
        for name, content in [("bad", one_bit_off(data)), ("good", data)]:
            Path(name).mkdir()
            Path(name, cifar.ARCHIVE.name).write_bytes(content)
        mirrors = [(folder / name).as_uri() for name in ("bad", "good")]
        path = cifar.fetch_cifar(mirrors)
        assert path == folder / "cache" / "cifar10-images" / cifar.ARCHIVE.name
        Path("good", cifar.ARCHIVE.name).unlink()
        assert cifar.fetch_cifar(mirrors) == path  # what is there is not fetched again
        made, beside = extract_features(path, "cifar:pixels", "f.npy")
        found = load_data(made, labels=beside)
        assert np.array_equal(found.X, images.reshape(24, -1) / np.float32(255))
        assert np.array_equal(found.y, labels)

    def test_a_corrupt_download_leaves_nothing_behind(self, folder, small_cifar):
        data, _, _ = small_cifar
        for content, reason in [
            (one_bit_off(data), "instead of"),
            (data + b"0", "more than .* bytes instead of"),
            (data[:-1] + bytes([data[-1] ^ 1]), "MD5 .* instead of"),
        ]:
            Path(cifar.ARCHIVE.name).write_bytes(content)
            with pytest.raises(MissingDataError, match=reason):
                cifar.fetch_cifar([folder.as_uri()])
        assert not list((folder / "cache").rglob("*.*"))
