"""Stage 1: products that an intent may take, in an order drawn by the seed, every category getting its equal share."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, zip_longest

from benchmarks.ecomagent.build.intents import Intent
from benchmarks.ecomagent.catalogue import Catalogue

SMALLEST_CATEGORY = 10_000  # eligible products; smaller categories are left out if there are larger ones
LOWEST_RATING, FEWEST_RATINGS = 4.0, 20


def eligible(catalogue: Catalogue, intent: Intent) -> dict[str, list[str]]:
    """Category -> ids of the products that fit the intent, in the order of the catalogue."""
    conditions = ["detail_field_count >= ?", "implicit_eligible_count >= ?", "title <> ''"]
    values: list[float] = [intent.details, intent.implicit]
    if intent.rated:
        conditions += ["average_rating >= ?", "rating_number >= ?"]
        values += [LOWEST_RATING, FEWEST_RATINGS]
    if intent.told:
        conditions.append("(has_features OR has_description)")
    if intent.priced:
        conditions.append("has_price")
    if intent.reviews:
        conditions.append("review_count >= ?")
        values.append(intent.reviews)
    query = "SELECT ifnull(main_category, ''), product_id FROM products"
    query += f" WHERE {' AND '.join(conditions)} ORDER BY rowid"
    found: dict[str, list[str]] = {}
    with closing(_open(catalogue)) as connection:
        for category, product_id in connection.execute(query, values):
            found.setdefault(category, []).append(product_id)
    large = {category: ids for category, ids in found.items() if len(ids) >= SMALLEST_CATEGORY}
    return large or found


def candidates(catalogue: Catalogue, intent: Intent, seed: int) -> Iterator[str]:
    """Eligible products, one of each category in turn."""
    queues = []
    for category, ids in sorted(eligible(catalogue, intent).items()):
        random.Random(f"{seed}:{intent.name}:{category}").shuffle(ids)
        queues.append(ids)
    random.Random(f"{seed}:{intent.name}").shuffle(queues)
    return (product_id for product_id in chain.from_iterable(zip_longest(*queues)) if product_id is not None)


def pool(catalogue: Catalogue, category: str, count: int, seed: int) -> list[str]:
    """Up to ``count`` products of a category, drawn by the seed: what a shopper might buy instead."""
    query = "SELECT product_id FROM products WHERE main_category = ?"
    query += f"{'' if category else ' OR main_category IS NULL'} ORDER BY rowid"
    with closing(_open(catalogue)) as connection:
        ids = [product_id for (product_id,) in connection.execute(query, (category,))]
    return ids if len(ids) <= count else random.Random(f"{seed}:{category}").sample(ids, count)


def products_saying(catalogue: Catalogue, statement: str) -> int:
    """How many products have a review with these words in a row."""
    words = " ".join(re.findall(r"\w+", statement))
    query = (
        "SELECT count(DISTINCT product_id) FROM reviews_fts JOIN reviews ON review_id = reviews_fts.rowid"
        " WHERE reviews_fts MATCH ?"
    )
    with closing(_open(catalogue)) as connection:
        return int(connection.execute(query, (f'"{words}"',)).fetchone()[0])


def _open(catalogue: Catalogue) -> sqlite3.Connection:
    return sqlite3.connect(f"{catalogue.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
