"""The report of a whole run by a scripted model: what it says, what it links, what other programs get of it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from scripted import Scripted

from benchmarks.ecomqa import prepare
from benchmarks.ecomqa.config import ConfidenceConfig, EcomQAConfig, RagConfig
from benchmarks.ecomqa.data import SUB_CONCEPTS, read_questions
from benchmarks.ecomqa.exports import markdown, scores_csv
from benchmarks.ecomqa.metrics import counts
from benchmarks.ecomqa.pictures import CHINESE, confidence_bins, task_radar
from benchmarks.ecomqa.ranks import read_scores
from benchmarks.ecomqa.report import compares_with_published, report, write_report
from benchmarks.ecomqa.run import evaluate
from benchmarks.ecomqa.shown import examples
from benchmarks.ecomqa.summary import table
from benchmarks.ecomqa.wording import in_words
from benchmarks.results import Predictions
from models.generation import Chat, Found

QUESTIONS = {question.prompt: question for question in read_questions("sample")}
EVIL = "<script>alert(1)</script>"


def chance(text: str) -> float:
    """A number from 0 to 1 that depends on a text alone."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def answer(chat: Chat) -> str:
    """Thinks, and is right in about half of the questions; surer where it is right; better with passages."""
    prompt = chat.messages[-1].content
    question = next(one for text, one in QUESTIONS.items() if prompt.endswith(text))
    luck = chance(question.id)
    right = luck < (0.8 if "检索到的资料" in prompt else 0.5)
    said = question.gt if right else "不知道" if luck > 0.9 else f"别的答案{EVIL}"
    thought = f"<think>先想一想{question.task}，再确认。</think>" if luck < 0.7 else ""
    asked = "置信度" in chat.messages[0].content
    return f"{thought}{said}" + (f"\n置信度：{int(60 + 40 * luck)}" if asked else "")


def judge(chat: Chat) -> str:
    """Grades by comparing, now and then unreadably; sorts traces by chance."""
    text = chat.messages[-1].content
    if "【思考过程】" in text:
        return f"行为：{'AABC'[int(3.99 * chance(text))]}"
    if chance(chat.messages[0].content + text) > 0.95:
        return "看情况"
    reference, said = (text.split(f"【{part}】\n", 1)[1].split("\n\n【")[0] for part in ("标准答案", "模型回答"))
    return "A" if reference.split("（即")[0] in said else "C" if "不知道" in said else "B"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = {"subject": Scripted(answer, "思考者"), "judge": Scripted(judge, "judge")}

    def find(reference: str, *_: Any) -> Found:
        one = made[reference]
        return Found(one.name, one.facts, lambda: one)

    out = tmp_path_factory.mktemp("run") / "out"
    config = EcomQAConfig(
        checkpoint="subject",
        judges="rules,judge",
        behaviour=True,
        confidence=ConfidenceConfig(ask=True),
        rag=RagConfig(corpus="sample"),
        resamples=200,
        threads=1,
        out=str(out),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, "find_generator", find)
        evaluate(config)
    return out


