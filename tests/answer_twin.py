"""What a search of a collection should find: plain NumPy, one query and one item at a time."""

import numpy as np

NO_DISTANCE, NO_ID = 2147483647, -1


class TwinItem:
    def __init__(self, id_, vector, label, metadata):
        self.id, self.vector, self.label, self.metadata = id_, vector, label, metadata


def score_of(a, b, metric):
    a, b = a.astype(np.float64), b.astype(np.float64)
    if metric == "euclidean":
        return np.float32(np.sqrt(((a - b) ** 2).sum()))
    if metric == "dot":
        return np.float32((a * b).sum())
    lengths = np.sqrt((a * a).sum()) * np.sqrt((b * b).sum())
    return np.float32((a * b).sum() / lengths) if lengths else np.float32(np.nan)


def find(
    model, items, query, k, *, matches=None, rescore=None, by="vectors", metric="cosine", real=False
):
    """Return (id, distance, score or None) of what a query finds among items as they were added."""
    projection = model.project(query[None])[0]
    found = []
    for turn, item in enumerate(items):
        if matches is not None and not matches(item):
            continue
        own = model.project(np.asarray(item.vector, np.float32)[None])[0]
        differs = (own > 0) != (projection > 0)
        distance = int(differs.sum())
        asymmetric = np.float32(np.abs(projection.astype(np.float64))[differs].sum())
        order = asymmetric if real else distance
        found.append((order, turn, item, own, distance, asymmetric if real else None))
    found.sort(key=lambda each: each[:2])
    found = found[: k * (rescore or 1)]
    if rescore is None:
        return [(item.id, distance, score) for _, _, item, _, distance, score in found[:k]]
    scored = []
    for rank, (_, _, item, own, distance, _) in enumerate(found):
        pair = (query, item.vector) if by == "vectors" else (projection, own)
        score = score_of(*pair, metric)
        worse = np.inf if np.isnan(score) else score if metric == "euclidean" else -score
        scored.append((worse, rank, item.id, distance, score))
    scored.sort(key=lambda each: each[:2])
    return [(id_, distance, score) for _, _, id_, distance, score in scored[:k]]


def assert_found(result, expected, k):
    """Compare what a collection returned with what ``find`` did for each query.

    Scores are sums, which may be added up in another order: near ones may change places.
    """
    assert result.ids.shape == result.distances.shape == (len(expected), k)
    for q, wanted in enumerate(expected):
        n = len(wanted)
        ids, distances = result.ids[q].tolist(), result.distances[q].tolist()
        assert ids[n:] == [NO_ID] * (k - n)
        assert distances[n:] == [NO_DISTANCE] * (k - n)
        assert len(result.labels[q]) == n
        if result.scores is None:
            assert [*zip(ids[:n], distances[:n], strict=True)] == [each[:2] for each in wanted]
            continue
        assert np.isnan(result.scores[q, n:]).all()
        scores = np.array([each[2] for each in wanted], np.float32)
        np.testing.assert_allclose(result.scores[q, :n], scores, rtol=1e-5, atol=1e-6)
        for at, (id_, distance, score) in enumerate(wanted):
            if ids[at] != id_:  # then it is as good
                assert np.isclose(result.scores[q, at], score, rtol=1e-5, atol=1e-6)
            else:
                assert distances[at] == distance
