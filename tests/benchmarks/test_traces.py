"""A trace is parted from its answer, whoever wrote its tags."""

from __future__ import annotations

import pytest

from benchmarks.traces import Parted, part


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B", Parted("B", None)),
        ("<think>\n先看A\n</think>\n\nB", Parted("B", "先看A")),
        ("先看A\n</think>\nB", Parted("B", "先看A")),  # the template wrote the opening tag
        ("<think>\n</think>\nB", Parted("B", "")),
        ("<think>先看A", Parted("", "先看A", True)),
        ("好的\n<think>先看", Parted("好的", "先看", True)),
        ("<think>一</think>或许A<think>二</think>B", Parted("或许AB", "一\n\n二")),
        ("<THINKING>x</THINKING>B", Parted("B", "x")),
        ("<think>一<think>二</think>三</think>B", Parted("B", "一\n\n二\n\n三")),
        ("<think>一</think>B<think>又", Parted("B", "一\n\n又", True)),
        ("", Parted("", None)),
        ("<b>B</b>", Parted("<b>B</b>", None)),
    ],
)
def test_texts_are_parted_as_by_hand(text: str, expected: Parted) -> None:
    assert part(text) == expected
