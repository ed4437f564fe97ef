"""Importing: each source on a few rows written here, and on the real files where they lie beside the project."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from recipes.importing import coscript, esci, intentionqa, piqa
from recipes.importing.files import Options, Skipped, clean, group_name, source_rows
from recipes.importing.pipeline import SOURCES, import_data
from recipes.judgments import JUDGMENTS
from recipes.reading import read_records

REAL = Path(__file__).parents[2].parent / "shared" / "data"
SHARES = {"train": 0.7, "validation": 0.1, "test": 0.2}
LEAD_IN = "PersonX bought a product of Item A and a product of Item B "


def lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(read: Any, path: Path, options: Options | None = None) -> tuple[list[Any], Skipped]:
    skipped: Skipped = Counter()
    return list(read(path, options or Options(), skipped)), skipped


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("<p>Two&nbsp;parts,<br/>A &amp; B</p>", "Two parts, A & B"),
        ("&lt;b&gt;bold&lt;/b&gt;", "bold"),
        ("5 < 6 and 7 > 6", "5 < 6 and 7 > 6"),
        ("  ", None),
        ("<br>", None),
        ("None", None),
        (None, None),
        (float("nan"), None),
    ],
)
def test_shop_texts_become_plain(value: object, text: str | None) -> None:
    assert clean(value) == text


def test_group_names_ignore_case_and_punctuation() -> None:
    assert group_name("Clean a Pan!") == group_name("clean, a pan") == "clean a pan"
    assert group_name("???") == "???"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("Boil water", ["Boil water"]),
        ("Boil water. Add salt! Stir?", ["Boil water.", "Add salt!", "Stir?"]),
        ("Mix approx. Three cups of flour. Bake.", ["Mix approx. Three cups of flour.", "Bake."]),
        ("Weigh 2 oz. Butter is best. Melt it.", ["Weigh 2 oz. Butter is best.", "Melt it."]),
        ("1. Boil water. 2. Add salt.", ["Boil water.", "Add salt."]),
        ("Use 1.5 cups. then stir", ["Use 1.5 cups. then stir"]),
        ('Say "done." Then rest.', ['Say "done.', "Then rest."]),
        ("...", []),
    ],
)
def test_solutions_are_split_at_safe_places_only(text: str, steps: list[str]) -> None:
    assert piqa.sentences(text) == steps


def test_piqa_gives_a_record_for_each_solution(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "p.jsonl",
        [
            {"goal": "Dry a boot", "sol1": "Put it in soup.", "sol2": "Stuff it. Wait a day.", "label": 1},
            {"goal": "Same", "sol1": "a", "sol2": "a", "label": 0},
            {"goal": "Unlabelled", "sol1": "a", "sol2": "b", "label": -1},
            {"goal": "", "sol1": "a", "sol2": "b", "label": 0},
        ],
    )
    records, skipped = run(piqa.read, path)
    assert [(record.id, record.script, record.label, record.group) for record in records] == [
        ("piqa-1-1", ("Put it in soup.",), 0, "dry a boot"),
        ("piqa-1-2", ("Stuff it.", "Wait a day."), 1, "dry a boot"),
    ]
    assert skipped == {
        "rows whose solutions are the same": 1,
        "rows without a label 0 or 1": 1,
        "goal: missing": 2,
    }


@pytest.mark.parametrize(
    ("assertion", "goal", "step"),
    [
        (
            LEAD_IN + "because they both are a type of lamp.",
            "PersonX wants to buy a product because it is a type of lamp.",
            "Buy a product: it is a type of lamp.",
        ),
        (
            LEAD_IN + "because they could both be used to read",
            "PersonX wants to buy a product because it could be used to read.",
            "Buy a product: it could be used to read.",
        ),
        (
            LEAD_IN + "because the person wants to read at night.",
            "PersonX wants to buy a product because the person wants to read at night.",
            "Buy a product: the person wants to read at night.",
        ),
        (
            LEAD_IN + "as a result, the person will read.",
            "PersonX wants to buy a product so that, as a result, the person will read.",
            "Buy a product: the person will read.",
        ),
        ("It lights a room", "It lights a room.", "Buy a product: It lights a room."),
    ],
)
def test_an_intention_is_told_of_one_product(assertion: str, goal: str, step: str) -> None:
    assert intentionqa.goal_and_step(assertion) == (goal, step)


def test_an_intention_that_names_item_a_is_left_out() -> None:
    assert intentionqa.goal_and_step(LEAD_IN + "because Item A fits Item B.") is None


def item(name: str, right: str, wrong: list[str], tail: str, letter: str = "A") -> dict[str, Any]:
    options = dict(zip("ABCD", [*wrong, right], strict=False))
    return {
        "id": name,
        "item_a_name": "SECRET",
        "item_b_name": right,
        "assertion": LEAD_IN + "because " + tail,
        "options": options,
        "gold_ind": letter,
    }


def test_intentionqa_takes_the_list_not_the_letter_and_never_item_a(tmp_path: Path) -> None:
    rows = [
        item("F1", "Desk &amp; lamp", ["Shoe", "Hat"], "they both are lamps."),
        item("F2", "Ring", [], "it shines."),
    ]
    records, skipped = run(intentionqa.read, lines(tmp_path / "i.jsonl", rows))
    assert [(record.id, record.product.title, record.label) for record in records] == [
        ("F1-0", "Desk & lamp", 1),
        ("F1-1", "Shoe", 0),
        ("F1-2", "Hat", 0),
        ("F2-0", "Ring", 1),
    ]
    assert not skipped
    assert all("SECRET" not in record.model_dump_json() for record in records)


def test_wrong_products_are_chosen_by_seed(tmp_path: Path) -> None:
    rows = [item(f"F{n}", f"R{n}", [f"W{n}a", f"W{n}b", f"W{n}c"], f"reason {n}.") for n in range(20)]
    records, _ = run(intentionqa.read, lines(tmp_path / "i.jsonl", rows))

    def chosen(seed: int, count: int) -> list[str]:
        return [
            record.id for record in intentionqa.choose_wrong(records, random.Random(seed), Options(negatives=count))
        ]

    assert len(chosen(0, 1)) == 40 and len(chosen(0, 2)) == 60 and len(chosen(0, 9)) == 80
    assert chosen(0, 1) == chosen(0, 1) != chosen(1, 1)


EXAMPLES = [
    {
        "example_id": 7,
        "query": "usb fan",
        "product_id": "p1",
        "product_locale": "us",
        "esci_label": "E",
        "split": "test",
    },
    {
        "example_id": 8,
        "query": "usb fan",
        "product_id": "p2",
        "product_locale": "us",
        "esci_label": "S",
        "split": "test",
    },
    {
        "example_id": 9,
        "query": "ventilador",
        "product_id": "p1",
        "product_locale": "es",
        "esci_label": "I",
        "split": "test",
    },
    {
        "example_id": 10,
        "query": "usb fan",
        "product_id": "gone",
        "product_locale": "us",
        "esci_label": "I",
        "split": "test",
    },
]
PRODUCTS = [
    {
        "product_id": "p1",
        "product_locale": "us",
        "product_title": "Desk fan",
        "product_description": "<p>Quiet</p>",
        "product_bullet_point": "Small\n\nUSB",
        "product_brand": "Wind",
        "product_color": None,
    },
    {"product_id": "p2", "product_locale": "us", "product_title": "Big fan", "product_brand": "None"},
    {"product_id": "p1", "product_locale": "es", "product_title": "Ventilador"},
]


def test_esci_joins_examples_and_products(tmp_path: Path) -> None:
    parquet.write_table(pa.Table.from_pylist(EXAMPLES), tmp_path / "e.parquet")
    parquet.write_table(pa.Table.from_pylist(PRODUCTS), tmp_path / "p.parquet")
    records, skipped = run(esci.read, tmp_path / "e.parquet", Options(products=tmp_path / "p.parquet"))
    assert [record.model_dump(exclude_defaults=True) for record in records] == [
        {
            "id": "esci-7",
            "goal": "usb fan",
            "step": "Buy: usb fan",
            "product": {"title": "Desk fan", "features": ("Brand: Wind", "Small", "USB"), "description": "Quiet"},
            "label": 1,
            "group": "usb fan",
            "meta": {"grade": "E", "locale": "us", "split": "test"},
        },
        {
            "id": "esci-8",
            "goal": "usb fan",
            "step": "Buy: usb fan",
            "product": {"title": "Big fan"},
            "label": 0,
            "group": "usb fan",
            "meta": {"grade": "S", "locale": "us", "split": "test"},
        },
    ]
    assert skipped == {"rows of other locales than us": 1, "rows whose product is not in the products file": 1}


def test_esci_as_one_csv_with_chosen_grades_and_all_locales(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(
        "\ufeffquery,product_title,product_description,product_bullet_point,product_brand,product_color,product_locale,"
        'esci_label\r\nusb fan,Desk fan,,"Small\nUSB",Wind,red,us,substitute\r\nfan,Ventilador,,,,,es,C\r\n',
        encoding="utf-8",
    )
    records, skipped = run(esci.read, path, Options(yes=("E", "S"), locale=None))
    assert [(record.id, record.label, record.product.features) for record in records] == [
        ("esci-1", 1, ("Brand: Wind", "Color: red", "Small", "USB")),
        ("esci-2", 0, ()),
    ]
    assert not skipped


def test_esci_refuses_grades_it_does_not_know(tmp_path: Path) -> None:
    path = lines(tmp_path / "e.jsonl", [{"query": "q", "product_title": "t", "esci_label": "X"}])
    with pytest.raises(ValueError, match=r"e\.jsonl:1: esci_label: 'X' is not a grade; give E, S, C or I"):
        run(esci.read, path)
    with pytest.raises(ValueError, match="Q is no grade; give E, S, C or I"):
        run(esci.read, path, Options(yes=("Q",)))


def test_a_file_of_another_source_names_what_is_missing(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", [{"goal": "g", "sol1": "a"}])
    with pytest.raises(ValueError) as raised:
        run(piqa.read, path)
    assert str(raised.value) == (
        f"{path}:1: sol2: missing; this source has the fields goal, sol1, sol2, label, the file has goal, sol1"
    )
    with pytest.raises(ValueError, match="no such file"):
        list(source_rows(tmp_path / "none.csv", ()))


def published(name: int, goal: str, steps: list[str], category: str = "Food") -> dict[str, Any]:
    script = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    fields = {"Abstract Goal": goal, "Specific Goal": f"{goal} at Home", "Constraint": "at Home"}
    return {"id": name, **fields, "Script": script, "Category": category}


def test_coscript_steps_lose_their_numbers_only(tmp_path: Path) -> None:
    row = published(1, "Brew Tea", ["Boil 2. cups.", "1.5 spoons of tea."])
    row["Script"] += ["3.Stir.", "  ", "C:\\Tea\\"]
    ((record,), _) = run(coscript.read, lines(tmp_path / "c.jsonl", [row]))
    assert record.script == ("Boil 2. cups.", "1.5 spoons of tea.", "Stir.", "C:\\Tea\\")
    assert (record.goal, record.group, record.label) == ("Brew Tea at Home", "brew tea", 1)


def test_every_script_gets_one_negative_of_a_named_kind(tmp_path: Path) -> None:
    rows = [
        published(n, f"Goal {n // 2}", [f"step {n} {s}" for s in range(3 + n % 3)], "Food" if n < 20 else "Home")
        for n in range(40)
    ]
    records, _ = run(coscript.read, lines(tmp_path / "c.jsonl", rows))
    made = coscript.with_negatives(records, random.Random(0), Options())
    by_id = {record.id: record for record in made}
    assert len(made) == len(by_id) == 80
    negatives = [record for record in made if record.label == 0]
    assert {(record.meta or {})["kind"] for record in negatives} == {"goal_swapped", "steps_foreign", "order_reversed"}
    for negative in negatives:
        own, source = by_id[negative.id.removesuffix("-no")], by_id[(negative.meta or {})["from"]]
        kind = (negative.meta or {})["kind"]
        assert (negative.goal, negative.group) == (own.goal, own.group)
        if kind == "order_reversed":
            assert negative.script == own.script[::-1] and len(own.script) >= 4
            continue
        assert source.group != own.group and (source.meta or {})["category"] == (own.meta or {})["category"]
        if kind == "goal_swapped":
            assert negative.script == source.script
        else:
            changed = [step for step, was in zip(negative.script, own.script, strict=True) if step != was]
            assert len(changed) == len(own.script) // 3 and set(changed) <= set(source.script)
    assert made == coscript.with_negatives(records, random.Random(0), Options())


def piqa_rows(count: int) -> list[dict[str, Any]]:
    return [{"goal": f"Goal {n}", "sol1": f"Do {n}.", "sol2": f"Undo {n}.", "label": n % 2} for n in range(count)]


def test_import_writes_three_valid_files_and_counts(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", [*piqa_rows(50), piqa_rows(1)[0]])
    done = import_data("piqa", path, tmp_path / "out", Options(), SHARES)
    assert done.counts == {"train": 70, "validation": 10, "test": 20}
    assert done.positives == {"train": 35, "validation": 5, "test": 10}
    assert done.left_out == {"repeated records": 2}
    parts = [read_records(JUDGMENTS["script_verify"], str(file)) for file in done.files.values()]
    assert len({record.group for part in parts for record in part}) == 50
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "test.jsonl",
        "train.jsonl",
        "validation.jsonl",
    ]
    assert done.text().splitlines()[2] == f"validation        10 records, 50.0 % yes   {tmp_path}/out/validation.jsonl"


def test_import_replaces_nothing_unasked_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    path, out = lines(tmp_path / "p.jsonl", piqa_rows(50)), tmp_path / "out"
    import_data("piqa", path, out, Options(), SHARES)
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    with pytest.raises(ValueError, match=r"train\.jsonl.*: exists; choose another folder or overwrite it"):
        import_data("piqa", path, out, Options(), SHARES, seed=1)
    with pytest.raises(ValueError, match="too few for 3 splits"):
        import_data("piqa", lines(path, piqa_rows(2)), out, Options(), SHARES, overwrite=True)
    with pytest.raises(ValueError, match="no record could be made"):
        import_data("piqa", lines(path, [{**piqa_rows(1)[0], "label": -1}]), out, Options(), SHARES, overwrite=True)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    import_data("piqa", lines(path, piqa_rows(50)), out, Options(), SHARES, seed=1, overwrite=True)
    assert {file.name: file.read_bytes() for file in out.iterdir()} != before


def test_import_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "c.jsonl", [published(n, f"Goal {n}", [f"step {n} {s}" for s in range(5)]) for n in range(60)]
    )
    first, second = (import_data("coscript", path, tmp_path / name, Options(), SHARES, 3) for name in "ab")
    for split in SHARES:
        assert first.files[split].read_bytes() == second.files[split].read_bytes()


def test_a_split_of_one_class_is_refused(tmp_path: Path) -> None:
    rows = [item(f"F{n}", f"R{n}", [f"W{n}"] if n else [], f"reason {n}.") for n in range(3)]
    with pytest.raises(ValueError, match="would have no label but 1"):
        import_data("intentionqa", lines(tmp_path / "i.jsonl", rows), tmp_path / "out", Options(), SHARES)


def test_a_right_product_is_not_taken_as_wrong_for_the_same_intention(tmp_path: Path) -> None:
    rows = [item(f"F{n}", f"R{n}", [f"W{n}"], f"reason {n}.") for n in range(30)]
    rows.append(item("G", "R0", ["R1"], "reason 1."))
    done = import_data("intentionqa", lines(tmp_path / "i.jsonl", rows), tmp_path / "out", Options(), SHARES)
    assert done.left_out["records labelled 0 that are labelled 1 elsewhere"] == 1


FILES = {"piqa": "piqa.jsonl", "intentionqa": "intentionqa_task2.jsonl", "coscript": "coscript_dev.jsonl"}


@pytest.mark.parametrize("source", FILES)
def test_real_files_import_without_leaks(tmp_path: Path, source: str) -> None:
    if not REAL.is_dir():
        pytest.skip(f"the real data are not in {REAL}")
    done = import_data(source, REAL / FILES[source], tmp_path, Options(), SHARES)
    rows = [json.loads(line) for line in (REAL / FILES[source]).read_text(encoding="utf-8").splitlines()]
    if source == "intentionqa":  # no right product is lost, but for items that repeat another's intention and product
        said = [re.sub(r" both\b|\.$", "", row["assertion"].lower()) for row in rows]
        assert sum(done.positives.values()) == len(
            {(text, row["item_b_name"]) for text, row in zip(said, rows, strict=True)}
        )
    else:
        assert sum(done.positives.values()) == len(rows)
        assert sum(done.counts.values()) == 2 * len(rows)
    judgment = JUDGMENTS[SOURCES[source].judgment]
    parts = [read_records(judgment, str(file)) for file in done.files.values()]
    for split, part in zip(SHARES, parts, strict=True):
        assert len(part) / sum(done.counts.values()) == pytest.approx(SHARES[split], abs=0.02)
        assert done.positives[split] / len(part) == pytest.approx(0.5, abs=0.07)
    bound = [{record.group for record in part} for part in parts]
    if source == "intentionqa":
        bound = [groups | {record.product.title for record in part} for groups, part in zip(bound, parts, strict=True)]
    assert not bound[0] & bound[1] and not bound[0] & bound[2] and not bound[1] & bound[2]


def test_a_row_of_odd_kinds_is_left_out_and_counted(tmp_path: Path) -> None:
    half = {"goal": "Goal \ud800", "sol1": "Do.", "sol2": "Undo.", "label": 0}
    done = import_data("piqa", lines(tmp_path / "p.jsonl", [*piqa_rows(50), half]), tmp_path / "p", Options(), SHARES)
    assert done.left_out == {"goal: holds half a character (a lone surrogate)": 2}
    scripts = [published(n, f"Goal {n}", [f"step {n} {s}" for s in range(5)], None) for n in range(60)]  # type: ignore[arg-type]
    odd = [{**published(60 + n, "Other goal", []), "Script": entry} for n, entry in enumerate([5, "text", None])]
    done = import_data("coscript", lines(tmp_path / "c.jsonl", [*scripts, *odd]), tmp_path / "c", Options(), SHARES)
    assert done.left_out == {"script: empty": 3}
    listed = {**item("F", "R", [], "good."), "options": ["W", None, 5]}
    records, _ = run(intentionqa.read, lines(tmp_path / "i.jsonl", [listed]))
    assert [record.product.title for record in records] == ["R", "W"]


@pytest.mark.parametrize("shares", [(float("nan"),) * 3, (float("nan"), 0.5, 0.5), (float("inf"), 0.5, 0.5)])
def test_shares_are_numbers(tmp_path: Path, shares: tuple[float, ...]) -> None:
    path = lines(tmp_path / "p.jsonl", piqa_rows(50))
    with pytest.raises(ValueError, match="give positive numbers that sum to 1"):
        import_data("piqa", path, tmp_path / "out", Options(), dict(zip(SHARES, shares, strict=True)))


def test_what_cannot_be_done_is_said_before_anything_is_written(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", piqa_rows(50))
    with pytest.raises(ValueError, match="negatives: 0; give 1 or more"):
        import_data("intentionqa", path, tmp_path / "out", Options(negatives=0), SHARES)
    (tmp_path / "out" / "test.jsonl").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"test\.jsonl: a folder, which no file replaces"):
        import_data("piqa", path, tmp_path / "out", Options(), SHARES, overwrite=True)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["test.jsonl"]
