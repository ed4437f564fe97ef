"""Builds understand what real files hold, set aside what they cannot use, and end the same however they were killed."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_shop import PRODUCTS, REVIEWS, shop, write_lines

from benchmarks.amazon_reviews.files import metadata_files, review_files
from benchmarks.ecomagent import catalogue_build
from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.catalogue_build import Plan, build
from benchmarks.ecomagent.catalogue_command import build_catalogue
from benchmarks.ecomagent.catalogue_draft import Draft

ROOT = Path(__file__).resolve().parents[3]


def column(path: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return [row[0] if len(row) == 1 else row for row in connection.execute(query)]
    finally:
        connection.close()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_counts_of_what_eligibility_needs(tmp_path: Path) -> None:
    catalogue = shop(tmp_path)
    columns = (
        "detail_field_count, implicit_eligible_count, has_features, has_description, has_price, review_count, brand"
    )
    counted = {row[0]: row[1:] for row in column(catalogue.path, f"SELECT product_id, {columns} FROM products")}
    # LAMP1 has Brand, Color, Material and Power Source, of which the last two can be hinted. "OS" is no canonical name.
    assert counted["LAMP1"] == (4, 2, 1, 1, 1, 3, "Kelvora")
    assert counted["CHARGER1"] == (1, 0, 0, 0, 0, 0, "")
    assert counted["LAMP2"] == (4, 1, 0, 0, 0, 1, "Kelvora")


@pytest.mark.parametrize(
    ("given", "price"),
    [
        (12.5, 12.5),
        (20, 20.0),
        ("12.99", 12.99),
        ("$1,299.00", 1299.0),
        *((given, None) for given in ("from 9.99", "—", "None", None, -1, float("nan"), True)),
    ],
)
def test_prices_as_real_files_write_them(tmp_path: Path, given: object, price: float | None) -> None:
    product = shop(tmp_path, [{"parent_asin": "A", "title": "Thing", "price": given}], []).product("A")
    assert product is not None and product.price == price


def test_details_may_be_an_object_or_its_text_and_texts_may_stand_alone(tmp_path: Path) -> None:
    rows = [
        {"parent_asin": "A", "title": "Thing", "details": '{"Color": "Red", "Rank": null}', "features": "one text"},
        {"parent_asin": "B", "title": "Thing", "details": "no JSON", "description": ["", "  ", "kept"]},
        {"parent_asin": "C", "title": "Thing", "details": None, "features": None, "main_category": None},
    ]
    catalogue = shop(tmp_path, rows, [])
    a, b, c = (catalogue.product(name) for name in "ABC")
    assert a is not None and b is not None and c is not None
    assert (a.details, a.features) == ({"Color": "Red"}, ("one text",))
    assert (b.details, b.description) == ({}, ("kept",))
    assert (c.details, c.features, c.main_category) == ({}, (), "")


def test_what_people_buy_together_and_pictures_are_left_out(tmp_path: Path) -> None:
    catalogue = shop(tmp_path, [{"parent_asin": "A", "title": "T", "bought_together": ["B"], "images": [{}]}], [])
    record = catalogue.record("A")
    assert record is not None and not {"bought_together", "images"} & record.keys()


def test_broken_lines_are_counted_and_set_aside_with_the_reason(tmp_path: Path) -> None:
    lines = ['{"parent_asin": "A", "title": "Good"}', "{broken", "[1, 2]", '{"title": "no id"}', ""]
    lines += ['{"parent_asin": "B", "title": "  "}', "[" * 100_000, '{"parent_asin": "C", "title": "Good \\ud800 too"}']
    reviews = ['{"parent_asin": "A", "rating": 5}', '{"parent_asin": "A"}', '{"rating": 5}', "not"]
    plan = Plan((write_lines(tmp_path / "meta_a.jsonl", lines),), (write_lines(tmp_path / "a.jsonl", reviews),))
    (tmp_path / "meta_b.jsonl").write_bytes(b'{"parent_asin": "D", "title": "caf\xe9"}\n')
    plan = replace(plan, products=(*plan.products, tmp_path / "meta_b.jsonl"))
    summary = build(plan, tmp_path / "shop.db")
    assert summary["products"] == 2 and summary["products_set_aside"] == 6
    assert summary["reviews"] == 1 and summary["reviews_set_aside"] == 3
    told = column(tmp_path / "shop.db", "SELECT source, line, reason FROM set_aside ORDER BY rowid")
    places = [(source, line) for source, line, _ in told]
    assert places[:5] == [("meta_a.jsonl", line) for line in (2, 3, 4, 6, 7)]
    assert places[5:] == [("meta_b.jsonl", 1), ("a.jsonl", 2), ("a.jsonl", 3), ("a.jsonl", 4)]
    reasons = [reason for _, _, reason in told]
    assert reasons[1:4] == ["JSON, but no object: list", "no parent_asin", "no title"]
    assert reasons[6:8] == ["no rating", "no parent_asin"]
    assert Catalogue(tmp_path / "shop.db").count('"good"') == 2


def test_the_first_of_a_repeated_id_stays(tmp_path: Path) -> None:
    rows = [{"parent_asin": "A", "title": "First"}, {"parent_asin": "A", "title": "Second"}]
    plan = Plan((write_lines(tmp_path / "meta.jsonl", rows),))
    assert build(plan, tmp_path / "shop.db")["products_repeated"] == 1
    assert column(tmp_path / "shop.db", "SELECT title FROM products") == ["First"]


def test_of_many_reviews_those_that_the_seeded_generator_chooses_are_kept(tmp_path: Path) -> None:
    reviews = [{"parent_asin": "A", "rating": 5, "title": f"{number}"} for number in range(30)]
    reviews += [{"parent_asin": "B", "rating": 5, "title": f"{number}"} for number in range(20)]
    random.Random(1).shuffle(reviews)
    reviews.append({"parent_asin": "X", "rating": 1})
    products = [{"parent_asin": "A", "title": "Thing"}, {"parent_asin": "B", "title": "Thing"}]
    catalogue = shop(tmp_path, products, reviews)
    of_a = [review["title"] for review in reviews if review["parent_asin"] == "A"]
    expected = [of_a[place] for place in sorted(random.Random("A_42").sample(range(30), 20))]
    assert [review.title for review in catalogue.reviews("A")] == expected
    of_b = [review["title"] for review in reviews if review["parent_asin"] == "B"]
    assert [review.title for review in catalogue.reviews("B")] == of_b


def test_reviews_spread_over_files_are_one_sequence(tmp_path: Path) -> None:
    products = write_lines(tmp_path / "meta.jsonl", [{"parent_asin": "A", "title": "Thing"}])
    files = tuple(
        write_lines(
            tmp_path / f"{part}.jsonl", [{"parent_asin": "A", "rating": 5, "title": f"{part}{n}"} for n in range(3)]
        )
        for part in "ab"
    )
    summary = build(Plan((products,), files, reviews_per_product=4), tmp_path / "shop.db")
    assert (summary["reviews"], summary["reviews_left_out"]) == (4, 2)
    titles = ["a0", "a1", "a2", "b0", "b1", "b2"]
    expected = [titles[place] for place in sorted(random.Random("A_42").sample(range(6), 4))]
    assert [review.title for review in Catalogue(tmp_path / "shop.db").reviews("A")] == expected


def test_a_second_build_has_the_same_bytes_and_another_seed_another_digest(tmp_path: Path) -> None:
    reviews = [{"parent_asin": "LAMP1", "rating": 5, "title": f"{number}"} for number in range(30)]
    plan = Plan(
        (write_lines(tmp_path / "meta.jsonl", PRODUCTS),), (write_lines(tmp_path / "r.jsonl", REVIEWS + reviews),)
    )
    first, second = (build(plan, tmp_path / name) for name in ("one.db", "two.db"))
    assert digest(tmp_path / "one.db") == digest(tmp_path / "two.db")
    assert first["digest"] == second["digest"] == Catalogue(tmp_path / "one.db").fingerprint()
    assert build(replace(plan, seed=7), tmp_path / "three.db")["digest"] != first["digest"]


def test_gzip_gives_the_same_catalogue(tmp_path: Path) -> None:
    plain = write_lines(tmp_path / "meta.jsonl", PRODUCTS)
    packed = tmp_path / "meta.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert build(Plan((plain,)), tmp_path / "a.db")["digest"] == build(Plan((packed,)), tmp_path / "b.db")["digest"]


def test_a_compressed_file_that_breaks_off_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "meta.jsonl.gz"
    broken.write_bytes(gzip.compress(write_lines(tmp_path / "meta.jsonl", PRODUCTS).read_bytes())[:-20])
    with pytest.raises(ValueError, match=r"meta\.jsonl\.gz:\d+: the compressed data break off"):
        build(Plan((broken,)), tmp_path / "shop.db")
    assert not (tmp_path / "shop.db").exists()


class Killed(BaseException):
    pass


@pytest.mark.parametrize("commit", range(2, 15))
def test_a_killed_build_goes_on_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: int) -> None:
    """Batches of two lines, killed at the n-th commit, then run again: as if it had never been killed."""
    monkeypatch.setattr(catalogue_build, "BATCH", 2)
    products: list[Any] = [*PRODUCTS, "broken"]
    reviews = REVIEWS + [{"parent_asin": "MUG1", "rating": 5, "title": f"{number}"} for number in range(8)]
    plan = Plan(
        (write_lines(tmp_path / "meta_a.jsonl", products[:3]), write_lines(tmp_path / "meta_b.jsonl", products[3:])),
        (write_lines(tmp_path / "a.jsonl", reviews),),
        reviews_per_product=3,
    )
    whole = build(plan, tmp_path / "whole.db")
    commits, note = 0, Draft._note

    def killing(draft: Draft, key: str, value: Any) -> None:
        nonlocal commits
        note(draft, key, value)
        commits += key == "digest"
        if key == "digest" and commits == commit:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Draft, "_note", killing)
        with pytest.raises(Killed):
            build(plan, tmp_path / "killed.db")
    assert not (tmp_path / "killed.db").exists()
    assert build(plan, tmp_path / "killed.db") == whole
    assert digest(tmp_path / "killed.db") == digest(tmp_path / "whole.db")
    assert sorted(path.name for path in tmp_path.glob("killed*")) == ["killed.db"]


def test_a_build_that_the_system_kills_goes_on(tmp_path: Path) -> None:
    rows = [
        {"parent_asin": f"P{number}", "title": f"Thing {number}", "features": ["x" * 200]} for number in range(30_000)
    ]
    plan = Plan((write_lines(tmp_path / "meta.jsonl", rows),))
    command = (
        "import sys; from pathlib import Path; from benchmarks.ecomagent.catalogue_build import Plan, build;"
        "build(Plan((Path(sys.argv[1]),)), Path(sys.argv[2]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", command, str(plan.products[0]), str(tmp_path / "shop.db")], cwd=ROOT
    )
    draft = tmp_path / "shop.db.draft"
    while process.poll() is None and not (draft.exists() and draft.stat().st_size > 3_000_000):
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "shop.db").exists()
    assert build(plan, tmp_path / "shop.db")["products"] == 30_000
    build(plan, tmp_path / "whole.db")
    assert digest(tmp_path / "shop.db") == digest(tmp_path / "whole.db")


def test_a_draft_of_other_inputs_is_refused_unless_it_may_be_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan((write_lines(tmp_path / "meta.jsonl", PRODUCTS),))
    with monkeypatch.context() as patch:
        patch.setattr(Draft, "end_stage", lambda draft: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            build(plan, tmp_path / "shop.db")
    for other in (replace(plan, seed=1), plan):
        with pytest.raises(ValueError, match="begun from other inputs or settings"):
            build(other, tmp_path / "shop.db")
        text = plan.products[0].read_text()
        plan.products[0].write_text(text.replace("Kelvora", "Arovlek"))  # as long as before
    assert build(replace(plan, seed=1), tmp_path / "shop.db", overwrite=True)["products"] == 7


def test_a_finished_catalogue_is_not_overwritten_unasked(tmp_path: Path) -> None:
    plan = Plan((write_lines(tmp_path / "meta.jsonl", PRODUCTS),))
    build(plan, tmp_path / "shop.db")
    with pytest.raises(FileExistsError, match="--overwrite"):
        build(plan, tmp_path / "shop.db")
    assert build(plan, tmp_path / "shop.db", overwrite=True)["products"] == 7


def test_a_folder_in_the_place_of_the_catalogue_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    plan = Plan((tmp_path / "not even looked at",))
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="shop: a folder, or no ordinary file; give the file to write as --out"):
            build(plan, tmp_path / "shop", overwrite)
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"meta\.jsonl: no products in there: they hold no line"),
        (b"\x00\xff\n\x01\n", r"no products in there: 2 lines cannot be used, the first, meta\.jsonl:1: no JSON"),
        (
            b'{"product_id": "A"}\n',
            r"meta\.jsonl:1: no parent_asin; give JSON lines in the form of Amazon Reviews 2023",
        ),
    ],
)
def test_files_without_a_product_are_refused_and_leave_nothing(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "meta.jsonl").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        build(Plan((tmp_path / "meta.jsonl",)), tmp_path / "shop.db")
    assert not list(tmp_path.glob("shop.db*[!k]"))  # but for the lock


def test_reviews_of_which_none_can_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no reviews in there: 1 lines .* reviews_shop\.jsonl:1: no rating"):
        shop(tmp_path, PRODUCTS, [{"parent_asin": "LAMP1"}])


def test_what_is_no_draft_is_refused_unless_it_may_be_overwritten(tmp_path: Path) -> None:
    plan = Plan((write_lines(tmp_path / "meta.jsonl", PRODUCTS),))
    draft = tmp_path / "shop.db.draft"
    draft.write_text("nothing of ours" * 100)
    with pytest.raises(ValueError, match=r"shop\.db\.draft: no draft of a catalogue \(file is not a database\)"):
        build(plan, tmp_path / "shop.db")
    assert build(plan, tmp_path / "shop.db", overwrite=True)["products"] == 7
    (tmp_path / "shop.db").unlink()
    with closing(sqlite3.connect(draft)) as connection, connection:
        connection.execute("CREATE TABLE build (key TEXT, value TEXT)")
        connection.execute("INSERT INTO build VALUES ('inputs', '{')")
    with pytest.raises(ValueError, match=r"shop\.db\.draft: no draft of a catalogue \(Expecting property name"):
        build(plan, tmp_path / "shop.db")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--products p --files f", "--files is where --sample keeps its files"),
        ("--sample --reviews r --seed 3", "leave --reviews, --seed out"),
    ],
)
def test_flags_that_would_do_nothing_are_refused(flags: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_catalogue(["--out", "x", *flags.split()])
    assert said in capsys.readouterr().err


def test_fewer_reviews_than_none_are_refused() -> None:
    with pytest.raises(ValueError, match="reviews_per_product: -1; give 0 or more"):
        Plan((), reviews_per_product=-1)


def test_where_the_files_lie_leaves_no_trace(tmp_path: Path) -> None:
    catalogue = shop(tmp_path / "somewhere")
    assert str(tmp_path).encode() not in catalogue.path.read_bytes()
    assert json.loads(column(catalogue.path, "SELECT value FROM build WHERE key = 'inputs'")[0])["seed"] == 42


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    for name in ("meta_b.jsonl", "meta_a.jsonl.gz", "b.jsonl", "a.jsonl", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in metadata_files([tmp_path])] == ["meta_a.jsonl.gz", "meta_b.jsonl"]
    assert [path.name for path in review_files([tmp_path])] == ["a.jsonl", "b.jsonl"]
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "Office.jsonl").touch()
    assert [path.name for path in metadata_files([plain])] == ["Office.jsonl"]
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        metadata_files([tmp_path / "absent"])
    with pytest.raises(ValueError, match="/dev/null: no ordinary file"):
        metadata_files([Path("/dev/null")])


def test_a_full_disk_is_told_and_what_was_there_stays(tmp_path: Path) -> None:
    with closing(Draft(tmp_path / "shop.db.draft", {})) as draft:
        pages = draft.connection.execute("PRAGMA page_count").fetchone()[0]
        draft.connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(OSError, match=r"shop\.db\.draft: database or disk is full; mend that"), draft.transaction():
            draft.insert("INSERT INTO products (product_id, data) VALUES (?, ?)", [("A", "x" * 100_000)])
        assert draft.connection.execute("SELECT count(*) FROM products").fetchone() == (0,)
