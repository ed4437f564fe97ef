"""Finding products: by the words of their titles, and by store."""

from __future__ import annotations

import sqlite3
from typing import Any

from pydantic import Field

from benchmarks.ecomagent.tools.base import PAGE_SIZE, Arguments, BadCall, Tool, Visit, listed, whole_page
from benchmarks.ecomagent.tools.matching import compat_expression, expression, together, words_of

LAST_PAGE = 100_000
LONGEST_QUERY = 300
MOST_RANKED = 30_000
"""Titles that strict mode ranks: a search stays below 50 ms, also among millions of products."""


class SearchArguments(Arguments):
    query: str = Field(description="words that the product's title should have")
    page: int = Field(default=0, le=LAST_PAGE, description="which page of 20 results, from 0")


class StoreArguments(Arguments):
    store_name: str = Field(description="the store's exact name")
    page: int = Field(default=0, le=LAST_PAGE, description="which page of 20 results, from 0")


def search_products(visit: Visit, given: SearchArguments) -> dict[str, Any]:
    page = whole_page(visit, given.page)
    return _strict_search(visit, given.query, page) if visit.strict else _compat_search(visit, given.query, page)


def _compat_search(visit: Visit, query: str, page: int) -> dict[str, Any]:
    """``total_found`` counts the results up to the end of this page, which is no total: so does the original."""
    wanted = compat_expression(query)
    try:
        found = visit.catalogue.search(wanted, (page + 1) * PAGE_SIZE) if wanted else []
    except sqlite3.OperationalError:
        found = []
    return {"products": listed(found[page * PAGE_SIZE :]), "page": page, "total_found": len(found)}


def _strict_search(visit: Visit, query: str, page: int) -> dict[str, Any]:
    if len(query) > LONGEST_QUERY:
        raise BadCall(f"query: {len(query)} characters; give at most {LONGEST_QUERY}, the words that matter most")
    words = words_of(query)
    if not words:
        raise BadCall("query: holds no word; give words that the product's title should have")
    catalogue, note = visit.catalogue, {}
    total = catalogue.count(expression(words))
    if not total:
        kept = together(words, catalogue.count, catalogue.occurs)
        note = {"message": _told(words, kept)}
        words = kept
        total = catalogue.count(expression(words)) if words else 0
    ranked = total <= MOST_RANKED
    if not ranked:
        note = {"message": f"More than {MOST_RANKED:,} titles match, too many to rank; add words that tell them apart."}
    found = catalogue.search(expression(words), PAGE_SIZE, page * PAGE_SIZE, ranked) if total else []
    return {"products": listed(found), "page": page, "total_found": total} | note


def _told(words: list[str], kept: list[str]) -> str:
    """What the fallback did, for the model to read."""
    if not kept:
        return "No title has any of these words. Try other words for the same thing, singular or plural."
    left_out = ", ".join(word for word in words if word not in kept)
    return f"No title has all of these words. Shown are the titles that have: {', '.join(kept)}. Left out: {left_out}."


def get_store_products(visit: Visit, given: StoreArguments) -> dict[str, Any]:
    page, name = whole_page(visit, given.page), given.store_name
    found = visit.catalogue.store(name, PAGE_SIZE, page * PAGE_SIZE)
    total = visit.catalogue.store_count(name)
    result = {"store": name, "products": listed(found), "page": page, "total_count": total}
    if visit.strict and not total:
        result["message"] = "No store has exactly this name; product details tell a store's name as it is written."
    return result


SEARCH_PRODUCTS = Tool(
    "search_products",
    "Search the catalogue by the words of product titles; 20 results a page, best match first. Only titles are "
    "searched, and a title must have every word as it is typed (charger does not find chargers): few words find more.",
    SearchArguments,
    search_products,
    "Where no title has them all, titles with as many of them as go together are shown, and a message says which words "
    "were left out. total_found counts all matches.",
)
GET_STORE_PRODUCTS = Tool(
    "get_store_products",
    "List the products of one store, 20 a page. The name must be written exactly as in the product's details.",
    StoreArguments,
    get_store_products,
)
