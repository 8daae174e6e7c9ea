"""Classes out of judged pairs."""

import numpy as np
import pytest

from streamhash import InputError
from streamhash.pair_groups import PairGroups, fingerprints, is_group

X = np.eye(40, dtype=np.float32)


def learn(groups, pairs, labels=None):
    places = [place for a, b, _ in pairs for place in (a, b)]
    known = [None if labels is None else labels.get(place) for place in places]
    return groups.learn(X[places], np.array([bool(good) for *_, good in pairs]), known)


def classes(groups, places):
    return groups.names_of(X[[*places]])


def test_good_pairs_make_groups_and_bad_ones_none():
    groups = PairGroups()
    found = learn(groups, [(0, 1, 1), (2, 3, 1), (4, 5, 0), (1, 6, 1), (0, 1, 1)])
    a, b = ("pairs", 0), ("pairs", 1)
    assert found == ({}, {0: a, 1: a, 2: b, 3: b, 7: a}, {})
    assert classes(groups, [0, 1, 2, 3, 4, 5, 6]) == [a, a, b, b, None, None, a]
    assert learn(groups, [(0, 1, 1), (4, 5, 0)]) == ({}, {}, {})  # nothing new


def test_a_row_leaves_when_as_much_speaks_against_it_as_for_it():
    groups = PairGroups()
    learn(groups, [(0, 1, 1), (0, 2, 1), (0, 3, 1)])  # three speak for 0, one for each other
    found = learn(groups, [(0, 3, 0)])
    assert (found.joined, found.left) == ({}, {1: ("pairs", 0)})
    assert classes(groups, range(4)) == [("pairs", 0)] * 3 + [None]
    found = learn(groups, [(3, 1, 1), (3, 1, 0)])  # came and went: nothing is to be done
    assert (found.joined, found.left) == ({}, {})
    learn(groups, [(0, 1, 0), (0, 2, 0)])
    assert classes(groups, range(4)) == [None] * 4


def test_a_judgement_is_undone_by_the_opposite_one():
    groups = PairGroups()
    learn(groups, [(0, 1, 1)])
    found = learn(groups, [(1, 0, 0)])
    assert found.left == {0: ("pairs", 0), 1: ("pairs", 0)}
    assert len(groups.rows_) == 0


def test_a_row_that_changes_its_class_leaves_and_joins():
    groups = PairGroups()
    learn(groups, [(0, 1, 1), (2, 3, 1), (4, 1, 1)])
    found = learn(groups, [(4, 1, 0), (4, 2, 1)])
    assert found.left == {0: ("pairs", 0)}
    assert found.joined == {0: ("pairs", 1)}


def test_three_votes_more_make_two_groups_one():
    groups = PairGroups()
    learn(groups, [(0, 1, 1), (2, 3, 1)])
    assert learn(groups, [(0, 2, 1), (1, 3, 1), (0, 3, 0), (1, 2, 1)]).moved == {}
    assert learn(groups, [(3, 1, 1)]).moved == {("pairs", 1): ("pairs", 0)}
    assert classes(groups, range(4)) == [("pairs", 0)] * 4
    assert len(groups.links_) == 0


def test_votes_go_with_a_group():
    groups = PairGroups()
    learn(groups, [(0, 1, 1), (2, 3, 1), (4, 5, 1)])
    learn(groups, [(2, 4, 1), (3, 5, 1)])  # for the second and the third
    learn(groups, [(0, 2, 1), (0, 3, 1), (1, 2, 1)])  # the second is the first
    assert groups.links_.tolist() == [[0, 2, 2]]
    moved = learn(groups, [(1, 5, 1)]).moved
    assert moved == {("pairs", 2): ("pairs", 0)}


