"""The shipped shop keeps its promises: size, variety, truth of what is said, and enough for every intent."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.fields import CANONICAL, HINTABLE, canonical
from benchmarks.ecomagent.sample import build as sample
from benchmarks.ecomagent.sample.products import SLOT, product
from benchmarks.ecomagent.sample.schema import fitting, load_categories, load_opinions
from benchmarks.ecomagent.samples import open_catalogue

CATEGORIES = load_categories()
FAMILIES = [(category, family) for category in CATEGORIES for family in category.families]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    sample.build_sample(folder / "shop.db", folder)
    return folder


@pytest.fixture(scope="module")
def catalogue(files: Path) -> Catalogue:
    return Catalogue(files / "shop.db")


def read(files: Path, pattern: str) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(files.glob(pattern)) for line in path.read_text().splitlines()]


def test_640_products_of_8_categories_and_more_than_4000_reviews(files: Path) -> None:
    products, reviews = read(files, "meta_*.jsonl"), read(files, "reviews_*.jsonl")
    assert len(products) == len({one["parent_asin"] for one in products}) == 640
    assert Counter(one["main_category"] for one in products) == {category.category: 80 for category in CATEGORIES}
    assert len(CATEGORIES) == 8
    assert len(reviews) >= 4000
    assert {one["parent_asin"] for one in reviews} <= {one["parent_asin"] for one in products}


def test_the_files_have_the_fields_of_amazon_reviews_2023(files: Path) -> None:
    fields = "main_category title average_rating rating_number features description price images videos store"
    fields += " categories details parent_asin bought_together"
    assert all(one.keys() == set(fields.split()) for one in read(files, "meta_*.jsonl"))
    fields = "rating title text images asin parent_asin user_id timestamp helpful_vote verified_purchase"
    assert all(one.keys() == set(fields.split()) for one in read(files, "reviews_*.jsonl"))


def test_the_catalogue_takes_all_of_it(files: Path, catalogue: Catalogue) -> None:
    assert len(catalogue) == 640
    summary = sample.build_sample(files / "again.db", files / "again")
    assert summary["products"] == 640 and summary["reviews"] == len(read(files, "reviews_*.jsonl"))
    assert not any(count for name, count in summary.items() if name.endswith(("_aside", "_repeated", "_out")))
    assert (files / "again.db").read_bytes() == (files / "shop.db").read_bytes()


def test_another_seed_gives_another_shop(files: Path) -> None:
    sample.write_files(files / "other", seed=1)
    assert {one["title"] for one in read(files / "other", "meta_*.jsonl")} != {
        one["title"] for one in read(files, "meta_*.jsonl")
    }


def test_every_product_has_enough_for_the_most_demanding_intent(catalogue: Catalogue) -> None:
    for product_id in catalogue.ids():
        one = catalogue.product(product_id)
        assert one is not None
        fields = {canonical(name) for name in one.details} & set(CANONICAL)
        assert len(fields) >= 9, one
        assert len(fields & HINTABLE) >= 3, one
        assert one.features


def test_enough_products_for_ratings_budgets_and_reviews(catalogue: Catalogue) -> None:
    products = [one for one in map(catalogue.product, catalogue.ids()) if one is not None]
    assert sum((one.average_rating or 0) >= 4 and one.rating_number >= 20 for one in products) >= 200
    assert 400 <= sum(one.price is not None for one in products) < 640
    assert sum(len(catalogue.reviews(one.id)) >= 10 for one in products) >= 200
    assert all(one.rating_number >= len(catalogue.reviews(one.id)) for one in products)


def test_the_untidiness_of_real_catalogues_is_there(catalogue: Catalogue) -> None:
    products = [one for one in map(catalogue.product, catalogue.ids()) if one is not None]
    assert sum("OS" in one.details or "Material Type" in one.details for one in products) > 20
    assert sum(", " in value for one in products for value in one.details.values()) > 100
    assert sum(not one.description for one in products) > 40
    assert any(one.details.get("Best Sellers Rank", "").startswith("{") for one in products)


def test_no_title_has_a_hole_and_none_comes_twice(files: Path) -> None:
    titles = [one["title"] for one in read(files, "meta_*.jsonl")]
    assert len(set(titles)) == 640
    assert not [title for title in titles if "{" in title or "  " in title or "|" in title or "Pack of 1," in title]


def test_no_two_products_of_a_family_have_the_same_attributes() -> None:
    for category, family in FAMILIES:
        made = [product(category, family, name, sample.SEED)[1] for name in family.names]
        assert len({tuple(sorted(attributes.items())) for attributes in made}) == len(made), family.family


def test_reviews_read_like_different_people(files: Path) -> None:
    reviews = read(files, "reviews_*.jsonl")
    texts = Counter(one["text"] for one in reviews)
    assert texts.most_common(1)[0][1] <= 3 and len(texts) > 0.97 * len(reviews)
    of_one = Counter((one["parent_asin"], one["text"]) for one in reviews)
    assert max(of_one.values()) == 1
    sentences = {sentence for text in texts for sentence in re.split(r"(?<=[.!?]) ", text)}
    assert len(sentences) > 1600


def test_stars_go_with_what_is_said(files: Path) -> None:
    opinions = load_opinions()
    bad = {line for _, family in FAMILIES for line in family.bad} | set(opinions.general.bad)
    for one in read(files, "reviews_*.jsonl"):
        if one["rating"] == 5:
            assert not any(line in one["text"] for line in bad if " >> " not in line), one
        assert one["title"] in (
            opinions.titles.good
            if one["rating"] >= 4
            else opinions.titles.mixed
            if one["rating"] == 3
            else opinions.titles.bad
        )


def test_what_is_said_under_a_condition_is_true_of_the_product(files: Path) -> None:
    """Whatever a review or a feature says of a value, the product has that value."""
    said: dict[str, list[str]] = {}
    for review in read(files, "reviews_*.jsonl"):
        said.setdefault(review["parent_asin"], []).append(review["text"])
    checked = 0
    for category, family in FAMILIES:
        for name in family.names:
            record, attributes = product(category, family, name, sample.SEED)
            values = {value for text in attributes.values() for value in text.split(", ")}
            texts = record["features"] + said.get(record["parent_asin"], [])
            for line in (*family.features, *family.good, *family.bad):
                condition, mark, text = line.partition(" >> ")
                if mark and not values & set(condition.split("|")):
                    assert not any(text in one for one in texts), (record["title"], line)
                    checked += 1
    assert checked > 3000


def test_every_condition_can_be_met_and_every_template_filled() -> None:
    for _, family in FAMILIES:
        bundles = [bundle for group in (family.sets, *family.pairs) for bundle in group]
        possible = {value for options in family.details.values() for value in options}
        possible |= {value for bundle in bundles for value in bundle.values()}
        for line in (*family.features, *family.description, *family.good, *family.bad):
            condition, mark, _ = line.partition(" >> ")
            if mark:
                assert possible & set(condition.split("|")), (family.family, line)
        fields = {name.lower() for name in family.details} | {name.lower() for bundle in bundles for name in bundle}
        for title in family.titles:
            assert {slot.lower() for slot in SLOT.findall(title)} <= fields | {"brand", "name"}, (family.family, title)


def test_conditions() -> None:
    lines = ("plain", "Gel|Balm >> soft", "Bar >> hard")
    assert fitting(lines, frozenset({"Gel", "Red"})) == ["plain", "soft"]
    assert fitting(lines, frozenset()) == ["plain"]


def test_the_word_sample_opens_the_shop_and_builds_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECOMJUDGE_CACHE", str(tmp_path))
    first = open_catalogue("sample")
    made = first.path.stat().st_mtime_ns
    second = open_catalogue("sample")
    assert second.path == first.path and second.path.stat().st_mtime_ns == made
    assert tmp_path in first.path.parents and len(first) == 640
    assert open_catalogue(str(first.path)).fingerprint() == first.fingerprint()
