"""Scorers in scikit-learn's own searches: held-out rows ask held-out rows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamhash import HCOH, LSH, InputError, evaluate, mean_average_precision
from streamhash.metrics import (
    RetrievalScorer,
    map_by_class_scorer,
    map_scorer,
    precision_scorer,
    radius_scorer,
)

X, y = load_digits(return_X_y=True)
X, y = X[:900], y[:900]


def test_it_is_the_metric_of_some_held_out_rows_asking_the_others():
    hasher = HCOH(16, random_state=0).fit(X[:600], y[:600])
    order = np.random.default_rng(0).permutation(300)
    asking, searched = np.sort(order[:60]) + 600, np.sort(order[60:]) + 600
    codes = hasher.transform(X)
    data = codes[asking], y[asking], codes[searched], y[searched]
    held_out = X[600:], y[600:]
    expected = mean_average_precision(*data)
    assert map_scorer(hasher, *held_out) == pytest.approx(expected, abs=1e-12)
    values = evaluate(*data)
    assert precision_scorer(hasher, *held_out) == values["precision@10"]
    assert radius_scorer(hasher, *held_out) == values["precision@h2"]


def test_a_grid_is_searched_and_the_best_is_refitted():
    grid = {"learning_rate": [1e-5, 0.2], "n_bits": [8, 32]}
    search = GridSearchCV(HCOH(random_state=0), grid, scoring=map_scorer, cv=3).fit(X, y)
    assert search.best_params_ == {"learning_rate": 0.2, "n_bits": 32}
    assert search.best_estimator_.transform(X[:5]).shape == (5, 4)
    assert search.best_score_ > 0.6
    again = GridSearchCV(HCOH(random_state=0), grid, scoring=map_scorer, cv=3).fit(X, y)
    assert np.array_equal(
        search.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"]
    )


def test_several_scorers_random_search_and_processes():
    scoring = {"map": map_scorer, "radius": radius_scorer}
    search = RandomizedSearchCV(
        HCOH(16, random_state=0),
        {"learning_rate": [0.1, 0.2, 0.4]},
        n_iter=2,
        scoring=scoring,
        refit="map",
        cv=2,
        n_jobs=2,
        random_state=0,
    ).fit(X, y)
    assert {"mean_test_map", "mean_test_radius"} <= search.cv_results_.keys()


def test_cross_validation_of_hashers_and_pipelines():
    for estimator in (LSH(32, random_state=0), make_pipeline(StandardScaler(), LSH(32))):
        scores = cross_val_score(estimator, X, y, scoring=map_scorer, cv=3)
        assert scores.shape == (3,)
        assert ((scores > 0.2) & (scores < 0.9)).all()


def test_classes_count_alike():
    rare = np.concatenate([np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:20]])
    hasher = LSH(16, random_state=0).fit(X[rare])
    plain, even = (score(hasher, X[rare], y[rare]) for score in (map_scorer, map_by_class_scorer))
    assert plain != even


def test_what_cannot_be_scored_is_said():
    hasher = LSH(16, random_state=0).fit(X)
    with pytest.raises(InputError, match=r"metric='precision@100' is unknown, or needs more rows"):
        RetrievalScorer("precision@100")(hasher, X[:50], y[:50])
    with pytest.raises(InputError, match="hold out more"):
        map_scorer(hasher, X[:1], y[:1])
    with pytest.raises(InputError, match="not codes of uint8"):
        map_scorer(StandardScaler().fit(X), X, y)
    with pytest.raises(InputError, match=r"query_share=2 must be a number from 0.01 to 0.9"):
        RetrievalScorer(query_share=2)
    with pytest.raises(InputError, match="has 3 labels for 900"):
        map_scorer(hasher, X, y[:3])


def test_a_scorer_is_shown_and_kept_by_clone():
    scorer = RetrievalScorer("precision@5", query_share=0.5)
    assert repr(scorer).startswith("RetrievalScorer('precision@5', ")
    search = clone(GridSearchCV(LSH(), {"n_bits": [8]}, scoring=scorer))
    assert repr(search.scoring) == repr(scorer)
