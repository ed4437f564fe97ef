"""The ten tools of the shop, behind one door: schemas for the model, results as the model reads them.

`strict` (the default) matches at word boundaries, counts truly and says what it did; `compat` matches as the published
benchmark does, with its oddities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from benchmarks.ecomagent.catalogue import Catalogue

Mode = Literal["strict", "compat"]


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
    """What the tools need of a task. ``user_persona``: a mapping, or a pydantic model that dumps to one."""

    @property
    def user_persona(self) -> Any: ...
    @property
    def clarification_script(self) -> Script: ...


class Toolbox:
    """The tools of one episode over a catalogue, and what came of them.

    ``finished`` turns true with the recommendation; ``recommended`` is then the product's id, or None where the shop
    has no such product (compat only: strict refuses an unknown id). ``ask_count`` and ``profile_count`` count the calls
    of `ask_user` and `get_user_profile`; ``revealed`` lists the ids of the slots that were told.
    """

    def __init__(self, catalogue: Catalogue, task: Task, mode: Mode = "strict", sandbox: Any = None) -> None:
        self.catalogue, self.task, self.mode, self.sandbox = catalogue, task, mode, sandbox
        self.finished = False
        self.recommended: str | None = None
        self.reasoning = ""
        self.ask_count = 0
        self.profile_count = 0
        self.revealed: list[str] = []

    def schemas(self) -> list[dict[str, Any]]:
        """The OpenAI function schemas, in the benchmark's order."""
        raise NotImplementedError

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool with its arguments (an object, or JSON text); a bad call is a result ``{"error": ...}``."""
        raise NotImplementedError
