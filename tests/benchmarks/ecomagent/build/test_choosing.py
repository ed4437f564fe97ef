"""What a task asks for: features of a product, and which source tells which of them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from errands import LAMP

from benchmarks.ecomagent.build import features, vouchers
from benchmarks.ecomagent.build.features import Feature, choose, extract, is_clean, price_cap
from benchmarks.ecomagent.build.intents import INTENTS
from benchmarks.ecomagent.build.kinds import Kinds
from benchmarks.ecomagent.build.negatives import negate
from benchmarks.ecomagent.build.opinions import opinions
from benchmarks.ecomagent.build.partition import split
from benchmarks.ecomagent.catalogue import Review
from benchmarks.ecomagent.fields import CANONICAL


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x" * 121,
        "Blue See more",
        "www.shop.example",
        "Tom &amp; Jerry",
        "Home › Kitchen",
        "B0ABCDEFGH",
        "Black-A01",
        "Blue 🌊",
        "12345",
        "Red Red Red",
        "not TPU)",
        "No",
        "4*Charger+4*6FT Cable",
        "V30+",
    ],
)
def test_values_that_no_shopper_would_ask_for_are_left_out(value: str) -> None:
    assert not is_clean(value, "Color")


def test_bare_numbers_are_values_of_few_attributes() -> None:
    assert is_clean("12", "Number of Items") and is_clean("6.7", "Screen Size")
    assert not is_clean("1", "Number of Items")  # a package of one is no wish


@pytest.mark.parametrize(
    ("price", "cap"), [(4.99, 5), (5.0, 10), (39.99, 40), (999.0, 1000), (1000.0, 1050), (1234, 1250)]
)
def test_a_price_is_asked_for_below_the_next_round_price(price: float, cap: int) -> None:
    assert price_cap(price) == cap


def test_ratings_are_asked_for_from_round_numbers_on() -> None:
    product = replace(LAMP, average_rating=4.3, rating_number=87, price=None)
    assert [feature.expected for feature in features.numeric(product)] == [{"min": 4.0}, {"min": 50}]
    few = replace(LAMP, average_rating=0.9, rating_number=9, price=None)
    assert list(features.numeric(few)) == []


def test_of_several_options_one_is_asked_for_and_other_names_are_understood() -> None:
    product = replace(LAMP, details={"Material Type": "Oak, Brass | Tin", "OS": "Linux, Windows", "Wattage": "8"})
    found = {feature.field: feature.expected for feature in extract(product, random.Random(1))}
    assert found["details.Material"] in ("Oak", "Brass", "Tin")
    assert found["details.Operating System"] == "Linux, Windows"  # not among the attributes with options
    assert "details.Wattage" not in found


def test_a_capacity_that_the_title_contradicts_or_another_repeats_is_left_out() -> None:
    details = {"RAM": "8 GB", "Memory Storage Capacity": "8 GB", "Hard Drive": "1 GB"}
    product = replace(LAMP, title="Phone 256GB / 8GB RAM", details=details)
    found = {feature.field for feature in extract(product, random.Random(1))}
    assert "details.RAM" in found
    assert not found & {"details.Memory Storage Capacity", "details.Hard Drive"}


def test_fields_that_were_used_least_come_first() -> None:
    every = [Feature(f"details.{name}", "attribute_match", "x", "x") for name in CANONICAL if name != "Brand"]
    used = {feature.field: 7 for feature in every} | {f"details.{name}": 0 for name in CANONICAL[1:6]}
    chosen = choose(every, INTENTS["product_search"], used, 6, random.Random(3))
    assert {feature.name for feature in chosen[:5]} == set(CANONICAL[1:6])
    assert len(chosen) == 6


def test_ratings_are_what_rating_quality_asks_for_and_coupons_leave_the_price_to_the_budget() -> None:
    for seed in range(20):
        rated = choose(extract(LAMP, random.Random(seed)), INTENTS["rating_quality"], {}, 4, random.Random(seed))
        assert {"average_rating", "rating_number"} <= {feature.field for feature in rated}
        priced = choose(extract(LAMP, random.Random(seed)), INTENTS["coupon_budget"], {}, 12, random.Random(seed))
        assert "price" not in {feature.field for feature in priced}


def test_an_exclusion_always_excludes_what_others_have_and_the_target_has_not() -> None:
    product = replace(LAMP, details={"Color": "Dark Blue", "Material": "Oak"})
    others = [replace(LAMP, id=color, details={"Color": color, "Material": "Oak"}) for color in ("Light Blue", "Red")]
    wanted = [Feature(f"details.{name}", "attribute_match", value, value) for name, value in product.details.items()]
    for seed in range(10):
        turned = negate(wanted, product, others, random.Random(seed))
        assert [(feature.type, feature.expected) for feature in turned] == [
            ("negative_attribute", ["Red"]),  # light blue is too near, and nobody has another material
            ("attribute_match", "Oak"),
        ]


def review(text: str, votes: int = 0, rating: float = 5.0) -> Review:
    return Review("B0LAMP0001", rating, "", text, votes, True, 0)


def test_opinions_are_what_buyers_said_of_the_product() -> None:
    told = [
        review("My sister bought it. The hinge stays firm for months.", 9),
        review("But it is heavy. It folds flat in a second.", 8),
        *(review("The light is warm, soft, even.", 0) for _ in range(8)),
        review("The hinge broke at once.", 99, rating=1.0),
    ]
    common = {"The light is warm, soft, even": 50}
    found = opinions(told, lambda statement: common.get(statement, 1), random.Random(0))
    claims = {feature.expected for feature in found}
    assert len(claims) == 2
    assert claims <= {
        "The hinge stays firm for months",
        "It folds flat in a second",
        "The light is warm, soft, even",
    }
    assert opinions(told[:9], lambda statement: 1, random.Random(0)) == []  # fewer than ten reviews


def test_vouchers_take_something_off_and_never_tell_the_price() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(400):
        price = random.Random(seed).uniform(5, 900)
        voucher = vouchers.draw(round(price, 2), random.Random(seed))
        kinds[voucher.discount_type] += 1
        assert voucher.price_after_voucher is not None and voucher.budget is not None
        assert 0.6 * price - 1 <= voucher.price_after_voucher < price
        assert voucher.price_after_voucher <= voucher.budget <= 1.08 * voucher.price_after_voucher + 0.011
        if voucher.tiers:
            first, second = voucher.tiers
            assert (first.threshold or 0) <= price < (second.threshold or 0)
    assert 120 < kinds["fixed"] + kinds["percentage"] < 280 and kinds["tiered"] > 50 and kinds["stacked"] > 50


def test_a_kind_is_what_categories_and_titles_call_a_product() -> None:
    office = replace(LAMP, title="Zweig Foldable Reading Lamp for Desks", categories=("Office", "Reading Lamps"))
    kind = Kinds([]).of(office)
    assert kind is not None and (kind.name, kind.span) == ("reading lamp", "Reading Lamp")
    shelf = [replace(LAMP, title=f"{name} Desk Clock, 20 cm") for name in ("Alba", "Brio", "Cado", "Dune")]
    kind = Kinds(shelf).of(shelf[0])
    assert kind is not None and (kind.name, kind.span) == ("desk clock", "Desk Clock")
    assert Kinds(shelf).of(replace(LAMP, title="Elba Egg Timer")) is None


def wishes(*names: str) -> list[Feature]:
    return [Feature(f"details.{name}", "attribute_match", f"value {name}", f"value {name}") for name in names]


NAMES = (
    "Brand",
    "Color",
    "Style",
    "Material",
    "Scent",
    "Pattern",
    "Closure",
    "Shape",
    "Finish Type",
    "Number of Items",
)
MANY = wishes(*NAMES)
SEARCH = INTENTS["product_search"]


def anything(feature: Feature) -> bool:
    return True


def test_every_feature_gets_one_source_within_the_intent_s_lists() -> None:
    for seed in range(30):
        dealt = split(MANY, "A title", SEARCH, lambda feature: feature.name != "Brand", random.Random(seed))
        assert dealt is not None
        parts = [*dealt.query, *dealt.persona, *dealt.clarification]
        assert sorted(feature.field for feature in parts) == sorted(feature.field for feature in MANY)
        assert (len(dealt.persona), len(dealt.clarification)) == (2, 2)  # a quarter of nine, and at least two
        assert {feature.name for feature in dealt.persona} <= set(NAMES[:5])
        assert {feature.name for feature in dealt.clarification} <= set(NAMES[5:9])
        assert len(dealt.implicit) == 2 and dealt.implicit <= {feature.field for feature in dealt.query}


def test_what_the_title_says_is_the_query_s_to_tell() -> None:
    for seed in range(30):
        dealt = split(MANY, "With value Color and value Shape", SEARCH, anything, random.Random(seed))
        assert dealt is not None
        assert {"details.Color", "details.Shape"} <= {feature.field for feature in dealt.query}


def test_minimums_are_kept_and_not_relaxed() -> None:
    few = wishes("Brand", "Color", "Pattern", "Closure", "Number of Items", "Sheet Size", "Shape")
    assert split(few, "", SEARCH, anything, random.Random(0)) is None  # three are left for the query
    assert split(MANY, "", SEARCH, lambda feature: False, random.Random(0)) is None  # there is nothing to hint at
