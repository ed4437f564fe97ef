"""What every judgment shares: records, products, prompts, and the frame that turns one into the other."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictStr
from pydantic_core import PydanticCustomError

Style = Literal["plain", "instruction"]

NOT_TEXT = frozenset({"null", "none", "nan", "<na>", "undefined"})
LABELS = {True: 1, False: 0, "true": 1, "false": 0, "yes": 1, "no": 0, "1": 1, "0": 0}


def short_repr(value: object, longest: int = 40) -> str:
    """A value as an error message quotes it."""
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _real_text(value: str) -> str:
    text = " ".join(value.split())
    if not any(character.isprintable() and character != " " for character in text):
        raise PydanticCustomError("empty_text", "empty; give the text")
    if text.lower() in NOT_TEXT:
        message = "the word {word} stands where text belongs; give the text"
        raise PydanticCustomError("no_text", message, {"word": repr(text)})
    return text


def understood_label(value: object) -> int | None:
    """1 or 0 for 1/0, true/false and "yes"/"no" (any case, also as text); None for everything else."""
    key = value.strip().lower() if isinstance(value, str) else value
    try:
        return LABELS.get(key)
    except TypeError:
        return None


def _label(value: object) -> int:
    label = understood_label(value)
    if label is None:
        message = "{value} is not a label; give 1 (yes, it holds) or 0, true/false or yes/no"
        raise PydanticCustomError("no_label", message, {"value": short_repr(value)})
    return label


def _price(value: object) -> float | str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return _real_text(value)
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number < math.inf:
        message = "{value} is not a price; give a number from 0 up or a text such as '$12.99'"
        raise PydanticCustomError("no_price", message, {"value": short_repr(value)})
    return number


def none_is_empty(value: object) -> object:
    return () if value is None else value


Text = Annotated[StrictStr, AfterValidator(_real_text)]
Label = Annotated[int, BeforeValidator(_label)]
Price = Annotated[float | str | None, BeforeValidator(_price)]


class Product(BaseModel):
    """A product as a shop describes it. Only the title is required.

    The description of each field completes the sentence "give ...", with which reading reports a fault.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Text = Field(description="the product's name")
    features: Annotated[tuple[Text, ...], BeforeValidator(none_is_empty)] = Field(
        default=(), description="a list of texts"
    )
    category: Text | None = Field(default=None, description="the shop's category")
    description: Text | None = Field(default=None, description="the product's description")
    price: Price = Field(default=None, description="a number from 0 up or a text such as '$12.99'")
    intents: Annotated[tuple[Text, ...], BeforeValidator(none_is_empty)] = Field(
        default=(), description="a list of texts, why people buy it (read by judges that were taught with them)"
    )

    def text(self, intents: int = 0) -> str:
        """One line: title, category, price, features, description and the first so many purchase intents, as far as
        they are known."""
        price = f"{self.price:.2f}" if isinstance(self.price, float) else self.price
        aside = "; ".join(part for part in (self.category, price) if part)
        line = f"{self.title} ({aside})" if aside else self.title
        if self.features:
            line += " - " + "; ".join(self.features)
        line = f"{line}. {self.description}" if self.description else line
        known = "; ".join(intent.rstrip(" .") for intent in self.intents[:intents])
        return f"{line.rstrip('.')}. Purchase intents: {known}" if known else line

    def shorter(self) -> Iterator[Product]:
        """This product with less and less text: purchase intents from the last one on, then features likewise (of 32
        and more a sixteenth at once), then half the description, then none.

        Title, category and price are never touched.
        """
        product = self
        while product.intents:
            product = product.model_copy(update={"intents": product.intents[:-1]})
            yield product
        while product.features:
            # One at a time, a hundred thousand features would take minutes.
            gone = max(1, len(product.features) // 16)
            product = product.model_copy(update={"features": product.features[:-gone]})
            yield product
        while product.description:
            words = product.description.split()
            half = " ".join(words[: len(words) // 2]) if len(words) >= 8 else None
            product = product.model_copy(update={"description": half})
            yield product


class Record(BaseModel):
    """One item to judge. ``label`` 1 means "yes, it holds"; records without one can be judged, not learned from."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: Text = Field(description="each record an id of its own")
    goal: Text = Field(description="what the person wants to achieve")
    label: Label | None = Field(default=None, description="1 (yes, it holds) or 0")
    group: Text | None = Field(default=None, description="the name of what must stay in one split")
    meta: dict[str, Any] | None = Field(default=None, description="an object (kept, never shown to a judge)")

    @property
    def group_key(self) -> str:
        """What must not cross a split: the given group, else the goal itself."""
        return self.group if self.group is not None else self.goal.lower()


@dataclass(frozen=True)
class Prompt:
    """A rendered record: ``prefix`` segments from the most to the least shared between records, then ``suffix``."""

    prefix: tuple[str, ...]
    suffix: str

    @property
    def text(self) -> str:
        return "".join(self.prefix) + self.suffix


R = TypeVar("R", bound=Record)


class Judgment(ABC, Generic[R]):
    """One kind of yes/no question about a record.

    A judgment names its record, says how the record reads (``parts``, from the most to the least shared between
    records, the last one the record's own), and how it can be made shorter. ``template_version`` changes with every
    change of the rendered text, and is saved with each adapter. ``intents`` are shown beside each product at most.
    """

    name: ClassVar[str]
    record: ClassVar[type[Record]]
    template_version: str
    intents: int = 0
    instruction: ClassVar[str]
    question: ClassVar[str]
    label_words: ClassVar[tuple[str, str]] = ("No", "Yes")

    @abstractmethod
    def parts(self, record: R) -> tuple[str, ...]:
        """The record as text, a line or block each; what other records repeat comes first."""

    def with_intents(self, count: int) -> Self:
        """The same judgment with so many purchase intents beside each product; a product of which none is known looks
        as it always did. The template's version says so: "step_product-1+intents3"."""
        told = copy(self)
        told.intents = count
        told.template_version = f"{self.template_version}+intents{count}"
        return told

    def shorter(self, record: R) -> Iterator[R]:
        """The record with less and less product text; never less goal, script or title. Empty where nothing can go."""
        return iter(())

    def render(self, record: R, style: Style, shots: Sequence[R] = ()) -> Prompt:
        """The record as a prompt.

        Args:
            style: ``plain`` (the parts alone: encoders and classification heads) or ``instruction`` (what is asked,
                solved examples, the parts, the question: verbalizer heads and generation).
            shots: labelled records shown as solved examples, instruction style only.
        """
        parts = self.parts(record)
        if style == "plain":
            if shots:
                raise ValueError("solved examples need the instruction style; other heads and encoders take none")
            return Prompt(parts[:-1], parts[-1])
        head = self.instruction + "\n\n" + "".join(self._solved(shot) for shot in shots)
        return Prompt((head, *parts[:-1]), f"{parts[-1]}{self.question}")

    def _solved(self, shot: R) -> str:
        if shot.label is None:
            raise ValueError(f"record {shot.id}: a solved example needs a label")
        return f"{''.join(self.parts(shot))}{self.question} {self.label_words[shot.label]}\n\n"


def numbered(lines: Sequence[str]) -> str:
    """Lines with their 1-based numbers, one a line."""
    return "".join(f"{number}. {line}\n" for number, line in enumerate(lines, 1))
