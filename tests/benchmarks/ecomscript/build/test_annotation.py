"""People's part: items drawn, sheets written and read back, majorities, agreement, and the sets split by goal."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.ecomscript.build.align import ALIGNED_SCHEMA
from benchmarks.ecomscript.build.annotation import (
    annotate,
    in_words,
    shown_products,
    split_goals,
    write_intents,
    write_sets,
)
from benchmarks.ecomscript.build.config import AnnotationConfig
from benchmarks.ecomscript.build.mining import INTENT_SCHEMA
from benchmarks.ecomscript.build.sample import DRAWN, ITEM_SCHEMA, draw, item_row
from benchmarks.ecomscript.build.sheets import read_votes, write_sheets
from benchmarks.ecomscript.build.stages import Stage
from benchmarks.ecomscript.build.tables import Rows, write_table
from benchmarks.ecomscript.build.votes import agreement, majority
from recipes.base import Record
from recipes.faults import DataFaults
from recipes.judgments import get_judgment
from recipes.reading import read_records
from recipes.script_verify import SCRIPT_VERIFY, ScriptRecord

# Fleiss' kappa as worked out in the Wikipedia article of that name: ten subjects, fourteen raters, five categories.
WORKED_EXAMPLE = (
    (0, 0, 0, 0, 14),
    (0, 2, 6, 4, 2),
    (0, 0, 3, 5, 6),
    (0, 3, 9, 2, 0),
    (2, 2, 8, 1, 1),
    (7, 7, 0, 0, 0),
    (3, 2, 6, 3, 0),
    (2, 5, 3, 2, 2),
    (6, 5, 2, 1, 0),
    (0, 2, 2, 3, 7),
)


def test_kappa_is_that_of_a_published_example() -> None:
    votes = {
        str(k): [category for category, count in enumerate(row) for _ in range(count)]
        for k, row in enumerate(WORKED_EXAMPLE)
    }
    found = agreement(votes)
    assert found.kappa == pytest.approx(0.210, abs=5e-4) and (found.items, found.incomplete) == (10, 0)


def test_kappa_leaves_items_with_missing_votes_aside_and_is_blank_where_it_says_nothing() -> None:
    votes = {"a": [1, 1, 0], "b": [0, 0, 0], "c": [1, None, 1]}
    # Agreement 1/3 and 1, mean 2/3; shares of yes and no 1/3 and 2/3, by chance 5/9: (2/3 - 5/9) / (4/9) = 1/4.
    found = agreement(votes)
    assert found.kappa == pytest.approx(0.25) and (found.items, found.incomplete) == (2, 1)
    assert agreement({"a": [1, 1], "b": [1, 1]}).kappa is None  # nobody said no: there is no telling
    assert (
        agreement({"a": [1, None]}).kappa is None
        and agreement({}).kappa is None
        and agreement({"a": [1]}).kappa is None
    )


def test_the_majority_of_the_votes_given_decides() -> None:
    found = majority(
        {
            "three of five": [1, 1, 0, 0, 1],
            "two of five": [1, 0, 0, 0, 1],
            "tie of four": [1, 0, None, 0, 1],
            "three of three": [None, 1, 1, 1, None],
            "two of two": [None, None, 0, 0, None],
            "none": [None] * 5,
        },
        fewest=3,
    )
    assert found.labels == {"three of five": 1, "two of five": 0, "three of three": 1}
    assert found.ties == ["tie of four"] and found.too_few == ["two of two", "none"] and found.missing == 11
    assert majority({"none": [None]}, fewest=0).too_few == ["none"]


RECORDS = [ScriptRecord(id=name, goal="=1+1", script=("Boil, then", "Pour")) for name in ("a", "-b", "c")]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, found: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, found[0])
        writer.writeheader()
        writer.writerows(found)


def test_sheets_show_items_and_come_back_with_votes(tmp_path: Path) -> None:
    write_sheets(tmp_path, SCRIPT_VERIFY, RECORDS, 3)
    ids, path = [record.id for record in RECORDS], tmp_path / "script_verify.csv"
    assert read_votes(tmp_path, "script_verify", ids) is None
    found = rows(path)
    assert [row["id"] for row in found] == ["a", "'-b", "c"] and found[0]["vote_3"] == ""
    assert found[0]["item"] == "Goal: =1+1\nScript:\n1. Boil, then\n2. Pour" and "feasible" in found[0]["question"]
    found[0] |= {"vote_1": "Yes", "vote_2": " no ", "vote_3": "1"}
    found[1] |= {"vote_1": "", "vote_2": "FALSE"}
    fill(path, found[::-1])  # rows may be sorted anew
    votes = read_votes(tmp_path, "script_verify", ids)
    assert votes == {"a": [1, 0, 1], "-b": [None, 0, None], "c": [None, None, None]}


def test_votes_may_be_written_as_json_lines(tmp_path: Path) -> None:
    write_sheets(tmp_path, SCRIPT_VERIFY, RECORDS[:1], 3)
    path = tmp_path / "script_verify.jsonl"
    line = json.loads(path.read_text())
    assert line["votes"] == [None, None, None]
    path.write_text(json.dumps({**line, "votes": [True, "no", None, 0]}) + "\n")
    assert read_votes(tmp_path, "script_verify", ["a"]) == {"a": [1, 0, None, 0]}
    found = rows(tmp_path / "script_verify.csv")
    found[0]["vote_1"] = "yes"
    fill(tmp_path / "script_verify.csv", found)
    with pytest.raises(DataFaults, match=r"script_verify\.csv: has votes, and script_verify\.jsonl as well"):
        read_votes(tmp_path, "script_verify", ["a"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda found: found[0].update(vote_2="maybe"),
            "script_verify.csv:2: vote_2: 'maybe' is no vote; write yes or no",
        ),
        (lambda found: found[0].update(id="z"), "'z' is no item of this sample"),
        (lambda found: found.append(dict(found[0])), "'a' has a row already"),
        (lambda found: found.pop(), "script_verify.csv: c: has no row"),
        (lambda found: [row.pop("id") for row in found], "no column id, or none vote_1"),
    ],
)
def test_faults_of_a_sheet_are_told(tmp_path: Path, change: Callable[[Any], Any], message: str) -> None:
    one_line = [record.model_copy(update={"goal": "g"}) for record in RECORDS]
    write_sheets(tmp_path, SCRIPT_VERIFY, one_line, 2)
    found = [{**row, "item": "", "vote_1": "yes"} for row in rows(tmp_path / "script_verify.csv")]
    change(found)
    fill(tmp_path / "script_verify.csv", found)
    with pytest.raises(DataFaults, match=re.escape(message)):
        read_votes(tmp_path, "script_verify", [record.id for record in RECORDS])


def aligned(folder: Path, scripts: int) -> tuple[Rows, Rows]:
    """Scripts of three steps; the k-th has k % 3 products at its second step and one at its third if k is odd."""
    products = [
        {"id": f"P{k}", "title": f"Thing {k}", "category": "Home", "price": 5.0, "intents": ["because"]}
        for k in range(4)
    ]
    found = [{"row": k, "product": f"P{k}", "similarity": 0.9 - k / 10} for k in range(4)]
    lines = [
        {
            "id": f"s{k}",
            "product": "P0",
            "goal": f"Goal {k}",
            "steps": ["Rest", "Dig", "Sow"],
            "needs": [False, True, True],
            "candidates": [None, 3, 1],
            "products": [[], found[: k % 3], found[3:] if k % 2 else []],
        }
        for k in range(scripts)
    ]
    write_table(folder / "align.parquet", lines, ALIGNED_SCHEMA)
    write_table(folder / "intents.parquet", products, INTENT_SCHEMA)
    return Rows(folder / "align.parquet"), Rows(folder / "intents.parquet")


def test_items_are_drawn_from_what_was_aligned(tmp_path: Path) -> None:
    tables = aligned(tmp_path, 7)
    scripts, pairs, plans = (draw(name, *tables, AnnotationConfig(items=99), 0) for name in DRAWN)
    assert [record.id for record in scripts] == [f"s{k}" for k in range(7)]
    # Products by script: 0, 1 + 1, 2, 0 + 1, 1, 2 + 1, 0.
    assert [record.id for record in pairs] == [
        "s1#2#P0", "s1#3#P3", "s2#2#P0", "s2#2#P1", "s3#3#P3", "s4#2#P0", "s5#2#P0", "s5#2#P1", "s5#3#P3",
    ]  # fmt: skip
    assert pairs[3].model_dump(exclude_defaults=True) == {
        "id": "s2#2#P1",
        "goal": "Goal 2",
        "step": "Dig",
        "product": {"title": "Thing 1", "category": "Home", "price": 5.0},
        "group": "s2",
        "meta": {"similarity": 0.8},
    }
    assert [record.id for record in plans] == ["s1", "s2", "s3", "s4", "s5"]
    shown = [[product["title"] for product in step["products"]] for step in plans[4].model_dump()["script"]]
    assert shown == [[], ["Thing 0"], ["Thing 3"]]  # the best of each step
    (two,) = [one for one in draw("holistic_verify", *tables, AnnotationConfig(shown=2), 0) if one.id == "s5"]
    assert [len(step["products"]) for step in two.model_dump()["script"]] == [0, 2, 1]


def test_pairs_are_drawn_evenly_and_each_judgment_by_itself(tmp_path: Path) -> None:
    tables, few = aligned(tmp_path, 30), AnnotationConfig(items=4)
    assert draw("step_product", *tables, few, 1) == draw("step_product", *tables, few, 1)
    counts = Counter(record.id for seed in range(300) for record in draw("step_product", *tables, few, seed))
    total = 4 * 300
    assert len(counts) == 45 and sum(counts.values()) == total  # 30 at the second step, 15 at the third
    # Each pair is expected 1200 / 45 = 26.7 times; five standard deviations are about 25.
    assert all(3 < count < 52 for count in counts.values())
    scripts, plans = (
        {record.id for record in draw(name, *tables, AnnotationConfig(items=9), 0)} for name in list(DRAWN)[::2]
    )
    assert scripts != plans


def labelled(count: int) -> list[Record]:
    return [
        ScriptRecord(id=f"s{k}", goal=f"Goal {k}", script=("a",), group=f"g{k // 2}", label=k % 3 % 2)
        for k in range(count)
    ]


def test_a_goal_is_in_one_split_of_all_three_sets(tmp_path: Path) -> None:
    sets = {"script_verify": labelled(40), "holistic_verify": labelled(20)}
    config = AnnotationConfig(train=0.6, validation=0.2, test=0.2)
    counts = write_sets(tmp_path, sets, split_goals({name: (own, {}) for name, own in sets.items()}, config, 0))
    where: dict[str, set[str]] = {}
    for name, records in sets.items():
        splits = {path.stem: path.read_text().splitlines() for path in (tmp_path / name).iterdir()}
        assert set(splits) == {"train", "validation", "test"}
        assert sum(map(len, splits.values())) == len(records)
        for split, lines in splits.items():
            own = [json.loads(line) for line in lines]
            assert counts[name][split] == {"records": len(own), "yes": sum(one["label"] for one in own)}
            for one in own:
                where.setdefault(one["group"], set()).add(split)
    assert len(where) == 20 and all(len(splits) == 1 for splits in where.values())
    assert 20 <= counts["script_verify"]["train"]["records"] <= 28


def drawn(folder: Path) -> tuple[Callable[[], bool], Stage]:
    """A sample of 30 items a judgment; what annotates them in that folder, and its stage."""
    tables, config = aligned(folder, 40), AnnotationConfig(items=30, votes=3, train=0.6, validation=0.2, test=0.2)
    for name in DRAWN:
        write_table(folder / f"{name}.parquet", list(map(item_row, draw(name, *tables, config, 0))), ITEM_SCHEMA)
    stage = Stage(folder / "annotate", {"of": 1}, Console(quiet=True))
    return lambda: annotate(stage, folder, folder / "sheets", lambda: tables[1], config, 0), stage


def vote(sheets: Path, *votes: str) -> None:
    """The same votes on every item, but on every other one the first two the other way round."""
    for name in DRAWN:
        found = rows(sheets / f"{name}.csv")
        for k, row in enumerate(found):
            own = [*votes[1::-1], *votes[2:]] if k % 2 else votes
            row |= {f"vote_{number}": said for number, said in enumerate(own, 1)}
        fill(sheets / f"{name}.csv", found)


def test_sheets_wait_for_people_and_votes_become_sets(tmp_path: Path) -> None:
    run, stage = drawn(tmp_path)
    sheets = tmp_path / "sheets"
    assert not run()
    for name in DRAWN:
        path = sheets / f"{name}.csv"
        found = rows(path)
        for k, row in enumerate(found):
            row |= {"vote_1": "yes", "vote_2": "no", "vote_3": ("yes", "no", "")[k % 3]}
        fill(path, found)
        if name == "script_verify":  # one filled sheet does not make sets, and stays as it is
            before = path.read_bytes()
            assert not run()
            assert path.read_bytes() == before
    assert run()
    about = stage.manifest["sets"]["script_verify"]
    assert (about["items"], about["labelled"], about["ties"], about["too_few_votes"]) == (30, 20, 0, 10)
    assert about["missing_votes"] == 10 and about["fleiss"]["items"] == 20
    # Of 20 items a half has two yes and one no, a half one yes and two no: (1/3 - 1/2) / (1 - 1/2).
    said = "20 of 30 items labelled (0 ties, 10 with too few votes, 10 votes missing), Fleiss' kappa -0.333"
    assert in_words(about) == said
    assert stage.manifest["left_out"] == {"too few votes": 30}
    records = [
        record
        for split in ("train", "validation", "test")
        for record in read_records(
            get_judgment("script_verify"), str(stage.path / "sets" / "script_verify" / f"{split}.jsonl")
        )
    ]
    assert len(records) == 20 and sum(record.label or 0 for record in records) == 10
    assert {json.dumps(record.meta) for record in records} == {'{"votes": [1, 0, 1]}', '{"votes": [1, 0, 0]}'}
    # The third product is aligned with nothing, and all others are shown in a held-out record.
    assert stage.manifest["intents"] == 1
    assert json.loads((stage.path / "sets" / "intents.jsonl").read_text())["id"] == "P2#1"
    for name in DRAWN:  # sets stay when the sheets are gone
        (sheets / f"{name}.csv").unlink()
    assert run()


def test_votes_that_came_after_the_sets_are_not_passed_over(tmp_path: Path) -> None:
    run, stage = drawn(tmp_path)
    assert not run()
    vote(tmp_path / "sheets", "yes", "no")
    with pytest.raises(ValueError, match=r"split: 0 records .*script_verify: 0 of 30 items labelled \(0 ties, 30 "):
        run()
    vote(tmp_path / "sheets", "yes", "no", "no")
    assert run() and run()
    vote(tmp_path / "sheets", "yes", "no", "yes")
    with pytest.raises(ValueError, match=r"votes\.script_verify is '90 votes .* give --redo annotate"):
        run()
    shutil.rmtree(stage.path)
    assert run()
    for name in DRAWN:  # the same votes in another order of rows, saved anew
        fill(tmp_path / "sheets" / f"{name}.csv", rows(tmp_path / "sheets" / f"{name}.csv")[::-1])
    assert run()


CHANGES: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda sheet: sheet.replace(b"vote_1,vote_2,vote_3", b"anna,ben,eva,vote_1"), "csv:1: anna: no column of a sheet"),
    (lambda sheet: sheet.replace(b"vote_2,vote_3", b"Vote_2,vote 3"), "csv:1: Vote_2: no column of a sheet"),
    (lambda sheet: sheet.replace(b"vote_3", b"vote_3,vote_3"), "vote_3: two columns of this name"),
    (lambda sheet: sheet.replace(b"\r\n", b'\r\n"', 1), "csv: cannot be read as CSV after row 0"),
    (lambda sheet: sheet.decode("utf-8-sig").replace("Does", "D\xe9es").encode("latin-1"), "csv: cannot be read as"),
    (lambda sheet: sheet.decode("utf-8-sig").encode("utf-16"), "save it in UTF-8"),
    (lambda sheet: sheet.replace(b",", b";"), "csv:1: its columns are separated by semicolons; save it as"),
    (lambda sheet: b"", "has no row; keep a row for each item, or take the file away"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_a_sheet_that_people_have_changed_is_never_written_over(
    tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    run, _ = drawn(tmp_path)
    assert not run()
    path = tmp_path / "sheets" / "step_product.csv"
    changed = change(path.read_bytes())
    assert changed != path.read_bytes()
    path.write_bytes(changed)
    with pytest.raises(DataFaults, match=re.escape(message)):
        run()
    assert path.read_bytes() == changed


def test_intents_are_given_of_products_that_no_held_out_record_shows(tmp_path: Path) -> None:
    things = [{"title": f"Thing {k}"} for k in range(4)]
    sets: dict[str, list[Any]] = {
        "step_product/train": [{"product": things[0]}],
        "step_product/validation": [{"product": things[1]}],
        "script_verify/test": [{"script": ["Rest", "Dig"]}],
        "holistic_verify/test": [{"script": [{"step": "Rest"}, {"step": "Dig", "products": [things[2], things[1]]}]}],
    }
    for name, lines in sets.items():
        path = tmp_path / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    intents = ["because they want to dig", "because x"]
    products = [{"id": f"P{k}", **things[k], "price": 2.5, "intents": intents[: k % 2 + 1]} for k in range(4)]
    write_table(tmp_path / "intents.parquet", products, INTENT_SCHEMA)
    assert shown_products(tmp_path) == {"Thing 1", "Thing 2"}
    assert write_intents(tmp_path / "i.jsonl", Rows(tmp_path / "intents.parquet"), {"Thing 1", "Thing 2"}) == 3
    assert [json.loads(line) for line in (tmp_path / "i.jsonl").read_text().splitlines()] == [
        {"id": "P0#1", "product": {"title": "Thing 0", "price": 2.5}, "intent": "because they want to dig"},
        {"id": "P3#1", "product": {"title": "Thing 3", "price": 2.5}, "intent": "because they want to dig"},
        {"id": "P3#2", "product": {"title": "Thing 3", "price": 2.5}, "intent": "because x"},
    ]