def test_a_chain_within_one_call_ends_where_all_are():
    groups = PairGroups(votes=1)
    found = learn(groups, [(0, 1, 1), (2, 3, 1), (4, 5, 1), (2, 4, 1), (0, 5, 1)])
    assert found.moved == {("pairs", 2): ("pairs", 0), ("pairs", 1): ("pairs", 0)}
    assert found.joined == dict.fromkeys(range(6), ("pairs", 0))
    assert {*learn(groups, [(8, 9, 1)]).joined.values()} == {("pairs", 1)}  # used again, later


def test_labels_take_in_groups_and_never_become_one():
    groups = PairGroups()
    learn(groups, [(0, 1, 1)])
    labels = {10: "cat", 11: "dog", 12: "cat"}
    pairs = [(0, 10, 1), (1, 10, 1), (0, 12, 1), (10, 11, 1), (10, 11, 1), (10, 11, 1)]
    found = learn(groups, pairs, labels)
    assert found.moved == {("pairs", 0): "cat"}
    assert (found.joined, found.left) == ({}, {})  # rows with labels are learned as such
    assert classes(groups, [0, 1]) == ["cat", "cat"]
    assert learn(groups, [(5, 11, 1), (6, 10, 0)], labels).joined == {0: "dog"}


def test_wrong_judgements_do_not_make_all_one():
    random = np.random.default_rng(0)
    truth = np.arange(40) % 4
    pairs = []
    for _ in range(1500):
        a, b = random.choice(40, 2, replace=False).tolist()
        if random.random() < 0.5:  # answers are like their query more often than by chance
            b = int(random.choice(np.setdiff1d(np.flatnonzero(truth == truth[a]), a)))
        good = truth[a] == truth[b]
        pairs.append((a, b, good != (random.random() < 0.1)))
    groups = PairGroups()
    learn(groups, pairs)
    by_class = [
        [name for name, c in zip(classes(groups, range(40)), truth, strict=True) if c == k]
        for k in range(4)
    ]
    largest = [max(map(names.count, names)) for names in by_class]
    assert min(largest) >= 8
    assert len({max(names, key=names.count) for names in by_class}) >= 3


def test_a_row_beside_itself_says_nothing():
    assert learn(PairGroups(), [(0, 0, 1)]).joined == {}
    assert fingerprints(np.array([[0.0, 1.0]]))[0] == fingerprints(np.array([[-0.0, 1.0]]))[0]


def test_rows_are_dropped_and_their_group_is_free_when_empty():
    groups = PairGroups()
    learn(groups, [(0, 1, 1), (2, 3, 1)])
    groups.drop(X[[0, 1]])
    assert classes(groups, range(4)) == [None, None, ("pairs", 1), ("pairs", 1)]
    assert {*learn(groups, [(6, 7, 1)]).joined.values()} == {("pairs", 0)}


def test_there_are_so_many_groups_and_rows(monkeypatch):
    monkeypatch.setattr("streamhash.pair_groups.MOST_GROUPS", 2)
    monkeypatch.setattr("streamhash.pair_groups.MOST_ROWS", 5)
    groups = PairGroups()
    found = learn(groups, [(0, 1, 1), (2, 3, 1), (4, 5, 1), (3, 6, 1), (3, 7, 1)])
    assert [*found.joined] == [0, 1, 2, 3, 7, 9]
    assert len(groups.rows_) == 5
    assert classes(groups, [0, 7]) == [None, ("pairs", 1)]


def test_what_is_saved_goes_on_and_is_held_to_its_statement():
    groups = PairGroups()
    learn(groups, [(0, 1, 1), (2, 3, 1), (0, 2, 1)])
    loaded = PairGroups.from_bytes(groups.to_bytes())
    for each in (groups, loaded):
        assert learn(each, [(0, 3, 1), (1, 3, 1)]).moved == {("pairs", 1): ("pairs", 0)}
    assert groups.to_bytes() == loaded.to_bytes()
    groups.members_ = groups.members_ + 7
    with pytest.raises(InputError, match="classes that are not there"):
        groups.check_learned()
    assert is_group(("pairs", 3))
    assert not is_group("pairs")
