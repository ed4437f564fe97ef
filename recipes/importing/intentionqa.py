"""IntentionQA task 2 (Ding et al. 2024): a purchase intention, the product bought, others -> ``step_product``.

Four traps, and what is done about them:

- Item A is not shown. The right answer was bought together with it and is often the same kind of product, so that the
  option that shares most words with item A's title is right in 86 % of the four-option items.
- The letter of the right option is ignored; right is ``item_b_name``, wrong are the other ``options`` as listed (some
  items have fewer than three, and the marker -1 among the distractors stands for a false one that was removed).
- Right products alone tie the 1,756 items together into 380 groups, the largest of 983; with the wrong ones nearly all
  are one group. So the splits are those of ``split_apart``, which loses wrong products only (seed 0).
- Two items can have the same intention: a product that is right in one of them is not taken as wrong in the other.

The intention says "PersonX bought a product of Item A and a product of Item B because they both are ...". Without
item A that is said of one product: goal "PersonX wants to buy a product because it is ...", step "Buy a product: it is
...".
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from recipes.importing.files import Options, Skipped, clean, entries, group_name, make, source_rows
from recipes.step_product import StepProductRecord

LEAD_IN = re.compile(r"^PersonX bought a product of Item A and a product of Item B (because|as a result,)\s+", re.I)
OF_ONE = (
    (re.compile(r"^they (?:both are|are both)\b", re.I), "it is"),
    (re.compile(r"^they (?:both were|were both)\b", re.I), "it was"),
    (re.compile(r"^they both have\b", re.I), "it has"),
    (re.compile(r"^they (could|can|will|would) both\b", re.I), r"it \1"),
)


def goal_and_step(assertion: str) -> tuple[str, str] | None:
    """The intention as (goal, step) about one product; None where it still names item A or B."""
    match = LEAD_IN.match(assertion)
    reason = assertion[match.end() :] if match else assertion
    for pattern, words in OF_ONE:
        reason = pattern.sub(words, reason)
    if re.search(r"\bItem [AB]\b", reason):
        return None
    reason = reason.rstrip(" .") + "."
    bond = "because" if match and match[1].lower() == "because" else "so that, as a result,"
    goal = f"PersonX wants to buy a product {bond} {reason}" if match else reason
    return goal, f"Buy a product: {reason}"


def read(path: Path, options: Options, skipped: Skipped) -> Iterator[StepProductRecord]:
    """For each item the right product and every wrong one; ``choose_wrong`` picks among the wrong ones later."""
    for row in source_rows(path, ("id", "item_b_name", "assertion", "options")):
        value = row.value
        texts = goal_and_step(clean(value["assertion"]) or "")
        if texts is None:
            skipped["items whose intention names item A or B"] += 1
            continue
        right = clean(value["item_b_name"])
        listed = [clean(title) for title in entries(value["options"])]
        for place, title in enumerate([right, *(title for title in listed if title != right)]):
            fields = {
                "id": f"{value['id']}-{place}",
                "goal": texts[0],
                "step": texts[1],
                "product": {"title": title},
                "label": int(place == 0),
                "group": group_name(texts[0]),
                "meta": {"item": str(value["id"])},
            }
            record = make(StepProductRecord, skipped, fields)
            if record is not None:
                yield record


def choose_wrong(records: Sequence[StepProductRecord], rng: random.Random, options: Options) -> list[StepProductRecord]:
    """All right products, and ``options.negatives`` wrong ones of each item, drawn at random where it has more."""
    wrong: defaultdict[str, list[str]] = defaultdict(list)
    for record in records:
        if record.label == 0:
            wrong[(record.meta or {})["item"]].append(record.id)
    chosen = {name for names in wrong.values() for name in rng.sample(names, min(options.negatives, len(names)))}
    return [record for record in records if record.label == 1 or record.id in chosen]
