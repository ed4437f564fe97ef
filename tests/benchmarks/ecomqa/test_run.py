"""A whole evaluation with scripted models: who grades, what is counted, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from ecomqa_models import Scripted, answer, lines
from ecomqa_questions import ROWS, write

from benchmarks.ecomqa import prepare, run
from benchmarks.ecomqa.config import ConfidenceConfig, EcomQAConfig, GradingConfig, RagConfig
from benchmarks.ecomqa.judges import PROMPTS
from models.generation import Completion


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
