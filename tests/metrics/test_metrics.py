"""Retrieval metrics: worked by hand, against slow twins, every tie policy and every empty case."""

import doctest
import inspect
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import streamhash.metrics
from streamhash import (
    InputError,
    Retrieval,
    area_under_curve,
    evaluate,
    mean_average_precision,
    pack,
    precision_at_ranks,
    precision_within_radius,
)
from streamhash.metrics import mean_over_classes
from streamhash.threads import set_threads

# By hand: one query 0000, and items at distances 0, 1, 1, 2, 3 in this order in the database.
BITS = [[1, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]]
ITEMS = np.packbits(np.array(BITS), axis=1)  # distances 3, 1, 0, 1, 2
QUERY = np.zeros((1, 1), np.uint8)
LABELS = ["cat", "dog", "dog", "cat", "cat"]
# Ranked: dog (0) | dog (1), cat (1) | cat (2) | cat (3)
HAND = (QUERY, ["cat"], ITEMS, LABELS)


def random_case(seed, n_queries=6, n_items=80, n_bits=8, n_classes=4):
    rng = np.random.default_rng(seed)
    return (
        pack(rng.standard_normal((n_queries, n_bits))),
        rng.integers(0, n_classes, n_queries),
        pack(rng.standard_normal((n_items, n_bits))),
        rng.integers(0, n_classes, n_items),
    )


def distances_and_relevance(query_codes, query_labels, codes, labels):
    for code, label in zip(query_codes, query_labels, strict=True):
        distances = np.unpackbits(code ^ codes, axis=1).sum(axis=1)
        same = labels == label if np.ndim(label) == 0 else (labels & label).any(axis=1)
        yield distances, same


def slow_average_precision(ranked, top, normalizer, n_relevant):
    """The definition, on a ranked list of 0 and 1."""
    cut = ranked[:top]
    total = sum(sum(cut[: i + 1]) / (i + 1) for i in range(len(cut)) if cut[i])
    divisor = {"total": n_relevant, "retrieved": sum(cut), "min": min(n_relevant, len(cut))}
    return total / divisor[normalizer] if divisor[normalizer] else math.nan


def all_orders(distances, relevant):
    """Every ranking that respects the distances, as a list of 0 and 1."""
    groups = [
        [int(r) for d, r in zip(distances, relevant, strict=True) if d == value]
        for value in sorted(set(distances))
    ]
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield list(itertools.chain(*orders))


# ------------------------------------------------------------------------------- worked by hand


def test_average_precision_by_hand():
    # cats at ranks 3, 4, 5
    assert mean_average_precision(*HAND) == pytest.approx((1 / 3 + 2 / 4 + 3 / 5) / 3)


def test_tied_items_in_expectation_by_hand():
    # cats at ranks 2 or 3 (each half of the time), 4, 5
    expected = ((1 / 2 + 1 / 3) / 2 + 2 / 4 + 3 / 5) / 3
    assert mean_average_precision(*HAND, ties="expected") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("normalizer", "expected"),
    [
        (None, (1 / 3 + 2 / 4) / 2),
        ("retrieved", (1 / 3 + 2 / 4) / 2),
        ("total", (1 / 3 + 2 / 4) / 3),
        ("min", (1 / 3 + 2 / 4) / 3),
    ],
)
def test_truncated_average_precision_by_hand(normalizer, expected):
    assert mean_average_precision(*HAND, top=4, normalizer=normalizer) == pytest.approx(expected)


def test_min_normalizer_is_the_cutoff_where_more_items_are_relevant():
    # top 3: one cat, at rank 3; min(3 relevant, 3) = 3; top 2 has none of them
    assert mean_average_precision(*HAND, top=3, normalizer="min") == pytest.approx(1 / 9)
    assert mean_average_precision(*HAND, top=2, normalizer="min") == 0.0


def test_precision_within_a_radius_includes_the_radius():
    assert [precision_within_radius(*HAND, radius=r) for r in range(5)] == pytest.approx(
        [0, 1 / 3, 2 / 4, 3 / 5, 3 / 5]
    )


