"""The ten tools of the shop, behind one door: schemas for the model, results as the model reads them.

`strict` (the default) matches at word boundaries, counts truly and says what it did; `compat` matches as the published
benchmark does, with its oddities.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from benchmarks.amazon_reviews.records import sound
from benchmarks.ecomagent.tools.base import BadCall, Mode, Script, Slot, Task, Tool, Visit
from benchmarks.ecomagent.tools.closing import PYTHON_EXECUTE, RECOMMEND_PRODUCT
from benchmarks.ecomagent.tools.products import FILTER_BY_ATTRIBUTE, GET_PRODUCT_DETAILS, GET_PRODUCT_REVIEW_STATS
from benchmarks.ecomagent.tools.reviews import GET_REVIEW_CONTENT
from benchmarks.ecomagent.tools.search import GET_STORE_PRODUCTS, SEARCH_PRODUCTS
from benchmarks.ecomagent.tools.shopper import ASK_USER, GET_USER_PROFILE

__all__ = ["TOOLS", "Mode", "Script", "Slot", "Task", "Toolbox"]

# The benchmark's order, in which models see them.
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        SEARCH_PRODUCTS,
        FILTER_BY_ATTRIBUTE,
        GET_PRODUCT_DETAILS,
        GET_REVIEW_CONTENT,
        GET_PRODUCT_REVIEW_STATS,
        GET_STORE_PRODUCTS,
        GET_USER_PROFILE,
        ASK_USER,
        PYTHON_EXECUTE,
        RECOMMEND_PRODUCT,
    )
}


@dataclass
class Toolbox(Visit):
    """The tools of one episode over a catalogue, and what came of them: ``Toolbox(catalogue, task, mode, sandbox)``.

    ``finished`` turns true with the recommendation; ``recommended`` is then the product's id, or None where the shop
    has no such product (compat only: strict refuses an unknown id). ``ask_count`` counts the turns that `ask_user`
    spent, ``profile_count`` the calls of `get_user_profile`; ``revealed`` lists the ids of the slots that were told.
    Without a ``sandbox`` all toolboxes share one.
    """

    def schemas(self) -> list[dict[str, Any]]:
        """The OpenAI function schemas, in the benchmark's order."""
        return [tool.schema(self.mode) for tool in TOOLS.values()]

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool with its arguments (an object, or JSON text); a bad call is a result ``{"error": ...}``.

        Raises only for what is wrong with the shop itself, such as a catalogue that can no longer be read.
        """
        try:
            if self.finished:
                raise BadCall("the visit has ended with the recommendation; no tool can be called any more")
            tool = TOOLS.get(name)
            if tool is None:
                near = get_close_matches(name, TOOLS, n=1, cutoff=0.6)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(TOOLS)}"
                raise BadCall(f"{name[:40]!r} is no tool; {hint}")
            return tool.run(self, tool.understood(_object(name, arguments)))
        except BadCall as error:
            return {"error": str(error)}


def _object(name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as an object of sound texts. Raises BadCall for what is no JSON, or no object."""
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
        given = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise BadCall(f"{name}: the arguments are no valid JSON ({error}); give one JSON object") from None
    if not isinstance(given, dict):
        raise BadCall(f"{name}: the arguments are JSON, but no object; give an object with the tool's arguments")
    return {sound(key): _sound(value) for key, value in given.items()}


def _sound(value: Any) -> Any:
    if isinstance(value, list):
        return [_sound(entry) for entry in value]
    return sound(value) if isinstance(value, str) else value
