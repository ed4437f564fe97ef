"""Confidences as models write them, and the calibration error by hand."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from ecomqa_questions import questions

from benchmarks.ecomqa.calibration import REQUEST, asked_for_confidence, calibration, read_confidence


@pytest.mark.parametrize(
    ("text", "answer", "confidence"),
    [
        ("2015年\n置信度：85", "2015年", 85),
        ("2015年\n置信度: 85%", "2015年", 85),
        ("2015年。（置信度：８５％）", "2015年", 85),
        ("**置信度**：90\n2015年", "2015年", 90),
        ("2015年，信心程度为 70 分", "2015年", 70),
        ("2015年\n把握：大约80/100", "2015年", 80),
        ("2015年\n置信度：8/10", "2015年", 80),
        ("2015年\nConfidence: 0.85", "2015年", 85),
        ("2015年\nconfidence score: 0", "2015年", 0),
        ("2015年\n置信度：1", "2015年", 1),
        ("2015年\n95%", "2015年", 95),
        ("2015年\n置信度：60\n置信度：75", "2015年", 75),
        ("2015年\n置信度：80-90", "2015年", None),
        *(
            (f"是\n置信度：{text}", "是", None)
            for text in ["80%-90%", "80%到90%", "80—90", "80–90", "80或90", "80~90%"]
        ),
        *(
            (f"是\n置信度：{text}", "是", None)
            for text in ["80 至 90", "80-90分", "百分之80到百分之90", "80以上", ">80"]
        ),
        *((f"是\n置信度：{text}", "是", None) for text in ["1,000", "0,85", "4/5", "1e2", "1，000", "1.2.3", "80±5"]),
        *(
            (f"是\n置信度：{text}", "是", 85)
            for text in ["[85]", "【85】", "“85”", "（85）", "**85**", "「85%」", "'85'"]
        ),
        *(
            (f"是\n置信度{text}", "是", 85)
            for text in ["（0-100）：85", "(0到100):85%", "（整数）：85", "（0-100）: 85/100"]
        ),
        ("是\n置信度：百分之90", "是", 90),
        ("是\n置信度：1.0", "是", 100),
        ("置信度：85，2015年", "2015年", 85),
        ("置信度：90\n- 2015年", "- 2015年", 90),
        ("是\n80%-90%", "是", None),
        ("2015年\n置信度：120", "2015年", None),
        ("2015年\n置信度：很高", "2015年\n置信度:很高", None),
        ("瑞典\n38", "瑞典", 38),
        ("瑞典\n\n １００。\n", "瑞典", 100),
        ("1943年\n**0**", "1943年", 0),
        ("瑞典\n置信度：60\n38", "瑞典\n38", 60),
        ("38", "38", None),
        ("\n95%", "95%", None),
        ("瑞典\n1943", "瑞典\n1943", None),
        ("瑞典\n101", "瑞典\n101", None),
        ("瑞典\n0.8", "瑞典\n0.8", None),
        ("创立于\n38年", "创立于\n38年", None),
        ("瑞典 38", "瑞典 38", None),
        ("含棉95%", "含棉95%", None),
        ("2015年", "2015年", None),
        ("", "", None),
    ],
)
def test_confidences_are_read_and_taken_off_the_answer(text: str, answer: str, confidence: float | None) -> None:
    found = read_confidence(text)
    assert found.confidence == confidence
    assert found.answer.replace("：", ":") == answer


@pytest.mark.parametrize("filling", [" ", "\n", "*", "-8", "（", "置信度（"])
def test_a_text_of_nothing_is_read_at_once(filling: str) -> None:
    """Thousands of characters that could each belong to a statement: milliseconds, where nested repeats take hours."""
    started = time.monotonic()
    assert read_confidence(f"置信度{filling * 3000}x").confidence is None
    assert time.monotonic() - started < 5


def test_the_request_stands_behind_the_instruction(tmp_path: Path) -> None:
    asked = questions(tmp_path)
    changed = asked_for_confidence(asked["BC"])
    assert changed.system_prompt == f"回答短语。\n{REQUEST}\n"
    assert (changed.id, changed.prompt) == (asked["BC"].id, asked["BC"].prompt)
    assert asked_for_confidence(asked["late"]).system_prompt == f"{REQUEST}\n"


def test_the_calibration_error_by_hand() -> None:
    found = calibration([95, 95, 55, 15, None], [True, False, True, False, True])
    # 90-100: two answers, 95 against 50; 50-60: 55 against 100; 10-20: 15 against 0
    assert found["ece"] == pytest.approx(2 / 4 * 45 + 1 / 4 * 45 + 1 / 4 * 15)
    assert (found["n"], found["unread"]) == (4, 1)
    assert (found["confidence"], found["accuracy"]) == (pytest.approx(65), pytest.approx(50))
    filled = {
        (entry["low"], entry["n"], entry["confidence"], entry["accuracy"]) for entry in found["bins"] if entry["n"]
    }
    assert filled == {(90, 2, 95, 50), (50, 1, 55, 100), (10, 1, 15, 0)}


def test_the_error_is_that_of_the_table() -> None:
    """A bin a percent: 28.999999 is in 28-29, 29 in 29-30, whatever a computer makes of 29 / 100 * 100."""
    found = calibration([29, 57, 58, 28.999999], [True, False, True, False], bins=100)
    assert found["ece"] == pytest.approx((71 + 57 + 42 + 28.999999) / 4)
    whole = calibration(list(range(101)), [number % 2 == 0 for number in range(101)], bins=100)
    # Bins of one answer: |100 - c| where right, c where wrong; the last bin holds 99 (wrong) and 100 (right).
    alone = sum(100 - c if c % 2 == 0 else c for c in range(99))
    assert whole["ece"] == pytest.approx((alone + 2 * abs(50 - 99.5)) / 101)


def test_ends_of_bins() -> None:
    found = calibration([0, 10, 100, 99.9], [True] * 4)
    assert [entry["n"] for entry in found["bins"]] == [1, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert calibration([20, 40], [True, False], bins=2)["bins"][0]["n"] == 2


def test_nothing_readable_has_no_error() -> None:
    found = calibration([None, None], [True, False])
    assert (found["n"], found["unread"], found["ece"], found["accuracy"]) == (0, 2, None, None)
