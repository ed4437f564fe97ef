"""Tasks: the line format of EComAgentBench (one task a line), read with every fault in words and written the same.

A task asks for one product of a catalogue. What the product must be is a list of rubric items; each becomes known from
one source only: the visible query, the shopper's profile (persona), or a scripted answer (clarification). Unknown
fields are ignored; everything that only tells how a task was made may be missing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from benchmarks.results import write_text
from recipes.base import Text, none_is_empty, short_repr
from recipes.faults import DataFaults, Fault, explain
from recipes.rows import file_rows

Source = Literal["query", "persona", "clarification"]
ItemType = Literal[
    "attribute_match",
    "negative_attribute",
    "numeric_range",
    "budget_match",
    "entity_match",
    "review_opinion",
    "store_match",
]
SOURCES: tuple[Source, ...] = ("query", "persona", "clarification")
ITEM_TYPES: tuple[ItemType, ...] = ItemType.__args__  # type: ignore[attr-defined]
INTENTS = (
    "product_search",
    "knowledge_reasoning",
    "rating_quality",
    "feature_combination",
    "negative_constraint",
    "use_case_scenario",
    "coupon_budget",
    "review_driven",
)
OPERATORS = ("<", "<=", ">", ">=", "==", "=")
Texts = Annotated[tuple[str, ...], BeforeValidator(none_is_empty)]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Slot(Part):
    """One thing that the scripted shopper tells when asked."""

    slot_id: Text = Field(description="an id such as cl_1")
    linked_rubric_ids: tuple[Text, ...] = Field(min_length=1, description="a list with the id of the item it tells")
    hidden_info: str = Field(default="", description="a note for authors, never shown")
    trigger_keywords: tuple[Text, ...] = Field(min_length=1, description="a list of short phrases")
    user_response: Text = Field(description="what the shopper says")
    revealed: bool = Field(default=False, description="false")


class Script(Part):
    """The scripted shopper."""

    clarification_slots: tuple[Slot, ...] = Field(default=(), description="a list of slots")
    default_response: str = Field(default="", description="what the shopper says when nothing matches")
    max_clarification_turns: int = Field(default=10, ge=0, description="a number of questions")


class TargetProduct(Part):
    """The product that a task was made from, as the catalogue has it."""

    product_id: Text = Field(description="the product's id in the catalogue")
    title: str = Field(description="the product's title")
    main_category: str | None = Field(default=None, description="the shop's category")
    store: str | None = Field(default=None, description="the seller")
    average_rating: float | None = Field(default=None, description="stars, 1 to 5")
    rating_number: int | None = Field(default=None, description="the number of ratings")
    price: float | None = Field(default=None, description="a number or null")
    features: Texts = Field(default=(), description="a list of texts")
    description: Texts = Field(default=(), description="a list of texts")
    details: Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)] = Field(
        default={}, description="an object of attributes"
    )


class RubricItem(Part):
    """One requirement. ``expected_value`` is what `type` needs: a text, a list of texts, numbers, or bounds.

    What only query items have (the words of the query that say it) or only entity items have is None elsewhere.
    """

    id: Text = Field(description="an id such as r1")
    type: ItemType = Field(description="one of " + ", ".join(ITEM_TYPES))
    field: Text = Field(description="what it looks at, such as details.Color or price")
    expected_value: Any = Field(description="the value it asks for")
    description: str = Field(default="", description="the requirement in words")
    info_source: Source = Field(description="one of " + ", ".join(SOURCES))
    query_surface: str | None = Field(default=None, description="the words of the query that say it")
    canonical_entity: str | None = Field(default=None, description="the kind of product")
    title_span: str | None = Field(default=None, description="the words of the title that name the kind")
    query_hint: str | None = Field(default=None, description="a note for the writer of the query")

    @model_validator(mode="after")
    def _expects_what_its_type_can_compare(self) -> RubricItem:
        if wrong := _unfit(self.type, self.expected_value):
            message = "{id}: {type} cannot compare {value}; give {wanted}"
            value = short_repr(self.expected_value)
            raise PydanticCustomError(
                "unfit_value", message, {"id": self.id, "type": self.type, "value": value, "wanted": wrong}
            )
        return self

    @property
    def attribute(self) -> str | None:
        """The name of the detail it looks at ("Color" of details.Color), or None where it looks at something else."""
        return self.field.removeprefix("details.") if self.field.startswith("details.") else None


def _unfit(kind: ItemType, value: Any) -> str | None:
    """What belongs where ``value`` stands, or None where it is right."""
    if kind in ("attribute_match", "entity_match", "review_opinion", "store_match"):
        return None if isinstance(value, str) and value.strip() else "a text"
    if kind == "negative_attribute":
        texts = isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value)
        return None if texts else "a list of excluded texts"
    if kind == "budget_match":
        return None if _is_number(value) else "a number"
    return None if _is_range(value) else 'a number, [low, high], {"min", "max"}, or {"value", "op"}'


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_range(value: Any) -> bool:
    if isinstance(value, Mapping):
        if "value" in value:
            return _is_number(value["value"]) and value.get("op", "==") in OPERATORS
        bounds = [value[name] for name in ("min", "max") if value.get(name) is not None]
        return bool(bounds) and all(map(_is_number, bounds))
    if isinstance(value, list | tuple):
        return len(value) == 2 and all(map(_is_number, value))
    return _is_number(value)


class Discount(Part):
    """What is taken off: ``face_value`` of money (fixed), or the share ``discount`` up to ``cap`` (percentage)."""

    voucher_type: str | None = Field(default=None, description="platform, shop, brand or stacked")
    discount_type: Literal["fixed", "percentage", "tiered", "stacked"] = Field(
        description="fixed, percentage, tiered or stacked"
    )
    threshold: float | None = Field(default=None, description="the price from which it is granted")
    face_value: float | None = Field(default=None, description="an amount of money")
    discount: float | None = Field(default=None, description="a share between 0 and 1")
    cap: float | None = Field(default=None, description="an amount of money")


class Tier(Discount):
    tier: int = Field(description="the tier's number")


class Coupon(Discount):
    actual_discount: float | None = Field(default=None, description="an amount of money")


class Voucher(Discount):
    """The voucher of a budget task: a simple discount, one of several tiers, or coupons applied one after the other."""

    budget: float | None = Field(default=None, description="an amount of money")
    total_original_price: float | None = Field(default=None, description="an amount of money")
    price_after_voucher: float | None = Field(default=None, description="an amount of money")
    tiers: tuple[Tier, ...] | None = Field(default=None, description="a list of tiers")
    active_tier: int | None = Field(default=None, description="the tier that the target reaches")
    coupons: tuple[Coupon, ...] | None = Field(default=None, description="a list of coupons")


class Feature(Part):
    """A requirement before it was given a source."""

    field: str = Field(description="what it looks at")
    value: Any = Field(default=None, description="the value it asks for")
    type: str = Field(default="attribute_match", description="the type of the item")


class Task(Part):
    """One shopping task; fields in the order of the file."""

    id: Text = Field(description="each task an id of its own")
    intent_category: Text = Field(description="the intent, such as product_search")
    user_query: Text = Field(description="what the shopper asks for")
    user_persona: dict[str, Any] = Field(description="the shopper's profile")
    clarification_script: Script = Field(default=Script(), description="the scripted shopper")
    target_product: TargetProduct = Field(description="the product that the task was made from")
    rubrics: tuple[RubricItem, ...] = Field(min_length=1, description="a list of requirements")
    implicit_rubric_ids: tuple[Text, ...] = Field(default=(), description="a list of item ids")
    difficulty_metrics: dict[str, Any] | None = Field(default=None, description="an object")
    generation_artifacts: dict[str, Any] | None = Field(default=None, description="an object")
    extracted_features: tuple[Feature, ...] | None = Field(default=None, description="a list of features")
    feature_partition: dict[str, Any] | None = Field(default=None, description="an object")
    voucher: Voucher | None = Field(default=None, description="a voucher, or null")
    validation_passed: bool | None = Field(default=None, description="true or false")
    validation_issues: tuple[Any, ...] | None = Field(default=None, description="a list")
    judge_passed: bool | None = Field(default=None, description="true or false")
    judge_issues: tuple[Any, ...] | None = Field(default=None, description="a list")
    sample_status: str | None = Field(default=None, description="ok, or what went wrong")
    error_message: str | None = Field(default=None, description="what went wrong")

    @property
    def target_id(self) -> str:
        return self.target_product.product_id

    def items(self, source: Source) -> tuple[RubricItem, ...]:
        """The requirements that become known from ``source``."""
        return tuple(item for item in self.rubrics if item.info_source == source)


def read_tasks(path: str | Path) -> list[Task]:
    """The usable tasks of a file, in order. Lines whose ``sample_status`` is there and not "ok" are passed over.

    Raises DataFaults (a ValueError) that names every fault, where, and what to do; as `refuse_no_file` does.
    """
    tasks, faults, _ = check_tasks(path)
    if faults:
        raise DataFaults(faults)
    return tasks


def refuse_no_file(path: str | Path, wanted: str) -> None:
    """Raises FileNotFoundError where nothing is at ``path``, ValueError where it is no ordinary file."""
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: no such file; give {wanted}")
    if not Path(path).is_file():
        raise ValueError(f"{path}: {'a folder' if Path(path).is_dir() else 'no ordinary file'}; give {wanted}")


def check_tasks(path: str | Path) -> tuple[list[Task], list[Fault], list[Fault]]:
    """(usable tasks, faults, warnings) of a file; raises as `refuse_no_file` does, and nothing for what it holds."""
    where = str(path)
    refuse_no_file(path, "a file of tasks, one a line (.jsonl)")
    tasks: list[Task] = []
    faults: list[Fault] = []
    warnings: list[Fault] = []
    seen: dict[str, int] = {}
    for row in file_rows(where):
        if isinstance(row, Fault):
            faults.append(row)
            continue
        if row.value.get("sample_status") not in (None, "ok"):
            warnings.append(Fault(where, row.line, "sample_status", f"{row.value['sample_status']}; passed over"))
            continue
        try:
            task = Task.model_validate(dict(row.value))
        except ValidationError as error:
            told = (explain(one, Task) for one in error.errors(include_url=False))
            faults += [Fault(where, row.line, field, message) for field, message in told]
            continue
        wrong = [Fault(where, row.line, field, message) for field, message in (*_broken(task), *_loose_ends(task))]
        first = seen.setdefault(task.id, row.line)
        if first != row.line:
            wrong.append(Fault(where, row.line, "id", f"{task.id!r} is the id of line {first} too; give each its own"))
        faults += wrong
        warnings += [Fault(where, row.line, field, message) for field, message in _oddities(task)]
        if not wrong:
            tasks.append(task)
    if not tasks and not faults:
        faults.append(Fault(where, None, "", "no usable task; give at least one"))
    return tasks, faults, warnings


def _broken(task: Task) -> Iterator[tuple[str, str]]:
    """What no file can hold: half of a surrogate pair, somewhere in the task's texts."""
    try:
        task_line(task).encode()
    except UnicodeEncodeError as error:
        yield "", f"holds half of a character ({error.object[error.start]!r}); write it whole"


