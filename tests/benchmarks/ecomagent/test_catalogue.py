"""A catalogue is read from any thread and any medium, and what is no catalogue is refused in words."""

from __future__ import annotations

import random
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_shop import PRODUCTS, shop

from benchmarks.ecomagent.build.intents import INTENTS
from benchmarks.ecomagent.build.opinions import FEWEST_REVIEWS, opinions
from benchmarks.ecomagent.build.sampling import eligible, pool
from benchmarks.ecomagent.catalogue import Catalogue, Review
from benchmarks.ecomagent.grading.lexical import review_opinion


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return shop(tmp_path_factory.mktemp("shop"))


def test_a_product_has_every_field_in_its_type(catalogue: Catalogue) -> None:
    lamp = catalogue.product("LAMP1")
    assert lamp is not None
    assert (lamp.id, lamp.title, lamp.store) == ("LAMP1", "Kelvora Foldable USB-C Desk Lamp", "Kelvora")
    assert (lamp.price, lamp.average_rating, lamp.rating_number) == (34.5, 4.3, 87)
    assert (lamp.main_category, lamp.categories) == ("Office Products", ("Office", "Lamps"))
    assert (lamp.features, lamp.description) == (("Dims in five steps",), ("A lamp that folds flat.",))
    assert lamp.details == {"Brand": "Kelvora", "Color": "Teal", "Material": "Aluminum", "Power Source": "USB"}


def test_what_a_product_lacks_is_empty_or_none(catalogue: Catalogue) -> None:
    cable = catalogue.product("CABLE1")
    assert cable is not None
    assert (cable.average_rating, cable.rating_number, cable.main_category) == (None, 0, "")
    assert (cable.categories, cable.features, cable.description, cable.details) == ((), (), (), {})
    mug = catalogue.product("MUG1")
    assert mug is not None and mug.price is None


def test_a_detail_that_is_an_object_is_a_text_in_the_product_and_itself_in_the_record(catalogue: Catalogue) -> None:
    product, record = catalogue.product("LAMP3"), catalogue.record("LAMP3")
    assert product is not None and record is not None
    assert product.details["Best Sellers Rank"] == "{'Lamps': 18}"
    assert record["details"]["Best Sellers Rank"] == {"Lamps": 18}


def test_an_unknown_id_is_none(catalogue: Catalogue) -> None:
    assert catalogue.product("LAMP9") is None
    assert catalogue.record("lamp1") is None
    assert catalogue.reviews("LAMP9") == []


def test_ids_come_in_the_order_of_the_files(catalogue: Catalogue) -> None:
    assert list(catalogue.ids()) == [product["parent_asin"] for product in PRODUCTS]
    assert len(catalogue) == 7


def test_reviews_come_in_the_order_of_the_files(catalogue: Catalogue) -> None:
    assert [review.title for review in catalogue.reviews("LAMP1")] == ["Bright", "Wobbly hinge", "Good lamp"]
    assert [review.title for review in catalogue.reviews("LAMP1", limit=1)] == ["Bright"]
    first = catalogue.reviews("LAMP1")[0]
    assert (first.product_id, first.rating, first.helpful_vote, first.verified_purchase) == ("LAMP1", 5.0, 3, False)


def test_search_matches_titles_best_first(catalogue: Catalogue) -> None:
    # Both lamps have one "desk" and one "lamp"; the second title is a word shorter, which bm25 prefers.
    assert [found for found, _ in catalogue.search('"desk" "lamp"', 10)] == ["LAMP2", "LAMP1"]
    assert catalogue.search('"desk" "lamp"', 1, offset=1) == [("LAMP1", "Kelvora Foldable USB-C Desk Lamp")]
    assert catalogue.count('"lamp"') == 3
    assert catalogue.search('"brightly" "desk"', 10) == []


def test_titles_of_equal_score_come_in_the_order_of_the_catalogue(tmp_path: Path) -> None:
    twins = [{"parent_asin": name, "title": "Plain Spoon"} for name in ("Z", "M", "A", "Q")]
    found = shop(tmp_path, twins, []).search('"spoon"', 3)
    assert [product for product, _ in found] == ["Z", "M", "A"]


def test_reviews_are_searched_within_one_product(catalogue: Catalogue) -> None:
    # One "desk" each; the first has 6 words with its title, the second 10, and bm25 prefers the shorter.
    assert [review.title for review in catalogue.search_reviews("LAMP1", '"desk"', 5)] == ["Bright", "Wobbly hinge"]
    assert [review.title for review in catalogue.search_reviews("LAMP2", '"desk"', 5)] == ["No"]
    assert catalogue.search_reviews("MUG1", '"desk"', 5) == []


def test_stores_are_told_apart_by_case(catalogue: Catalogue) -> None:
    assert [found for found, _ in catalogue.store("Kelvora", 10)] == ["LAMP1", "LAMP2"]
    assert [found for found, _ in catalogue.store("kelvora", 10)] == ["LAMP3"]
    assert catalogue.store("Kelvora", 1, offset=1) == [("LAMP2", "Kelvora Desk Lamp with Clamp")]
    assert (catalogue.store_count("Kelvora"), catalogue.store_count("Nobody")) == (2, 0)


def test_many_threads_read_at_once(catalogue: Catalogue) -> None:
    with ThreadPoolExecutor(8) as pool:
        titles = set(pool.map(lambda _: getattr(catalogue.product("MUG1"), "title", None), range(200)))
    assert titles == {"Café Mug, 350 ml"}


@pytest.fixture
def sealed(tmp_path: Path, catalogue: Catalogue) -> Iterator[Path]:
    folder = tmp_path / "sealed"
    folder.mkdir()
    path = folder / "shop.db"
    shutil.copy(catalogue.path, path)
    path.chmod(stat.S_IRUSR)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    yield path
    folder.chmod(stat.S_IRWXU)


