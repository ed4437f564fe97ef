"""Amazon ESCI (Reddy et al. 2022): a query, a product and a grade -> ``step_product``.

Grades are E (exact), S (substitute), C (complement) and I (irrelevant); ``Options.yes`` says which count as label 1,
all others are 0. The published files are two, examples and products, which are joined on locale and product id
(``Options.products``); a single file with the product columns in it is taken as it is.

The query stands for the goal, and the step says what one does with it: "Buy: wireless mouse". Brand, color and bullet
points become the product's features in this order, so that a product that is too long loses its last bullet points
first. The published split is left aside (kept as ``meta.split``), since it lets products cross.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recipes.faults import DataFaults, Fault
from recipes.importing.files import Options, Skipped, clean, group_name, make, source_rows
from recipes.step_product import StepProductRecord

GRADES = {"exact": "E", "substitute": "S", "complement": "C", "irrelevant": "I"}
Key = tuple[str, str]


def read(path: Path, options: Options, skipped: Skipped) -> Iterator[StepProductRecord]:
    """A record for each row of the locale, in the order of the file."""
    if strange := set(options.yes) - set(GRADES.values()):
        raise ValueError(f"grades that count as yes: {', '.join(sorted(strange))} is no grade; give E, S, C or I")
    if options.products is None:
        rows = _examples(path, options, skipped, ("query", "product_title", "esci_label"))
        yield from _records(path, rows, {}, options, skipped)
        return
    joined = list(_examples(path, options, skipped, ("query", "product_id", "esci_label")))
    wanted = {_key(value) for _, value in joined}
    products = {
        key: row.value
        for row in source_rows(options.products, ("product_id", "product_title"))
        if (key := _key(row.value)) in wanted
    }
    yield from _records(path, iter(joined), products, options, skipped)


Example = tuple[int, Mapping[str, Any]]


def _key(value: Mapping[str, Any]) -> Key:
    return str(value.get("product_locale") or ""), str(value["product_id"])


def _examples(path: Path, options: Options, skipped: Skipped, need: tuple[str, ...]) -> Iterator[Example]:
    for row in source_rows(path, need):
        locale = row.value.get("product_locale")
        if options.locale and locale and locale != options.locale:
            skipped[f"rows of other locales than {options.locale}"] += 1
        else:
            yield row.line, row.value


def _records(
    path: Path, rows: Iterator[Example], products: Mapping[Key, Mapping[str, Any]], options: Options, skipped: Skipped
) -> Iterator[StepProductRecord]:
    for line, value in rows:
        if options.products is not None:
            if _key(value) not in products:
                skipped["rows whose product is not in the products file"] += 1
                continue
            value = {**products[_key(value)], **value}
        grade = GRADES.get(str(value["esci_label"]).strip().lower(), str(value["esci_label"]).strip().upper())
        if grade not in GRADES.values():
            message = f"{value['esci_label']!r} is not a grade; give E, S, C or I"
            raise DataFaults([Fault(str(path), line, "esci_label", message)])
        record = make(StepProductRecord, skipped, _fields(line, value, grade, options))
        if record is not None:
            yield record


def _fields(line: int, value: Mapping[str, Any], grade: str, options: Options) -> dict[str, Any]:
    query = clean(value["query"])
    aside = [(name, clean(value.get(f"product_{name.lower()}"))) for name in ("Brand", "Color")]
    points = value.get("product_bullet_point")
    bullets = [clean(point) for point in points.splitlines()] if isinstance(points, str) else []
    meta = {"grade": grade, "locale": value.get("product_locale"), "split": value.get("split")}
    return {
        "id": f"esci-{value.get('example_id') if value.get('example_id') is not None else line}",
        "goal": query,
        "step": f"Buy: {query}",
        "product": {
            "title": clean(value["product_title"]),
            "features": [*(f"{name}: {text}" for name, text in aside if text), *(text for text in bullets if text)],
            "description": clean(value.get("product_description")),
        },
        "label": int(grade in options.yes),
        "group": group_name(query or ""),
        "meta": {name: entry for name, entry in meta.items() if entry is not None},
    }