def _loose_ends(task: Task) -> Iterator[tuple[str, str]]:
    """What the parts of a task say of each other that is not so."""
    sources = {item.id: item.info_source for item in task.rubrics}
    for name, count in Counter(item.id for item in task.rubrics).items():
        if count > 1:
            yield "rubrics", f"{count} items have the id {name!r}; give each its own"
    told = set()
    for number, slot in enumerate(task.clarification_script.clarification_slots, 1):
        place = f"clarification_script.clarification_slots[{number}].linked_rubric_ids"
        for name in slot.linked_rubric_ids:
            told.add(name)
            if sources.get(name) != "clarification":
                yield place, f"{name!r} is not an item of the clarification source; name one that is"
    for name, source in sources.items():
        if source == "clarification" and name not in told:
            yield "rubrics", f"{name} comes from clarification, but no slot tells it; add one or change its source"
    for name in task.implicit_rubric_ids:
        if sources.get(name) != "query":
            yield "implicit_rubric_ids", f"{name!r} is not an item of the query; name one that is"


def _oddities(task: Task) -> Iterator[tuple[str, str]]:
    """What can be used, and makes a task weaker than it looks."""
    for number, item in enumerate(task.rubrics, 1):
        if item.type == "negative_attribute" and not item.expected_value:
            yield f"rubrics[{number}].expected_value", f"{item.id} excludes nothing, so that every product satisfies it"


def write_tasks(path: str | Path, tasks: Iterable[Task]) -> None:
    """Write tasks one a line, in the order given, replacing the file in one move."""
    write_text(Path(path), "".join(task_line(task) for task in tasks))


def task_line(task: Task) -> str:
    """One task as its line, the end of line included: fields in the format's order, non-ASCII text literal."""
    fields = task.model_dump(mode="json", exclude_unset=True)
    fields["rubrics"] = [_item_fields(item) for item in task.rubrics]
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _item_fields(item: RubricItem) -> dict[str, Any]:
    """An item's fields as its source has them, in that order."""
    given = item.model_dump(mode="json")
    if item.info_source == "query":
        names = ["id", "type", "field", "expected_value", "description", "query_surface"]
        names += ["canonical_entity", "title_span"] if item.type == "entity_match" else []
        return {name: given[name] for name in [*names, "info_source"]}
    names = ["id", "description", "type", "field", "expected_value", "info_source"]
    leftovers = {"implicit_eligible": False, "must_hide_value": None, "query_hint": item.query_hint or ""}
    return {name: given[name] for name in names} | leftovers
