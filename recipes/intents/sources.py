"""The published files of purchase intents: FolkScope's and MIND's CSV, IntentionQA's first task; a row to raw records.

All three tell of two products that were bought together ("... because they both are a type of cable"). What is said of
both is taken as said of each: "because it is a type of cable". An intent that sets the two against each other ("Item A
protects Item B") is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recipes.importing.files import Skipped, clean
from recipes.importing.intentionqa import LEAD_IN, OF_ONE

Fields = dict[str, Any]
NAMES_ONE = re.compile(r"\b(Item|Product) [AB12]\b", re.I)
# Relations of FolkScope that are said without "both", besides those of IntentionQA.
THEY = ((re.compile(r"^they are\b", re.I), "it is"), (re.compile(r"^they have\b", re.I), "it has"))
# MIND's answers begin as its prompt asks them to; what follows their first sentence describes the two products.
MIND_LEAD_IN = re.compile(r"^The potential (co-buy )?intention\b.*?\b(could|would|might) be (that |because )?", re.I)


@dataclass(frozen=True)
class Source:
    """``need``: the columns by which a file is known; ``read``: one row's records, as raw fields without ids."""

    name: str
    need: tuple[str, ...]
    read: Callable[[Mapping[str, Any], Skipped], Iterator[Fields]]


def of_one(text: str | None) -> str | None:
    """A co-purchase intent as said of one product, from its "because" on; None where it cannot be."""
    match = LEAD_IN.match(text or "")
    reason = (text or "")[match.end() :] if match else re.sub(r"^because\s+", "", text or "", flags=re.I)
    for pattern, words in (*OF_ONE, *THEY):
        reason = pattern.sub(words, reason)
    if not reason or NAMES_ONE.search(reason):
        return None
    bond = "so that, as a result," if match and match[1].lower() != "because" else "because"
    return f"{bond} {reason.rstrip(' .')}."


def _folkscope(row: Mapping[str, Any], skipped: Skipped) -> Iterator[Fields]:
    told = {"relation": row["relation"], **_scores(row)}
    yield from _of_both(row, ("item_a_name", "item_b_name"), [(row["assertion"], 1)], told, skipped)


def _scores(row: Mapping[str, Any]) -> Fields:
    """The scores of a row, each None where it is empty or NaN, which is how tables write that there is none."""
    found = {name: row.get(name) for name in ("plausibility", "typicality")}
    return {name: None if str(score).strip().lower() in ("", "nan") else score for name, score in found.items()}


def _mind(row: Mapping[str, Any], skipped: Skipped) -> Iterator[Fields]:
    if str(row.get("Agreement") or "").strip().lower().startswith("no"):
        skipped["rows that MIND's own filter does not agree with"] += 1
        return
    first = re.split(r"(?<=[.!?])\s+", clean(row["Intention"]) or "", maxsplit=1)[0]
    reason = MIND_LEAD_IN.sub("", first)
    yield from _of_both(row, ("Product_a", "Product_b"), [(reason, 1)], {"relation": row["Relation"]}, skipped)


def _intentionqa(row: Mapping[str, Any], skipped: Skipped) -> Iterator[Fields]:
    if "distractors_product" in row:
        raise ValueError("this is IntentionQA's task 2, a judgment; the intents are in task 1")
    right = clean(row["assertion"])
    options = row["options"] if isinstance(row["options"], Mapping) else {}
    wrong = [clean(text) for letter, text in options.items() if letter != row["gold_ind"]]
    said = [(right, 1), *((text, 0) for text in wrong if text)]
    told = {"relation": row["relation"], **_scores(row)}
    yield from _of_both(row, ("item_a_name", "item_b_name"), said, told, skipped)


def _of_both(
    row: Mapping[str, Any], titles: tuple[str, str], said: list[tuple[Any, int]], told: Fields, skipped: Skipped
) -> Iterator[Fields]:
    """For each of the two products a record of every intent that can be said of one."""
    for text, label in said:
        intent = of_one(clean(text))
        if intent is None:
            skipped["intents that are empty or set the two products against each other"] += 1
            continue
        for title in dict.fromkeys(clean(row[name]) for name in titles):
            yield {"product": {"title": title}, "intent": intent, "label": label, **told}


SOURCES = (
    Source("intentionqa", ("item_a_name", "item_b_name", "relation", "assertion", "options", "gold_ind"), _intentionqa),
    Source("folkscope", ("item_a_name", "item_b_name", "relation", "assertion"), _folkscope),
    Source("mind", ("Product_a", "Product_b", "Intention", "Relation"), _mind),
)


def source_of(columns: Mapping[str, Any]) -> Source | None:
    """The source whose columns these are; None for our own format, or what no source has."""
    return next((source for source in SOURCES if set(source.need) <= columns.keys()), None)
