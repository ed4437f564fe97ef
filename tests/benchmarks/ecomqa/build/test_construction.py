"""Construction: a scripted model through all stages, drops with their reasons, stopped and gone on."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted

from benchmarks.ecomqa.build import run
from benchmarks.ecomqa.build.config import EcomQABuildConfig
from benchmarks.ecomqa.build.items import read_drafts
from benchmarks.ecomqa.data import read_questions
from benchmarks.ecomqa.forms import form_of
from models.generation import Chat, Found
from recipes.faults import DataFaults

TEXTS = {
    "tea": "绿茶不发酵，红茶全发酵。",
    "wool": "羊绒来自山羊。",
    "shop": "本店满三百减五十。",
    "easy": "雨伞用来挡雨。",
    "wrong": "钻石由铁组成。",
    "price": "这款手机今天卖一千元。",
    "silent": "没有问题可问。",
    "same": "红茶是全发酵茶。",
}


def drafted(question: str, answer: str, *candidates: str, choice: bool = False, task: str = "IDC") -> dict[str, Any]:
    return {"task": task, "question": question, "answer": answer, "choice": choice, "candidates": list(candidates)}


DRAFTS: dict[str, list[dict[str, Any]]] = {
    "tea": [
        drafted("红茶的发酵程度是什么？", "全发酵", "不发酵", "半发酵", "轻发酵"),
        drafted("下列哪种茶不发酵？", "绿茶", "绿茶", "红茶", choice=True, task="CC"),
    ],
    "wool": [drafted("羊绒取自哪种动物？", "山羊", "绵羊", "骆驼", "兔子")],
    "shop": [drafted("本店满多少减五十？", "三百", "二百", "四百", "五百")],
    "easy": [drafted("雨伞用来做什么？", "挡雨", "挡风", "挡光", "挡雪")],
    "wrong": [drafted("钻石由什么组成？", "铁", "铜", "金", "银")],
    "price": [drafted("这款手机今天卖多少？", "一千元", "两千元", "三千元", "四千元")],
    "same": [drafted("红茶的发酵程度 是什么?", "全发酵", "不发酵", "半发酵", "轻发酵")],
}


QUESTIONS = {draft["question"]: draft["answer"] for drafts in DRAFTS.values() for draft in drafts}


def model(chat: Chat) -> str:
    """Drafts what stands above, and judges as one would."""
    prompt = chat.messages[0].content
    if prompt.startswith("You write questions"):
        key = next(name for name, text in TEXTS.items() if text in prompt)
        return (
            "好的：```json\n" + json.dumps(DRAFTS[key], ensure_ascii=False) + "\n```" if key in DRAFTS else "写不出。"
        )
    if "known:" in prompt:
        stable = "今天" not in prompt
        return json.dumps({"clear": True, "known": True, "single": True, "stable": stable, "reason": "price"})
    if prompt.startswith("To answer the question"):
        return '["茶叶发酵", "绿茶"]'
    for claim, word in (("general", "本店"), ("expert", "雨伞"), ("right", "Answer: 铁")):
        if f"{claim}:" in prompt:
            return f'<think>{{"no": 1}}</think>{json.dumps({claim: word not in prompt, "reason": "said so"})}'
    if found := re.search("Right answer: (.+)\nAnswer to grade: (.+)", prompt):
        return json.dumps({"correct": found[1] in found[2]})
    raise AssertionError(prompt)


def answering(*known: str) -> Callable[[Chat], str]:
    """Knows the answers of questions that hold a word of ``known``."""

    def reply(asked: Chat) -> str:
        prompt = asked.messages[-1].content
        question = next(question for question in QUESTIONS if question in prompt)
        if not any(word in question for word in known):
            return "不知道"
        return QUESTIONS[question] if "哪种" in question else f"应该是{QUESTIONS[question]}吧"

    return reply


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    (tmp_path / "texts").mkdir()
    lines = [json.dumps({"id": name, "text": text}, ensure_ascii=False) for name, text in TEXTS.items()]
    (tmp_path / "texts" / "c.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return str(tmp_path / "texts")


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, Scripted]:
    """The served models of a test, by name."""
    made = {
        "m": Scripted(model),
        "good": Scripted(answering("羊绒", "哪种茶"), "good"),
        "better": Scripted(answering("羊绒", "红茶"), "better"),
    }

    def find(reference: str, **_: Any) -> Found:
        one = made[reference.partition("#")[2]]
        return Found(one.name, one.facts, lambda: one)

    monkeypatch.setattr(run, "find_generator", find)
    run._load.cache_clear()
    return made


def config(corpus: str, out: Path, **changed: Any) -> EcomQABuildConfig:
    url = "http://localhost:1/v1#"
    base = EcomQABuildConfig(corpus, url + "m", answerers=[url + "good", url + "better"], web=corpus, shop=corpus)
    return replace(base, out=str(out), threads=1, **changed)


def fill(path: Path, verdicts: dict[str, dict[str, str]]) -> None:
    """Write verdicts (and corrections) by question into a sheet, as a person would."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row.update(verdicts[row["question"]])
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def drops(out: Path) -> dict[str, tuple[str, str]]:
    lines = [json.loads(line) for line in (out / "drops.jsonl").read_text("utf-8").splitlines()]
    return {line["id"]: (line["stage"], line["reason"]) for line in lines}


