"""What every tool shares: the visit that it belongs to, the form of its arguments, and bad calls told to the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.sandbox import Sandbox
from recipes.faults import explain

Mode = Literal["strict", "compat"]
PAGE_SIZE = 20
MOST_IDS = 10
FAULTS_TOLD = 3


class Slot(Protocol):
    """One thing that the scripted shopper tells when asked about it."""

    @property
    def slot_id(self) -> str: ...
    @property
    def trigger_keywords(self) -> Sequence[str]: ...
    @property
    def user_response(self) -> str: ...


class Script(Protocol):
    @property
    def clarification_slots(self) -> Sequence[Slot]: ...
    @property
    def default_response(self) -> str: ...
    @property
    def max_clarification_turns(self) -> int: ...


class Task(Protocol):
    """What the tools need of a task."""

    @property
    def user_persona(self) -> dict[str, Any]: ...
    @property
    def clarification_script(self) -> Script: ...


@dataclass
class Visit:
    """An agent's visit to the shop: what it visits for, and what has come of it so far."""

    catalogue: Catalogue
    task: Task
    mode: Mode = "strict"
    sandbox: Sandbox | None = None
    finished: bool = False
    recommended: str | None = None
    reasoning: str = ""
    ask_count: int = 0
    profile_count: int = 0
    revealed: list[str] = field(default_factory=list)

    @property
    def strict(self) -> bool:
        return self.mode == "strict"


class Arguments(BaseModel):
    """A tool's arguments. The description of each field completes the sentence "give ..."."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BadCall(ValueError):
    """A call that cannot be carried out; the message tells the model what to change."""


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what the model is told of it, its arguments, and what it does.

    ``strict_note`` is told in strict mode only, where the tool does more than the published one.
    """

    name: str
    about: str
    arguments: type[Arguments]
    run: Callable[[Visit, Any], dict[str, Any]]
    strict_note: str = ""

    def schema(self, mode: Mode) -> dict[str, Any]:
        """The OpenAI function schema."""
        form = self.arguments.model_json_schema()
        properties = {name: _plain(entry) for name, entry in form.get("properties", {}).items()}
        description = " ".join(filter(None, (self.about, self.strict_note if mode == "strict" else "")))
        parameters = {"type": "object", "properties": properties, "required": form.get("required", [])}
        return {
            "type": "function",
            "function": {"name": self.name, "description": description, "parameters": parameters},
        }

    def understood(self, given: dict[str, Any]) -> Arguments:
        """The arguments, checked. Raises BadCall that names every fault."""
        try:
            return self.arguments.model_validate(given)
        except ValidationError as error:
            faults = [self._fault(one) for one in error.errors(include_url=False)]
            more = [f"and {len(faults) - FAULTS_TOLD} more"] if len(faults) > FAULTS_TOLD else []
            raise BadCall(f"{self.name}: {'; '.join(faults[:FAULTS_TOLD] + more)}") from None

    def _fault(self, error: Any) -> str:
        if error["type"] == "extra_forbidden":
            name, known = str(error["loc"][0]), list(self.arguments.model_fields)
            near = get_close_matches(name, known, n=1, cutoff=0.6)
            advice = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known) or 'no arguments'}"
            return f"{name[:40]}: unknown argument; {advice}"
        return ": ".join(explain(error, self.arguments))


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A field's schema without pydantic's titles, which say nothing new."""
    kept = {name: entry for name, entry in schema.items() if name != "title"}
    return {name: _plain(entry) if isinstance(entry, dict) else entry for name, entry in kept.items()}


def listed(found: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """(id, title) pairs as results show them."""
    return [{"product_id": product_id, "title": title} for product_id, title in found]


def within_limit(visit: Visit, ids: Sequence[str]) -> list[str]:
    """At most ten ids: compat takes the first ten in silence, strict refuses more."""
    if visit.strict and len(ids) > MOST_IDS:
        raise BadCall(f"product_ids: {len(ids)} ids; give at most {MOST_IDS} a call")
    return list(ids[:MOST_IDS])


def whole_page(visit: Visit, page: int) -> int:
    """A page's number, from 0: compat takes a negative one for 0, strict refuses it."""
    if visit.strict and page < 0:
        raise BadCall(f"page: {page}; pages count from 0")
    return max(page, 0)
