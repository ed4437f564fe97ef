"""Votes, splits and unreadable votes, worked through by hand; how far judges agree."""

from __future__ import annotations

import pytest

from benchmarks.ecomqa.grading import Decision, VotingRules, agreement, concord, decide
from benchmarks.ecomqa.rules import Grade

C: Grade = "correct"
W: Grade = "wrong"
N: Grade = "not_attempted"


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([C, C, C], Decision(C, "unanimous")),
        ([C, W, C], Decision(C, "majority")),
        ([N, N, W], Decision(N, "majority")),
        ([C, W, N], Decision(W, "split")),
        ([C, None, C], Decision(C, "unanimous")),
        ([C, None, W], Decision(W, "split")),
        ([None, None, N], Decision(N, "unanimous")),
        ([None, None, None], Decision(W, "no_vote")),
        ([C, C, W, W], Decision(W, "split")),
        ([C, C, W, N], Decision(W, "split")),  # two of four is no more than half
        ([C], Decision(C, "unanimous")),
    ],
)
def test_more_than_half_of_the_readable_votes_decide(votes: list[Grade | None], expected: Decision) -> None:
    assert decide(votes) == expected


def test_a_three_way_split_follows_the_rule_that_is_set() -> None:
    assert decide([N, C, W], VotingRules(split="not_attempted")) == Decision(N, "split")
    assert decide([N, C, W], VotingRules(split="correct")) == Decision(C, "split")
    assert decide([C, N, W], VotingRules(split="first")) == Decision(C, "split")
    assert decide([None, N, W], VotingRules(split="first")) == Decision(N, "split")
    assert decide([None, None], VotingRules(split="first")) == Decision(W, "no_vote")
    assert decide([None, None], VotingRules(split="not_attempted")) == Decision(N, "no_vote")


def test_unreadable_votes_count_as_set() -> None:
    assert decide([C, None, None], VotingRules(unparsed="wrong")) == Decision(W, "majority")
    assert decide([C, None, W], VotingRules(unparsed="not_attempted")) == Decision(W, "split")
    assert decide([None, None, None], VotingRules(unparsed="not_attempted")) == Decision(N, "unanimous")


def test_fleiss_kappa_of_three_judges() -> None:
    # Rows CCC, CCW, WWW, CWW. Agreement by row: 1, 1/3, 1, 1/3, mean 2/3; each grade has half of the votes, so that
    # chance gives 1/2: kappa = (2/3 - 1/2) / (1 - 1/2) = 1/3.
    found = agreement({"a": [C, C, W, C], "b": [C, C, W, W], "c": [C, W, W, W]})
    assert found == {"questions": 4, "unanimous": 2, "kappa": pytest.approx(1 / 3)}


def test_kappa_leaves_out_questions_with_an_unreadable_vote() -> None:
    whole = {"a": [C, C, W, C], "b": [C, C, W, W], "c": [C, W, W, W]}
    longer = {name: [*votes, C if name != "b" else None] for name, votes in whole.items()}
    assert agreement(longer)["kappa"] == agreement(whole)["kappa"]


def test_kappa_is_undefined_where_chance_alone_agrees() -> None:
    assert agreement({"a": [C, C], "b": [C, C]}) == {"questions": 2, "unanimous": 2, "kappa": None}
    assert agreement({"a": [C, W]})["kappa"] is None
    assert agreement({"a": [None], "b": [C]}) == {"questions": 0, "unanimous": 0, "kappa": None}


def test_two_graders_are_compared_where_both_gave_a_grade() -> None:
    found = concord([C, C, W, None, N], [C, W, W, C, None])
    assert found == {
        "questions": 3,
        "share": pytest.approx(2 / 3),
        "pairs": {"correct/correct": 1, "correct/wrong": 1, "wrong/wrong": 1},
    }
    assert concord([None], [C])["share"] is None
