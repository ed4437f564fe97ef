"""Looking at products and reviews, in both modes, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_shop import PRODUCTS, shop, task

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.tools import Mode, Toolbox

ALL = [product["parent_asin"] for product in PRODUCTS]


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return shop(tmp_path_factory.mktemp("shop"))


def filtered(catalogue: Catalogue, mode: Mode, name: str, value: str, ids: list[str] = ALL) -> dict[str, Any]:
    given = {"product_ids": ids, "attribute_name": name, "attribute_value": value}
    return Toolbox(catalogue, task(), mode).call("filter_by_attribute", given)


@pytest.mark.parametrize(
    ("name", "value", "compat", "strict"),
    [
        ("color", "TEAL", ["LAMP1"], ["LAMP1"]),
        ("Color", "red", ["LAMP2", "LAMP3", "MUG1"], ["LAMP2", "LAMP3"]),  # "red" is inside "Infrared"
        ("Wattage", "8 watts", ["LAMP2", "LAMP3"], ["LAMP2"]),  # "8 watts" is inside "18 watts"
        ("Wattage", "18W", [], ["LAMP3"]),  # units and spaces are evened out
        ("Operating System", "any", [], ["CHARGER1"]),  # this product calls it OS
        ("os", "any", ["CHARGER1"], ["CHARGER1"]),
        ("Best Sellers Rank", "'lamps': 18", ["LAMP3"], ["LAMP3"]),  # the text of an object
        ("Col", "red", [], []),  # the whole name
        ("Color", "", ["LAMP1", "LAMP2", "LAMP3", "MUG1"], []),  # the empty text is inside every value
    ],
)
def test_filter_by_attribute(catalogue: Catalogue, name: str, value: str, compat: list[str], strict: list[str]) -> None:
    assert filtered(catalogue, "compat", name, value) == {"product_ids": compat}
    assert filtered(catalogue, "strict", name, value)["product_ids"] == strict


def test_compat_looks_at_the_first_ten_ids_and_drops_unknown_ones_in_silence(catalogue: Catalogue) -> None:
    assert filtered(catalogue, "compat", "Color", "teal", ["X"] * 10 + ["LAMP1"]) == {"product_ids": []}
    assert filtered(catalogue, "compat", "Color", "teal", ["X"] * 9 + ["LAMP1"]) == {"product_ids": ["LAMP1"]}


def test_strict_refuses_more_than_ten_ids_and_says_what_it_could_not_compare(catalogue: Catalogue) -> None:
    assert "11 ids; give at most 10" in filtered(catalogue, "strict", "Color", "teal", ["LAMP1"] * 11)["error"]
    assert filtered(catalogue, "strict", "Material", "Aluminum", ["LAMP1", "LAMP2", "X1"]) == {
        "product_ids": ["LAMP1"],
        "message": "not in the catalogue: X1; no attribute 'Material': LAMP2",
    }
    assert filtered(catalogue, "strict", "Color", "teal", ["LAMP1", "LAMP2"]) == {"product_ids": ["LAMP1"]}


@pytest.mark.parametrize("mode", ["strict", "compat"])
def test_details_show_everything_but_the_ratings(catalogue: Catalogue, mode: Mode) -> None:
    box = Toolbox(catalogue, task(), mode)
    assert box.call("get_product_details", {"product_id": "LAMP1"}) == {
        "product": {
            "product_id": "LAMP1",
            "title": "Kelvora Foldable USB-C Desk Lamp",
            "main_category": "Office Products",
            "store": "Kelvora",
            "price": 34.5,
            "features": ["Dims in five steps"],
            "description": ["A lamp that folds flat."],
            "details": {"Brand": "Kelvora", "Color": "Teal", "Material": "Aluminum", "Power Source": "USB"},
            "bought_together": None,
        }
    }
    ranked = box.call("get_product_details", {"product_id": "LAMP3"})["product"]
    assert ranked["details"]["Best Sellers Rank"] == {"Lamps": 18}
    assert list(box.call("get_product_details", {"product_id": "LAMP9"})) == ["error"]


def test_ratings_of_up_to_ten_products(catalogue: Catalogue) -> None:
    given = {"product_ids": ["LAMP2", "X", "MUG1"]}
    found = [
        {"product_id": "LAMP2", "average_rating": 3.9, "rating_number": 12},
        {"product_id": "MUG1", "average_rating": None, "rating_number": 0},
    ]
    compat, strict = (Toolbox(catalogue, task(), mode) for mode in ("compat", "strict"))
    assert compat.call("get_product_review_stats", given) == {"products": found}
    assert strict.call("get_product_review_stats", given) == {"products": found, "message": "not in the catalogue: X"}
    many = {"product_ids": ["X"] * 10 + ["LAMP2"]}
    assert compat.call("get_product_review_stats", many) == {"products": []}
    assert "11 ids" in strict.call("get_product_review_stats", many)["error"]


def reviews(catalogue: Catalogue, mode: Mode, query: str, product: str = "LAMP1") -> dict[str, Any]:
    return Toolbox(catalogue, task(), mode).call("get_review_content", {"query": query, "product_id": product})


def titles(result: dict[str, Any]) -> list[str]:
    return [review["title"] for review in result["reviews"]]


@pytest.mark.parametrize("mode", ["strict", "compat"])
def test_reviews_of_one_product_with_every_word(catalogue: Catalogue, mode: Mode) -> None:
    assert reviews(catalogue, mode, "hinge wobbles") == {
        "reviews": [
            {
                "product_id": "LAMP1",
                "rating": 2.0,
                "title": "Wobbly hinge",
                "text": "The hinge wobbles when the desk shakes.",
            }
        ]
    }
    assert titles(reviews(catalogue, mode, "good lamp")) == ["Good lamp"]  # the title counts too
    assert titles(reviews(catalogue, mode, "scratched", "LAMP2")) == ["No"]


def test_compat_wants_every_word_as_it_is(catalogue: Catalogue) -> None:
    assert titles(reviews(catalogue, "compat", "folds flat")) == ["Bright", "Good lamp"]  # 6 words beat 13
    for query, product in (("fold flat", "LAMP1"), ("folds wobbles", "LAMP1"), ("", "LAMP1"), ("desk", "LAMP9")):
        result = reviews(catalogue, "compat", query, product)
        assert result["reviews"] == [] and result["message"]


def test_strict_shows_reviews_with_the_most_words_and_says_so(catalogue: Catalogue) -> None:
    result = reviews(catalogue, "strict", "folding desks flat")
    # "desks" is "desk"; "folding" stands nowhere: Bright has desk and flat, the others one of them.
    assert titles(result) == ["Bright", "Wobbly hinge", "Good lamp"]
    assert "the first shown has 2 of 3" in result["message"]
    assert "message" not in reviews(catalogue, "strict", "desks flat")
    assert titles(reviews(catalogue, "strict", "wobbles lamp pricey")) == ["Good lamp", "Wobbly hinge"]


def test_strict_says_why_there_is_no_review(catalogue: Catalogue) -> None:
    assert "None of the 3 reviews" in reviews(catalogue, "strict", "zebra")["message"]
    assert "There are no reviews" in reviews(catalogue, "strict", "desk", "MUG1")["message"]
    assert "No product has the id 'LAMP9'" in reviews(catalogue, "strict", "desk", "LAMP9")["message"]
    assert "holds no word" in reviews(catalogue, "strict", "!?")["error"]


@pytest.mark.parametrize("mode", ["strict", "compat"])
def test_at_most_five_reviews(tmp_path_factory: pytest.TempPathFactory, mode: Mode) -> None:
    many = [{"parent_asin": "LAMP1", "rating": 5, "title": f"{number}", "text": "bright"} for number in range(8)]
    crowded = shop(tmp_path_factory.mktemp("crowded"), reviews=many)
    assert titles(reviews(crowded, mode, "bright")) == ["0", "1", "2", "3", "4"]
