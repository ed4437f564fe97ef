"""Questions are read as they come, each oddity of the released file is understood, and every fault is told."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from ecomqa_questions import LATE, ROWS, rows, write

from benchmarks.ecomqa.data import SUB_CONCEPTS, questions_fingerprint, read_questions
from recipes.faults import DataFaults


def test_the_ten_sub_concepts_stand_in_the_order_of_the_paper_s_table() -> None:
    assert list(SUB_CONCEPTS) == ["IC", "IDC", "CC", "BC", "AC", "SC", "ITC", "RVC", "RLC", "PC"]


def test_a_question_keeps_its_texts_and_knows_its_row(tmp_path: Path) -> None:
    found = read_questions(write(tmp_path / "set.jsonl", rows()))
    assert len(found) == len(rows())
    review = next(question for question in found if question.task == "RVC")
    assert (review.system_prompt, review.prompt) == (ROWS["RVC"]["system_prompt"], ROWS["RVC"]["prompt"])
    assert (review.gt, review.gt_raw, review.references, review.rows) == ("正确", "正确", ("正确",), (1,))


def test_ids_follow_from_the_content_in_any_order(tmp_path: Path) -> None:
    lines = rows()
    ids = {question.prompt: question.id for question in read_questions(write(tmp_path / "a.jsonl", lines))}
    random.Random(0).shuffle(lines)
    assert {one.prompt: one.id for one in read_questions(write(tmp_path / "b.jsonl", lines))} == ids
    assert len(set(ids.values())) == len(lines)
    assert all(name.split("-")[0] in SUB_CONCEPTS for name in ids.values())


def test_only_the_first_line_of_a_reference_is_the_answer(tmp_path: Path) -> None:
    (late,) = read_questions(write(tmp_path / "set.jsonl", [LATE]))
    assert late.gt == "材质&成分"
    assert late.references == ("材质&成分",)
    assert late.gt_raw == LATE["gt"]
    assert late.system_prompt == ""


def test_a_question_asked_twice_accepts_both_references_or_stays_as_released(tmp_path: Path) -> None:
    twice = [{**ROWS["AC"], "task": "AC"}, {**ROWS["BC"], "task": "BC"}, {**ROWS["AC"], "task": "AC", "gt": "硅胶"}]
    path = write(tmp_path / "set.jsonl", twice)
    merged, other = read_questions(path)
    assert (merged.gt, merged.references, merged.rows) == ("兒童", ("兒童", "硅胶"), (0, 2))
    kept = read_questions(path, "keep")
    assert [question.references for question in kept] == [("兒童",), ("2015年",), ("硅胶",)]
    assert [question.id for question in kept] == [merged.id, other.id, f"{merged.id}-2"]


def test_a_category_as_answer_to_whether_it_is_one_means_yes(tmp_path: Path) -> None:
    line = {**ROWS["CC"], "task": "CC", "gt": "冰柜"}
    (question,) = read_questions(write(tmp_path / "set.jsonl", [line]))
    assert question.references == ("冰柜", "是")
    (other,) = read_questions(write(tmp_path / "set.jsonl", [{**line, "gt": "电饭锅"}]))
    assert other.references == ("电饭锅",)


def test_quotation_marks_around_a_whole_instruction_are_taken_off(tmp_path: Path) -> None:
    (spoken,) = read_questions(write(tmp_path / "set.jsonl", [{**ROWS["SC"], "task": "SC"}]))
    assert spoken.system_prompt == "输出纠错后的query。\n让我们开始吧！"
    (quoting,) = read_questions(
        write(tmp_path / "set.jsonl", [{**ROWS["BC"], "task": "BC", "system_prompt": '"a" or "b"'}])
    )
    assert quoting.system_prompt == '"a" or "b"'


def test_bom_crlf_blank_lines_and_gzip_are_simply_understood(tmp_path: Path) -> None:
    text = "\ufeff" + "\r\n\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows()) + "\r\n"
    (tmp_path / "set.jsonl").write_bytes(text.encode())
    with gzip.open(tmp_path / "set.jsonl.gz", "wb") as file:
        file.write(text.encode())
    plain = read_questions(write(tmp_path / "plain.jsonl", rows()))
    for name in ("set.jsonl", "set.jsonl.gz"):
        assert questions_fingerprint(read_questions(str(tmp_path / name))) == questions_fingerprint(plain)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"task": "RVCC"}, "set.jsonl:1: task: 'RVCC' is no sub-concept; did you mean 'RVC'?"),
        ({"task": "bc"}, "set.jsonl:1: task: 'bc' is no sub-concept; did you mean 'BC'?"),
        ({"gt": " \n"}, "set.jsonl:1: gt: empty; give the reference answer, on its first line"),
        ({"gt": "\u200b\ufeff"}, "set.jsonl:1: gt: empty; give the reference answer, on its first line"),
        ({"prompt": ""}, "set.jsonl:1: prompt: empty; give the question"),
        ({"gt": 2015}, 'set.jsonl:1: gt: the number 2015 where text belongs; write "2015"'),
        ({"gt": "答\ud800"}, "set.jsonl:1: gt: holds half a character (a lone surrogate); write the text as UTF-8"),
        ({"system_prompt": None}, "set.jsonl:1: system_prompt: null where text belongs; give the instruction"),
    ],
)
def test_faults_are_told_with_line_field_and_remedy(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    line = {**ROWS["BC"], "task": "BC", **change}
    with pytest.raises(DataFaults) as caught:
        (tmp_path / "set.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
        read_questions(str(tmp_path / "set.jsonl"))
    assert told in str(caught.value)


def test_all_faults_come_at_once_and_unknown_fields_are_only_remarked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = {**ROWS["BC"], "task": "BC", "note": "x"}
    bad = {key: value for key, value in good.items() if key != "gt"}
    with pytest.raises(DataFaults, match=r":2: gt: missing; give the reference(.|\n)*:3: "):
        read_questions(write(tmp_path / "set.jsonl", [good, bad, bad]))
    assert "set.jsonl:1: note: unknown field, ignored" in caplog.text


def test_an_empty_or_absent_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataFaults, match="no questions; give at least one line with system_prompt, prompt, gt, task"):
        read_questions(str(tmp_path / "empty.jsonl"))
    for name in ("none.jsonl", "none.csv", "none"):
        with pytest.raises(DataFaults, match=rf"{name}: no such file; give a JSONL, Parquet or CSV file, or sample"):
            read_questions(str(tmp_path / name))
    with pytest.raises(DataFaults, match="data: names nothing; give"):
        read_questions("")


def test_a_csv_file_may_leave_the_instruction_empty_and_counts_its_header(tmp_path: Path) -> None:
    path = tmp_path / "set.csv"
    path.write_text('system_prompt,prompt,gt,task\n,问？,007,BC\n"说明,\n一",问二？,24.90,BC\n', encoding="utf-8-sig")
    first, second = read_questions(str(path))
    assert (first.system_prompt, first.gt, second.system_prompt, second.gt) == ("", "007", "说明,\n一", "24.90")
    path.write_text("system_prompt,prompt,gt,task\n,问？,答,BC\n,问？,,BC\n", encoding="utf-8")
    with pytest.raises(DataFaults, match=r"set\.csv:3: gt: empty; give the reference"):
        read_questions(str(path))
    path.write_text("prompt,gt,task\n问？,答,BC\n", encoding="utf-8")
    with pytest.raises(DataFaults, match=r"set\.csv:2: system_prompt: missing; give"):
        read_questions(str(path))
    path.write_bytes("system_prompt,prompt,gt,task\n,问？,答,BC\n".encode("gbk"))
    with pytest.raises(DataFaults, match=r"set\.csv: .*save it in UTF-8"):
        read_questions(str(path))


def test_the_fingerprint_follows_what_is_asked_and_accepted(tmp_path: Path) -> None:
    lines = rows()
    first = questions_fingerprint(read_questions(write(tmp_path / "a.jsonl", lines)))
    lines[1] = {**lines[1], "gt": "错误"}
    assert questions_fingerprint(read_questions(write(tmp_path / "b.jsonl", lines))) != first
