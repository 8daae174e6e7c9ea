"""A collection behind HTTP, and a program that uses it from elsewhere.

The service is started here as ``streamhash serve`` starts it, in a process of its own; a client
needs NumPy only, and the address.

    python examples/service_client.py
"""

import subprocess
import sys
import tempfile

from sklearn.datasets import load_digits

from streamhash import SDOH, Client, Collection

SERVE = "from streamhash.cli import main; main()"


def main() -> None:
    """Make a collection, serve it, and be its client."""
    X, y = load_digits(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder:
        with Collection.create(f"{folder}/digits", SDOH(n_bits=32, random_state=0)) as items:
            items.add(range(1000), X[:1000], y[:1000].tolist())
        command = [sys.executable, "-c", SERVE, "serve", f"{folder}/digits", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            try:
                assert service.stdout is not None
                line = service.stdout.readline()  # Serving 1,000 items at http://127.0.0.1:...
                print(line.partition(" at ")[0])
                ask(line.partition(" at ")[2].split()[0], X, y)
            finally:
                service.terminate()


def ask(url: str, X: object, y: object) -> None:
    """Add, search, predict, judge and look at the state, by HTTP."""
    import numpy as np

    rows, labels = np.asarray(X), np.asarray(y)
    with Client(url) as digits:
        digits.add(range(1000, 1400), rows[1000:1400], labels[1000:1400].tolist())
        found = digits.search(rows[1400:1401], k=5)
        print(f"a {labels[1400]} finds items of the labels {found.labels[0]}")
        prediction = digits.predict(rows[1400:1500])
        right = np.mean([a == b for a, b in zip(prediction.labels, labels[1400:1500], strict=True)])
        sure = float(np.mean(prediction.probabilities))
        print(f"100 predictions: {right:.2f} right, said to be {sure:.2f} likely on average")
        digits.feedback(rows[1400], id=int(found.ids[0][0]), good=True)
        status = digits.status()
        print(f"{status['items']:,} items, model {status['serving']['model']} serves")


if __name__ == "__main__":
    main()
