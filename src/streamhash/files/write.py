"""Features and labels into a file that ``read_table`` and ``read_items`` read."""

import csv
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.storage import whole_file


def write_table(path: str | PathLike[str], X: NDArray[Any], y: NDArray[Any]) -> None:
    """Write id (the row, from 0), vector and label of each row: ``.jsonl``, ``.csv`` or ``.npz``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(f"{folder}/items.csv", np.eye(2), np.array(["cat", "dog"]))
    ...     print(Path(f"{folder}/items.csv").read_text())
    id,label,x0,x1
    0,cat,1.0,0.0
    1,dog,0.0,1.0
    """
    ending = Path(path).suffix
    if ending not in (".jsonl", ".csv", ".npz"):
        raise InputError(f"write_table: {path}: pass a name that ends in .jsonl, .csv or .npz.")
    if y.ndim > 1 and ending != ".npz":
        raise InputError(
            f"write_table: {path}: y has shape {y.shape}, several labels a row; pass a name that "
            "ends in .npz."
        )
    rows = enumerate(zip(X, y.tolist(), strict=True))
    with whole_file(path) as temporary:
        if ending == ".npz":
            with temporary.open("wb") as file:
                np.savez(file, X=X, y=y, ids=np.arange(len(X)))
            return
        with temporary.open("w", encoding="utf-8", newline="") as text:
            if ending == ".csv":
                table = csv.writer(text, lineterminator="\n")
                table.writerow(["id", "label", *(f"x{i}" for i in range(X.shape[1]))])
                table.writerows([i, label, *row.tolist()] for i, (row, label) in rows)
            else:
                for i, (row, label) in rows:
                    item = {"id": i, "vector": row.tolist(), "label": label}
                    text.write(json.dumps(item) + "\n")
