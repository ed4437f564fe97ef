"""Rank shifts and correlations, by hand and by their definitions; tables read with their faults in words."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

from benchmarks.ecomqa.data import SUB_CONCEPTS
from benchmarks.ecomqa.published import published_accuracy, published_rag, published_thinking
from benchmarks.ecomqa.rank_page import ranks_page, shortened, slope_chart
from benchmarks.ecomqa.ranks import compare_ranks, compare_tables, read_scores


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
    told = (
        "share 1 models; ranks need two.*equal names.*first table has a, b, the second A, c, d, e, f and 2 more; make"
    )
    with pytest.raises(ValueError, match=told):
        compare_ranks({"a": 1, "b": 2}, dict.fromkeys("Acdefgh", 1))


def test_published_orders_by_the_definition_of_kendall() -> None:
    """All pairs of the 27 models counted one by one, the average against brand knowledge."""
    table = published_accuracy()
    average = {model: sum(scores[task] for task in SUB_CONCEPTS) / 10 for model, scores in table.items()}
    found = compare_tables(read_scores("published"), read_scores("published", "BC"), ("average", "BC"))
    assert len(table) == len(found.shifts) == 27 and found.over == tuple(SUB_CONCEPTS)
    signs = [
        (
            (average[a] > average[b]) - (average[a] < average[b]),
            (table[a]["BC"] > table[b]["BC"]) - (table[a]["BC"] < table[b]["BC"]),
        )
        for a, b in combinations(table, 2)
    ]
    agree = sum(x * y for x, y in signs)
    untied = [sum(bool(sign[k]) for sign in signs) for k in (0, 1)]
    assert found.kendall == pytest.approx(agree / (untied[0] * untied[1]) ** 0.5)


def test_averages_are_over_the_sub_concepts_that_all_shared_models_have_in_both_tables(tmp_path: Path) -> None:
    """By the ten of the first table a is ahead, by what was asked of both models in the second it is behind."""
    (tmp_path / "one.csv").write_text("model,average,IC,CC,SC\na,80,100,60,80\nb,40,0,70,50\nc,9,9,9,9\n")
    (tmp_path / "two.csv").write_text("model,average,IC,CC,SC\nA,75,90,60,\nB,30,,50,10\n")
    first, second = (read_scores(str(tmp_path / f"{name}.csv")) for name in ("one", "two"))
    found = compare_tables(first, second, ("average", "average"))
    assert found.over == ("CC",) and found.alone == ("c",)
    assert [(one.model, one.first, one.second) for one in found.shifts] == [("b", 70, 50), ("a", 60, 60)]
    assert found.measures(("average", "average")) == "mean of 1 sub-concept: CC"
    (tmp_path / "two.csv").write_text("model,CC,SC\nA,60,10\nB,50,90\n")
    found = compare_tables(first, read_scores(str(tmp_path / "two.csv")), ("average", "average"))
    assert {one.model: (one.first, one.second) for one in found.shifts} == {"a": (70, 35), "b": (60, 70)}
    told = found.measures(("average", "average"))
    assert told == "mean of 2 sub-concepts: CC, SC"
    assert f"2 models, {told}." in ranks_page(found, ("one", "two"), told)
    assert found.measures(("average", "SC")) == f"{told} and SC"


def test_averages_over_nothing_in_common_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("model,average,IC,CC\nDeepSeek-R1,50,50,\nGPT-4o,60,,60\n")
    with pytest.raises(ValueError, match=r"no sub-concept has a score for each of the 2 models .* give tables with"):
        compare_tables(read_scores("published"), read_scores(str(tmp_path / "t.csv")), ("average", "average"))


def test_the_command_says_what_it_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from scripts.compare_ranks import main

    (tmp_path / "t.csv").write_text("model,average,SC,CC\nDeepSeek-R1,50,40,60\nGPT-4o,60,50,70\n")
    assert main(["published", str(tmp_path / "t.csv"), "--out", str(tmp_path / "r.html")]) == 0
    assert "2 models, mean of 2 sub-concepts: CC, SC" in " ".join(capsys.readouterr().out.split())
    assert "mean of 2 sub-concepts: CC, SC" in (tmp_path / "r.html").read_text("utf-8")
    found = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert (found["over"], found["measures"]) == (["CC", "SC"], "mean of 2 sub-concepts: CC, SC")


def test_published_tables_are_whole() -> None:
    assert {len(scores) for scores in published_accuracy().values()} == {11}
    assert {tuple(sides) for sides in published_rag().values()} == {("plain", "rag")}
    for shares in published_thinking().values():
        assert sum(shares.values()) == pytest.approx(100, abs=0.02)


def test_tables_come_from_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "scores.csv").write_text("\ufeffmodel,average,CC\r\na,40.5,1\r\n", encoding="utf-8")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "scores.csv").write_text("model,average,CC,BC\nb,50,2,\n", encoding="utf-8")
    assert read_scores(str(tmp_path)) == {"a": {"CC": 1}, "b": {"CC": 2}}
    assert read_scores(str(tmp_path / "two" / "scores.csv"), "average") == {"b": {"CC": 2}}
    with pytest.raises(ValueError, match=r"scores\.csv:2: BC: '' is not a number"):
        read_scores(str(tmp_path / "two"), "BC")


def test_a_model_in_two_results_of_a_folder_is_not_taken_from_either(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scores.csv").write_text(f"model,average,CC\na,{len(name)},1\n")
    with pytest.raises(ValueError, match=r"two/scores\.csv: model 'a' stands in .*one/scores\.csv too; give a folder"):
        read_scores(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,score\na,1\n", r"t\.csv: no column 'model'"),
        ("model,total\na,1\n", "no column 'score'; did you mean 'total'"),
        ("model,score\na,1\na,2\n", ":3: model 'a' has a row already"),
        ("model,score\na,good\n", r"t\.csv:2: score: 'good' is not a number"),
        ("model,score\na\n", ":2: score: None is not a number"),
        ("score,model\n1\n", r"t\.csv:2: model: empty; give its name"),
        ("model,score\na,1,2\n", r"t\.csv:2: cells beyond the header's columns"),
        ('model,score\n"a,1\n', r"t\.csv: cannot be read as CSV"),
        ("model,score\n", r"t\.csv: no rows; give a CSV table"),
        ("", r"t\.csv: no rows; give a CSV table"),
        ("model\na\n", r"t\.csv: no column 'score'; there are no scores"),
    ],
)
def test_what_is_no_table_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_scores(str(path), "score")


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


@pytest.mark.parametrize("twice", ["A,2\na,3\n", "a,2\n a ,3\n", "a  b,2\nA b,3\n"])
def test_a_model_has_one_row_however_it_is_written(tmp_path: Path, twice: str) -> None:
    (tmp_path / "t.csv").write_text(f"model,CC\nz,1\n{twice}")
    with pytest.raises(ValueError, match=r"t\.csv:4: model '.*' has a row already"):
        read_scores(str(tmp_path / "t.csv"), "CC")


def test_two_runs_of_one_model_in_a_folder_are_refused(tmp_path: Path) -> None:
    for name, text in {"one": "M,90", "two": " m ,10"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "scores.csv").write_text(f"model,CC\n{text}\n")
    with pytest.raises(ValueError, match=r"two.scores\.csv: model 'm' stands in .*one.scores\.csv too \('M'\)"):
        read_scores(str(tmp_path), "CC")


def test_the_command_shows_names_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets and colons are no markup, white space pairs, and what has no partner is told."""
    from scripts.compare_ranks import main

    (tmp_path / "t.csv").write_text("model,CC\n Q [think] ,3\nQ [nothink],2\n[/x] M :smile:,1\nalone,0\n")
    (tmp_path / "u.csv").write_text("model,CC\nq [think],1\nQ [nothink],2\n[/x] M :smile:,3\n")
    names = [str(tmp_path / name) for name in ("t.csv", "u.csv")]
    assert main([*names, "--column", "CC", "--out", str(tmp_path / "we[b]ird.html")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for name in ("Q [think]", "Q [nothink]", "[/x] M :smile:", "we[b]ird.html", "left out: alone"):
        assert name in told
