"""Grading, against verdicts and sums worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from errands import LAMP, LAMP_LINE, Shelf

from benchmarks.asking import ATTEMPTS
from benchmarks.ecomagent.catalogue import Product, Review
from benchmarks.ecomagent.grading.agreement import agreement
from benchmarks.ecomagent.grading.attributes import attribute_match, negative_attribute
from benchmarks.ecomagent.grading.grade import NOTHING_RECOMMENDED, Grade, grade_all
from benchmarks.ecomagent.grading.judge import Question, answers, verdicts_in
from benchmarks.ecomagent.grading.lexical import entity_match, review_opinion
from benchmarks.ecomagent.grading.numbers import numeric_range
from benchmarks.ecomagent.grading.vouchers import budget_match, price_after
from benchmarks.ecomagent.tasks import RubricItem, Task, Voucher
from models.generation import Chat, Completion, SamplingSettings

TASK = Task.model_validate(LAMP_LINE)


def product(**details: str) -> Product:
    return replace(LAMP, details=details, features=())


@pytest.mark.parametrize(
    ("value", "expected", "met"),
    [
        ("Teal", "teal", True),
        ("Aluminum, Plastic", "Plastic", True),
        ("USB-C / Lightning", "USB", True),
        ("128 GB", "8 GB", False),  # "8 gb" is a part of the letters, not of the words
        ("8GB", "8 GB", True),
        ("Wi-Fi", "WiFi", True),
        ("6.70 Inches", '6.7"', True),
        ("Smartphones", "Smartphone", True),
        ("Wallet", "All", False),
        ("Fragrance Free", "Fragrance", False),
        ("Fragrance Free", "fragrance-free", True),
        ("Not waterproof", "Waterproof", False),
        ("Red, not Blue", "Red", True),
        ("No / Blue", "Blue", True),  # two options, of which the first denies nothing of the second
        ("Grey", "Gray", True),
        ("绿色", "绿", True),
    ],
)
def test_an_attribute_is_or_contains_the_value_word_by_word(value: str, expected: str, met: bool) -> None:
    verdict = attribute_match(product(Color=value), "Color", expected)
    assert (verdict.satisfied, verdict.by, verdict.evidence) == (met, "code", "details.Color")


def test_an_attribute_is_found_under_its_other_names() -> None:
    assert attribute_match(product(OS="Android 14"), "Operating System", "Android").satisfied
    verdict = attribute_match(product(**{"Connectivity technologies": "NFC"}), "Connectivity Technology", "NFC")
    assert (verdict.satisfied, verdict.evidence) == (True, "details.Connectivity technologies")


def test_a_feature_line_counts_only_where_there_is_no_detail_and_only_if_it_names_the_attribute() -> None:
    silent = replace(LAMP, details={}, features=("Goes with teal cushions", "Color: deep teal"))
    verdict = attribute_match(silent, "Color", "Teal")
    assert (verdict.satisfied, verdict.evidence, verdict.by) == (True, "features[2]", "lexical")
    assert not attribute_match(replace(silent, features=silent.features[:1]), "Color", "Teal").satisfied
    assert not attribute_match(replace(silent, details={"Color": "Red"}), "Color", "Teal").satisfied


@pytest.mark.parametrize(
    ("name", "value", "excluded", "met"),
    [
        ("Mounting Type", "Tabletop", ["wall mounted"], True),
        ("Mounting Type", "Wall Mount", ["wall mounted"], False),
        ("Mounting Type", "Ceiling Mount", ["wall mounted"], True),  # only the attribute's own word is shared
        ("Color", "Dark Blue", ["light blue"], False),  # partly the same
        ("Memory Storage Capacity", "128 GB", ["64 GB"], True),  # a unit alone is not
        ("Memory Storage Capacity", "64GB", ["64 GB"], False),
        ("Material", "Leather Free", ["leather"], True),
        ("Material", "Steel, Leather", ["plastic", "leather"], False),
        ("Finish Type", "Matte Finish", ["glossy finish"], True),
    ],
)
def test_an_excluded_value_must_clearly_differ(name: str, value: str, excluded: list[str], met: bool) -> None:
    assert negative_attribute(product(**{name: value}), name, excluded).satisfied is met


def test_what_is_not_known_does_not_show_that_it_differs_and_excluding_nothing_excludes_nothing() -> None:
    assert not negative_attribute(product(Size="L"), "Color", ["red"]).satisfied
    assert negative_attribute(product(Color="red"), "Color", []).satisfied


@pytest.mark.parametrize(
    ("field", "expected", "met"),
    [
        ("average_rating", {"min": 4.3}, True),
        ("average_rating", {"min": 4.31}, False),
        ("rating_number", {"max": 87}, True),
        ("rating_number", {"min": 88, "max": 90}, False),
        ("price", {"value": 34.5, "op": "<"}, False),
        ("price", {"value": 34.5, "op": "<="}, True),
        ("price", [30, 34.5], True),
        ("price", 34.5, True),
        ("details.Number of Items", {"min": 1200}, True),
    ],
)
def test_numbers_are_compared_as_asked(field: str, expected: Any, met: bool) -> None:
    many = replace(LAMP, details={"Number Of Items": "1,200 sheets"})
    assert numeric_range(many, field, expected).satisfied is met


def test_an_unknown_number_satisfies_nothing() -> None:
    assert not numeric_range(replace(LAMP, price=None), "price", {"max": 100}).satisfied
    assert not budget_match(replace(LAMP, price=None), 100, None).satisfied


def voucher(**fields: Any) -> Voucher:
    return Voucher.model_validate(fields)


FIXED = voucher(discount_type="fixed", threshold=30, face_value=5)
SHARE = voucher(discount_type="percentage", threshold=20, discount=0.2, cap=6)
TIERED = voucher(
    discount_type="tiered",
    active_tier=1,
    tiers=[
        {"tier": 1, "threshold": 30, "discount_type": "fixed", "face_value": 4},
        {"tier": 2, "threshold": 60, "discount_type": "percentage", "discount": 0.15, "cap": 20},
    ],
)
STACKED = voucher(
    discount_type="stacked",
    voucher_type="stacked",
    threshold=40,
    coupons=[
        {"discount_type": "percentage", "discount": 0.1, "cap": 8, "voucher_type": "platform"},
        {"discount_type": "fixed", "face_value": 3, "voucher_type": "shop", "threshold": 45},
    ],
)


@pytest.mark.parametrize(
    ("kind", "price", "after"),
    [
        (None, 34.505, "34.51"),
        (FIXED, 34.5, "29.50"),
        (FIXED, 29.99, "29.99"),  # below the threshold
        (SHARE, 25.0, "20.00"),  # 20 % are 5
        (SHARE, 50.0, "44.00"),  # 20 % would be 10, the cap is 6
        (SHARE, 20.33, "16.26"),  # 16.264
        (TIERED, 29.0, "29.00"),
        (TIERED, 59.99, "55.99"),
        (TIERED, 60.0, "51.00"),  # the second tier: 15 % are 9
        (STACKED, 39.0, "39.00"),
        (STACKED, 49.0, "44.10"),  # 10 % leave 44.10, below the second coupon's 45
        (STACKED, 60.0, "51.00"),  # 54 after the first, 51 after the second
        (STACKED, 100.0, "89.00"),  # the first is capped at 8
        (voucher(discount_type="fixed", face_value=50), 34.5, "0.00"),
    ],
)
def test_voucher_arithmetic(kind: Voucher | None, price: float, after: str) -> None:
    assert price_after(price, kind) == Decimal(after)


def test_a_budget_holds_to_the_cent() -> None:
    assert budget_match(LAMP, 29.5, FIXED).satisfied
    verdict = budget_match(LAMP, 29.49, FIXED)
    assert (verdict.satisfied, verdict.reason) == (
        False,
        "the price is 29.50 after the voucher (34.50 before), the budget 29.49",
    )


@pytest.mark.parametrize(
    ("title", "kind", "met"),
    [
        ("Zweig Foldable Reading Lamp, Teal", "reading lamps", True),
        ("Reading Clip Lamp by Zweig", "reading lamp", True),
        ("Replacement Bulb for Reading Lamp", "reading lamp", False),
        ("Phone Case with Stand", "phone", False),
        ("Phone Case with Stand", "stand", False),
        ("Phone Case with Stand", "phone case", True),
        ("Lamp for Reading", "reading lamp", False),
    ],
)
def test_a_title_names_the_kind_where_it_says_what_the_product_is(title: str, kind: str, met: bool) -> None:
    assert entity_match(replace(LAMP, title=title), [kind]).satisfied is met


def review(text: str, title: str = "") -> Review:
    return Review("B0LAMP0001", 5.0, title, text, 0, True, 0)


@pytest.mark.parametrize(
    ("text", "claim", "met"),
    [
        ("Nice. The hinges stay firm at every angle.", "the hinge stays firm at any angle", True),
        ("The hinge does not stay firm at any angle.", "the hinge stays firm at any angle", False),
        ("The hinge is firm. It stays in my bag.", "hinge stays firm", False),  # in two sentences
        ("x" * 500 + ". hinge stays firm", "hinge stays firm", False),  # behind what grading reads
    ],
)
def test_an_opinion_is_found_in_one_sentence_that_denies_as_much(text: str, claim: str, met: bool) -> None:
    assert review_opinion([review("Fine"), review(text)], claim).satisfied is met


def grade_one(products: Sequence[Product], predicted: str | None, judge: Any = None, **more: Any) -> Grade:
    shelf: Any = Shelf(*products)
    return grade_all(shelf, [TASK], [predicted], judge, **more)[0]


def test_the_target_meets_every_requirement_and_is_exact() -> None:
    grade = grade_one([LAMP], "B0LAMP0001")
    assert (grade.exact, grade.all_satisfied, grade.satisfied) == (True, True, 8)
    assert {item.item.id: item.verdict.by for item in grade.items} == {
        **{f"r{number}": "code" for number in range(1, 8)},
        "r8": "lexical",
    }


def test_another_product_that_meets_everything_is_right_too() -> None:
    grade = grade_one([replace(LAMP, id="B0LAMP0002", price=39.99)], "B0LAMP0002")
    assert (grade.exact, grade.correct) == (False, True)


def test_each_missed_requirement_is_named() -> None:
    other = replace(LAMP, id="B0LAMP0003", price=40.0, details={**LAMP.details, "Color": "Red"})
    grade = grade_one([other], "B0LAMP0003")
    assert [item.item.id for item in grade.items if not item.verdict.satisfied] == ["r4", "r7"]
    assert grade.items[6].verdict.reason == "price is 40, asked for < 40"
    assert not grade.correct


@pytest.mark.parametrize("predicted", [None, "B0NOWHERE0"])
def test_without_a_product_of_the_catalogue_nothing_is_met(predicted: str | None) -> None:
    grade = grade_one([LAMP], predicted)
    assert (grade.satisfied, grade.correct, grade.predicted_id) == (0, False, None)
    assert {item.verdict.reason for item in grade.items} == {NOTHING_RECOMMENDED}


class Scripted:
    """A judge that gives the replies it was given, in order, and keeps what it was asked."""

    name, facts = "scripted", {"model": "scripted"}

    def __init__(self, *replies: str, context: int | None = None) -> None:
        self.replies, self.asked, self.context = list(replies), list[Chat](), context

    def prompt_tokens(self, chats: Sequence[Chat]) -> list[int]:
        return [sum(len(turn.content) for turn in chat.messages) // 4 for chat in chats]

    def plan(self, chats: Sequence[Chat], settings: SamplingSettings) -> list[list[int]]:
        return [[row] for row in range(len(chats))]

    def generate(
        self, chats: Sequence[Chat], settings: SamplingSettings, batches: Any = None
    ) -> Iterator[tuple[int, Completion]]:
        assert settings.temperature == 0
        for row, chat in enumerate(chats):
            self.asked.append(chat)
            yield row, Completion(self.replies.pop(0), 5, 5, "stop")


def reply(**verdicts: Any) -> str:
    results = [{"rubric_id": name, "satisfied": met, "reasoning": "so it is"} for name, met in verdicts.items()]
    return json.dumps({"results": results})


def test_a_judge_is_asked_only_what_code_cannot_tell_and_decides_that() -> None:
    judge = Scripted(reply(r8=False))
    grade = grade_one([LAMP], "B0LAMP0001", judge)
    last = grade.items[-1]
    assert (last.verdict.satisfied, last.verdict.by, last.own, last.judge) == (False, "judge", True, False)
    assert (grade.exact, grade.all_satisfied, grade.correct) == (True, False, True)
    (chat,) = judge.asked
    asked = json.loads(chat.messages[1].content.split("Requirements:\n")[1])
    assert [item["rubric_id"] for item in asked] == ["r8"]
    assert asked[0]["field"] == "title"


def test_what_code_can_tell_stays_with_code_and_the_agreement_is_counted() -> None:
    says = {f"r{number}": number != 1 for number in range(1, 9)}
    grade = grade_one([LAMP], "B0LAMP0001", Scripted(reply(**says)), scope="all")
    assert grade.items[0].verdict.satisfied and grade.items[0].judge is False
    table = agreement([grade])
    assert (table["attribute_match"]["items"], table["attribute_match"]["agreement"]) == (5, 4 / 5)
    assert (table["all"]["items"], table["all"]["only_own_yes"], table["all"]["only_judge_yes"]) == (8, 1, 0)
    assert table["all"]["kappa"] == 0  # own says yes always: agreement is what chance gives
    assert table["entity_match"]["kappa"] is None


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("I think so.", "it holds no JSON"),
        ('{"verdict": true}', 'it has no list "results"'),
        (reply(r8=True, r99=True), "'r99' was not asked"),
        ('{"results": [{"rubric_id": "r8", "satisfied": "maybe"}]}', "r8 is neither true nor false"),
        ('{"results": []}', "no answer for r8"),
    ],
)
def test_an_unusable_reply_is_put_back_with_what_is_wrong(bad: str, problem: str) -> None:
    judge = Scripted(bad, f"Here it is:\n```json\n{reply(r8=True)}\n```")
    grade = grade_one([LAMP], "B0LAMP0001", judge)
    assert (grade.items[-1].verdict.by, grade.items[-1].judge_failed) == ("judge", False)
    assert problem in judge.asked[1].messages[-1].content


def test_a_judge_that_never_answers_is_not_a_no() -> None:
    judge = Scripted(*["?"] * ATTEMPTS)
    grade = grade_one([LAMP], "B0LAMP0001", judge)
    last = grade.items[-1]
    assert (last.verdict.satisfied, last.verdict.by, last.judge_failed) == (True, "lexical", True)
    assert "gave no usable answer" in last.verdict.reason
    assert agreement([grade])["entity_match"]["judge_failed"] == 1


def test_lists_inside_the_list_are_opened_and_words_for_truth_understood() -> None:
    items = TASK.rubrics[:2]
    results = [[{"rubric_id": "r1", "satisfied": "True"}, {"rubric_id": "r2", "satisfied": False}]]
    verdicts = verdicts_in({"results": results}, items)
    assert {name: verdict.satisfied for name, verdict in verdicts.items()} == {"r1": True, "r2": False}


def test_reviews_go_before_a_question_is_too_long_for_its_judge() -> None:
    item = RubricItem.model_validate({**LAMP_LINE["rubrics"][7], "type": "review_opinion", "field": "review"})
    reviews = tuple(review(f"number {number} " + "word " * 90) for number in range(16))
    judge = Scripted(reply(r8=True), context=2048 + 1300)
    (answer,) = answers(judge, [Question(LAMP, (item,), reviews)])
    assert answer.verdicts["r8"].satisfied
    content = judge.asked[0].messages[1].content
    assert "number 3 " in content and "number 4 " not in content  # 16, 8, then 4 of them
