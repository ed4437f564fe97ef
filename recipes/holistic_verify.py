"""Holistic verification: does the whole plan hold together, each product for its step and all of them with each other?

Task 3 of EcomScriptBench (ACL 2025). A step may have no product; it is then shown as the step alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from recipes.base import Judgment, Product, Record, Text, none_is_empty, numbered


class PlannedStep(BaseModel):
    """A step and the products chosen for it (none where it needs no purchase)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: Text = Field(description="the step's text")
    products: Annotated[tuple[Product, ...], BeforeValidator(none_is_empty)] = Field(
        default=(), description="the products"
    )

    def text(self, intents: int = 0) -> str:
        return "\n".join([self.step, *(f"   - {product.text(intents)}" for product in self.products)])


class HolisticRecord(Record):
    """``script``: the steps in order, each with its products."""

    script: Annotated[tuple[PlannedStep, ...], Field(min_length=1, description="the steps in order")]


class HolisticVerify(Judgment[HolisticRecord]):
    name = "holistic_verify"
    record = HolisticRecord
    template_version = "holistic_verify-1"
    instruction = (
        "You check shopping plans. Given a goal and a script whose steps list the products to buy, say whether the "
        "whole plan holds together. Answer No if a product does not suit its step, if two products do not work "
        "together, or if a step lacks a product that it needs."
    )
    question = "Does the whole plan hold together? Answer Yes or No."

    def parts(self, record: HolisticRecord) -> tuple[str, ...]:
        return f"Goal: {record.goal}\n", f"Plan:\n{numbered([step.text(self.intents) for step in record.script])}"

    def shorter(self, record: HolisticRecord) -> Iterator[HolisticRecord]:
        """Each round takes one piece from the product with the longest text, so that no product is bared first."""
        script = list(record.script)
        heap = [
            (-len(product.text(self.intents)), -s, -p)
            for s, step in enumerate(script)
            for p, product in enumerate(step.products)
            if _has_more(product)
        ]
        heapify(heap)
        while heap:
            _, s, p = heappop(heap)
            products = list(script[-s].products)
            products[-p] = next(products[-p].shorter())
            script[-s] = script[-s].model_copy(update={"products": tuple(products)})
            yield record.model_copy(update={"script": tuple(script)})
            if _has_more(products[-p]):
                heappush(heap, (-len(products[-p].text(self.intents)), s, p))


def _has_more(product: Product) -> bool:
    """Whether there is text that `Product.shorter` takes away."""
    return bool(product.intents or product.features or product.description)


HOLISTIC_VERIFY = HolisticVerify()
