"""MATLAB files for tests."""

from pathlib import Path

import numpy as np
import pytest


def save_73(path, fields, **options):
    """Save as MATLAB does: a header of 512 bytes, and every matrix with its columns first."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in fields.items():
            value = np.atleast_2d(value)
            file.create_dataset(name, data=value.T, **options)
        file.create_group("#refs#")
    with Path(path).open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))
