"""What models are asked in each stage, and what is made of what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted import Scripted

from benchmarks.ecomscript.build.config import EcomScriptBuildConfig
from benchmarks.ecomscript.build.mining import FRAME, MININGS, Mining, Writer
from benchmarks.ecomscript.build.run import SHIPPED
from benchmarks.ecomscript.build.stages import Made
from benchmarks.prompting import Prompts, as_chat
from models.generation import SamplingSettings

REVIEW = {"id": "r1", "product": "B1", "product_title": "Tea Kettle", "rating": 5.0, "text": "Boils fast."}
GOAL = {"id": "r1", "product": "B1", "goal": "Serve tea to guests"}
SCRIPT = {**GOAL, "steps": ["Boil water", "Steep the tea", "Pour it"]}
NEED = {**SCRIPT, "needs": [True, True, False]}
PRODUCT = {
    "id": "B1",
    "title": "Tea Kettle",
    "features": ["1.7 l"],
    "category": "Kettles",
    "description": "A kettle.",
    "price": 20.0,
}


def mining(name: str) -> Mining:
    return next(one for one in MININGS if one.name == name)


def mine(name: str, row: dict[str, Any], *said: str, **settings: Any) -> tuple[Made, list[str]]:
    """What becomes of a row when the model says these things in turn, and the last turn of each chat."""
    replies = iter(said)
    scripted = Scripted(lambda _: next(replies))
    writer = Writer(lambda: scripted, Prompts(SHIPPED), SamplingSettings())
    config = EcomScriptBuildConfig(["m"], ["r"], "g", **settings)
    made = mining(name).work(writer, config, [row])
    return made, [one.messages[-1].content for one in scripted.asked]


def told(value: Any) -> str:
    return json.dumps(value)


def test_a_goal_is_asked_for_with_five_solved_reviews() -> None:
    made, (prompt,) = mine("goals", REVIEW, 'It is {"goal": " Serve  tea "}')
    assert made.rows == [{"id": "r1", "product": "B1", "goal": "Serve tea"}] and not made.rejects
    assert prompt == "Product: Tea Kettle\nReview: Boils fast." and made.tokens > len(prompt)
    turns = as_chat(Prompts(SHIPPED).render("goals", review=REVIEW, product=PRODUCT)).messages
    assert [turn.role for turn in turns] == ["system", *["user", "assistant"] * 5, "user"]
    assert all(set(json.loads(turn.content)) == {"goal"} for turn in turns[2::2])


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("Say <<user>> no.", [("user", "Say <<user>> no.")]),
        (
            "<<system>>\nBe short.\n<<user>>\n1 + 1\n\n<<assistant>>\n2\n<<user>>\n2 + 2",
            [("system", "Be short."), ("user", "1 + 1"), ("assistant", "2"), ("user", "2 + 2")],
        ),
    ],
)
def test_a_prompt_may_be_written_in_turns(text: str, turns: list[tuple[str, str]]) -> None:
    assert [(turn.role, turn.content) for turn in as_chat(text).messages] == turns


def test_scripts_keep_to_the_number_of_steps() -> None:
    long = told({"steps": ["Boil water", "Steep the tea", "Pour it", "pour it"]})
    made, _ = mine("scripts", GOAL, long, steps=3)
    assert made.rows == [SCRIPT]  # what is said twice is one step
    made, turns = mine("scripts", GOAL, long, told({"steps": ["Boil water", "Pour it"]}), steps=2)
    assert made.rows[0]["steps"] == ["Boil water", "Pour it"]
    assert "steps: 3 of them; give 2 at most" in turns[1]


def test_needs_are_numbers_of_steps_that_there_are() -> None:
    made, turns = mine("needs", SCRIPT, told({"steps": [0, 2]}), told({"steps": [4]}), told({"steps": [2, 1, 2]}))
    assert made.rows == [NEED]
    assert "steps: there is no step 0; the script has 3" in turns[1] and "no step 4" in turns[2]
    made, (prompt,) = mine("needs", SCRIPT, told({"steps": []}))
    assert made.rows[0]["needs"] == [False] * 3
    assert prompt == "Goal: Serve tea to guests\n1. Boil water\n2. Steep the tea\n3. Pour it"


def test_intents_stand_in_the_frame_and_are_kept_without_it() -> None:
    said = [
        "PersonX wants to buy this because they want to brew tea.",
        "Because they like steam",
        "PersonX wants to buy this because they want to brew tea",
    ]
    made, (prompt,) = mine("intents", PRODUCT, told({"intents": said}), intents_per_product=2)
    assert made.rows == [{**PRODUCT, "intents": ["because they want to brew tea", "because they like steam"]}]
    assert prompt == "Product: Tea Kettle (Kettles)\n- 1.7 l\nDescription: A kettle."
    turns = as_chat(Prompts(SHIPPED).render("intents", product=PRODUCT, count=2, frame=FRAME)).messages
    assert "2 different intentions" in turns[0].content
    examples = [json.loads(turn.content)["intents"] for turn in turns[2::2]]
    assert [len(own) for own in examples] == [2, 2] and all(one.startswith(f"{FRAME} because ") for one in examples[0])
    made, turns = mine("intents", PRODUCT, told({"intents": ["It is nice"]}), told({"intents": said}), "?")
    assert made.rows == [] and made.rejects[0].reason == "it holds no JSON"
    assert 'one does not begin with "PersonX wants to buy this because"' in turns[1]
    assert "intents: 2 different ones; give 10" in turns[2]


def test_each_step_that_needs_a_purchase_has_keywords_of_its_own() -> None:
    made, prompts = mine(
        "keywords", NEED, told({"keywords": ["tea pot", "teapot", "mug"]}), "no", "no", "no", keywords=2
    )
    # A model may be asked in any order; here the last step is asked first.
    assert "Step: Steep the tea" in prompts[0]
    assert made.rows == [{**NEED, "keywords": [[], ["tea pot", "teapot"], []]}]
    assert [(one.id, one.reason, one.reply) for one in made.rejects] == [("r1#1", "it holds no JSON", "no")]


@pytest.mark.parametrize(
    ("name", "row", "said", "reason"),
    [
        ("goals", REVIEW, {"goal": ""}, "goal: empty; give the goal's text"),
        ("goals", REVIEW, {"gaol": "x"}, "goal: missing; give the goal's text"),
        ("goals", REVIEW, {"goal": "x" * 301}, "goal: longer than 300 characters; give a short text"),
        ("goals", REVIEW, ["x"], "a list where an object belongs"),
        ("scripts", GOAL, {"steps": ["Boil"]}, "steps: "),
        ("scripts", GOAL, {"steps": ["Boil", "boil"]}, "steps: all the same; give at least two"),
        ("scripts", GOAL, {"steps": "Boil"}, "steps: "),
        ("needs", SCRIPT, {"steps": ["first"]}, "steps[1]: "),
        ("keywords", NEED, {"keywords": []}, "keywords: empty; give a list of texts"),
    ],
)
def test_what_cannot_be_used_is_kept_with_the_reason(name: str, row: Any, said: Any, reason: str) -> None:
    made, turns = mine(name, row, *[told(said)] * 6)
    assert reason in made.rejects[0].reason and made.rejects[0].reply == told(said)
    assert len(turns) in (3, 6)  # asked, and repaired twice


def test_a_step_without_need_asks_nobody() -> None:
    made, turns = mine("keywords", {**SCRIPT, "needs": [False] * 3})
    assert turns == [] and made.rows[0]["keywords"] == [[], [], []]


def test_every_prompt_has_a_stage_and_a_digest_that_follows_its_text(tmp_path: Path) -> None:
    shipped = Prompts(SHIPPED)
    names = {path.stem for path in SHIPPED.glob("*.jinja")}
    assert names == {one.name for one in MININGS} | {"product"}
    # A changed part changes the digest of what includes it, and of nothing else.
    (tmp_path / "product.jinja").write_text("{{ product.title }}", encoding="utf-8")
    own = Prompts(SHIPPED, str(tmp_path))
    changed = {name for name in names if own.digest_of(name) != shipped.digest_of(name)}
    assert changed == {"product", "intents"}
    with pytest.raises(ValueError, match="TemplateNotFound"):
        own.digest_of("none")