def test_every_stage_drops_what_it_should_and_says_why(
    corpus: str, tmp_path: Path, models: dict[str, Scripted]
) -> None:
    out = tmp_path / "out"
    results = run.build(config(corpus, out))
    assert drops(out) == {
        "silent": ("draft", "no draft could be read: it holds no JSON"),
        "same-1": ("draft", "asked already as tea-1"),
        "price-1": ("criteria", "not stable: price"),
        "shop-1": ("generality", "not general: said so"),
        "easy-1": ("expertise", "not expert: said so"),
        "wrong-1": ("factual", "not right: said so"),
        "wool-1": ("difficulty", "right by all 2 answerers"),
    }
    assert results["waits_for_people"] and not (out / "questions.jsonl").exists()
    stages = results["stages"]
    # Of the two that came through nobody has kept one: the sheet is not filled in.
    assert [stages[name]["kept"] for name in stages] == [7, 6, 5, 4, 3, 2, None]
    assert (stages["human"]["entered"], results["questions"]) == (2, None)
    with (out / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    # One is right in words of its own, as the checker sees; the other chooses right, as a rule sees.
    assert {name: row["right_answers"] for name, row in rows.items()} == {"tea-1": "1", "tea-2": "1"}
    grades = (out / "steps" / "6-grades-2.jsonl").read_text("utf-8").splitlines()
    told = {line["id"]: (line["by"], line["correct"]) for line in map(json.loads, grades)}
    assert told == {"tea-1": ("checker", True), "tea-2": ("rule", False), "wool-1": ("rule", True)}
    assert rows["tea-2"]["candidates"] == "绿茶 | 红茶" and rows["tea-2"]["source"] == TEXTS["tea"]


def test_what_could_not_be_read_is_among_the_drops_with_its_text(
    corpus: str, tmp_path: Path, models: dict[str, Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoilt = {"task": "IDC", "question": "没有答案的问题？"}
    monkeypatch.setitem(DRAFTS, "tea", [spoilt, *DRAFTS["tea"], DRAFTS["wool"][0]])
    out = tmp_path / "out"
    run.build(config(corpus, out, human="skip"))
    lines = [json.loads(line) for line in (out / "drops.jsonl").read_text("utf-8").splitlines()]
    found = {line["id"]: line for line in lines}
    assert found["tea-1"]["reason"] == "question 1 has no answer" and json.loads(found["tea-1"]["text"]) == spoilt
    assert found["tea-4"]["reason"].startswith("question 4 is more than was asked for: 2 from a passage")
    assert found["silent"]["text"] == "写不出。"
    assert {question.gt for question in read_questions(str(out / "questions.jsonl"))} == {"全发酵", "绿茶"}


def test_nothing_is_told_as_kept_before_people_have_kept_it(
    corpus: str, tmp_path: Path, models: dict[str, Scripted], capsys: pytest.CaptureFixture[str]
) -> None:
    run.build(config(corpus, tmp_path / "out"))
    told = capsys.readouterr().out
    assert "out: 2 questions wait for people" in told
    (row,) = [line for line in told.splitlines() if "human" in line]
    assert re.findall(r"[\w-]+", row) == ["human", "2", "-", "-"]


def test_people_have_the_last_word(corpus: str, tmp_path: Path, models: dict[str, Scripted]) -> None:
    out = tmp_path / "out"
    run.build(config(corpus, out))
    asked = len(models["m"].asked)
    with pytest.raises(DataFaults, match="verdict: empty; write keep, fix or drop"):
        run.build(config(corpus, out))
    fill(
        out / "sheet.csv",
        {
            "红茶的发酵程度是什么？": {"verdict": "修改", "question_as_corrected": "红茶属于哪种发酵程度？"},
            "下列哪种茶不发酵？": {"verdict": "Drop", "note": "太简单"},
        },
    )
    results = run.build(config(corpus, out))
    assert len(models["m"].asked) == asked  # nothing is asked again
    assert results["questions"] == 1 and results["left_out"] == []
    assert drops(out)["tea-2"] == ("human", "太简单")
    (question,) = read_questions(str(out / "questions.jsonl"))
    assert question.gt == "全发酵" and question.task == "IDC"
    assert question.prompt == "***问题***：红茶属于哪种发酵程度？\n***答案***："
    assert question.system_prompt.startswith("阅读电商知识问题，用一个事实性的词或短语回答")


def test_stages_that_were_left_out_are_named(corpus: str, tmp_path: Path, models: dict[str, Scripted]) -> None:
    out = tmp_path / "out"
    results = run.build(config(corpus, out, answerers=[], web=None, shop=None, human="skip"))
    assert results["left_out"] == ["difficulty", "human"] and results["checked_without"] == ["web", "shop"]
    questions = {question.gt: question for question in read_questions(str(out / "questions.jsonl"))}
    assert set(questions) == {"全发酵", "绿茶", "山羊"}
    assert "***候选类目***：绿茶,红茶\n" in questions["绿茶"].prompt
    assert form_of(questions["绿茶"]).names == ("绿茶", "红茶")  # rules can grade it
    assert any("(nothing was found)" in one.messages[0].content for one in models["m"].asked)


def test_choices_are_searched_by_points_of_knowledge(corpus: str, tmp_path: Path, models: dict[str, Scripted]) -> None:
    out = tmp_path / "out"
    run.build(config(corpus, out, human="skip"))
    lines = [json.loads(line) for line in (out / "steps" / "3-searches.jsonl").read_text("utf-8").splitlines()]
    queries = {line["id"]: line["queries"] for line in lines}
    assert queries["tea-2"] == ["茶叶发酵", "绿茶"] and queries["wool-1"] == ["羊绒取自哪种动物？"]
    shown = [one.messages[0].content for one in models["m"].asked if "general:" in one.messages[0].content]
    (wool,) = [prompt for prompt in shown if "羊绒取自" in prompt]
    assert f"[1] {TEXTS['wool']}" in wool


@pytest.mark.parametrize("most", [0, 3, 9, 14, 22, 30])
def test_a_killed_construction_goes_on_to_the_same_files(
    corpus: str, tmp_path: Path, models: dict[str, Scripted], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.ecomqa.build.steps.run_step.__defaults__", (2,))  # two items a write
    run.build(config(corpus, tmp_path / "whole", human="skip"))
    whole = len(models["m"].asked)
    models["m"].asked.clear()
    models["m"].most = most
    with pytest.raises(KeyboardInterrupt):
        run.build(config(corpus, tmp_path / "killed", human="skip"))
    models["m"].most = None
    run.build(config(corpus, tmp_path / "killed", human="skip"))
    for name in ("questions.jsonl", "drops.jsonl", "build.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len(models["m"].asked) <= whole + 6  # a chunk at most, asked up to three times an item


def test_another_construction_is_not_mixed_in(corpus: str, tmp_path: Path, models: dict[str, Scripted]) -> None:
    out = tmp_path / "out"
    run.build(config(corpus, out, human="skip"))
    with pytest.raises(ValueError, match=r"settings.temperature is 0.7 there and 0.1 here"):
        run.build(config(corpus, out, human="skip", temperature=0.1))
    assert run.build(config(corpus, out, human="skip", temperature=0.1, overwrite=True))["questions"] == 2
    with pytest.raises(ValueError, match="tasks: XX is no sub-concept"):
        run.build(config(corpus, out, tasks=["XX"]))


def test_sub_concepts_are_named_as_in_an_evaluation() -> None:
    assert run._tasks(["cc,BC", "IC", "bc"]) == ["CC", "BC", "IC"]
    with pytest.raises(ValueError, match="tasks: none to ask about; give some of IC"):
        run._tasks([])


def test_one_construction_at_a_time_in_a_folder(corpus: str, tmp_path: Path, models: dict[str, Scripted]) -> None:
    """A second one is turned away while the first one writes; a lock of this process is not shared by another's."""
    asked = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert asked.stdout is not None and asked.stdin is not None
    assert asked.stdout.readline() == "held\n"
    with pytest.raises(ValueError, match="another process is writing there"):
        run.build(config(corpus, tmp_path / "out", human="skip"))
    asked.communicate("\n")
    assert run.build(config(corpus, tmp_path / "out", human="skip"))["questions"] == 2


HOLD = """
import sys
from pathlib import Path
from models.folder import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        ({"question": " "}, "question 1 has no question"),
        ({"task": "XX"}, "the task of question 1 is 'XX'; it must be one of IDC"),
        ({"candidates": "a"}, "the candidates of question 1 are no list of texts"),
        ({"candidates": ["甲", "乙"]}, "question 1 has 2 different wrong answers; give 3"),
        ({"candidates": ["甲", "乙", "答 案"]}, "the answer of question 1 is among the wrong answers"),
        ({"choice": True}, "the answer of question 1, '答案', is not among its candidates"),
        ({"choice": True, "candidates": ["答案", "答案"]}, "has 1 different candidates; a choice needs 2 to 12"),
        ({"choice": True, "candidates": ["答案", "甲、乙"]}, "candidate '甲、乙' of question 1 holds a comma"),
        ({"choice": "no"}, '"choice" of question 1 is neither true nor false'),
    ],
)
def test_faulty_drafts_are_told_to_their_writer(draft: dict[str, Any], message: str) -> None:
    good = drafted("问？", "答案", "甲", "乙", "丙")
    assert read_drafts([good], ["IDC"], 1).kept == {1: good}
    with pytest.raises(ValueError, match=re.escape(message)):
        read_drafts([{**good, **draft}], ["IDC"], 1)


def test_a_draft_that_cannot_be_read_leaves_the_others() -> None:
    good = drafted("问？", "答案", "甲", "乙", "丙")
    found = read_drafts(["问", good, {**good, "answer": ""}, good, good], ["IDC"], 2)
    assert found.kept == {2: good, 4: good}
    assert {place: one["reason"] for place, one in found.refused.items()} == {
        1: "question 1 is no JSON object",
        3: "question 3 has no answer",
        5: "question 5 is more than was asked for: 2 from a passage (per_passage)",
    }
    assert json.loads(found.refused[3]["text"]) == {**good, "answer": ""}
    with pytest.raises(ValueError, match="question 1 is no JSON object; question 2 has no answer"):
        read_drafts([1, {**good, "answer": " "}], ["IDC"], 2)