def test_precision_at_ranks_by_hand():
    ranks = [1, 2, 3, 4, 5]
    assert precision_at_ranks(*HAND, ranks=ranks).tolist() == pytest.approx(
        [0, 0, 1 / 3, 2 / 4, 3 / 5]
    )
    expected = precision_at_ranks(*HAND, ranks=ranks, ties="expected")
    assert expected.tolist() == pytest.approx([0, 0.5 / 2, 1 / 3, 2 / 4, 3 / 5])


def test_ranks_keep_the_order_in_which_they_are_asked_for():
    assert precision_at_ranks(*HAND, ranks=(5, 3, 5)).tolist() == pytest.approx([0.6, 1 / 3, 0.6])
    assert Retrieval(*HAND).precision_at(3).tolist() == [[pytest.approx(1 / 3)]]


def test_histograms_count_pairs_at_each_distance():
    similar, dissimilar = Retrieval(*HAND).histograms()
    assert similar.tolist() == [0, 1, 1, 1, 0, 0, 0, 0, 0]
    assert dissimilar.tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0]


def test_curve_pools_all_pairs():
    precision, recall = Retrieval(np.zeros((2, 1), np.uint8), ["cat", "dog"], ITEMS, LABELS).curve()
    assert precision[:4].tolist() == pytest.approx([1 / 2, 3 / 6, 4 / 8, 5 / 10])
    assert recall[:4].tolist() == pytest.approx([1 / 5, 3 / 5, 4 / 5, 5 / 5])


def test_curve_is_undefined_where_no_item_is_near():
    precision, recall = Retrieval(QUERY, [1], ITEMS[:1], [1]).curve()
    assert precision[:4].tolist() == [pytest.approx(math.nan, nan_ok=True)] * 3 + [1]
    assert recall[:4].tolist() == [0, 0, 0, 1]


def test_evaluate_names_every_metric_by_hand():
    assert evaluate(*HAND) == pytest.approx(
        {
            "map": (1 / 3 + 2 / 4 + 3 / 5) / 3,
            "precision@h2": 2 / 4,
            "precision@1": 0.0,
            "precision@5": 3 / 5,
        }
    )


# ---------------------------------------------------------------------------- against slow twins


