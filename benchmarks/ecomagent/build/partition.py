"""Stage 3: every feature gets exactly one source that tells it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.ecomagent.build.features import Feature
from benchmarks.ecomagent.build.intents import Intent
from benchmarks.ecomagent.fields import NUMERIC
from benchmarks.ecomagent.tasks import Source
from benchmarks.ecomagent.wording import find

SHARE = 0.25  # of the features that can be hidden, for the profile and for answers each
FEWEST: dict[Source, int] = {"query": 4, "persona": 2, "clarification": 2}
ATTEMPTS = 20


@dataclass(frozen=True)
class Split:
    """Features by source, and which of the query's are to be hinted at rather than said."""

    query: tuple[Feature, ...]
    persona: tuple[Feature, ...]
    clarification: tuple[Feature, ...]
    implicit: frozenset[str]


def split(
    features: Sequence[Feature], title: str, intent: Intent, hintable: Callable[[Feature], bool], rng: random.Random
) -> Split | None:
    """Features dealt out by chance within the intent's lists; None where no deal of several meets every minimum.

    What the title says is told by the query, as searching would find it anyway. The intent's number of implicit
    requirements is kept, not relaxed: a deal that leaves the query too few that can be hinted at is dealt again.
    """
    for _ in range(ATTEMPTS):
        dealt = _deal(features, title, intent, rng)
        if dealt is None:
            continue
        query, persona, clarification = dealt
        fields = [feature.field for feature in query if hintable(feature)]
        if len(fields) >= intent.implicit:
            implicit = frozenset(rng.sample(fields, intent.implicit))
            return Split(tuple(query), tuple(persona), tuple(clarification), implicit)
    return None


def _deal(
    features: Sequence[Feature], title: str, intent: Intent, rng: random.Random
) -> tuple[list[Feature], list[Feature], list[Feature]] | None:
    able = {feature.field: source for feature in features if (source := _hidden_source(feature, title, intent))}
    order = [feature for feature in features if feature.field in able]
    rng.shuffle(order)
    hidden: dict[Source, list[Feature]] = {"persona": [], "clarification": []}
    for source, taken in hidden.items():
        wanted = max(FEWEST[source], int(len(order) * SHARE))
        taken += [feature for feature in order if able[feature.field] == source][:wanted]
        if len(taken) < FEWEST[source]:
            return None
    told = {feature.field for taken in hidden.values() for feature in taken}
    query = [feature for feature in features if feature.field not in told or feature.type == "review_opinion"]
    if len(query) < FEWEST["query"]:
        return None
    return query, hidden["persona"], hidden["clarification"]


def _hidden_source(feature: Feature, title: str, intent: Intent) -> Source | None:
    """The hidden source that may tell a feature; None where the query must."""
    if feature.type == "review_opinion" or (feature.name not in NUMERIC and _in_title(feature, title)):
        return None
    if feature.name in intent.persona or feature.type == "negative_attribute":
        return "persona"
    return "clarification" if feature.name in intent.clarification else None


def _in_title(feature: Feature, title: str) -> bool:
    values = feature.expected if isinstance(feature.expected, list) else [feature.expected]
    return any(any(find(title, value)) for value in values)
