"""Methods compared on a file of one's own.

The file here is scikit-learn's digits, written as Parquet would be by anybody; pass the path of
yours, with a column ``label``:

    python examples/compare_methods.py [mine.parquet]
"""

import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

from streamhash import lab
from streamhash.files import write_table

METHODS = ["sdoh", "hcoh", "itq", "lsh"]


def main() -> None:
    """Run the methods on two seeds, and print a table, what it is based on, and LaTeX."""
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            file = Path(sys.argv[1])
        else:
            file = Path(folder) / "digits.npz"
            write_table(file, *load_digits(return_X_y=True))
        # Each seed draws other queries, another order of the stream, and another start. A quick
        # run looks at the quality on the way three times; leave that out for finer curves.
        rows = lab.bench(METHODS, file, n_bits=[16, 32], seeds=2, quick=True, jobs=1, out=folder)
        lines = lab.summarise(rows)
        for line in sorted(lines, key=lambda line: (line.n_bits, -(line.mean("map") or 0))):
            metrics = "  ".join(f"{name} {line.text(name)}" for name in ("map", "precision@100"))
            print(f"{line.n_bits} bits  {line.label:6}  {metrics}")
        row = rows[0]
        print(f"\n{row['queries']:,} queries that no method has learned, {row['database']:,} items")
        print(f"the first row again: {row['command']}")
        print("\nfor a paper:\n")
        print(lab.Report.of(rows).latex())


if __name__ == "__main__":
    main()
