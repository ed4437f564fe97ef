"""Whether a purchase intent is why people buy a product: what is learned from intent knowledge beside a judgment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import Field, FiniteFloat

from recipes.base import Judgment, Product, Record, Text


class IntentRecord(Record):
    """A product and a purchase intent. ``label`` 1, or none, means that the intent is one of the product.

    ``plausibility`` and ``typicality`` are scores of the source, on its own scale; nothing but filters reads them.
    """

    # Records have a goal; that of a purchase is what its intent says, and nothing renders this one.
    goal: Text = Field(default="Buy the product", description="nothing, an intent has no goal of its own")
    product: Product = Field(description="an object with title")
    intent: Text = Field(description="why people buy the product, such as 'because they want to ...'")
    relation: Text | None = Field(default=None, description="the kind of intent, in the source's words")
    plausibility: FiniteFloat | None = Field(default=None, description="a number")
    typicality: FiniteFloat | None = Field(default=None, description="a number")

    @property
    def group_key(self) -> str:
        """Intents of one product stay together."""
        return self.group if self.group is not None else text_key(self.product.title)


class Intents(Judgment[IntentRecord]):
    name = "intents"
    record = IntentRecord
    template_version = "intents-1"
    instruction = (
        "You know why people buy things. Given a purchase intent and a product, say whether people buy the product for "
        "this reason. Answer No if the product does not serve the intent."
    )
    question = "Do people buy this product for this reason? Answer Yes or No."

    def parts(self, record: IntentRecord) -> tuple[str, ...]:
        """The product comes last, as it does where it is judged for a step."""
        return f"Intent: {record.intent}\n", f"Product: {record.product.text()}\n"

    def shorter(self, record: IntentRecord) -> Iterator[IntentRecord]:
        for product in record.product.shorter():
            yield record.model_copy(update={"product": product})


INTENTS = Intents()


def text_key(text: str) -> str:
    """A title or an intent without case and punctuation, so that two spellings of it are one."""
    return " ".join(re.findall(r"\w+", text.lower())) or text
