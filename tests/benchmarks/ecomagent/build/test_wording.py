"""Words for a plan, by templates or a language model, and what the gates find wrong with them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from scripted import Scripted

from benchmarks.ecomagent.build import llm, phrases
from benchmarks.ecomagent.build.assemble import Assembler, Dropped, Settings, Shop
from benchmarks.ecomagent.build.gates import word_faults
from benchmarks.ecomagent.build.intents import INTENTS
from benchmarks.ecomagent.build.judging import JudgeGate
from benchmarks.ecomagent.build.llm import LanguageModel, anchored
from benchmarks.ecomagent.build.plan import Plan, Words
from benchmarks.ecomagent.build.template import Templates
from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.fields import CANONICAL
from benchmarks.ecomagent.tasks import Task
from benchmarks.ecomagent.wording import find
from models.generation import Chat


def test_no_clue_names_its_value() -> None:
    raw = yaml.safe_load((Path(phrases.__file__).parent / "hints.yaml").read_text(encoding="utf-8"))
    told = [(name, str(value), clue) for name, clues in raw.items() for value, clue in clues.items()]
    assert len(told) > 800 and {name for name, _, _ in told} <= set(CANONICAL)
    for name, value, clue in told:
        assert not any(find(clue, value)), (name, value)
        assert len(clue.split()) <= 18 and len(clue) <= 140, (name, value)


def test_every_attribute_can_be_said_and_asked_about() -> None:
    assert set(phrases.phrases()) == {*CANONICAL, "average_rating", "rating_number", "price"}


@pytest.mark.parametrize(
    ("noun", "spoken"),
    [
        ("desk lamp", "a desk lamp"),
        ("action camera", "an action camera"),
        ("USB hub", "a USB hub"),
        ("SSD", "an SSD"),
        ("unisex bag", "a unisex bag"),
        ("umbrella", "an umbrella"),
        ("hour glass", "an hour glass"),
        ("8 GB stick", "an 8 GB stick"),
        ("512 GB SSD", "a 512 GB SSD"),
        ("one-piece", "a one-piece"),
    ],
)
def test_articles_go_by_the_sound(noun: str, spoken: str) -> None:
    assert phrases.with_article(noun) == spoken


def test_ordinary_words_are_written_small_and_names_are_not() -> None:
    assert phrases.small("Powder Coated") == "powder coated"
    assert phrases.small("USB Powered") == "USB powered"
    assert phrases.small("macOS and H Shape") == "macOS and H shape"


def a_plan(catalogue: Catalogue, intent: str = "product_search", skip: int = 0) -> Plan:
    """The plan of the first products of the shop that become one."""
    assembler = Assembler(Shop(catalogue, 42), Settings(), Templates())
    for product_id in catalogue.ids():
        product = catalogue.product(product_id)
        assert product is not None
        planned = assembler.plan("t1", INTENTS[intent], product, {}, random.Random(7))
        if isinstance(planned, Plan):
            if not skip:
                return planned
            skip -= 1
    raise AssertionError("no plan")


def test_the_rubric_runs_from_the_query_to_the_kind(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue, "coupon_budget")
    assert [item.id for item in plan.items] == [f"r{number}" for number in range(1, len(plan.items) + 1)]
    sources = [item.info_source for item in plan.items]
    assert sources[-2:] == ["query", "query"]
    assert sources[:-2] == sorted(sources[:-2], key=["query", "persona", "clarification"].index)
    assert [item.type for item in plan.items[-2:]] == ["budget_match", "entity_match"]


PERSONA = {"product_requirements": {}}


def good_words(plan: Plan) -> Words:
    written = Templates(50).write(plan, random.Random(1), lambda words: word_faults(plan, PERSONA, words))
    assert written.words is not None
    return written.words


def test_the_gate_finds_what_is_wrong_with_words(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue)
    words = good_words(plan)
    hinted = next(item for item in plan.items if item.id in plan.implicit)
    hidden = plan.told_by("persona")[0]
    asked = plan.told_by("clarification")[0]
    plain = plan.explicit[0]

    def faults(**changed: Any) -> str:
        return " / ".join(word_faults(plan, PERSONA, replace(words, **changed)))

    assert f"{hinted.id}: the query gives" in faults(query=f"{words.query} {hinted.expected_value}")
    assert f"{hidden.id}: the query gives" in faults(query=f"{words.query} {hidden.expected_value}")
    assert f"{asked.id}: the answer 'Hm.' does not say" in faults(replies={**words.replies, asked.id: "Hm."})
    assert f"{plain.id}: the query has no words" in faults(surfaces={**words.surfaces, plain.id: "something else"})
    assert f"{plain.id}: the query has no words" in faults(surfaces={**words.surfaces, plain.id: ""})
    assert "does not say" in faults(surfaces={**words.surfaces, plain.id: words.query.split()[0]})
    long = " ".join(words.query.split()[:19])
    assert "more than 18 words say it" in faults(surfaces={**words.surfaces, plain.id: long})
    assert "more than 150 words" in faults(query=words.query + " please" * 150)
    told = {"product_requirements": {"x": asked.expected_value}}
    assert any("the persona gives" in fault for fault in word_faults(plan, told, words))


def test_answers_come_out_by_their_own_keywords_only(tasks: list[Task]) -> None:
    for task in tasks:
        keywords = [set(slot.trigger_keywords) for slot in task.clarification_script.clarification_slots]
        assert all(keywords) and not set.intersection(*keywords)


def reply_for(plan: Plan, words: Words, **changed: Any) -> str:
    said = {"user_query": words.query, "surfaces": words.surfaces, "answers": words.replies, **changed}
    return f"Sure!\n```json\n{json.dumps(said)}\n```"


def test_a_language_model_is_told_what_the_gate_finds_wrong(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue)
    words = good_words(plan)
    secret = plan.told_by("persona")[0].expected_value
    replies = [reply_for(plan, words, user_query=f"{words.query} And {secret}!"), reply_for(plan, words)]
    writer = Scripted(lambda chat: replies.pop(0))
    written = LanguageModel(writer).write(plan, random.Random(1), lambda w: word_faults(plan, PERSONA, w))
    assert written.words is not None and written.words.query == words.query
    assert written.refused == 1
    assert f"the query gives {secret!r} away" in writer.asked[1].messages[-1].content


def test_a_language_model_that_fails_three_times_drops_the_plan(catalogue: Catalogue) -> None:
    plan, writer = a_plan(catalogue), LanguageModel(Scripted(lambda chat: "{}"))
    written = writer.write(plan, random.Random(1), lambda words: word_faults(plan, PERSONA, words))
    assert written.words is None and "the query has no words that say it" in written.problem


def test_an_answer_without_its_value_is_replaced(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue)
    asked = plan.told_by("clarification")[0]
    words = llm.words_of({"user_query": "x", "answers": {asked.id: "Something nice."}}, plan, random.Random(1))
    assert any(find(words.replies[asked.id], str(asked.expected_value)))


def test_surfaces_are_anchored_where_half_their_words_stand(catalogue: Catalogue) -> None:
    query = "It should be made of the metal that soda cans are made of."
    assert anchored("made of the metal", query) == "made of the metal"
    # Four of six words are the same; so they are in "the metal that soda cans", but the first of equals is taken.
    assert anchored("the metal of soda cans.", query) == "of the metal that soda"
    assert anchored("of rare woods", query) == ""


def test_the_prompt_holds_no_total_of_the_voucher(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue, "coupon_budget")
    asked = llm.prompt(plan, "chatty")
    assert plan.voucher is not None
    assert "total_original_price" not in asked and "price_after_voucher" not in asked and "actual_discount" not in asked
    assert f'"budget": "${plan.voucher.budget:.2f}"' in asked


def test_a_judge_may_refuse_a_task_three_times(catalogue: Catalogue, tasks: list[Task]) -> None:
    def verdict(chat: Chat) -> str:
        return '{"passed": false, "issues": ["The hint is too vague."]}'

    gate = JudgeGate(Scripted(verdict))
    assert gate.issues(tasks[0]) == ["The hint is too vague."]
    assert JudgeGate(Scripted(lambda chat: "yes")).issues(tasks[0])[0].startswith("the judge gave no verdict")
    assembler = Assembler(Shop(catalogue, 42), Settings(), Templates(), gate)
    outcome = assembler.make("t1", INTENTS["product_search"], tasks[0].target_id, {})
    assert isinstance(outcome, Dropped) and outcome.stage == "judge"
    assert outcome.task is not None and outcome.task.sample_status == "final_validation_failed"
    passing = replace(assembler, gate=JudgeGate(Scripted(lambda chat: '{"passed": true}')))
    task = passing.make("t1", INTENTS["product_search"], tasks[0].target_id, {})
    assert isinstance(task, Task) and task.judge_passed is True
