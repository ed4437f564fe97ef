"""Finding products by words and by store, in both modes, worked out by hand over a shop of seven products."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_shop import shop, task

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.tools import Mode, Toolbox
from benchmarks.ecomagent.tools import search as search_tool
from benchmarks.ecomagent.tools.matching import compat_expression, together, words_of


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def spoons(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    products = [{"parent_asin": f"S{number:02d}", "title": "Plain Spoon", "store": "Brimby"} for number in range(45)]
    return shop(tmp_path_factory.mktemp("spoons"), products, [])


def search(catalogue: Catalogue, mode: Mode, query: str, **more: Any) -> dict[str, Any]:
    return Toolbox(catalogue, task(), mode).call("search_products", {"query": query} | more)


def ids(result: dict[str, Any]) -> list[str]:
    return [product["product_id"] for product in result["products"]]


@pytest.mark.parametrize("mode", ["strict", "compat"])
def test_results_have_the_benchmarks_keys(catalogue: Catalogue, mode: Mode) -> None:
    assert search(catalogue, mode, "brightly") == {
        "products": [{"product_id": "LAMP3", "title": "Brightly Floor Lamp"}],
        "page": 0,
        "total_found": 1,
    }


@pytest.mark.parametrize("mode", ["strict", "compat"])
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("desk lamp", ["LAMP2", "LAMP1"]),  # equal words; the shorter title is the better match
        ("LAMP DESK", ["LAMP2", "LAMP1"]),  # neither case nor order matters
        ("usb c charger", ["CHARGER1"]),  # no stemming: "Chargers" is another word
        ("usb c", ["CHARGER1", "CABLE1", "LAMP1", "CHARGER2"]),  # title lengths 4, 5, 6, 7; all words, in any order
        ("usb-c", ["CHARGER1", "LAMP1", "CHARGER2"]),  # a phrase: "Cable C to USB" lacks it
        ("cafe mug", ["MUG1"]),  # accents do not count
        ("kelvora & lamp", ["LAMP2", "LAMP1"]),  # a sign alone is no word
    ],
)
def test_every_word_must_stand_in_the_title(catalogue: Catalogue, mode: Mode, query: str, found: list[str]) -> None:
    assert ids(search(catalogue, mode, query)) == found


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("usb-c charger", '"usb c" "charger"'),
        ('the "big" (red) lamp*', '"the" "big" "red" "lamp"'),
        ("title:lamp ~^+", '"title lamp"'),
        ("- * :", ""),
        ("", ""),
        ("men's 12.5", '"men\'s" "12.5"'),
    ],
)
def test_compat_quotes_each_token(query: str, expression: str) -> None:
    assert compat_expression(query) == expression


def test_compat_finds_nothing_where_a_word_is_missing_and_says_nothing(catalogue: Catalogue) -> None:
    nothing = {"products": [], "page": 0, "total_found": 0}
    assert search(catalogue, "compat", "teal kelvora desk lamp") == nothing
    assert search(catalogue, "compat", "") == nothing
    assert search(catalogue, "compat", '"*()') == nothing


def test_compat_counts_what_it_fetched_and_takes_a_negative_page_for_the_first(spoons: Catalogue) -> None:
    pages = {page: search(spoons, "compat", "spoon", page=page) for page in (0, 1, 2, 3)}
    assert {page: (len(found["products"]), found["total_found"]) for page, found in pages.items()} == {
        0: (20, 20),
        1: (20, 40),
        2: (5, 45),
        3: (0, 45),
    }
    assert search(spoons, "compat", "spoon", page=-4) == pages[0]


def test_strict_counts_all_matches_on_every_page(spoons: Catalogue) -> None:
    pages = [search(spoons, "strict", "spoon", page=page) for page in (0, 1, 2, 3)]
    assert [found["total_found"] for found in pages] == [45] * 4
    assert [one for found in pages for one in ids(found)] == [f"S{number:02d}" for number in range(45)]
    assert "pages count from 0" in search(spoons, "strict", "spoon", page=-1)["error"]


def test_strict_leaves_out_what_no_title_has_and_says_so(catalogue: Catalogue) -> None:
    result = search(catalogue, "strict", "teal Kelvora desk lamp")
    assert (ids(result), result["total_found"]) == (["LAMP2", "LAMP1"], 2)
    assert "that have: kelvora, desk, lamp. Left out: teal." in result["message"]


def test_strict_keeps_the_most_words_that_go_together(catalogue: Catalogue) -> None:
    # Both lamps have three of the four words; "clamp" (one title) is rarer than "usb" (four), so its lamp is shown.
    result = search(catalogue, "strict", "kelvora lamp usb clamp")
    assert (ids(result), result["total_found"]) == (["LAMP2"], 1)
    assert "that have: kelvora, lamp, clamp. Left out: usb." in result["message"]


def test_a_rare_word_that_goes_with_no_other_does_not_decide(catalogue: Catalogue) -> None:
    assert ids(search(catalogue, "strict", "mug kelvora desk")) == ["LAMP2", "LAMP1"]


def test_strict_says_when_no_title_has_any_of_the_words(catalogue: Catalogue) -> None:
    result = search(catalogue, "strict", "zebra unicorn")
    assert (result["products"], result["total_found"]) == ([], 0)
    assert "No title has any of these words" in result["message"]


def test_pages_of_the_fallback_go_on(spoons: Catalogue) -> None:
    result = search(spoons, "strict", "silver spoon", page=2)
    assert (len(result["products"]), result["total_found"]) == (5, 45)


def test_strict_does_not_rank_what_is_too_much_and_says_so(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_tool, "MOST_RANKED", 2)
    result = search(catalogue, "strict", "usb c")
    assert ids(result) == ["LAMP1", "CHARGER1", "CHARGER2", "CABLE1"]  # the order of the catalogue
    assert result["total_found"] == 4 and "More than 2 titles match" in result["message"]
    assert ids(search(catalogue, "strict", "desk lamp")) == ["LAMP2", "LAMP1"]
    assert ids(search(catalogue, "compat", "usb c")) == ["CHARGER1", "CABLE1", "LAMP1", "CHARGER2"]


@pytest.mark.parametrize("query", ["", "  ", "& - *", "\u200b", "x" * 301])
def test_strict_refuses_what_it_cannot_search(catalogue: Catalogue, query: str) -> None:
    assert "query" in search(catalogue, "strict", query)["error"]


def test_words_of_a_query() -> None:
    assert words_of('USB-C "desk lamp", 12.5" & more; USB-C') == ["usb-c", "desk", "lamp", "12.5", "more"]
    assert words_of("men's AT&T a_b (4*Charger)") == ["men's", "at&t", "a", "b", "4", "charger"]


def test_words_that_go_together_agree_with_trying_every_subset() -> None:
    """On all subsets of small texts: what is kept occurs, cannot be added to, and is empty only if nothing occurs."""
    texts = ["a b", "a c d", "b c", "e", "a b c f", "d e f"]

    def count(expression: str) -> int:
        wanted = {word.strip('"') for word in expression.split()}
        return sum(wanted <= set(text.split()) for text in texts)

    for words in (["a", "b", "d"], ["e", "a", "f", "c"], ["x", "y"], ["x", "e"], ["d", "b", "e", "c", "f"]):
        kept = together(words, count, lambda expression: count(expression) > 0)
        occurring = [word for word in words if any(word in text.split() for text in texts)]
        assert bool(kept) == bool(occurring)
        if kept:
            assert count(" ".join(kept)) > 0
            assert all(count(" ".join([*kept, word])) == 0 for word in occurring if word not in kept)
            assert kept == [word for word in words if word in kept]


@pytest.mark.parametrize("mode", ["strict", "compat"])
def test_a_store_has_its_products_in_pages(catalogue: Catalogue, spoons: Catalogue, mode: Mode) -> None:
    box = Toolbox(catalogue, task(), mode)
    assert box.call("get_store_products", {"store_name": "kelvora"}) == {
        "store": "kelvora",
        "products": [{"product_id": "LAMP3", "title": "Brightly Floor Lamp"}],
        "page": 0,
        "total_count": 1,
    }
    last = Toolbox(spoons, task(), mode).call("get_store_products", {"store_name": "Brimby", "page": 2})
    assert ids(last) == [f"S{number}" for number in range(40, 45)]
    assert (last["page"], last["total_count"]) == (2, 45)


def test_an_unknown_store_is_empty_and_strict_says_how_names_are_written(catalogue: Catalogue) -> None:
    given = {"store_name": "KELVORA"}
    empty = {"store": "KELVORA", "products": [], "page": 0, "total_count": 0}
    assert Toolbox(catalogue, task(), "compat").call("get_store_products", given) == empty
    strict = Toolbox(catalogue, task(), "strict").call("get_store_products", given)
    assert strict.items() >= empty.items() and "exactly this name" in strict["message"]
