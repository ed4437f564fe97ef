"""Invented tasks and products for the tests of EComAgentBench, small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.ecomagent.catalogue import Product, Review


def _query(id: str, type: str, field: str, value: Any, words: str, **more: str) -> dict[str, Any]:
    item = {"id": id, "type": type, "field": field, "expected_value": value, "description": words}
    return {**item, "query_surface": words, **more, "info_source": "query"}


def _hidden(id: str, type: str, field: str, value: Any, words: str, source: str) -> dict[str, Any]:
    item = {"id": id, "description": words, "type": type, "field": field, "expected_value": value}
    return {**item, "info_source": source, "implicit_eligible": False, "must_hide_value": None, "query_hint": ""}


LAMP_LINE: dict[str, Any] = {
    "id": "v3_sample_9001",
    "intent_category": "product_search",
    "user_query": "A reading lamp by Zweig with 40 ratings or more, made of the metal that soda cans are made of.",
    "user_persona": {
        "user_id": "U_20717",
        "demographics": {
            "gender": "Female",
            "age_range": "35-44",
            "location": "Zürich",
            "occupation": "Surveyor",
            "education_level": "Diploma",
        },
        "lifestyle": {
            "hobbies": ["rowing", "chess"],
            "daily_routine": "Up early, home by four.",
            "fitness_level": "Active",
            "dietary_preference": "None",
            "commute_method": "Tram",
            "pets": "None",
        },
        "shopping_habits": {
            "payment_method": "Debit Card",
            "shopping_frequency": "Monthly",
            "preferred_device": "Laptop",
            "preferred_platform": "Web",
            "return_frequency": "Rarely",
        },
        "product_requirements": {"color_preference": "Teal", "style_preference": "Modern"},
    },
    "clarification_script": {
        "clarification_slots": [
            {
                "slot_id": "cl_1",
                "linked_rubric_ids": ["r6"],
                "hidden_info": "clamp",
                "trigger_keywords": ["mount", "mounting type", "attach"],
                "user_response": "It should hold on to the table edge with a clamp.",
                "revealed": False,
            },
            {
                "slot_id": "cl_2",
                "linked_rubric_ids": ["r7"],
                "hidden_info": "price",
                "trigger_keywords": ["price", "budget", "cost"],
                "user_response": "Less than 40 dollars, please.",
                "revealed": False,
            },
        ],
        "default_response": "I can't say. Ask me something more particular.",
        "max_clarification_turns": 10,
    },
    "target_product": {
        "product_id": "B0LAMP0001",
        "title": "Zweig Foldable Reading Lamp, Teal",
        "main_category": "Office Products",
        "store": "Zweig",
        "average_rating": 4.3,
        "rating_number": 87,
        "price": 34.5,
        "features": ["Folds flat for travel"],
        "description": [],
        "details": {
            "Brand": "Zweig",
            "Color": "Teal",
            "Material": "Aluminum, Plastic",
            "Style": "Modern",
            "Mounting Type": "Clamp Mount",
            "Best Sellers Rank": {"Desk Lamps": 12},
        },
    },
    "rubrics": [
        _query("r1", "attribute_match", "details.Brand", "Zweig", "Zweig"),
        _query("r2", "numeric_range", "rating_number", {"min": 40}, "40 ratings or more"),
        _query("r3", "attribute_match", "details.Material", "Aluminum", "made of the metal that soda cans are made of"),
        _hidden("r4", "attribute_match", "details.Color", "Teal", "Color is 'Teal'", "persona"),
        _hidden("r5", "attribute_match", "details.Style", "Modern", "Style is 'Modern'", "persona"),
        _hidden("r6", "attribute_match", "details.Mounting Type", "Clamp", "Mounting is 'Clamp'", "clarification"),
        _hidden("r7", "numeric_range", "price", {"value": 40, "op": "<"}, "costs less than 40", "clarification"),
        _query(
            "r8",
            "entity_match",
            "title",
            "reading lamp",
            "reading lamp",
            canonical_entity="reading lamp",
            title_span="Reading Lamp",
        ),
    ],
    "implicit_rubric_ids": ["r3"],
    "difficulty_metrics": {"implicit_count": 1},
    "generation_artifacts": {"sample_retry_count": 0, "judge_issues": []},
    "extracted_features": [{"field": "details.Brand", "value": "Zweig", "type": "attribute_match"}],
    "feature_partition": {"query_count": 3, "persona_count": 2, "clarification_count": 2},
    "voucher": None,
    "validation_passed": True,
    "validation_issues": [],
    "judge_passed": True,
    "judge_issues": [],
    "sample_status": "ok",
}


def as_product(target: dict[str, Any]) -> Product:
    """The ``target_product`` of a task line as the catalogue would give it."""
    return Product(
        id=target["product_id"],
        title=target["title"],
        store=target["store"],
        price=target["price"],
        average_rating=target["average_rating"],
        rating_number=target["rating_number"],
        main_category=target["main_category"],
        categories=(),
        features=tuple(target["features"]),
        description=tuple(target["description"]),
        details={name: str(value) for name, value in target["details"].items()},
    )


LAMP = as_product(LAMP_LINE["target_product"])


class Shelf:
    """A catalogue of a few products."""

    def __init__(self, *products: Product, reviews: Sequence[Review] = ()) -> None:
        self.products, self.kept = {one.id: one for one in products}, list(reviews)

    def product(self, product_id: str) -> Product | None:
        return self.products.get(product_id)

    def reviews(self, product_id: str) -> list[Review]:
        return [one for one in self.kept if one.product_id == product_id]


def as_meta(target: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The metadata record that a ``target_product`` came from, with changes."""
    record = {name: value for name, value in target.items() if name != "product_id"}
    return {"parent_asin": target["product_id"], **record, **changed}
