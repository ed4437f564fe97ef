"""The pilot's report as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reporting.markup import Content, Markup, count, joined, percent, tag
from reporting.page import Column, Section, facts, interval, page, paragraph, table, whisker


def pilot_page(results: Mapping[str, Any], ways: Mapping[str, str], examples: Sequence[Mapping[str, Any]]) -> str:
    """The HTML of the report.

    Args:
        ways: what each way of finding products does, by its name in the results.
        examples: steps with the titles found for them, and whether each is right.
    """
    settings = results["settings"]
    lead = paragraph(
        f"For {count(results['steps'])} steps of {count(results['goals'])} goals, {settings['products']} of "
        f"{count(results['products'])} products each: how often one of them is a product that the shipped sample lists "
        "for the step. The sample's words and intents were written by the same hands; this compares ways of finding on "
        "one catalogue, and says nothing of another."
    )
    told = facts(
        [
            ("Encoder", f"{results['encoder']['checkpoint']}, {results['encoder']['pooling']} pooling"),
            ("Threshold", f"{settings['threshold']:g}, inclusive; applied in the last two columns alone"),
            ("Intervals", f"95 %, percentiles of {count(settings['resamples'])} bootstrap resamples of the goals"),
        ]
    )
    return page(
        "EcomScriptBench · pilot",
        "Search or purchase intents",
        lead,
        [
            Section("rates", f"Hit rate at {settings['products']}", _rates(results, ways)),
            Section("examples", "Examples", joined(map(_example, examples)), "Right products are marked.", wide=True),
            Section("facts", "How it was measured", told),
        ],
    )


def _rates(results: Mapping[str, Any], ways: Mapping[str, str]) -> Markup:
    head = [
        Column("Way"),
        Column("Hit rate", "number"),
        Column("0 to 1", "graphic"),
        Column("Less search", "number"),
        Column("Steps with products above the threshold", "number"),
        Column("Hit rate above it", "number"),
    ]
    first = next(iter(results["ways"].values()))["hit_rate"]["value"]
    rows: list[list[Content]] = []
    for place, (name, one) in enumerate(results["ways"].items()):
        aligned: list[Content] = [None, None, None]
        if place:
            aligned = [interval(one["difference"]), percent(one["with_products"]), interval(one["hit_rate_above"])]
        rows.append([ways[name], interval(one["hit_rate"]), whisker(one["hit_rate"], 0, 1, first), *aligned])
    return table("Four ways to find products for a step; the dashed line is search", head, rows)


def _example(example: Mapping[str, Any]) -> Markup:
    head = [Column("Step as a search query"), Column("Alignment by intents")]
    found = list(zip(*(map(_marked, example[way]) for way in ("search", "cosine_of_mean")), strict=False))
    return table(tag("span", example["goal"], ": ", tag("strong", example["step"])), head, [list(row) for row in found])


def _marked(found: tuple[str, bool]) -> Content:
    title, right = found
    return tag("strong", title, " ✓") if right else title
