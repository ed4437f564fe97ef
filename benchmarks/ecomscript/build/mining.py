"""The stages that a language model writes: goals, scripts, needs, intents, keywords.

Each asks for JSON by a prompt of its name, checks what comes back, and rejects what after two repairs still cannot be
used. A row of a later stage has all that the row it was made of had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import pyarrow as pa
from pydantic import AfterValidator, BaseModel, Field
from pydantic_core import PydanticCustomError

from benchmarks.asking import Read, Reply, ask, read_as
from benchmarks.ecomscript.build.config import EcomScriptBuildConfig
from benchmarks.ecomscript.build.stages import Made, Reject
from benchmarks.ecomscript.build.tables import Row
from benchmarks.prompting import Prompts, as_chat
from models.generation import Generator, SamplingSettings
from recipes.base import Text

T = TypeVar("T")
# The frame of purchase intents (FolkScope, MIND, the paper); what follows it is kept.
FRAME = "PersonX wants to buy this"
LONGEST = 300  # characters of a goal, a step, an intent, a keyword: longer ones are no such thing

TEXTS = pa.list_(pa.string())
PRODUCT_SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "title": pa.string(),
        "features": TEXTS,
        "category": pa.string(),
        "description": pa.string(),
        "price": pa.float64(),
    }
)
REVIEW_SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "product": pa.string(),
        "product_title": pa.string(),
        "rating": pa.float64(),
        "text": pa.string(),
    }
)
GOAL_SCHEMA = pa.schema({"id": pa.string(), "product": pa.string(), "goal": pa.string()})
SCRIPT_SCHEMA = pa.schema([*GOAL_SCHEMA, ("steps", TEXTS)])
NEED_SCHEMA = pa.schema([*SCRIPT_SCHEMA, ("needs", pa.list_(pa.bool_()))])
INTENT_SCHEMA = pa.schema([*PRODUCT_SCHEMA, ("intents", TEXTS)])
KEYWORD_SCHEMA = pa.schema([*NEED_SCHEMA, ("keywords", pa.list_(TEXTS))])


def _short(text: str) -> str:
    if len(text) > LONGEST:
        raise PydanticCustomError("too_long", "longer than {most} characters; give a short text", {"most": LONGEST})
    return text


Short = Annotated[Text, AfterValidator(_short)]


class Goal(BaseModel):
    goal: Short = Field(description="the goal's text")


class Script(BaseModel):
    steps: list[Short] = Field(min_length=2, description="a list of texts, one a step")


class Needs(BaseModel):
    steps: list[int] = Field(description="a list of the steps' numbers")


class Intents(BaseModel):
    intents: list[Short] = Field(description="a list of sentences")


class Keywords(BaseModel):
    keywords: list[Short] = Field(min_length=1, description="a list of texts")


@dataclass(frozen=True)
class Writer:
    """Who writes, by which prompts, and how. ``generator`` is loaded when it is first asked for."""

    generator: Callable[[], Generator]
    prompts: Prompts
    settings: SamplingSettings

    def replies(
        self, prompt: str, values: Sequence[dict[str, Any]], read: Read[T] | Sequence[Read[T]]
    ) -> list[Reply[T]]:
        """A reply to the prompt with each of the values, in order; a model is not asked for nothing."""
        if not values:
            return []
        chats = [as_chat(self.prompts.render(prompt, **each)) for each in values]
        return ask(self.generator(), chats, self.settings, read)


@dataclass(frozen=True)
class Mining:
    """A stage that is written: the table that it reads, what its rows have, and how they are made."""

    name: str
    source: str
    schema: pa.Schema
    work: Callable[[Writer, EcomScriptBuildConfig, list[Row]], Made]
    settings: tuple[str, ...] = ()  # of the configuration, beside those of all writing
    distinct: Callable[[Row], str] | None = None


def goals(writer: Writer, config: EcomScriptBuildConfig, rows: list[Row]) -> Made:
    values = [{"review": row, "product": {"title": row["product_title"]}} for row in rows]
    replies = writer.replies("goals", values, read_as(Goal))
    return _collect(rows, replies, lambda row, goal: {"product": row["product"], "goal": goal.goal})


def scripts(writer: Writer, config: EcomScriptBuildConfig, rows: list[Row]) -> Made:
    def read(reply: Any) -> list[str]:
        steps = _distinct(read_as(Script)(reply).steps)
        if len(steps) > config.steps:
            raise ValueError(f"steps: {len(steps)} of them; give {config.steps} at most")
        if len(steps) < 2:
            raise ValueError("steps: all the same; give at least two")
        return steps

    values = [{"goal": row["goal"], "most": config.steps} for row in rows]
    return _collect(rows, writer.replies("scripts", values, read), lambda row, steps: {**row, "steps": steps})


def needs(writer: Writer, config: EcomScriptBuildConfig, rows: list[Row]) -> Made:
    def reader(count: int) -> Read[list[bool]]:
        def read(reply: Any) -> list[bool]:
            numbers = set(read_as(Needs)(reply).steps)
            if strange := sorted(numbers - set(range(1, count + 1))):
                raise ValueError(f"steps: there is no step {strange[0]}; the script has {count}")
            return [number in numbers for number in range(1, count + 1)]

        return read

    values = [{"goal": row["goal"], "steps": row["steps"]} for row in rows]
    replies = writer.replies("needs", values, [reader(len(row["steps"])) for row in rows])
    return _collect(rows, replies, lambda row, found: {**row, "needs": found})


def intents(writer: Writer, config: EcomScriptBuildConfig, rows: list[Row]) -> Made:
    count = config.intents_per_product

    def read(reply: Any) -> list[str]:
        found = _distinct(map(_tail, read_as(Intents)(reply).intents))
        if len(found) < count:
            raise ValueError(f"intents: {len(found)} different ones; give {count}")
        return found[:count]

    values = [{"product": row, "count": count, "frame": FRAME} for row in rows]
    return _collect(rows, writer.replies("intents", values, read), lambda row, found: {**row, "intents": found})


def keywords(writer: Writer, config: EcomScriptBuildConfig, rows: list[Row]) -> Made:
    """Keywords of each step that needs a purchase; a step whose reply cannot be used has none, and is a reject."""

    def read(reply: Any) -> list[str]:
        return _distinct(read_as(Keywords)(reply).keywords)[: config.keywords]

    places = [(k, step) for k, row in enumerate(rows) for step, need in enumerate(row["needs"]) if need]
    values = [{"goal": rows[k]["goal"], "step": rows[k]["steps"][step], "most": config.keywords} for k, step in places]
    found: list[list[list[str]]] = [[[] for _ in row["steps"]] for row in rows]
    made = Made()
    for (k, step), reply in zip(places, writer.replies("keywords", values, read), strict=True):
        made.tokens += reply.tokens
        if reply.value is None:
            made.rejects.append(Reject(f"{rows[k]['id']}#{step + 1}", reply.problem, reply.text))
        else:
            found[k][step] = reply.value
    made.rows = [{**row, "keywords": own} for row, own in zip(rows, found, strict=True)]
    return made


MININGS = (
    Mining("goals", "ingest/reviews.parquet", GOAL_SCHEMA, goals, distinct=lambda row: str(row["goal"]).lower()),
    Mining("scripts", "goals/goals.parquet", SCRIPT_SCHEMA, scripts, ("steps",)),
    Mining("needs", "scripts/scripts.parquet", NEED_SCHEMA, needs),
    Mining("intents", "ingest/products.parquet", INTENT_SCHEMA, intents, ("intents_per_product",)),
    Mining("keywords", "needs/needs.parquet", KEYWORD_SCHEMA, keywords, ("keywords",)),
)


def _collect(rows: Sequence[Row], replies: Sequence[Reply[T]], make: Callable[[Row, T], Row]) -> Made:
    """A new row of each row and what was read of its reply; rejects of those of which nothing could be read."""
    made = Made(tokens=sum(reply.tokens for reply in replies))
    for row, reply in zip(rows, replies, strict=True):
        if reply.value is None:
            made.rejects.append(Reject(row["id"], reply.problem, reply.text))
        else:
            made.rows.append({"id": row["id"], **make(row, reply.value)})
    return made


def _tail(intent: str) -> str:
    """An intent behind its frame. Raises ValueError where it has another."""
    tail = intent.removeprefix(FRAME).strip().rstrip(".")
    if not tail.lower().startswith("because ") or len(tail.split()) < 3:
        raise ValueError(f'intents: one does not begin with "{FRAME} because"; begin each so, and say why')
    return tail[0].lower() + tail[1:]


def _distinct(texts: Iterable[str]) -> list[str]:
    """The texts without those that differ from an earlier one in case alone."""
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(text.lower(), text)
    return list(found.values())