def test_reading_writes_nothing_beside_the_file_and_nothing_into_it(sealed: Path) -> None:
    before = sealed.read_bytes()
    catalogue = Catalogue(sealed)
    assert catalogue.count('"lamp"') == 3
    with pytest.raises(sqlite3.OperationalError):
        catalogue._connection().execute("DELETE FROM products")
    assert [path.name for path in sealed.parent.iterdir()] == ["shop.db"]
    assert sealed.read_bytes() == before


def test_a_published_catalogue_opens(tmp_path: Path, catalogue: Catalogue) -> None:
    """The published file has neither a ``build`` table nor our cleaning, is in WAL mode, and knows more fields."""
    path = tmp_path / "product.db"
    shutil.copy(catalogue.path, path)
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE build")
    connection.execute("DROP TABLE set_aside")
    data = '{"product_id": "MUG1", "title": "Mug", "price": null, "images": [1], "details": {"Color": "Red"}}'
    connection.execute("UPDATE products SET data = ? WHERE product_id = 'MUG1'", (data,))
    connection.commit()
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    published = Catalogue(path)
    mug = published.product("MUG1")
    assert mug is not None
    assert (mug.id, mug.title, mug.store, mug.details) == ("MUG1", "Mug", "", {"Color": "Red"})
    assert [entry.name for entry in tmp_path.iterdir()] == ["product.db"]
    assert len(published.fingerprint()) == 64 and published.fingerprint() != catalogue.fingerprint()


def test_a_catalogue_that_is_being_written_is_refused(tmp_path: Path, catalogue: Catalogue) -> None:
    path = tmp_path / "product.db"
    shutil.copy(catalogue.path, path)
    path.with_name("product.db-wal").write_bytes(b"changes")
    with pytest.raises(ValueError, match=r"product\.db-wal"):
        Catalogue(path)


def test_what_is_no_catalogue_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"scripts/build\.py ecomagent-catalogue"):
        Catalogue(tmp_path / "absent.db")
    text = tmp_path / "text.db"
    text.write_text("no database, whatever its name says" * 40)
    with pytest.raises(ValueError, match=r"no catalogue, or a damaged one \(file is not a database"):
        Catalogue(text)
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).execute("CREATE TABLE products (product_id TEXT)")
    with pytest.raises(ValueError, match="no table products_fts, reviews, reviews_fts"):
        Catalogue(empty)
    draft = tmp_path / "shop.db.draft"
    draft.touch()
    with pytest.raises(ValueError, match="not finished; give its build's command again"):
        Catalogue(draft)


def test_damage_is_told_where_it_is_met(tmp_path: Path, catalogue: Catalogue) -> None:
    copy = tmp_path / "rotten.db"
    whole = catalogue.path.read_bytes()
    copy.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"rotten\.db: no catalogue, or a damaged one"):
        [Catalogue(copy).reviews(product_id) for product_id in ("LAMP1", "MUG1")]
    copy.write_bytes(whole)
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE products SET data = '{' WHERE product_id = 'LAMP1'")
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match=r"damaged one \(product LAMP1: Expecting property name"):
        Catalogue(copy).product("LAMP1")


def changed(path: Path, catalogue: Catalogue, *statements: str) -> Path:
    """A copy of the catalogue in which something was changed."""
    shutil.copy(catalogue.path, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("ALTER TABLE reviews RENAME helpful_vote TO votes", r"no column reviews\.helpful_vote\)"),
        ("ALTER TABLE products RENAME title TO name", r"no column products\.title\)"),
        ("UPDATE build SET value = 'no JSON' WHERE key = 'digest'", "the digest in its table build: Expecting value"),
        ("DROP TABLE reviews", r"no table reviews\)"),
    ],
)
def test_a_catalogue_of_another_form_is_refused_when_it_is_opened(
    tmp_path: Path, catalogue: Catalogue, change: str, said: str
) -> None:
    path = changed(tmp_path / "odd.db", catalogue, change)
    with pytest.raises(ValueError, match=rf"odd\.db: no catalogue, or a damaged one \({said}"):
        Catalogue(path)


def test_where_columns_are_empty_something_can_still_be_read(tmp_path: Path, catalogue: Catalogue) -> None:
    nothing = (
        "rating = NULL, title = NULL, text = NULL, helpful_vote = NULL, verified_purchase = NULL, timestamp = NULL"
    )
    odd = "rating = '4', text = 7"
    path = changed(
        tmp_path / "bare.db",
        catalogue,
        f"UPDATE reviews SET {nothing}",
        f"UPDATE reviews SET {odd} WHERE product_id = 'LAMP2'",
        "UPDATE products SET main_category = NULL, title = NULL WHERE product_id = 'LAMP1'",
    )
    bare = Catalogue(path)
    assert bare.reviews("LAMP1")[0] == Review("LAMP1", None, "", "", 0, False, 0)
    assert [(review.rating, review.text) for review in bare.reviews("LAMP2")] == [(4.0, "7")]
    assert bare.store("Kelvora", 1) == [("LAMP1", "")]
    assert not review_opinion(bare.reviews("LAMP1"), "it folds flat").satisfied
    assert opinions(bare.reviews("LAMP1") * FEWEST_REVIEWS, lambda statement: 1, random.Random(0)) == []
    anything = replace(INTENTS["product_search"], details=0, implicit=0, told=False, priced=False)
    assert eligible(bare, anything)[""] == [product["parent_asin"] for product in PRODUCTS[1:]]
    assert pool(bare, "", 9, 0) == [product["parent_asin"] for product in PRODUCTS]
