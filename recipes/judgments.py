"""The three judgments by name."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

from recipes.base import Judgment
from recipes.holistic_verify import HOLISTIC_VERIFY
from recipes.script_verify import SCRIPT_VERIFY
from recipes.step_product import STEP_PRODUCT

JUDGMENTS: dict[str, Judgment[Any]] = {
    judgment.name: judgment for judgment in (SCRIPT_VERIFY, STEP_PRODUCT, HOLISTIC_VERIFY)
}


def get_judgment(name: str, template_version: str = "") -> Judgment[Any]:
    """The judgment of that name, with as many purchase intents beside products as a judge's template says.

    Raises ValueError naming the nearest known one.
    """
    if name in JUDGMENTS:
        beside = re.search(r"\+intents(\d{1,3})$", template_version)
        return JUDGMENTS[name].with_intents(int(beside[1])) if beside else JUDGMENTS[name]
    near = get_close_matches(name, JUDGMENTS, n=1, cutoff=0)
    raise ValueError(f"judgment {name!r} is not known; did you mean {near[0]!r}? Known: {', '.join(JUDGMENTS)}")
