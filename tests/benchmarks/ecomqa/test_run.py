"""A whole evaluation with scripted models: who grades, what is counted, and what is not asked again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from ecomqa_models import Scripted
from ecomqa_questions import ROWS, rows, write

from benchmarks.ecomqa import prepare, run
from benchmarks.ecomqa.config import ConfidenceConfig, EcomQAConfig, GradingConfig, RagConfig
from benchmarks.ecomqa.judges import PROMPTS
from models.generation import Completion

RIGHT = {
    "个性化偏好": "B",
    "用户评论": "正确",
    "帐篷": "怎么买",
    "牛皮腰带": "相关",  # wrong
    "冰柜": "否",
    "户外餐具": "野餐用品,急救用品（器械）",
    "硅胶勺": "儿童",
    "麗江": "抱歉，我不知道",  # not attempted
    "创立年份": "一五年",  # right in other words
    "隔热": "",  # nothing
    "车载手机架": "车用支架",
    "纬度列表": "功能和规格",  # two at once: cannot be read
}


def answer(system: str, user: str) -> str:
    return next(text for sign, text in RIGHT.items() if sign in user)


def judge(says: str) -> Callable[[str, str], str]:
    """A judge that says one thing of the open answer and of the unclear one, and A of all others."""
    return lambda system, user: says if "创立年份" in user or "纬度列表" in user else "A"


@pytest.fixture
def cast(monkeypatch: pytest.MonkeyPatch) -> dict[str, Scripted]:
    """Models by reference; a test may change them."""
    models = {
        "m": Scripted("m", answer),
        "yes": Scripted("yes", judge("A")),
        "no": Scripted("no", judge("评分：B")),
        "none": Scripted("none", judge("C")),
        "odd": Scripted("odd", judge("?")),
        "also": Scripted("yes", judge("A")),
        "strange": Scripted("odd", judge("?")),
    }
    for reference in ("also", "strange"):  # of the name of others, at other servers
        models[reference].facts |= {"server": reference}

    def find(reference: str, *rest: Any) -> Any:
        return models[reference].found()

    monkeypatch.setattr(prepare, "find_generator", find)
    return models


@pytest.fixture
def config(tmp_path: Path) -> EcomQAConfig:
    data = write(tmp_path / "questions.jsonl", rows())
    return EcomQAConfig(data=data, checkpoint="m", out=str(tmp_path / "out"), resamples=50, threads=1)


def lines(config: EcomQAConfig, name: str = "predictions") -> dict[str, Any]:
    """Graded lines by sub-concept (the second of CC and RLC as pick and late), in the order of the file."""
    found: dict[str, Any] = {}
    for text in (Path(str(config.out)) / f"{name}.jsonl").read_text("utf-8").splitlines():
        line = json.loads(text)
        found[{"CC": "pick", "RLC": "late"}[line["task"]] if line["task"] in found else line["task"]] = line
    return found


def test_rules_alone_grade_everything_and_say_so(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    results = run.evaluate(config)
    graded = lines(config)
    assert {name: line["grade"] for name, line in graded.items()} == {
        "IC": "correct",
        "IDC": "not_attempted",
        "CC": "correct",
        "pick": "correct",
        "BC": "wrong",
        "AC": "correct",
        "SC": "not_attempted",
        "ITC": "correct",
        "RVC": "correct",
        "RLC": "wrong",
        "late": "wrong",
        "PC": "correct",
    }
    assert results["grading"]["by"] == {"rules": 11, "no_answer": 1}
    assert results["grading"]["unparsed"] == {"rules": 1}
    assert graded["late"]["how"] == "no_vote"
    # Seven sub-concepts are right throughout or half so: IC CC AC ITC RVC PC, none of the other four.
    assert results["average"]["value"] == pytest.approx(100 * 6 / 10)
    assert results["all"]["not_attempted"] == 2
    assert results["sub_concepts"]["CC"]["n"] == 2
    assert results["sub_concepts"]["RVC"]["baseline"]["says"] == "always 正确"
    assert results["answers"]["empty"] == 1


def test_a_panel_grades_open_forms_and_what_rules_cannot_read(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    results = run.evaluate(replace(config, judges="rules,yes,no,also"))
    graded = lines(config)
    for name in ("BC", "late"):
        assert (graded[name]["grade"], graded[name]["by"], graded[name]["how"]) == ("correct", "panel", "majority")
        assert [vote["grade"] for vote in graded[name]["votes"]] == ["correct", "wrong", "correct"]
    assert graded["BC"]["votes"][1] == {"judge": "no", "grade": "wrong", "text": "评分：B"}
    assert (graded["RLC"]["grade"], graded["RLC"]["by"]) == ("wrong", "rules")  # whatever the judges say
    assert graded["RLC"]["panel"] == {"grade": "correct", "how": "unanimous"}
    assert (graded["IDC"]["by"], graded["IDC"]["votes"]) == ("no_answer", [])
    found = results["grading"]
    assert found["judges"] == ["yes#1", "no", "yes#2"]
    assert found["by"] == {"rules": 9, "panel": 2, "no_answer": 1}
    assert found["by_form"] == {"closed": {"rules": 9, "panel": 1}, "open": {"panel": 1, "no_answer": 1}}
    assert found["how"] == {"unanimous": 9, "majority": 2}
    # Rules and panel on the ten closed answers but the unread one: they differ on RLC and SC.
    assert (found["rules_and_panel"]["questions"], found["rules_and_panel"]["share"]) == (9, pytest.approx(7 / 9))
    assert found["agreement"]["questions"] == 11


def test_without_rules_the_panel_grades_all(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    run.evaluate(replace(config, judges="yes,no,none"))
    graded = lines(config)
    assert (graded["RLC"]["grade"], graded["RLC"]["by"]) == ("correct", "panel")
    assert (graded["BC"]["grade"], graded["BC"]["how"]) == ("wrong", "split")
    assert graded["RLC"]["rules"]["grade"] == "wrong"


def test_splits_and_unreadable_votes_follow_the_settings(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    results = run.evaluate(replace(config, judges="yes,no,none", grading=GradingConfig(split="first")))
    assert lines(config)["BC"]["grade"] == "correct"
    assert results["grading"]["how"]["split"] == 2
    odd = replace(config, judges="yes,odd,strange", out=f"{config.out}-odd")
    results = run.evaluate(odd)
    assert lines(odd)["BC"]["grade"] == "correct"
    assert results["grading"]["unparsed"]["odd#1"] == 2
    run.evaluate(replace(odd, grading=GradingConfig(unparsed="wrong")))
    assert lines(odd)["BC"]["grade"] == "wrong"


def test_one_model_judges_under_three_prompts(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    results = run.evaluate(replace(config, judges="rules,yes"))
    assert results["grading"]["judges"] == [f"yes/{name}" for name in PROMPTS]
    assert {chat.messages[0].content for chat in cast["yes"].asked} == {prompt.system for prompt in PROMPTS.values()}
    one = replace(config, judges="rules,yes", grading=GradingConfig(prompts="examples"), out=f"{config.out}-one")
    assert run.evaluate(one)["grading"]["judges"] == ["yes"]


def test_judges_can_be_guided(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    guided = replace(config, judges="rules,yes", grading=GradingConfig(guided=True))
    panel = prepare.prepare(guided, torch.device("cpu")).panel
    assert [one.settings.grammar for one in panel] == [prompt.grammar for prompt in PROMPTS.values()]
    assert {one.settings.thinking for one in panel} == {False}
    for judge_name in ("vllm:m", "http://host/v1#m"):
        with pytest.raises(ValueError, match="local checkpoints alone can be guided"):
            prepare.prepare(replace(guided, judges=f"rules,{judge_name}"), torch.device("cpu"))


def test_a_panel_can_be_asked_only_where_it_decides(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    grading = GradingConfig(prompts="standard", panel="open")
    run.evaluate(replace(config, judges="rules,yes", grading=grading))
    assert len(cast["yes"].asked) == 2


def test_judges_come_later_and_nothing_is_asked_twice(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    run.evaluate(config)
    asked = len(cast["m"].asked)
    assert asked == 12
    results = run.evaluate(replace(config, judges="rules,yes,no,none"))
    assert len(cast["m"].asked) == asked
    assert results["cost"]["answers"]["texts"] == 12  # the cost of the run that asked
    assert results["cost"]["votes"]["texts"] == 33
    run.evaluate(replace(config, judges="rules,yes,no,none"))
    run.evaluate(replace(config, judges="yes,no,none", grading=GradingConfig(split="correct")))
    assert len(cast["yes"].asked) == 11
    assert not run.evaluate(config)["grading"]["judges"]


def test_another_way_of_answering_is_refused_in_the_same_folder(
    cast: dict[str, Scripted], config: EcomQAConfig
) -> None:
    run.evaluate(config)
    with pytest.raises(ValueError, match=r"holds another evaluation: settings\.max_tokens is 512 there and 64 here"):
        run.evaluate(replace(config, max_tokens=64))
    run.evaluate(replace(config, max_tokens=64, overwrite=True))
    assert len(cast["m"].asked) == 24


def test_a_model_that_judges_itself_is_told(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    results = run.evaluate(replace(config, judges="m,yes", grading=GradingConfig(prompts="standard")))
    assert [judge["self"] for judge in results["judges"]] == [True, False]
    # Two servers may call their models alike: neither is the other, and both are asked.
    two = replace(config, checkpoint="yes", judges="yes,also", out=f"{config.out}-two")
    results = run.evaluate(replace(two, grading=GradingConfig(prompts="standard")))
    assert [judge["self"] for judge in results["judges"]] == [True, False]
    assert (len(cast["yes"].asked), len(cast["also"].asked)) == (11 + 12 + 12, 12)


def test_traces_are_parted_and_unfinished_ones_counted(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    cast["m"].reply = lambda system, user: (
        "<think>或许A</think>\nB" if "偏好" in user else "<think>" + "想" * 60 if "评论" in user else "不知道"
    )
    results = run.evaluate(replace(config, max_tokens=40))
    graded = lines(config)
    assert (graded["PC"]["answer"], graded["PC"]["trace"], graded["PC"]["grade"]) == ("B", "或许A", "correct")
    assert (graded["RVC"]["answer"], graded["RVC"]["grade"], graded["RVC"]["by"]) == ("", "not_attempted", "no_answer")
    assert (results["answers"]["traces"], results["answers"]["unfinished_traces"], results["answers"]["cut"]) == (
        2,
        1,
        1,
    )


def test_thinking_is_sorted_by_the_judges(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    cast["m"].reply = lambda system, user: f"<think>想{len(user)}</think>\n{answer(system, user)}"
    for name, letter in (("yes", "A"), ("no", "B"), ("none", "A")):
        cast[name].reply = lambda system, user, letter=letter: f"理由。\n行为：{letter}" if "思考过程" in user else "A"
    results = run.evaluate(replace(config, judges="yes,no,none", behaviour=True))
    assert (results["thinking"]["traces"], results["thinking"]["counts"]["A"]) == (12, 12)
    assert results["thinking"]["shares"]["A"] == 100
    kept = (Path(str(config.out)) / "behaviour.jsonl").read_text("utf-8").splitlines()
    assert json.loads(kept[0])["votes"] == ["A", "B", "A"]


def test_a_model_without_traces_gets_a_message(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    results = run.evaluate(replace(config, judges="yes", behaviour=True))
    assert results["thinking"]["message"].startswith("m: none of its 12 answers holds a reasoning trace")
    with pytest.raises(ValueError, match="thinking is sorted by model judges; name some with --judges"):
        run.evaluate(replace(config, behaviour=True))


def test_confidence_is_asked_for_and_calibrated(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    stated = {"冰柜": "否\n置信度：95", "车载": "支架\n置信度：95", "创立": "2015年\n置信度：很高"}

    def reply(system: str, user: str) -> str:
        if "置信度" not in system:
            return answer(system, user)
        return next(text for sign, text in stated.items() if sign in user)

    cast["m"].reply = reply
    results = run.evaluate(replace(config, confidence=ConfidenceConfig(ask=True)))
    found = results["confidence"]["calibration"]
    assert (found["CC"]["n"], found["CC"]["accuracy"], found["CC"]["ece"]) == (2, 50, pytest.approx(45))
    assert (found["BC"]["n"], found["BC"]["unread"], found["BC"]["ece"]) == (0, 1, None)
    graded = lines(config, "predictions-confidence")
    assert (graded["CC"]["answer"], graded["CC"]["confidence"]) == ("否", 95)
    assert (graded["BC"]["confidence"], graded["BC"]["grade"]) == (None, "correct")
    assert "confidence" not in lines(config)["CC"]


def test_retrieval_stands_beside_the_plain_answers(
    cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path
) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "brands.txt").write_text("某牌的创立年份是2015年。\n", encoding="utf-8")
    cast["m"].reply = lambda system, user: "2015年" if "2015年" in user else answer(system, user)
    results = run.evaluate(replace(config, rag=RagConfig(corpus=str(tmp_path / "corpus"))))
    gain = results["rag"]["gain"]
    assert (gain["BC"]["plain"], gain["BC"]["rag"], gain["BC"]["absolute"]) == (0, 100, 100)
    graded = lines(config, "predictions-rag")
    assert set(graded) == {"CC", "pick", "BC"}
    assert len(graded["BC"]["retrieved"]) == 1
    assert str(tmp_path) not in json.dumps(results)


def test_questions_that_do_not_fit_are_refused_shortened_or_not_attempted(
    cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path
) -> None:
    shots = "#### 以下是一些示例：\n***query***：甲\n***答案***：乙\n" * 3
    long = {**ROWS["BC"], "task": "BC", "system_prompt": f"回答短语。\n{shots}让我们开始吧！\n"}
    longer = {**ROWS["RVC"], "task": "RVC", "prompt": ROWS["RVC"]["prompt"] * 5}
    config = replace(config, data=write(tmp_path / "long.jsonl", [long, longer, {**ROWS["PC"], "task": "PC"}]))
    cast["m"].context = 120 + 20
    config = replace(config, max_tokens=20)
    with pytest.raises(
        ValueError, match=r"2 of 3 questions do not fit the 140 tokens of m together with 20 .*no_shots"
    ):
        run.evaluate(config)
    results = run.evaluate(replace(config, too_long="no_shots", overwrite=True))
    graded = lines(config)
    assert (graded["BC"]["shots"], graded["BC"]["grade"]) == (False, "wrong")
    assert (graded["RVC"]["finish"], graded["RVC"]["grade"]) == ("too_long", "not_attempted")
    assert (results["answers"]["too_long"], results["answers"]["without_shots"]) == (1, 1)
    asked = next(chat for chat in cast["m"].asked if "创立年份" in chat.messages[-1].content)
    assert asked.messages[0].content == "回答短语。\n让我们开始吧！\n"
    results = run.evaluate(replace(config, too_long="not_attempted", overwrite=True))
    assert results["answers"]["too_long"] == 2


def test_examples_can_be_left_out(cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path) -> None:
    from benchmarks.ecomqa.answering import without_shots

    system = "任务\n#### 以下是一些示例：\n***query***：甲\n***答案***：乙\n\n说明：\n1.只列类目\n让我们开始吧！\n"
    assert without_shots(system) == "任务\n说明：\n1.只列类目\n让我们开始吧！\n"
    assert without_shots('任务\n#### 以下是一些示例：\n{"断": "在这') == "任务"
    assert without_shots("任务\n") == "任务\n"
    data = write(tmp_path / "one.jsonl", [{**ROWS["BC"], "task": "BC", "system_prompt": system}])
    run.evaluate(replace(config, data=data, shots=False))
    assert "甲" not in cast["m"].asked[0].messages[0].content


def test_two_runs_are_compared_question_by_question(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    run.evaluate(config)
    cast["m"].reply = lambda system, user: "相关" if "牛皮" in user else "不知道"
    worse = replace(config, out=f"{config.out}-worse", compare=str(config.out), seed=1)
    found = run.evaluate(worse)["comparison"]
    assert (found["n"], found["first_only"], found["second_only"], found["with"]) == (12, 0, 7, "m")
    assert found["p"] == pytest.approx(2 / 2**7)
    cast["m"].asked.clear()
    with pytest.raises(ValueError, match="holds no finished evaluation of ecomqa"):
        run.evaluate(replace(worse, compare=f"{config.out}-none", overwrite=True))
    other = write(Path(config.data).with_name("other.jsonl"), [{**ROWS["BC"], "task": "BC", "prompt": "别的问题？"}])
    with pytest.raises(ValueError, match="has other questions"):
        run.evaluate(replace(config, data=other, compare=str(config.out), out=f"{config.out}-other"))
    assert not cast["m"].asked  # told before anybody is asked


def test_sub_concepts_and_a_limit_choose_questions(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    results = run.evaluate(replace(config, tasks="cc, BC", limit=1))
    assert list(lines(config)) == ["CC", "BC"]
    assert not results["complete"]
    with pytest.raises(ValueError, match="tasks: 'XX' is no sub-concept; there are IC, "):
        run.evaluate(replace(config, tasks="XX"))
    with pytest.raises(ValueError, match=r"grading\.prompts: 'fair' is not there; choose among standard"):
        run.evaluate(replace(config, judges="yes", grading=GradingConfig(prompts="fair")))
    with pytest.raises(ValueError, match="nobody grades"):
        run.evaluate(replace(config, judges=" "))


@pytest.mark.parametrize("spoil", [lambda raw: raw[:-40], lambda raw: raw[:200] + b"\n\xff" + raw[200:], lambda _: b""])
def test_a_file_that_was_cut_or_spoilt_is_gone_on_from(
    spoil: Callable[[bytes], bytes], cast: dict[str, Scripted], config: EcomQAConfig
) -> None:
    config = replace(config, judges="rules,yes")
    run.evaluate(config)
    folder = Path(str(config.out))
    whole = {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    for path in folder.glob("*.jsonl"):
        path.write_bytes(spoil(path.read_bytes()))
    (folder / "results.json").unlink()
    cast["m"].asked.clear()
    run.evaluate(config)
    assert {path.name: path.read_bytes() for path in folder.glob("*.jsonl")} == whole
    assert len(cast["m"].asked) <= len(rows())


def test_a_folder_has_one_writer(cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from models.folder import sole_writer\n"
        f"with sole_writer(Path({str(config.out)!r})): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout is not None and other.stdout.readline() == "held\n"
            with pytest.raises(ValueError, match="another process is writing there"):
                run.evaluate(config)
        finally:
            other.kill()
    assert not (tmp_path / "out").exists()
    assert run.evaluate(config)["all"]["n"] == 12


@pytest.mark.parametrize(
    ("judges", "prompts", "told"),
    [
        ("yes,no,yes", "", "judges: yes is named twice"),
        ("rules,yes,rules", "", "judges: rules is named twice"),
        ("yes", "standard,standard", r"grading\.prompts: standard is named twice"),
    ],
)
def test_a_judge_named_twice_is_refused(
    cast: dict[str, Scripted], config: EcomQAConfig, judges: str, prompts: str, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        run.evaluate(replace(config, judges=judges, grading=GradingConfig(prompts=prompts)))
    assert not cast["m"].asked


def test_a_sub_concept_named_twice_is_asked_once(cast: dict[str, Scripted], config: EcomQAConfig) -> None:
    assert run.evaluate(replace(config, tasks="CC,BC,cc"))["all"]["n"] == 3


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"confidence": ConfidenceConfig(ask=True, tasks="XX")}, r"confidence\.tasks: 'XX' is no sub-concept"),
        ({"confidence": ConfidenceConfig(ask=True), "tasks": "IC"}, r"confidence\.tasks: none of the questions is of"),
        ({"rag": RagConfig(corpus="sample", tasks="XX")}, r"rag\.tasks: 'XX' is no sub-concept"),
        ({"rag": RagConfig(corpus="sample", method="dense", encoder="no/such/folder")}, "no/such/folder"),
    ],
)
def test_what_variants_cannot_do_is_told_before_anybody_is_asked(
    cast: dict[str, Scripted], config: EcomQAConfig, settings: dict[str, Any], told: str
) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=told):
        run.evaluate(replace(config, **settings))
    assert not cast["m"].asked


def test_votes_belong_to_the_answer_that_they_were_cast_on(
    cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = replace(config, judges="yes", grading=GradingConfig(prompts="standard"))
    run.evaluate(config)
    path = Path(str(config.out)) / "answers.jsonl"
    answers = [json.loads(text) for text in path.read_text("utf-8").splitlines()]
    wanted = next(answer for answer in answers if answer["text"] == "一五年")
    wanted["text"] = "一六年"
    path.write_text("".join(json.dumps(one) + "\n" for one in answers), encoding="utf-8")
    cast["yes"].asked.clear()
    cast["yes"].reply = lambda system, user: "B" if "一六年" in user else "?"
    run.evaluate(config)
    # Batches of two are asked again whole: the one whose answer has changed, and its neighbour, but no other.
    assert 1 <= len(cast["yes"].asked) <= 2
    assert (lines(config)["BC"]["answer"], lines(config)["BC"]["grade"]) == ("一六年", "wrong")
    assert lines(config)["PC"]["grade"] == "correct"
    told = capsys.readouterr().err
    assert "results.json or a file that it was made of has changed" in told
    assert "1 lines are spoilt or answer something else" in told


@pytest.mark.parametrize("name", ["answers.jsonl", "votes"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda entry: [entry, {**entry, "id": "nobody"}],
        lambda entry: [{key: value for key, value in entry.items() if key != "text"}],
        lambda entry: [{key: value for key, value in entry.items() if key != "finish"}],
        lambda entry: [{**entry, "text": None}],
        lambda entry: [{**entry, "text": 5}],
        lambda entry: [entry, {"id": 5}],
    ],
)
def test_lines_of_another_form_are_asked_again(
    name: str, spoil: Callable[[dict[str, Any]], Any], cast: dict[str, Scripted], config: EcomQAConfig
) -> None:
    config = replace(config, judges="rules,yes", grading=GradingConfig(prompts="standard"), limit=1)
    run.evaluate(config)
    folder = Path(str(config.out))
    path = next(folder.glob("votes*.jsonl")) if name == "votes" else folder / name
    whole = path.read_bytes()
    first, *rest = whole.decode().splitlines()
    spoilt = [json.dumps(one, ensure_ascii=False) for one in spoil(json.loads(first))]
    path.write_text("".join(f"{line}\n" for line in [*spoilt, *rest]), encoding="utf-8")
    cast["m"].asked.clear()
    cast["yes"].asked.clear()
    run.evaluate(config)
    assert path.read_bytes() == whole
    assert len(cast["m"].asked) + len(cast["yes"].asked) <= 2
    assert not list(folder.glob("*.parts"))


@pytest.mark.parametrize("change", [lambda made: {"files": {}}, lambda made: {**made, "cost": 0} | {"files": {}}, None])
def test_results_of_another_form_are_made_again(
    change: Callable[[dict[str, Any]], Any] | None, cast: dict[str, Scripted], config: EcomQAConfig
) -> None:
    first = run.evaluate(config)
    path = Path(str(config.out)) / "results.json"
    made = json.loads(path.read_text("utf-8"))
    if change is None:
        del made["cost"]
    path.write_text(json.dumps(change(made) if change else made), encoding="utf-8")
    assert run.evaluate(config)["all"] == first["all"]
    assert len(cast["m"].asked) == 12


def test_a_comparison_is_made_again_where_the_other_run_has_changed(
    cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        run.evaluate(replace(config, out=str(tmp_path / name / "run")))
        cast["m"].reply = lambda system, user: "不知道"
    found = [run.evaluate(replace(config, compare=str(tmp_path / name / "run"))) for name in ("one", "two")]
    assert [made["comparison"]["second_only"] for made in found] == [7, 0]
    assert str(tmp_path) not in json.dumps(found)


def test_overwriting_asks_servers_anew(
    cast: dict[str, Scripted], config: EcomQAConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew = []

    def find(reference: str, *rest: Any) -> Any:
        anew.append(rest[-1])
        return cast[reference].found()

    monkeypatch.setattr(prepare, "find_generator", find)
    run.evaluate(replace(config, judges="yes"))
    run.evaluate(replace(config, judges="yes", overwrite=True))
    assert anew == [False, False, True, True]


class Served(Scripted):
    """Finds chats of more than ``room`` characters too long, and says so only when it is asked."""

    room = 140

    def generate(self, chats: Any, settings: Any, batches: Any = None) -> Any:
        for row, completion in super().generate(chats, settings, batches):
            long = completion.prompt_tokens > self.room
            yield row, Completion("", 0, 0, "too_long") if long else completion


def test_what_a_server_finds_too_long_is_refused_shortened_or_not_attempted(
    cast: dict[str, Scripted], config: EcomQAConfig, tmp_path: Path
) -> None:
    shots = "#### 以下是一些示例：\n***query***：甲\n***答案***：乙\n" * 3
    long = {**ROWS["BC"], "task": "BC", "system_prompt": f"回答短语。\n{shots}让我们开始吧！\n"}
    longer = {**ROWS["RVC"], "task": "RVC", "prompt": ROWS["RVC"]["prompt"] * 5}
    config = replace(config, data=write(tmp_path / "long.jsonl", [long, longer, {**ROWS["PC"], "task": "PC"}]))
    cast["m"] = Served("m", answer)
    with pytest.raises(ValueError, match=r"answers: (BC|RVC)\S* is too long for m together with 512 .*no_shots"):
        run.evaluate(config)
    results = run.evaluate(replace(config, too_long="no_shots", overwrite=True))
    graded = lines(config)
    assert (graded["BC"]["shots"], graded["BC"]["grade"]) == (False, "wrong")
    assert (graded["RVC"]["finish"], graded["RVC"]["grade"]) == ("too_long", "not_attempted")
    assert (results["answers"]["too_long"], results["answers"]["without_shots"]) == (1, 1)
    assert (results["all"]["n"], graded["PC"]["grade"]) == (3, "correct")
    results = run.evaluate(replace(config, too_long="not_attempted", overwrite=True))
    assert (results["answers"]["too_long"], results["cost"]["answers"]["texts"]) == (2, 1)
