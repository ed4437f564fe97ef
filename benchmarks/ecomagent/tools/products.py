"""Looking at products: their attributes, their details, their ratings."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.fields import named
from benchmarks.ecomagent.tools.base import MOST_IDS, Arguments, Tool, Visit, within_limit
from benchmarks.ecomagent.wording import find, words
from recipes.base import short_repr

ProductIds = Annotated[
    list[str], Field(description=f"a list of at most {MOST_IDS} product ids", json_schema_extra={"maxItems": MOST_IDS})
]


class FilterArguments(Arguments):
    product_ids: ProductIds
    attribute_name: str = Field(description="the attribute's name, such as Color")
    attribute_value: str = Field(description="the value that it should have, such as Teal")


class DetailsArguments(Arguments):
    product_id: str = Field(description="a product id")


class StatsArguments(Arguments):
    product_ids: ProductIds


def filter_by_attribute(visit: Visit, given: FilterArguments) -> dict[str, Any]:
    """Compat: the name equal but for case, the value anywhere in the value's text. Strict: names that mean the same
    (OS, Operating System), whole words ("8 GB" is not in "128 GB"), and what was not found is told."""
    ids = within_limit(visit, given.product_ids)
    name, value = given.attribute_name, given.attribute_value
    if not visit.strict:
        return {"product_ids": [one for one in ids if _has_text(visit.catalogue, one, name, value)]}
    kept, unknown, without = [], [], []
    for product_id in ids:
        product = visit.catalogue.product(product_id)
        values = [text for _, text in named(product.details, name)] if product else []
        if product is None:
            unknown.append(product_id)
        elif not values:
            without.append(product_id)
        elif any(_says(text, value) for text in values):
            kept.append(product_id)
    notes = [f"not in the catalogue: {', '.join(unknown)}"] if unknown else []
    notes += [f"no attribute {short_repr(name)}: {', '.join(without)}"] if without else []
    return {"product_ids": kept} | ({"message": "; ".join(notes)} if notes else {})


def _has_text(catalogue: Catalogue, product_id: str, name: str, value: str) -> bool:
    product = catalogue.product(product_id)
    details = product.details if product else {}
    return any(key.lower() == name.lower() and value.lower() in text.lower() for key, text in details.items())


def _says(text: str, value: str) -> bool:
    """Whether the value's words stand in the text one after the other."""
    return any(True for _ in find(text, value)) if words(value) else value.strip() == text.strip()


def get_product_details(visit: Visit, given: DetailsArguments) -> dict[str, Any]:
    """Everything but the ratings, which have their own tool. ``bought_together`` is null, as the catalogue lacks it."""
    record = visit.catalogue.record(given.product_id)
    if record is None:
        return {"error": f"no product has the id {short_repr(given.product_id)}; ids come from search_products"}
    shown = ("title", "main_category", "store", "price", "features", "description", "details")
    product = {"product_id": given.product_id} | {name: record[name] for name in shown} | {"bought_together": None}
    return {"product": product}


def get_product_review_stats(visit: Visit, given: StatsArguments) -> dict[str, Any]:
    found, unknown = [], []
    for product_id in within_limit(visit, given.product_ids):
        product = visit.catalogue.product(product_id)
        if product is None:
            unknown.append(product_id)
            continue
        rating, number = product.average_rating, product.rating_number
        found.append({"product_id": product_id, "average_rating": rating, "rating_number": number})
    note = {"message": f"not in the catalogue: {', '.join(unknown)}"} if unknown and visit.strict else {}
    return {"products": found} | note


FILTER_BY_ATTRIBUTE = Tool(
    "filter_by_attribute",
    f"Of up to {MOST_IDS} products, keep those whose attribute has a value. It looks at the details of these products "
    "only and searches nothing else.",
    FilterArguments,
    filter_by_attribute,
    "Values are compared word by word; a message says which products lack the attribute.",
)
GET_PRODUCT_DETAILS = Tool(
    "get_product_details",
    "Everything the catalogue says of one product: title, category, store, price, features, description and "
    "attributes. Ratings are not part of it.",
    DetailsArguments,
    get_product_details,
)
GET_PRODUCT_REVIEW_STATS = Tool(
    "get_product_review_stats",
    f"The average rating and the number of ratings of up to {MOST_IDS} products.",
    StatsArguments,
    get_product_review_stats,
)
