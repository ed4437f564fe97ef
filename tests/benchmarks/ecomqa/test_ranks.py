"""Rank shifts and correlations, by hand and by their definitions; tables read with their faults in words."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from benchmarks.ecomqa.published import published_accuracy, published_rag, published_thinking
from benchmarks.ecomqa.rank_page import ranks_page, shortened, slope_chart
from benchmarks.ecomqa.ranks import compare_ranks, read_scores


def test_shifts_by_hand() -> None:
    """Second order: c, a, d, b."""
    found = compare_ranks({"a": 90, "b": 80, "c": 70, "d": 60}, {"a": 50, "b": 20, "c": 55, "d": 30})
    assert [(one.model, one.first_rank, one.second_rank, one.shift) for one in found.shifts] == [
        ("a", 1, 2, -1),
        ("b", 2, 4, -2),
        ("c", 3, 1, 2),
        ("d", 4, 3, 1),
    ]
    # rho = 1 - 6 (1 + 4 + 4 + 1) / (4 (16 - 1)) = 0; pairs in the same order: ab, ad, cd; in another: ac, bc, bd
    assert found.spearman == pytest.approx(0)
    assert found.kendall == pytest.approx(0)


def test_equal_orders_and_opposite_ones() -> None:
    scores = {name: float(k) for k, name in enumerate("abcde")}
    same = compare_ranks(scores, {name: 10 * score for name, score in scores.items()})
    assert same.spearman == same.kendall == pytest.approx(1) and {one.shift for one in same.shifts} == {0}
    opposite = compare_ranks(scores, {name: -score for name, score in scores.items()})
    assert opposite.spearman == opposite.kendall == pytest.approx(-1)


def test_equal_scores_share_the_better_rank() -> None:
    found = compare_ranks({"a": 3, "b": 3, "c": 1}, {"a": 1, "b": 2, "c": 2})
    ranks = {one.model: (one.first_rank, one.second_rank) for one in found.shifts}
    assert ranks == {"a": (1, 3), "b": (1, 1), "c": (3, 1)}
    # tau-b by its definition: no pair in the same order, ac in the other; ab and bc are tied in one table each
    assert found.kendall == pytest.approx(-1 / ((3 - 1) * (3 - 1)) ** 0.5)


def test_a_table_of_equal_scores_has_no_order() -> None:
    found = compare_ranks({"a": 1, "b": 1}, {"a": 1, "b": 2})
    assert found.spearman is None and found.kendall is None and found.kendall_p is None


def test_names_pair_whatever_their_case_and_others_are_named() -> None:
    found = compare_ranks({"Qwen2.5-7B": 1, "GPT-4o": 2, "x": 3}, {"qwen2.5-7b": 5, "gpt-4o": 4, "y": 1})
    assert [one.model for one in found.shifts] == ["GPT-4o", "Qwen2.5-7B"]
    assert found.alone == ("x", "y")
    with pytest.raises(ValueError, match="share 1 models; ranks need two"):
        compare_ranks({"a": 1, "b": 2}, {"a": 1, "c": 2})


def test_published_orders_by_the_definition_of_kendall() -> None:
    """All pairs of the 27 models counted one by one, the average against brand knowledge."""
    table = published_accuracy()
    first, second = read_scores("published"), read_scores("published", "BC")
    assert len(table) == 27 and first["DeepSeek-R1"] == 74.0
    signs = [
        ((first[a] > first[b]) - (first[a] < first[b]), (second[a] > second[b]) - (second[a] < second[b]))
        for a, b in combinations(table, 2)
    ]
    agree = sum(x * y for x, y in signs)
    untied = [sum(bool(sign[k]) for sign in signs) for k in (0, 1)]
    assert compare_ranks(first, second).kendall == pytest.approx(agree / (untied[0] * untied[1]) ** 0.5)


def test_published_tables_are_whole() -> None:
    assert {len(scores) for scores in published_accuracy().values()} == {11}
    assert {tuple(sides) for sides in published_rag().values()} == {("plain", "rag")}
    for shares in published_thinking().values():
        assert sum(shares.values()) == pytest.approx(100, abs=0.02)


def test_tables_come_from_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "scores.csv").write_text("\ufeffmodel,average,CC\r\na,40.5,1\r\n", encoding="utf-8")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "scores.csv").write_text("model,average,CC\nb,50,2\n", encoding="utf-8")
    assert read_scores(str(tmp_path)) == {"a": 40.5, "b": 50.0}
    assert read_scores(str(tmp_path / "two" / "scores.csv"), "CC") == {"b": 2.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,average\na,1\n", r"t\.csv: no column 'model'"),
        ("model,averag\na,1\n", "no column 'average'; did you mean 'averag'"),
        ("model,average\na,1\na,2\n", ":2: model 'a' has a row already"),
        ("model,average\na,good\n", r"t\.csv:1: average: 'good' is not a number"),
        ("model,average\na\n", ":1: average: None is not a number"),
        ("average,model\n1\n", r"t\.csv:1: model: empty; give its name"),
        ("model,average\na,1,2\n", r"t\.csv:1: cells beyond the header's columns"),
        ('model,average\n"a,1\n', r"t\.csv: cannot be read as CSV"),
        ("model,average\n", r"t\.csv: no rows; give a CSV table"),
        ("", r"t\.csv: no rows; give a CSV table"),
        ("model\na\n", r"t\.csv: no column 'average'; there are no scores"),
    ],
)
def test_what_is_no_table_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_scores(str(path))


def test_absent_tables_are_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file; give a CSV file"):
        read_scores(str(tmp_path / "x.csv"))
    with pytest.raises(FileNotFoundError, match=r"no scores\.csv below this folder"):
        read_scores(str(tmp_path))
    with pytest.raises(ValueError, match="no column 'BX'; did you mean 'BC'"):
        read_scores("published", "BX")


def test_the_picture_names_every_model_on_both_sides_and_escapes_names() -> None:
    found = compare_ranks({"模型甲": 1, "a<b": 2}, {"模型甲": 5, "a<b": 4})
    drawn = slope_chart(found.shifts, ("论文", "我们"))
    assert drawn.count("模型甲") == 3 and "a<b" not in drawn and drawn.count("a&lt;b") == 3
    assert drawn.count('class="s1"') == 1 and drawn.count('class="s2"') == 1
    html = ranks_page(found, ("论文", "我们"), "average")
    assert "Spearman" in html and "模型甲" in html and "+1" in html


def test_long_names_keep_their_beginning_and_their_size() -> None:
    assert shortened("DeepSeek-R1-Distill-Qwen-32B", 120) == "DeepSeek-R1…n-32B"
    assert shortened("Qwen2.5-7B", 120) == "Qwen2.5-7B"
