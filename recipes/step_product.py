"""Step-product discrimination: does buying this product help to carry out this step of the goal?

Task 2 of EcomScriptBench (ACL 2025); a step that needs no product makes the answer no, whatever the product.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from recipes.base import Judgment, Product, Record, Text


class StepProductRecord(Record):
    """``step``: one step towards the goal; ``product``: what might serve it."""

    step: Text = Field(description="the step's text")
    product: Product = Field(description="an object with title")


class StepProduct(Judgment[StepProductRecord]):
    name = "step_product"
    record = StepProductRecord
    template_version = "step_product-1"
    instruction = (
        "You match products to plans. Given a goal, one step towards it and a product, say whether buying the product "
        "helps to carry out this step. Answer No if the product has another use, serves another step, or if the step "
        "needs no purchase."
    )
    question = "Does this product serve this step? Answer Yes or No."

    def parts(self, record: StepProductRecord) -> tuple[str, ...]:
        product = record.product.text(self.intents)
        return f"Goal: {record.goal}\n", f"Step: {record.step}\n", f"Product: {product}\n"

    def shorter(self, record: StepProductRecord) -> Iterator[StepProductRecord]:
        for product in record.product.shorter():
            yield record.model_copy(update={"product": product})


STEP_PRODUCT = StepProduct()
