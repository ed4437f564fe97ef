"""Answers are read as they are meant, or not at all."""

from __future__ import annotations

import pytest

from benchmarks.ecomscript.answers import read_answer, vote


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes", 1),
        ("no.", 0),
        (" **Yes**\n", 1),
        ('"No"', 0),
        ("Yes, the steps reach the goal.", 1),
        ("No; the oven stays cold.", 0),
        ("Yes\nbecause it fits", 1),
        ("Answer: Yes", 1),
        ("**Answer:** No", 0),
        ("The final answer is no", 0),
        ("Verdict - YES!", 1),
        # What a longer text comes to, whatever it begins with.
        ("Yes, at first sight. But the order is wrong.\nAnswer: No", 0),
        ("Answer: No? One might think so. Looking again:\nAnswer: Yes.", 1),
        ("It has all steps, and nothing is missing.\n\nYes.", 1),
        ("<think>Answer: No</think>Answer: Yes", 1),
        ("<think>No, no.</think>\nYes", 1),
        # Neither, or both.
        ("", None),
        ("Perhaps.", None),
        ("Yes or No", None),
        ("Answer: yes/no", None),
        ("Yes and no, it depends.", None),
        ("No step is missing and the order is right", None),
        ("The answer is not clear.", None),
        ("I know nothing. Notably, yesterday", None),
        ("<think>Answer: Yes", None),
        ("It says yes somewhere, and no elsewhere", None),
        ("1", None),
        ("Nope", None),
    ],
)
def test_an_answer_is_read_where_it_stands(text: str, answer: int | None) -> None:
    assert read_answer(text) == answer


def test_samples_vote_and_a_tie_decides_nothing() -> None:
    assert vote([1, 0, 1]) == 1 and vote([0, 1, 0, None]) == 0 and vote([None, 1, None]) == 1
    assert vote([1, 0, None]) is None and vote([None, None]) is None and vote([]) is None
