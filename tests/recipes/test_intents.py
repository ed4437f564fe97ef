"""Purchase intents: read from every kind of file, kept apart from what is judged, made into pairs, shown beside."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recipes.base import Product
from recipes.holistic_verify import HOLISTIC_VERIFY, HolisticRecord
from recipes.intents.beside import by_product, read_beside, with_known
from recipes.intents.judgment import INTENTS, IntentRecord
from recipes.intents.leaks import find_leaks
from recipes.intents.pairs import drawn, make_pairs, shuffled
from recipes.intents.reading import Filters, read_intents
from recipes.intents.sources import of_one
from recipes.judgments import JUDGMENTS, get_judgment
from recipes.reading import read_records
from recipes.sample.build import split_goals
from recipes.step_product import STEP_PRODUCT, StepProductRecord

A, B = "USB Cable, 2 m", "HDMI Cable"
BOUGHT = "PersonX bought a product of Item A and a product of Item B because "


def write_csv(path: Path, rows: list[Mapping[str, Any]]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def write_lines(path: Path, rows: list[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def known(title: str, intent: str, label: int = 1) -> IntentRecord:
    return IntentRecord(id=f"{title} {intent}", product=Product(title=title), intent=intent, label=label)


def many(products: int, each: int) -> list[IntentRecord]:
    return [known(f"p{n}", f"because of {n}.{k}") for n in range(products) for k in range(each)]


def told(records: list[IntentRecord]) -> list[tuple[str, str, int | None]]:
    return [(one.product.title, one.intent, one.label) for one in records]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOUGHT + 'they both are a type of "cable".', 'because it is a type of "cable".'),
        (BOUGHT + "they are both used for work", "because it is used for work."),
        (BOUGHT + "they are created by Belkin.", "because it is created by Belkin."),
        ("because they could both be worn.", "because it could be worn."),
        (BOUGHT.replace("because ", "as a result, ") + "the person will", "so that, as a result, the person will."),
        (BOUGHT + "Item A protects Item B.", None),
        ("", None),
    ],
)
def test_what_is_said_of_two_products_is_said_of_one(text: str, expected: str | None) -> None:
    assert of_one(text) == expected


def test_folkscope_is_read_with_its_scores_as_filters(tmp_path: Path) -> None:
    row = {"item_a_id": "1", "item_b_id": "2", "item_a_name": A, "item_b_name": B, "relation": "isA"}
    rows = [
        {**row, "assertion": BOUGHT + "they both are a type of cable.", "plausibility": "0.9", "typicality": "0.8"},
        {**row, "assertion": BOUGHT + "they both have a plug.", "plausibility": "0.4", "typicality": "0.9"},
        {**row, "assertion": BOUGHT + "they both are long.", "plausibility": "", "typicality": "0.9"},
        {**row, "assertion": BOUGHT + "Item B fits Item A.", "plausibility": "0.9", "typicality": "0.9"},
    ]
    path = write_csv(tmp_path / "folkscope.csv", rows)
    found, skipped = read_intents([path], Filters(min_plausibility=0.5))
    assert told(found) == [(A, "because it is a type of cable.", 1), (B, "because it is a type of cable.", 1)]
    assert (found[0].relation, found[0].typicality) == ("isA", 0.8)
    assert skipped == {
        "of plausibility below 0.5": 2,
        "without plausibility": 2,
        "intents that are empty or set the two products against each other": 1,
    }
    assert len(read_intents([path])[0]) == 6
    with pytest.raises(ValueError, match=r"no purchase intent is left \(.*of typicality below 1"):
        read_intents([path], Filters(min_typicality=1))


@pytest.mark.parametrize(
    ("score", "why"),
    [
        ("nan", "without plausibility"),
        ("NaN", "without plausibility"),
        ("inf", "plausibility: Input should be"),
    ],
)
def test_a_score_that_is_no_number_passes_no_filter(tmp_path: Path, score: str, why: str) -> None:
    row = {"item_a_name": A, "item_b_name": B, "relation": "isA", "assertion": BOUGHT + "they both are long."}
    path = write_csv(tmp_path / "folkscope.csv", [{**row, "plausibility": score}])
    with pytest.raises(ValueError, match=rf"no purchase intent is left \(2 {why}"):
        read_intents([path], Filters(min_plausibility=0.5))
    own = {"id": "1", "product.title": A, "intent": "because it is long", "plausibility": score}
    with pytest.raises(ValueError, match=r"own\.csv:1: plausibility: Input should be a finite number"):
        read_intents([write_csv(tmp_path / "own.csv", [own])])


def test_mind_is_read_by_its_first_sentence_and_its_own_filter(tmp_path: Path) -> None:
    said = "The potential co-buy intention for these two products could be that they are both cables. One is long."
    row = {"id_a": "1", "id_b": "2", "Product_a": A, "Product_b": B, "Intention": said, "Relation": "isA", "tail": ""}
    path = write_csv(tmp_path / "mind.csv", [{**row, "Agreement": "Yes. Why not"}, {**row, "Agreement": "No.\n\nThey"}])
    found, skipped = read_intents([path])
    assert told(found) == [(A, "because it is cables.", 1), (B, "because it is cables.", 1)]
    assert skipped == {"rows that MIND's own filter does not agree with": 1}


def intentionqa(**changes: Any) -> dict[str, Any]:
    options = {"A": "because they both are a manner of style.", "B": "because they both are cables.", "C": "-1"}
    row = {"id": "FS_1", "item_a_name": A, "item_b_name": B, "relation": "isA", "typicality": 0.6}
    return {**row, "assertion": BOUGHT + "they both are cables.", "gold_ind": "B", "options": options, **changes}


def test_intentionqa_s_wrong_options_are_wrong_pairs(tmp_path: Path) -> None:
    other = intentionqa(assertion=BOUGHT + "they both are a manner of style.", gold_ind="A", item_b_name="Ring")
    found, skipped = read_intents([write_lines(tmp_path / "task1.jsonl", [intentionqa(), other])])
    right = [one for one in told(found) if one[2] == 1]
    assert {(title, intent) for title, intent, _ in right} == {
        (A, "because it is cables."),
        (B, "because it is cables."),
        (A, "because it is a manner of style."),
        ("Ring", "because it is a manner of style."),
    }
    # Wrong for A in one item, right in the other.
    assert (A, "because it is a manner of style.", 0) not in told(found)
    assert (B, "because it is a manner of style.", 0) in told(found)
    assert skipped["called wrong that are right elsewhere"] == 2
    del (unscored := intentionqa())["typicality"]
    assert told(read_intents([write_lines(tmp_path / "unscored.jsonl", [unscored])])[0]) == told(
        read_intents([write_lines(tmp_path / "scored.jsonl", [intentionqa()])])[0]
    )
    task2 = write_lines(tmp_path / "task2.jsonl", [intentionqa(distractors_product=["x"])])
    with pytest.raises(ValueError, match=r"task2\.jsonl:1: this is IntentionQA's task 2"):
        read_intents([task2])


def test_faults_of_our_own_format_name_file_line_and_field(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "product": {"title": A}, "intent": "because it is long"},
        {"id": "1", "product": {}, "intent": 3},
    ]
    path = write_lines(tmp_path / "own.jsonl", rows)
    with pytest.raises(ValueError) as raised:
        read_intents([path])
    said = str(raised.value)
    assert f"{path}:2: product.title: missing; give the product's name" in said
    assert f"{path}:2: intent: the number 3 where text belongs" in said
    assert f"{path}:2: id: '1' is the id of line 1 too" in said
    assert told(read_intents([write_lines(tmp_path / "one.jsonl", rows[:1])])[0]) == [(A, "because it is long", 1)]
    with pytest.raises(ValueError, match=r"nowhere\.jsonl: no such file"):
        read_intents([str(tmp_path / "nowhere.jsonl")])


def test_the_sample_tells_of_its_training_products_only() -> None:
    found, _ = read_intents(["sample:train"])
    held_out = {
        p.title for s in ("validation", "test") for g in split_goals()[s] for step in g.steps for p in step.products
    }
    assert len(found) > 2000 and not {one.product.title for one in found} & held_out
    judged = {name: read_records(STEP_PRODUCT, f"sample:{name}") for name in ("validation", "test")}
    assert not find_leaks(found, judged).sentence()
    with pytest.raises(ValueError, match="intents of held-out products would give answers away"):
        read_intents(["sample:test"])


def test_leaks_name_products_and_intents_of_every_judgment() -> None:
    step = StepProductRecord(
        id="1",
        goal="PersonX wants to buy a product because it is a type of cable.",
        step="Buy",
        product={"title": "Ring!"},
    )
    plan = HolisticRecord(id="2", goal="Wire a house", script=[{"step": "Pull", "products": [{"title": "hdmi cable"}]}])
    facts = [known("RING", "because it shines"), known(B, "for sound"), known(A, "because it is a type of Cable")]
    leaks = find_leaks([*facts, known(A, "because it is long")], {"test.jsonl": [step], "plans.jsonl": [plan]})
    assert leaks.products == {"RING": "test.jsonl", B: "plans.jsonl"}
    assert leaks.intents == {"because it is a type of Cable": "test.jsonl"}
    assert told(leaks.clean) == [(A, "because it is long", 1)]
    assert (
        "2 products are also in what is to be judged: 'RING' (test.jsonl); 'HDMI Cable' (plans.jsonl)"
        in leaks.sentence()
    )


def test_wrong_pairs_are_the_source_s_first_and_then_intents_of_other_products() -> None:
    facts = [*many(10, 3), known("p1", "because it is wrong", 0)]
    own = {(one.product.title, one.intent) for one in facts if one.label == 1}
    pairs = make_pairs(facts, 2.0)
    wrong = [one for one in pairs if one.label == 0]
    assert (len(pairs), len(wrong)) == (90, 60)
    assert len({one.id for one in pairs}) == 90
    assert sum(one.intent == "because it is wrong" for one in wrong) == 1
    assert not {(one.product.title, one.intent) for one in wrong} & own
    assert make_pairs(facts, 2.0) == pairs != make_pairs(facts, 2.0, seed=1)
    assert len(make_pairs(facts, 0.1)) == 33
    with pytest.raises(ValueError, match="wrong pairs need the intents of others"):
        make_pairs(many(1, 3), 1.0)


def test_a_limit_draws_right_intents_and_keeps_the_wrong_ones_of_their_products() -> None:
    facts = [*many(10, 3), *(known(f"p{n}", "because it is wrong", 0) for n in range(10))]
    some = drawn(facts, 4)
    right = [one for one in some if one.label == 1]
    assert len(right) == 4
    assert {one.product.title for one in some if one.label == 0} == {one.product.title for one in right}
    assert drawn(facts, 4) == some != drawn(facts, 4, seed=1)
    assert drawn(facts, 30) == drawn(facts, None) == facts


def test_hard_wrong_pairs_are_near_and_not_too_near() -> None:
    angles = {"because of 0.0": 0.0, "because of 1.0": 0.1, "because of 2.0": 1.0, "because of 3.0": 2.0}

    def embed(texts: Any) -> Any:
        return np.array([[np.cos(angles[text]), np.sin(angles[text])] for text in texts], np.float32)

    pairs = make_pairs(many(4, 1), 1.0, hard=1.0, embed=embed)
    taken = {one.product.title: one.intent for one in pairs if one.label == 0}
    # p1's intent (0.1 rad away) says p0's in other words; p2's (1 rad) is the nearest of the others.
    assert taken == {
        "p0": "because of 2.0",
        "p1": "because of 2.0",
        "p2": "because of 1.0",
        "p3": "because of 2.0",
    }
    assert {one.meta["kind"] for one in pairs if one.meta} == {"hard"}


def test_the_control_keeps_every_count_and_no_pair() -> None:
    facts = [
        *many(7, 2),
        *(known("big", f"because big {k}") for k in range(5)),
        known("p1", "wrong", 0),
        known("p2", "no", 0),
    ]
    control = shuffled(facts)
    for label in (0, 1):
        before, after = ([one for one in rows if one.label == label] for rows in (facts, control))
        assert sorted(one.product.title for one in before) == sorted(one.product.title for one in after)
        assert sorted(one.intent for one in before) == sorted(one.intent for one in after)
        assert not {t[:2] for t in told(before)} & {t[:2] for t in told(after)}
    assert shuffled(facts) == control != shuffled(facts, 1)


def test_an_intent_reads_as_written() -> None:
    record = known(A, "because it is long")
    assert INTENTS.render(record, "plain").text == "Intent: because it is long\nProduct: USB Cable, 2 m\n"
    assert INTENTS.render(record, "instruction").text.endswith("for this reason? Answer Yes or No.")


def test_intents_stand_beside_products_up_to_a_number_and_go_first() -> None:
    product = {"title": A, "features": ["black"], "intents": ["because it is long.", "to charge", "for travel"]}
    record = StepProductRecord(id="1", goal="g", step="s", product=product)
    beside = STEP_PRODUCT.with_intents(2)
    assert beside.template_version == "step_product-1+intents2"
    line = "Product: USB Cable, 2 m - black. Purchase intents: because it is long; to charge\n"
    assert beside.parts(record)[-1] == line
    assert STEP_PRODUCT.parts(record)[-1] == "Product: USB Cable, 2 m - black\n"
    forms = [beside.parts(form)[-1] for form in beside.shorter(record)]
    assert forms[0] == line and forms[-2:] == ["Product: USB Cable, 2 m - black\n", "Product: USB Cable, 2 m\n"]
    plan = HolisticRecord(id="2", goal="g", script=[{"step": "s", "products": [product, {"title": B}]}])
    assert HOLISTIC_VERIFY.with_intents(1).parts(plan)[-1] == (
        "Plan:\n1. s\n   - USB Cable, 2 m - black. Purchase intents: because it is long\n   - HDMI Cable\n"
    )
    *_, least = HOLISTIC_VERIFY.with_intents(1).shorter(plan)
    assert "Purchase" not in HOLISTIC_VERIFY.with_intents(1).parts(least)[-1]


def test_a_template_says_how_many_intents_its_judge_reads() -> None:
    for name, judgment in JUDGMENTS.items():
        beside = judgment.with_intents(3)
        assert get_judgment(name, beside.template_version).template_version == beside.template_version
        assert get_judgment(name, judgment.template_version) is judgment


def test_known_intents_reach_the_products_and_some_records_are_kept_without() -> None:
    facts = by_product([known("usb cable 2 m", "because it is long"), known(A, "wrong", 0)])
    own = {"title": A, "intents": ["mine"]}
    plan = HolisticRecord(id="1", goal="g", script=[{"step": "s", "products": [{"title": A}, {"title": B}, own]}])
    (shown,) = with_known([plan], facts)
    assert [one.intents for one in shown.script[0].products] == [("because it is long",), (), ("mine",)]
    records = [StepProductRecord(id=str(n), goal="g", step="s", product={"title": A}) for n in range(1000)]
    told_of = sum(bool(one.product.intents) for one in with_known(records, facts, 0.3))
    assert 650 < told_of < 750


def test_intents_are_not_shown_to_judges_that_do_not_read_them_nor_where_they_say_what_is_judged(
    tmp_path: Path,
) -> None:
    record = StepProductRecord(id="1", goal="Buy what is a long cable", step="s", product={"title": A})
    path = write_lines(
        tmp_path / "i.jsonl", [{"id": "1", "product": {"title": A}, "intent": "because is a long cable"}]
    )
    with pytest.raises(ValueError, match="was not taught with purchase intents"):
        read_beside(STEP_PRODUCT, [path], [record])
    with pytest.raises(ValueError, match="1 say what is to be judged, first 'because is a long cable'"):
        read_beside(STEP_PRODUCT.with_intents(2), [path], [record])
