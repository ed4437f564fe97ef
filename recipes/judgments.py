"""The three judgments by name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from recipes.base import Judgment
from recipes.holistic_verify import HOLISTIC_VERIFY
from recipes.script_verify import SCRIPT_VERIFY
from recipes.step_product import STEP_PRODUCT

JUDGMENTS: dict[str, Judgment[Any]] = {
    judgment.name: judgment for judgment in (SCRIPT_VERIFY, STEP_PRODUCT, HOLISTIC_VERIFY)
}


def get_judgment(name: str) -> Judgment[Any]:
    """The judgment of that name. Raises ValueError naming the nearest known one."""
    if name in JUDGMENTS:
        return JUDGMENTS[name]
    near = get_close_matches(name, JUDGMENTS, n=1, cutoff=0)
    raise ValueError(f"judgment {name!r} is not known; did you mean {near[0]!r}? Known: {', '.join(JUDGMENTS)}")