@pytest.fixture(scope="module")
def html(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return found


def listed(html: str) -> dict[str, Any]:
    """The data of the list of answers."""
    (found,) = re.findall(r'<script type="application/json">(.+?)</script>', html)
    data: dict[str, Any] = json.loads(found)
    return data


def test_every_section_of_a_whole_run_is_there(html: str) -> None:
    sections = re.findall(r'<section id="([\w-]+)"', html)
    assert sections == [
        "sub-concepts",
        "pictures",
        "calibration",
        "retrieval",
        "thinking",
        "grading",
        "examples",
        "answers",
        "facts",
    ]


def test_the_page_needs_nothing_else(html: str) -> None:
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//|@import|url\(", html)


def test_what_a_model_wrote_stays_text(html: str) -> None:
    assert EVIL not in html
    assert any("别的答案<script>" in text for row in listed(html)["rows"] for _, text in row[2])


def test_pictures_carry_chinese_labels(html: str) -> None:
    drawn = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    radar = next(one for one in drawn if "Accuracy by sub-concept" in one and "ring" in one)
    assert all(f"{name} {task}" in radar for task, name in CHINESE.items())
    bars = next(one for one in drawn if "Accuracy by sub-concept" in one and "ring" not in one)
    assert all(name in bars for name in CHINESE.values())


def test_figures_are_those_of_the_results(html: str, results: dict[str, Any]) -> None:
    for own in results["sub_concepts"].values():
        assert f">{own['accuracy']['value']:.1f} <" in html
    assert f"{results['average']['value']:.1f} %" in html
    for gain in results["rag"]["gain"].values():
        assert f">{gain['absolute']:+.1f}<" in html
    assert f"error {results['confidence']['calibration']['all']['ece']:.1f} points" in html


def test_the_list_holds_every_answer_in_every_way_of_asking(html: str, folder: Path) -> None:
    data = listed(html)
    written = {name: Predictions(folder, name).read() for name in ("predictions", "predictions-confidence")}
    retrieved = Predictions(folder, "predictions-rag").read()
    assert len(data["rows"]) == sum(map(len, written.values())) + len(retrieved)
    keys = [one["key"] for one in data["fields"]]
    asked = [row[1][keys.index("asked")] for row in data["rows"]]
    assert asked.count("with passages") == len(retrieved) > 0
    bodies = [dict(row[2]) for row in data["rows"] if row[1][keys.index("asked")] == "with passages"]
    assert all(re.match(r"p\d\d", body["Retrieved"]) for body in bodies)
    assert {name for row in data["rows"] for name, _ in row[2]} >= {"Question", "Reference", "Reasoning", "Judges"}


def test_a_count_of_wrong_answers_leads_to_them(html: str) -> None:
    """A link names values that the list's filters have."""
    data = listed(html)
    values = {field["key"]: {row[1][k] for row in data["rows"]} for k, field in enumerate(data["fields"])}
    links = re.findall(r'href="#list\?([^"]+)"', html)
    assert links
    for link in links:
        wanted = dict(pair.split("=") for pair in link.replace("&amp;", "&").split("&"))
        assert wanted["grade"] == "Wrong" and wanted["grade"] in values["grade"]
        assert set(wanted) <= set(values)


def test_each_grade_has_examples_of_several_sub_concepts(html: str) -> None:
    (section,) = re.findall(r'<section id="examples".*?</section>', html, re.DOTALL)
    for grade in ("Correct", "Wrong", "Not attempted"):
        (part,) = re.findall(rf"<h3>{grade}</h3>(.*?)</ol>", section, re.DOTALL)
        assert 1 <= part.count("<li>") <= 4
    (right,) = re.findall(r"<h3>Correct</h3>(.*?)</ol>", section, re.DOTALL)
    assert len(set(re.findall(r"<b>([^<]+ [A-Z]+)</b>", right))) == 4


def test_other_programs_get_a_table(folder: Path, results: dict[str, Any]) -> None:
    (row,) = csv.DictReader((folder / "scores.csv").read_text(encoding="utf-8").splitlines())
    assert list(row) == ["model", "average", *SUB_CONCEPTS] and row["model"] == "思考者"
    assert float(row["PC"]) == pytest.approx(results["sub_concepts"]["PC"]["accuracy"]["value"], abs=0.005)
    assert read_scores(str(folder.parent), "PC") == {"思考者": {"PC": float(row["PC"])}}


def test_markdown_is_a_table_of_the_sub_concepts_their_mean_and_all_questions(folder: Path) -> None:
    lines = (folder / "report.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 2 + 10 + 2 and {row.count("|") for row in rows} == {8}
    assert any(line.endswith("Judges: judge/standard, judge/examples, judge/reasoned.") for line in lines)


# Four questions of CC, of two kinds, one right; two of BC, one right and one silent.
SMALL: dict[str, Any] = {
    "subject": {"name": "m"},
    "data": {"reference": "d"},
    "complete": False,
    "sub_concepts": {
        "CC": {
            **counts([{"grade": grade} for grade in ("correct", "wrong", "wrong", "wrong")]),
            "name": "category concept",
            "baseline": {
                "accuracy": 75.0,
                "constants": [{"answer": "功能", "right": 1, "n": 1}, {"answer": "不相关", "right": 2, "n": 3}],
            },
        },
        "BC": {
            **counts([{"grade": "correct"}, {"grade": "not_attempted"}]),
            "name": "brand concept",
            "baseline": {"accuracy": 50.0, "constants": [{"answer": "日本", "right": 1, "n": 2}]},
        },
    },
    "average": {"value": 37.5, "low": 20.0, "high": 60.0},
    "baseline": 62.5,
    "all": counts([{"grade": grade} for grade in (*["correct"] * 2, *["wrong"] * 3, "not_attempted")]),
    "answers": {"cut": 0, "traces": 0, "too_long": 0, "without_shots": 0},
    "grading": {"judges": ["j"], "by": {"rules": 6}, "by_form": {"open": {}}, "agreement": {"kappa": None}},
}


def terminal(results: dict[str, Any]) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(table(results))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_mean_and_all_questions_together_are_different_rows() -> None:
    """2 of 6 right, 5 attempted; 33.3 of 6 has Wilson limits 9.7 and 70.0; F is 2 * 2 / (6 + 5)."""
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in markdown(SMALL).splitlines() if row[:1] == "|"]
    mean = ["**unweighted mean of 2**", "", "**37.5 [20.0, 60.0]**", "**62.5**", "", "", ""]
    pooled = ["all questions together", "6", "33.3 [9.7, 70.0]", "", "83.3", "40.0", "36.4"]
    assert rows[-2:] == [mean, pooled]
    shown = [" ".join(line.split()) for line in terminal(SMALL).splitlines()]
    assert "unweighted mean of 2 37.5 [20.0, 60.0] 62.5" in shown
    assert "all questions together 6 33.3 [9.7, 70.0] 83.3 40.0 36.4" in shown


def test_kappa_is_a_matter_of_two_judges_at_least() -> None:
    two = {**SMALL, "grading": {**SMALL["grading"], "judges": ["j", "k"], "agreement": {"kappa": 0.5}}}
    assert "kappa" not in terminal(SMALL) and "kappa of 2 judges 0.50" in " ".join(terminal(two).split())


def test_every_constant_and_every_analysis_is_told_in_words() -> None:
    """As the terminal prints it, and report.md lists it."""
    own = {"ece": 45.04, "n": 2, "unread": 1, "confidence": 95.0, "accuracy": 50.0}
    gain = {"plain": 40.0, "rag": 50.0, "absolute": 10.0, "relative": 25.0}
    difference = {"value": 4.0, "low": -1.0, "high": 9.0}
    whole = {
        **SMALL,
        "confidence": {"calibration": {"CC": own, "all": {**own, "ece": None}}},
        "rag": {"gain": {"CC": gain, "average": gain}},
        "thinking": {"shares": {"A": 50.0, "B": 25.0, "C": 25.0, "D": 0.0}, "decided": 4},
        "comparison": {"with": "o", "n": 6, "difference": difference, "p": 0.25},
    }
    told = [
        "Constant answers, the best for each kind of question: CC 不相关 / 功能; BC 日本.",
        "Expected calibration error, in points: CC 45.0, together –. 2 of 3 answers state a confidence, 95.0 on "
        "average; 50.0 % of them are right.",
        "Accuracy without and with passages: CC 40.0 to 50.0 (+10.0), mean 40.0 to 50.0 (+10.0).",
        "Thinking behaviour: A confirms 50.0 %, B repairs 25.0 %, C spoils 25.0 %, D stays unsure 0.0 %, of 4 sorted "
        "traces.",
        "m less o: +4.0 [-1.0, 9.0] points over 6 questions, p 0.250 (McNemar).",
    ]
    assert list(in_words(whole)) == told
    assert markdown(whole).splitlines()[-len(told) :] == [f"- {sentence}" for sentence in told]
    assert list(in_words(SMALL)) == told[:1]
    assert list(in_words({**SMALL, "thinking": {"message": "m: no trace"}}))[1:] == ["m: no trace."]


def test_a_part_of_the_sub_concepts_is_said_to_be_one(results: dict[str, Any]) -> None:
    part = {**results, "complete": False, "sub_concepts": {"CC": results["sub_concepts"]["CC"]}}
    assert "unweighted mean of 1" in markdown(part)
    assert scores_csv(part).splitlines()[1].count(",,") >= 3
    assert task_radar({"m": {"CC": 50.0, "BC": 50.0}}) is None


def test_published_models_stand_beside_the_released_questions_only(html: str, results: dict[str, Any]) -> None:
    assert not compares_with_published(results) and "DeepSeek-R1</li>" not in html
    released = {**results, "all": {**results["all"], "n": 1800}}
    assert compares_with_published(released) and "DeepSeek-R1</li>" in report(released, [])


def test_bins_of_confidence_are_counted_back_to_answers() -> None:
    one = {"low": 90.0, "high": 100.0, "n": 3, "confidence": 95.0, "accuracy": 100 * 2 / 3}
    empty = {"low": 0.0, "high": 10.0, "n": 0, "confidence": None, "accuracy": None}
    filled, nothing = confidence_bins({"bins": [one, empty]})
    assert (filled.count, filled.share, nothing.share) == (3, pytest.approx(2 / 3), None)
    # Wilson, by its formula: (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n)
    n, p, z = 3, 2 / 3, 1.959963984540054
    middle, half = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    assert filled.share_low == pytest.approx((middle - half) / (1 + z * z / n))
    assert filled.share_high == pytest.approx((middle + half) / (1 + z * z / n))


def test_an_unfinished_run_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no results\.json; give the folder of a finished"):
        write_report(tmp_path)


def test_a_model_without_traces_is_told_so(results: dict[str, Any]) -> None:
    html = report({**results, "thinking": {"message": "x: none of its 3 answers holds a trace"}}, [])
    assert "none of its 3 answers holds a trace" in html


def test_a_comparison_is_shown_with_its_interval(results: dict[str, Any]) -> None:
    found = {
        "with": "other",
        "n": 148,
        "difference": {"value": 4.0, "low": -1.0, "high": 9.0},
        "first_only": 20,
        "second_only": 12,
        "p": 0.215,
    }
    html = report({**results, "comparison": found}, [])
    assert "思考者 less other" in html and "[-1.0, 9.0]" in html and ">0.215<" in html


def test_answers_are_named_by_what_they_are_about(html: str) -> None:
    titles = {row[0] for row in listed(html)["rows"]}
    assert "羊绒是从哪一种动物身上取得的绒毛？" in titles
    assert "小户型可以翻下来的床" in titles  # without the candidates
    assert any(title.startswith("A.徒步头灯;B.婴儿推车") for title in titles)  # without the profile
    assert not any("检索到的资料" in title for title in titles)  # without the passages


def test_what_an_earlier_run_left_in_the_folder_is_not_shown(
    folder: Path, results: dict[str, Any], tmp_path: Path
) -> None:
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    fewer = {name: value for name, value in results.items() if name not in ("rag", "thinking")}
    (again / "results.json").write_text(json.dumps(fewer), encoding="utf-8")
    write_report(again)
    html = (again / "report.html").read_text(encoding="utf-8")
    assert '"with confidence"' in html and '"with passages"' not in html and 'id="thinking"' not in html


def test_examples_take_turns_among_the_sub_concepts(folder: Path) -> None:
    right = [line for line in Predictions(folder).read() if line["correct"]]
    tasks = {task: [line for line in right if line["task"] == task] for task in ("IC", "PC")}
    (_, first, second, third, *_) = re.split(r"<li>", examples([*tasks["IC"][:3], *tasks["PC"][:2]]))
    assert ["IC" in first, "PC" in second, "IC" in third] == [True, True, True]
