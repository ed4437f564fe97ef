"""Records, their rendering for the three judgments, and how they are made to fit."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from recipes.base import Judgment, Product, Record, understood_label
from recipes.fitting import fit
from recipes.holistic_verify import HOLISTIC_VERIFY, HolisticRecord, PlannedStep
from recipes.judgments import JUDGMENTS, get_judgment
from recipes.script_verify import SCRIPT_VERIFY, ScriptRecord
from recipes.step_product import STEP_PRODUCT, StepProductRecord

SCRIPT = ScriptRecord.model_validate(
    {"id": "a", "goal": "Bake bread", "script": ["Mix flour.", "Bake it."], "label": 1}
)
PAIR = StepProductRecord.model_validate(
    {
        "id": "b",
        "goal": "Bake bread",
        "step": "Weigh the flour.",
        "product": {
            "title": "Kitchen scale",
            "features": ["5 kg", "steel"],
            "category": "Kitchen",
            "description": "one two three four five six seven eight",
            "price": 20,
        },
        "label": 0,
    }
)
PLAN = HolisticRecord.model_validate(
    {
        "id": "c",
        "goal": "Bake bread",
        "script": [
            {
                "step": "Weigh.",
                "products": [{"title": "Scale", "features": ["long long text", "5 kg"]}, {"title": "Cup"}],
            },
            {"step": "Wait."},
            {"step": "Bake.", "products": [{"title": "Oven", "description": "hot"}]},
        ],
    }
)


def words(judgment: Judgment[Any]) -> Any:
    def count(records: Sequence[Record]) -> list[int]:
        return [len(judgment.render(record, "plain").text.split()) for record in records]

    return count


def test_a_script_reads_as_goal_and_numbered_steps() -> None:
    prompt = SCRIPT_VERIFY.render(SCRIPT, "plain")
    assert prompt.prefix == ("Goal: Bake bread\n",)
    assert prompt.suffix == "Script:\n1. Mix flour.\n2. Bake it.\n"


def test_a_pair_reads_as_goal_step_product() -> None:
    assert STEP_PRODUCT.render(PAIR, "plain").text == (
        "Goal: Bake bread\n"
        "Step: Weigh the flour.\n"
        "Product: Kitchen scale (Kitchen; 20.00) - 5 kg; steel. one two three four five six seven eight\n"
    )


def test_a_plan_lists_the_products_under_their_steps() -> None:
    assert HOLISTIC_VERIFY.render(PLAN, "plain").text == (
        "Goal: Bake bread\nPlan:\n"
        "1. Weigh.\n   - Scale - long long text; 5 kg\n   - Cup\n"
        "2. Wait.\n"
        "3. Bake.\n   - Oven. hot\n"
    )


@pytest.mark.parametrize(
    ("judgment", "record"), [(SCRIPT_VERIFY, SCRIPT), (STEP_PRODUCT, PAIR), (HOLISTIC_VERIFY, PLAN)]
)
def test_the_instruction_style_asks_before_and_after(judgment: Judgment[Any], record: Record) -> None:
    plain = judgment.render(record, "plain").text
    prompt = judgment.render(record, "instruction")
    assert prompt.text == f"{judgment.instruction}\n\n{plain}{judgment.question}"
    assert prompt.prefix[0] == judgment.instruction + "\n\n"


def test_solved_examples_come_before_the_record_with_their_answers() -> None:
    asked = SCRIPT.model_copy(update={"id": "q", "goal": "Brew tea"})
    wrong = SCRIPT.model_copy(update={"id": "w", "label": 0})
    parts = "Goal: {}\nScript:\n1. Mix flour.\n2. Bake it.\n"
    bread, tea, question = parts.format("Bake bread"), parts.format("Brew tea"), SCRIPT_VERIFY.question
    assert SCRIPT_VERIFY.render(asked, "instruction", [SCRIPT, wrong]).text == (
        f"{SCRIPT_VERIFY.instruction}\n\n{bread}{question} Yes\n\n{bread}{question} No\n\n{tea}{question}"
    )


def test_solved_examples_need_a_label_and_the_instruction_style() -> None:
    with pytest.raises(ValueError, match="record c: a solved example needs a label"):
        HOLISTIC_VERIFY.render(PLAN, "instruction", [PLAN])
    with pytest.raises(ValueError, match="solved examples need the instruction style"):
        SCRIPT_VERIFY.render(SCRIPT, "plain", [SCRIPT])


def test_label_group_and_meta_are_never_rendered() -> None:
    marked = SCRIPT.model_copy(update={"label": 0, "group": "SECRET", "meta": {"k": "SECRET"}, "id": "SECRET"})
    for style in ("plain", "instruction"):
        assert SCRIPT_VERIFY.render(marked, style) == SCRIPT_VERIFY.render(SCRIPT, style)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1, True, 1.0, "1", "yes", "YES ", "true", "True"])
def test_yes_is_understood(value: object) -> None:
    assert understood_label(value) == 1
    assert ScriptRecord.model_validate({**SCRIPT.model_dump(), "label": value}).label == 1


@pytest.mark.parametrize("value", [0, False, 0.0, "0", "no", "No", "false", " FALSE"])
def test_no_is_understood(value: object) -> None:
    assert understood_label(value) == 0
    assert ScriptRecord.model_validate({**SCRIPT.model_dump(), "label": value}).label == 0


@pytest.mark.parametrize("value", [2, -1, 0.5, "maybe", "", [1], {}, float("nan")])
def test_other_labels_are_refused(value: object) -> None:
    assert understood_label(value) is None
    with pytest.raises(ValidationError, match="is not a label; give 1"):
        ScriptRecord.model_validate({**SCRIPT.model_dump(), "label": value})


@pytest.mark.parametrize(
    ("price", "shown"),
    [(3, "T (3.00)"), (0, "T (0.00)"), (2.5, "T (2.50)"), ("$12.99 - $15", "T ($12.99 - $15)"), (None, "T")],
)
def test_a_price_is_a_number_or_a_text(price: object, shown: str) -> None:
    assert Product.model_validate({"title": "T", "price": price}).text() == shown


@pytest.mark.parametrize("price", [-1, True, float("nan"), float("inf"), 10**400, [1], "", "null"])
def test_other_prices_are_refused(price: object) -> None:
    with pytest.raises(ValidationError):
        Product.model_validate({"title": "T", "price": price})


def test_spaces_and_line_ends_in_texts_are_one_space() -> None:
    assert Product(title="  Steel\n\tpan ").title == "Steel pan"


def test_the_group_is_the_goal_where_none_is_given() -> None:
    assert SCRIPT.group_key == "bake bread"
    assert SCRIPT.model_copy(update={"group": "G"}).group_key == "G"


def test_an_unknown_judgment_names_the_nearest() -> None:
    assert get_judgment("step_product") is JUDGMENTS["step_product"]
    with pytest.raises(ValueError, match="'step_products' is not known; did you mean 'step_product'"):
        get_judgment("step_products")


def test_features_go_before_the_description_and_nothing_else_goes() -> None:
    texts = [
        record.product.text().removeprefix("Kitchen scale (Kitchen; 20.00)") for record in STEP_PRODUCT.shorter(PAIR)
    ]
    assert texts == [
        " - 5 kg. one two three four five six seven eight",
        ". one two three four five six seven eight",
        ". one two three four",
        "",
    ]


def test_of_many_features_a_sixteenth_goes_at_once() -> None:
    record = PAIR.model_copy(update={"product": Product(title="Scale", features=[str(n) for n in range(49)])})
    left = [len(form.product.features) for form in STEP_PRODUCT.shorter(record)]
    assert left == [46, 44, 42, 40, 38, 36, 34, 32, *range(30, -1, -1)]


def test_a_script_cannot_be_shortened() -> None:
    assert list(SCRIPT_VERIFY.shorter(SCRIPT)) == []


def test_a_plan_loses_text_where_there_is_most_and_keeps_every_step_and_title() -> None:
    forms = list(HOLISTIC_VERIFY.shorter(PLAN))
    last = HOLISTIC_VERIFY.render(forms[-1], "plain").text
    assert last == "Goal: Bake bread\nPlan:\n1. Weigh.\n   - Scale\n   - Cup\n2. Wait.\n3. Bake.\n   - Oven\n"
    shown = [[product.text() for step in form.script for product in step.products] for form in forms]
    assert shown == [
        ["Scale - long long text", "Cup", "Oven. hot"],
        ["Scale", "Cup", "Oven. hot"],
        ["Scale", "Cup", "Oven"],
    ]


def test_fit_shortens_just_as_far_as_the_length_asks() -> None:
    # Goal: Bake bread (3), Step: Weigh the flour. (4), Product: Kitchen scale (Kitchen; 20.00) (5), features 4, then 8.
    count = words(STEP_PRODUCT)
    assert count([PAIR]) == [24]
    for most, left, changed in [(24, 24, False), (23, 23, True), (22, 20, True), (19, 16, True), (16, 16, True)]:
        fitted = fit(STEP_PRODUCT, [PAIR], count, most)
        assert fitted.lengths == [left]
        assert fitted.shortened == ({"b": (24, left)} if changed else {})
        assert fitted.refused == {}


def test_huge_records_are_shortened_in_seconds_and_little_memory() -> None:
    many = Product(title="Scale", features=["warm"] * 20_000, description="soft " * 20_000)
    pair = PAIR.model_copy(update={"product": many})
    products = tuple(Product(title="Cup", description="soft") for _ in range(1_000))
    plan = PLAN.model_copy(update={"script": (PlannedStep(step="Weigh.", products=(*products, many)),)})
    tracemalloc.start()
    started = time.process_time()
    assert fit(STEP_PRODUCT, [pair], words(STEP_PRODUCT), 100).refused == {}
    assert fit(HOLISTIC_VERIFY, [plan], words(HOLISTIC_VERIFY), 3_000).refused == {}
    seconds, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 15
    assert peak < 64 * 1024 * 1024


def test_fit_refuses_what_is_too_long_without_any_product_text() -> None:
    short = PAIR.model_copy(update={"id": "s", "goal": "Bake", "product": Product(title="Scale")})
    fitted = fit(STEP_PRODUCT, [PAIR, short], words(STEP_PRODUCT), 11)
    assert [record.id for record in fitted.records] == ["s"]
    assert fitted.refused == {"b": 12}
    assert fit(SCRIPT_VERIFY, [SCRIPT], words(SCRIPT_VERIFY), 5).refused == {"a": 10}