@pytest.mark.parametrize("n_bits", [1, 12, 63, 65, 128, 1024])
@pytest.mark.parametrize("top", [None, 1, 30, 80])
@pytest.mark.parametrize("normalizer", ["total", "retrieved", "min"])
def test_average_precision_equals_its_definition(n_bits, top, normalizer):
    case = random_case(n_bits, n_bits=n_bits)
    found = Retrieval(*case).average_precision(top=top, normalizer=normalizer)
    expected = [
        slow_average_precision(
            relevant[np.argsort(distances, kind="stable")].tolist(),
            top or 80,
            normalizer,
            relevant.sum(),
        )
        for distances, relevant in distances_and_relevance(*case)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("top", [None, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("normalizer", ["total", "min"])
def test_expected_average_precision_is_the_mean_over_all_orders(seed, top, normalizer):
    case = random_case(seed, n_queries=3, n_items=7, n_bits=2, n_classes=2)
    found = Retrieval(*case).average_precision(top=top, ties="expected", normalizer=normalizer)
    for value, (distances, relevant) in zip(found, distances_and_relevance(*case), strict=True):
        values = [
            slow_average_precision(ranked, top or 7, normalizer, relevant.sum())
            for ranked in all_orders(distances, relevant)
        ]
        assert value == pytest.approx(np.mean(values), rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("seed", range(6))
def test_expected_precision_at_ranks_is_the_mean_over_all_orders(seed):
    case = random_case(seed, n_queries=3, n_items=7, n_bits=2, n_classes=2)
    found = Retrieval(*case).precision_at(range(1, 8), ties="expected")
    for values, (distances, relevant) in zip(found, distances_and_relevance(*case), strict=True):
        orders = np.array(list(all_orders(distances, relevant)))
        expected = (orders.cumsum(axis=1) / np.arange(1, 8)).mean(axis=0)
        np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("top", [None, 20_000])
def test_expected_average_precision_stays_exact_for_a_large_database(top):
    case = random_case(0, n_queries=2, n_items=60_000, n_bits=16, n_classes=3)
    found = Retrieval(*case).average_precision(top=top, ties="expected", normalizer="total")
    for value, (distances, relevant) in zip(found, distances_and_relevance(*case), strict=True):
        terms, before, hits = [], 0, 0
        for distance in range(17):
            group = relevant[distances == distance]
            n, r = len(group), int(group.sum())
            j = np.arange(1, min(n, (top or 60_000) - before) + 1)
            another = (r - 1) / (n - 1) if n > 1 else 0
            if n:
                terms.extend(r / n * (hits + 1 + (j - 1) * another) / (before + j))
            before, hits = before + n, hits + r
        assert value == pytest.approx(math.fsum(terms) / relevant.sum(), rel=1e-12)


def test_orders_agree_where_there_are_no_ties():
    bits = np.tril(np.ones((9, 8), int), -1)  # distances 0 to 8 from zero
    case = (QUERY, [1], np.packbits(bits, axis=1), [0, 1, 1, 0, 1, 0, 0, 1, 0])
    for top in (None, 4):
        index, expected = (
            mean_average_precision(*case, top=top, normalizer="min", ties=ties)
            for ties in ("index", "expected")
        )
        assert index == pytest.approx(expected, rel=1e-14)


def test_evaluate_agrees_with_each_metric_alone():
    case = random_case(3, n_items=1200)
    together = evaluate(*case)
    alone = {
        "map": mean_average_precision(*case),
        "map@1000": mean_average_precision(*case, top=1000),
        "precision@h2": precision_within_radius(*case),
    }
    at_ranks = precision_at_ranks(*case)
    ranks = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    alone |= {f"precision@{r}": p for r, p in zip(ranks, at_ranks, strict=True)}
    assert together == pytest.approx(alone, rel=1e-14)
    assert list(together) == list(alone)
    assert {type(value) for value in together.values()} == {float}


def test_evaluate_in_expectation_agrees_with_each_metric_alone():
    case = random_case(3, n_items=1200)
    options = {"ties": "expected", "normalizer": "min"}
    together = evaluate(*case, **options)
    assert together["map"] == mean_average_precision(*case, **options)
    assert together["map@1000"] == mean_average_precision(*case, top=1000, **options)
    assert together["precision@5"] == precision_at_ranks(*case, ranks=5, ties="expected")[0]
    assert together != pytest.approx(evaluate(*case, normalizer="min"))


def test_evaluate_in_expectation_needs_no_normalizer():
    case = random_case(3, n_items=1200)
    found = evaluate(*case, ties="expected")
    assert found == evaluate(*case, ties="expected", normalizer="min")
    assert found["map@1000"] == mean_average_precision(*case, top=1000, ties="expected")


def test_asking_twice_gives_the_same_answer():
    case = random_case(4)
    retrieval = Retrieval(*case)
    first = retrieval.average_precision(top=10)
    retrieval.average_precision()
    np.testing.assert_array_equal(retrieval.average_precision(top=10), first)
    np.testing.assert_array_equal(
        retrieval.precision_within(2), Retrieval(*case).precision_within(2)
    )


def test_inputs_may_change_after_they_were_passed():
    queries, query_labels, items, labels = random_case(5)
    expected = mean_average_precision(queries, query_labels, items, labels)
    retrieval = Retrieval(queries, query_labels, items, labels)
    for array in (queries, query_labels, items, labels):
        array[:] = 0
    assert retrieval.average_precision().mean() == pytest.approx(expected)


def test_threads_change_no_digit():
    case = random_case(6, n_queries=100)
    try:
        set_threads(1)
        one = evaluate(*case)
        set_threads(3)
        assert evaluate(*case) == one
    finally:
        set_threads(None)


def test_near_items_alone_change_no_digit():
    """Small ranks and radii are found by a search; once all items are counted, by the counts."""
    case = random_case(7, n_queries=40, n_items=3000, n_bits=24)
    near, counted = Retrieval(*case), Retrieval(*case)
    for ranks in ([90], [1, 50]):
        counted.rank(ranks, count=True)
    for ask in (
        lambda retrieval: retrieval.average_precision(top=90),
        lambda retrieval: retrieval.precision_at([1, 50]),
        lambda retrieval: retrieval.precision_within(7),
    ):
        np.testing.assert_array_equal(ask(near), ask(counted))
    assert near._counts is None  # so they were two ways
    assert counted._counts is not None
    for normalizer in ("min", "total"):  # which count all relevant items, after all
        found = near.average_precision(90, normalizer=normalizer)
        np.testing.assert_array_equal(found, counted.average_precision(90, normalizer=normalizer))


# ---------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("n_classes", [2, 64, 65, 200])
def test_multi_label_items_are_relevant_when_they_share_a_label(n_classes):
    rng = np.random.default_rng(n_classes)
    queries, _, items, _ = random_case(n_classes)
    query_labels = rng.random((6, n_classes)) < 2 / n_classes
    labels = rng.random((80, n_classes)) < 2 / n_classes
    found = Retrieval(queries, query_labels.astype(int), items, labels).average_precision()
    pairs = distances_and_relevance(queries, query_labels, items, labels)
    expected = [
        slow_average_precision(
            relevant[np.argsort(distances, kind="stable")].tolist(), 80, "total", relevant.sum()
        )
        for distances, relevant in pairs
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_one_hot_rows_give_what_their_single_labels_give():
    queries, query_labels, items, labels = random_case(7, n_classes=70)
    one_hot = np.eye(70, dtype=int)
    assert evaluate(queries, one_hot[query_labels], items, one_hot[labels]) == evaluate(
        queries, query_labels, items, labels
    )


def test_renaming_labels_changes_nothing():
    queries, query_labels, items, labels = random_case(8)
    names = np.array(["ant", "bee", "cat", "dog"])
    mixed = [1, "1", 2.5, ("a", 1)]
    expected = evaluate(queries, query_labels, items, labels)
    for rename in (
        lambda y: names[y],
        lambda y: names[y].tolist(),
        lambda y: names[y].astype(object),
        lambda y: y.astype(np.float32) / 4,
        lambda y: y.astype("datetime64[D]"),
        lambda y: [mixed[i] for i in y],
    ):
        assert evaluate(queries, rename(query_labels), items, rename(labels)) == expected


def test_labels_of_another_number_type_are_still_equal():
    queries, query_labels, items, labels = random_case(9)
    expected = evaluate(queries, query_labels, items, labels)
    assert evaluate(queries, query_labels.astype(float), items, labels) == expected
    assert evaluate(queries, query_labels.astype(np.uint64), items, labels) == expected


def test_the_number_one_is_not_the_string_one():
    assert math.isnan(mean_average_precision(QUERY, [1], ITEMS, ["1"] * 5))
    half = mean_average_precision(QUERY, ["1"], ITEMS[2:4], [1, "1"])  # at rank 2
    assert half == 0.5


def test_rows_without_any_label_are_relevant_to_nothing():
    labels = np.array([[0, 0], [0, 0], [1, 1], [0, 1], [1, 0]])
    values = Retrieval(np.zeros((2, 1), np.uint8), [[0, 0], [1, 0]], ITEMS, labels)
    # ranked: 2 (11), 1 (00), 3 (01), 4 (10), 0 (00)
    np.testing.assert_allclose(values.average_precision(), [np.nan, (1 + 2 / 4) / 2])


# ----------------------------------------------------------------------------------- empty cases

LONELY = (np.zeros((2, 1), np.uint8), ["cat", "cow"], ITEMS, LABELS)  # no cow in the database


def test_queries_without_relevant_items_are_dropped_or_count_as_zero():
    alone = mean_average_precision(*HAND)
    assert mean_average_precision(*LONELY) == pytest.approx(alone)
    assert mean_average_precision(*LONELY, no_relevant="zero") == pytest.approx(alone / 2)
    assert mean_average_precision(*LONELY, ties="expected", no_relevant="zero") == pytest.approx(
        mean_average_precision(*HAND, ties="expected") / 2
    )
    assert evaluate(*LONELY, no_relevant="zero")["map"] == pytest.approx(alone / 2)


def test_queries_with_nothing_retrieved_are_undefined_by_the_retrieved_normalizer_alone():
    top_two = Retrieval(*HAND).average_precision(top=2)
    assert np.isnan(top_two).tolist() == [True]
    assert Retrieval(*HAND).average_precision(top=2, normalizer="total").tolist() == [0.0]


def test_no_query_left_gives_nan_or_zero():
    case = (QUERY, ["cow"], ITEMS, LABELS)
    assert math.isnan(mean_average_precision(*case))
    assert mean_average_precision(*case, no_relevant="zero") == 0.0
    assert precision_within_radius(*case) == 0.0
    assert precision_at_ranks(*case, ranks=[2]).tolist() == [0.0]


def test_queries_with_an_empty_ball_count_as_zero_or_are_dropped():
    far = np.array([[255], [0]], np.uint8)
    case = (far, ["cat", "cat"], ITEMS, LABELS)
    assert np.isnan(Retrieval(*case).precision_within(2)).tolist() == [True, False]
    assert precision_within_radius(*case) == pytest.approx(1 / 4)
    assert precision_within_radius(*case, empty="drop") == pytest.approx(1 / 2)
    assert math.isnan(precision_within_radius(far[:1], ["cat"], ITEMS, LABELS, empty="drop"))
    assert evaluate(*case, empty="drop")["precision@h2"] == pytest.approx(1 / 2)


def test_a_database_of_one_item():
    one = (QUERY, [1], ITEMS[:1], [1])
    assert evaluate(*one) == {"map": 1.0, "precision@h2": 0.0, "precision@1": 1.0}
    assert evaluate(*one, ties="expected") == evaluate(*one)


def test_no_map_at_1000_for_a_database_of_1000():
    assert "map@1000" not in evaluate(*random_case(0, n_items=1000))
    assert "map@1000" in evaluate(*random_case(0, n_items=1001))


# ---------------------------------------------------------------------------------------- curves


def test_area_is_the_mean_over_checkpoints_or_the_trapezoid():
    assert area_under_curve([1, 2, 10], [0.0, 1.0, 1.0]) == pytest.approx(2 / 3)
    assert area_under_curve([1, 2, 10], [0.0, 1.0, 1.0], method="trapezoid") == pytest.approx(
        8.5 / 9
    )
    assert area_under_curve([5], [0.25]) == 0.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"instances": [1, 2], "values": [1.0]},
            "area_under_curve: instances of shape (2,) and values of shape (1,) came; "
            "pass one value for each of at least one checkpoint.",
        ),
        (
            {"instances": [], "values": []},
            "area_under_curve: instances of shape (0,) and values of shape (0,) came; "
            "pass one value for each of at least one checkpoint.",
        ),
        (
            {"instances": [1, 2], "values": [1.0, math.nan]},
            "area_under_curve: instances or values have NaN or infinity; leave out checkpoints "
            "without a value.",
        ),
        (
            {"instances": [2, 2], "values": [1.0, 1.0]},
            "area_under_curve: instances must rise from checkpoint to checkpoint; sort them, and "
            "keep one value for each.",
        ),
        (
            {"instances": [2], "values": [1.0], "method": "trapezoid"},
            "area_under_curve: method='trapezoid' needs two checkpoints, but one came; "
            "pass method='mean'.",
        ),
        (
            {"instances": [2], "values": [1.0], "method": "simpson"},
            "area_under_curve: method='simpson' must be one of 'mean', 'trapezoid'.",
        ),
    ],
)
def test_bad_curves_are_refused(arguments, message):
    with pytest.raises(InputError) as error:
        area_under_curve(**arguments)
    assert str(error.value) == message


# ------------------------------------------------------------------------------------ bad inputs


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mean_average_precision(*HAND, top=0),
            "mean_average_precision: top=0 is not a rank in this database; pass a whole number "
            "from 1 to 5, its number of items.",
        ),
        (
            lambda: mean_average_precision(*HAND, top=6),
            "mean_average_precision: top=6 is not a rank in this database; pass a whole number "
            "from 1 to 5, its number of items.",
        ),
        (
            lambda: precision_at_ranks(*HAND),
            "precision_at_ranks: ranks=10 is not a rank in this database; pass a whole number "
            "from 1 to 5, its number of items.",
        ),
        (
            lambda: precision_at_ranks(*HAND, ranks=[1, 2.5]),
            "precision_at_ranks: ranks=2.5 is not a rank in this database; pass a whole number "
            "from 1 to 5, its number of items.",
        ),
        (
            lambda: precision_at_ranks(*HAND, ranks=[]),
            "precision_at_ranks: ranks is empty; pass at least one rank.",
        ),
        (
            lambda: precision_within_radius(*HAND, radius=-1),
            "precision_within_radius: radius=-1 must be a whole number from 0 up.",
        ),
        (
            lambda: mean_average_precision(*HAND, ties="random"),
            "mean_average_precision: ties='random' must be one of 'index', 'expected'.",
        ),
        (
            lambda: evaluate(*HAND, ties="random"),
            "evaluate: ties='random' must be one of 'index', 'expected'.",
        ),
        (
            lambda: Retrieval(*HAND).average_precision(normalizer="all"),
            "Retrieval: normalizer='all' must be None or one of 'total', 'retrieved', 'min'.",
        ),
        (
            lambda: mean_average_precision(*HAND, no_relevant="nan"),
            "mean_average_precision: no_relevant='nan' must be one of 'drop', 'zero'.",
        ),
        (
            lambda: precision_within_radius(*HAND, empty="nan"),
            "precision_within_radius: empty='nan' must be one of 'drop', 'zero'.",
        ),
        (
            lambda: mean_average_precision(*HAND, top=2, ties="expected", normalizer="retrieved"),
            "mean_average_precision: ties='expected' with normalizer='retrieved' has no closed "
            "form, as the number of relevant items within top=2 depends on the order of ties; "
            "pass normalizer='min' or 'total', or ties='index'.",
        ),
        (
            lambda: evaluate(QUERY, ["cat", "cat"], ITEMS, LABELS),
            "evaluate: query_labels has 2 labels for 1 codes; pass one label each.",
        ),
        (
            lambda: evaluate(QUERY, ["cat"], ITEMS, LABELS[:4]),
            "evaluate: database_labels has 4 labels for 5 codes; pass one label each.",
        ),
        (
            lambda: evaluate(QUERY, [[1, 0]], ITEMS, LABELS),
            "evaluate: query_labels of shape (1, 2) and database_labels of shape (5,) differ in "
            "kind; pass one label each for both, or two 0/1 matrices with the same classes as "
            "columns.",
        ),
        (
            lambda: evaluate(QUERY, ["cat"], np.zeros((0, 1), np.uint8), []),
            "evaluate: 1 queries and 0 database items came; pass at least one of each.",
        ),
        (
            lambda: evaluate(QUERY, ["cat"], np.zeros((5, 2), np.uint8), LABELS),
            "evaluate: query_codes have 1 bytes a row and database_codes 2; encode both with the "
            "same model.",
        ),
        (
            lambda: Retrieval(np.zeros(3), ["cat"], ITEMS, LABELS),
            "Retrieval: query_codes: expected packed codes, a uint8 array of shape (n, bytes), "
            "but came float64 of shape (3,); make them with a hasher's transform(X) or "
            "streamhash.pack(projections).",
        ),
    ],
)
def test_bad_input_is_refused_with_the_next_step(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize(
    "labels",
    [
        [1.0, 2.0, math.nan, 1.0, 1.0],
        ["a", "b", None, "a", "a"],
        ["a", "b", math.nan, "a", "a"],
        np.array(["2020-01-01", "NaT"] + ["2020-01-01"] * 3, "datetime64[D]"),
    ],
    ids=["nan", "none", "nan_among_strings", "nat"],
)
def test_missing_labels_are_refused(labels):
    with pytest.raises(InputError, match=r"^evaluate: database_labels.*missing"):
        evaluate(QUERY, [1.0], ITEMS, labels)


@pytest.mark.parametrize(
    ("labels", "problem"),
    [("cat", "0/1 matrix"), (np.zeros((5, 2, 2)), "0/1 matrix"), (np.full((5, 2), 2), "0 and 1")],
    ids=["one_string", "three_dimensions", "counts"],
)
def test_labels_of_another_shape_are_refused(labels, problem):
    items = ITEMS[: len(np.atleast_1d(labels))]
    with pytest.raises(InputError, match=f"^evaluate: database_labels.*{problem}"):
        evaluate(QUERY, [1], items, labels)


def test_labels_that_cannot_be_compared_are_refused():
    pandas = pytest.importorskip("pandas")
    for labels in (pandas.Series([1, 2, None, 1, 1], dtype="Int64"), [{}, {}, {}, {}, {}]):
        with pytest.raises(InputError, match=r"^evaluate: "):
            evaluate(QUERY, [1], ITEMS, labels)


@pytest.mark.slow
def test_pandas_sparse_and_torch_labels_are_read():
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    sparse = pytest.importorskip("scipy.sparse")
    queries, query_labels, items, labels = random_case(10)
    expected = evaluate(queries, query_labels, items, labels)
    one_hot = np.eye(4, dtype=int)
    for make in (
        pandas.Series,
        lambda y: pandas.Series(y).astype("category"),
        torch.tensor,
        lambda y: sparse.csr_matrix(one_hot[y]),
    ):
        assert evaluate(queries, make(query_labels), items, make(labels)) == expected


def test_every_public_name_exists():
    for name in streamhash.metrics.__all__:
        assert hasattr(streamhash.metrics, name)


PAGE = Path(__file__).parents[2] / "docs" / "evaluation.md"


def test_the_page_on_evaluation_runs():
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_page_on_evaluation_names_every_option():
    page = PAGE.read_text()
    for name in set(streamhash.metrics.__all__) - {"RANKS"}:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        for option in inspect.signature(getattr(streamhash.metrics, name)).parameters.values():
            if option.kind is option.KEYWORD_ONLY:
                assert f"`{option.name}`" in row


def test_classes_are_measured_alone():
    random = np.random.default_rng(0)
    codes = random.integers(256, size=(60, 2), dtype=np.uint8)
    labels = np.array(["often"] * 50 + ["rare"] * 10)
    found = streamhash.metrics.evaluate_by_class(codes, labels, codes, labels)
    assert [*found] == ["often", "rare"]
    for label, values in found.items():
        own = labels == label
        alone = streamhash.metrics.evaluate(codes[own], labels[own], codes, labels)
        assert values == pytest.approx({"queries": own.sum(), **alone})
    matrix = np.stack([labels == "often", np.ones(60), np.zeros(60)], axis=1).astype(np.uint8)
    several = streamhash.metrics.evaluate_by_class(codes, matrix, codes, matrix)
    assert [(label, values["queries"]) for label, values in several.items()] == [(0, 50), (1, 60)]


def test_a_mean_over_classes_counts_each_class_once():
    values = [1.0, 0.5, 0.0, np.nan, np.nan]
    assert mean_over_classes(values, ["a", "a", "b", "b", "c"]) == 0.375  # c has no value
    several = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]])
    assert mean_over_classes(values, several) == pytest.approx((0.75 + 0.25) / 2)
    assert np.isnan(mean_over_classes([np.nan], ["a"]))
