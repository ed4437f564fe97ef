"""Reading: each kind of fault as a person sees it, and what is simply understood."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from recipes import rows
from recipes.faults import DataFaults
from recipes.judgments import JUDGMENTS
from recipes.reading import check, fingerprint, read_records

SCRIPT, PAIR, PLAN = JUDGMENTS["script_verify"], JUDGMENTS["step_product"], JUDGMENTS["holistic_verify"]
YES = '{"id": "yes", "goal": "g", "script": ["s"], "label": 1}'
NO = '{"id": "no", "goal": "g", "script": ["s"], "label": 0}'
PAIR_YES = '{"id": "yes", "goal": "g", "step": "s", "product": {"title": "t"}, "label": 1}'
PAIR_NO = PAIR_YES.replace('"yes"', '"no"').replace("1", "0")
PLAN_YES = '{"id": "yes", "goal": "g", "script": [{"step": "s"}], "label": 1}'
PLAN_NO = PLAN_YES.replace('"yes"', '"no"').replace("1", "0")


def told(judgment: Any, path: Path, content: str | bytes, **options: Any) -> list[str]:
    """The faults of a file with this content, without its path."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    _, faults, _ = check(judgment, str(path), **options)
    return [str(fault).removeprefix(str(path)) for fault in faults]


def script(**fields: Any) -> str:
    return json.dumps({"id": "x", "goal": "g", "script": ["a", "b"], "label": 1} | fields)


def pair(**product: Any) -> str:
    return json.dumps({"id": "x", "goal": "g", "step": "s", "label": 1, "product": {"title": "t"} | product})


LINES = [
    # what is not a record at all
    ('{"id": "x"', "not JSON at column 11 (Expecting ',' delimiter); write one object on one line"),
    ('["x"]', "a list where an object belongs; write one record a line as {...}"),
    ('"x"', "text where an object belongs; write one record a line as {...}"),
    ("null", "null where an object belongs; write one record a line as {...}"),
    ("17", "the number 17 where an object belongs; write one record a line as {...}"),
    ("[" * 100_000, "nested too deeply to be read; make it flatter"),
    (script(goal=0).replace("0", "1" * 5000), "holds a number of thousands of digits; give a real one"),
    ('{"goal": "h", ' + script()[1:], "goal: named twice in one object; keep one of the two"),
    # texts
    (script(goal=""), "goal: empty; give what the person wants to achieve"),
    (script(goal=" \t"), "goal: empty; give what the person wants to achieve"),
    (script(goal="\u200b"), "goal: empty; give what the person wants to achieve"),
    (script(goal=None), "goal: missing; give what the person wants to achieve"),
    (
        script(goal="null"),
        "goal: the word 'null' stands where text belongs; give what the person wants to achieve",
    ),
    (script(goal="NaN"), "goal: the word 'NaN' stands where text belongs; give what the person wants to achieve"),
    (script(goal=5), 'goal: the number 5 where text belongs; write "5" if this is the text'),
    (script(goal=True), "goal: true where text belongs; give what the person wants to achieve"),
    (script(goal=["g"]), "goal: a list where text belongs; give what the person wants to achieve"),
    (script(id=17), 'id: the number 17 where text belongs; write "17" if this is the text'),
    (script(group=3), 'group: the number 3 where text belongs; write "3" if this is the text'),
    (script(goal="\ud83d"), "goal: holds half a character (a lone surrogate); write the text as UTF-8"),
    # scripts
    (script(script=[]), "script: empty; give the steps in order"),
    (script(script=None), "script: missing; give the steps in order"),
    (script(script="a"), 'script: text where a list belongs; write ["..."]'),
    (script(script={"1": "a"}), "script: an object where a list belongs; give the steps in order"),
    (script(script=["a", ""]), "script[2]: empty; give its text, or take the entry out"),
    (script(script=[None, "b"]), "script[1]: null where text belongs; give its text, or take the entry out"),
    (script(script=["a", 2]), 'script[2]: the number 2 where text belongs; write "2" if this is the text'),
    # labels
    (script(label="maybe"), "label: 'maybe' is not a label; give 1 (yes, it holds) or 0, true/false or yes/no"),
    (script(label=2), "label: 2 is not a label; give 1 (yes, it holds) or 0, true/false or yes/no"),
    (script(label=0.5), "label: 0.5 is not a label; give 1 (yes, it holds) or 0, true/false or yes/no"),
    (script(label=[1]), "label: [1] is not a label; give 1 (yes, it holds) or 0, true/false or yes/no"),
    # numbers that are none, and depth
    (script(meta={"score": float("nan")}), "meta.score: nan is not a number; give one, or leave the field out"),
    (script(meta={"scores": [float("inf")]}), "meta.scores[1]: inf is not a number; give one, or leave the field out"),
    (
        script(meta="x"),
        "meta: text where an object belongs; give an object (kept, never shown to a judge), or leave the field out",
    ),
]

PRODUCTS = [
    (pair(title=""), "product.title: empty; give the product's name"),
    (pair(title=None), "product: missing; give an object with title"),
    (pair(title=None, category="c"), "product.title: missing; give the product's name"),
    (pair(title=4.5), 'product.title: the number 4.5 where text belongs; write "4.5" if this is the text'),
    (pair(features="f"), 'product.features: text where a list belongs; write ["..."]'),
    (pair(features=["f", None]), "product.features[2]: null where text belongs; give its text, or take the entry out"),
    (pair(category=""), "product.category: empty; give the shop's category, or leave the field out"),
    (
        pair(description="none"),
        "product.description: the word 'none' stands where text belongs; "
        "give the product's description, or leave the field out",
    ),
    (pair(price=-1), "product.price: -1 is not a price; give a number from 0 up or a text such as '$12.99'"),
    (pair(price=float("nan")), "product.price: nan is not a number; give one, or leave the field out"),
    (pair().replace('{"title": "t"}', '"t"'), "product: text where an object belongs; give an object with title"),
]

PLANS = [
    (script(script=["a"]), "script[1]: text where an object belongs; give an object with step, or take the entry out"),
    (script(script=[{"step": "a"}, {"step": ""}]), "script[2].step: empty; give the step's text"),
    (
        script(script=[{"step": "a", "products": [{"title": "t"}, {"title": 1}]}]),
        'script[1].products[2].title: the number 1 where text belongs; write "1" if this is the text',
    ),
    (
        script(script=[{"step": "a", "products": ["t"]}]),
        "script[1].products[1]: text where an object belongs; give an object with title, or take the entry out",
    ),
    (
        script(script=[{"step": "a", "products": "none"}]),
        'script[1].products: text where a list belongs; write [{"title": "..."}]',
    ),
]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_faults_of_a_line(tmp_path: Path, line: str, expected: str) -> None:
    assert told(SCRIPT, tmp_path / "d.jsonl", f"{YES}\n{line}\n{NO}\n") == [f":2: {expected}"]


@pytest.mark.parametrize(("line", "expected"), PRODUCTS)
def test_faults_of_a_product(tmp_path: Path, line: str, expected: str) -> None:
    assert told(PAIR, tmp_path / "d.jsonl", f"{PAIR_YES}\n{line}\n{PAIR_NO}\n") == [f":2: {expected}"]


@pytest.mark.parametrize(("line", "expected"), PLANS)
def test_faults_of_a_plan(tmp_path: Path, line: str, expected: str) -> None:
    assert told(PLAN, tmp_path / "d.jsonl", f"{PLAN_YES}\n{line}\n{PLAN_NO}\n") == [f":2: {expected}"]


def test_meta_nested_without_end_is_a_fault(tmp_path: Path) -> None:
    deep = script(meta={"a": 0}).replace("0", "[" * 200 + "]" * 200)
    (fault,) = told(SCRIPT, tmp_path / "d.jsonl", f"{YES}\n{deep}\n{NO}\n")
    assert fault.endswith("nested deeper than 50 levels; make it flatter")


def test_all_faults_of_a_file_are_gathered(tmp_path: Path) -> None:
    content = f"{script(goal='', label='?')}\n[]\n{script(id='y', script=[])}\n{NO}\n"
    assert told(SCRIPT, tmp_path / "d.jsonl", content) == [
        ":1: goal: empty; give what the person wants to achieve",
        ":1: label: '?' is not a label; give 1 (yes, it holds) or 0, true/false or yes/no",
        ":2: a list where an object belongs; write one record a line as {...}",
        ":3: script: empty; give the steps in order",
    ]


def test_bom_crlf_blank_lines_and_nulls_are_understood(tmp_path: Path) -> None:
    nulls = NO.replace("}", ', "group": null, "meta": null}')
    content = f"\ufeff{YES}\r\n\r\n  \r\n{nulls}\r\n"
    assert told(SCRIPT, tmp_path / "d.jsonl", content) == []
    null = pair(features=None, category=None, description=None, price=None)
    assert told(PAIR, tmp_path / "d.jsonl", f"{null}\n{PAIR_NO}\n") == []
    assert read_records(PAIR, str(tmp_path / "d.jsonl"))[0].product.features == ()


def test_line_numbers_count_blank_lines(tmp_path: Path) -> None:
    assert told(SCRIPT, tmp_path / "d.jsonl", f"{YES}\r\n\r\n[]\r\n{NO}")[0].startswith(":3: a list")


def test_bytes_that_are_not_utf8_are_told_with_their_offset(tmp_path: Path) -> None:
    latin = script(goal="?").encode().replace(b"?", "Käse".encode("latin-1"))
    content = f"{YES}\n".encode() + latin + f"\n{NO}\n".encode()
    at = content.index(b"\xe4")
    assert told(SCRIPT, tmp_path / "d.jsonl", content) == [
        f":2: byte 0xe4 at offset {at} of the file is not UTF-8; save it as UTF-8"
    ]


def test_files_that_are_no_jsonl_are_one_fault(tmp_path: Path) -> None:
    assert told(SCRIPT, tmp_path / "d.jsonl", f"{YES}\n{NO}\n".encode("utf-16")) == [
        ": encoded as UTF-16; save the file as UTF-8"
    ]
    array = ": one JSON list; write each record as an object on its own line (JSONL)"
    assert told(SCRIPT, tmp_path / "d.json", f"[{YES},\n{NO}]\n") == [array]
    assert told(SCRIPT, tmp_path / "d.json", f"[\n{YES},\n{NO}\n]\n") == [array]
    zeros = ": holds zero bytes (UTF-16 without its mark, or a file that was never written whole); save it as UTF-8"
    assert told(SCRIPT, tmp_path / "d.jsonl", f"{YES}\n{NO}\n".encode("utf-16-le")) == [zeros]
    assert told(SCRIPT, tmp_path / "d.jsonl", b"\0" * 512 + f"{YES}\n{NO}\n".encode()) == [zeros]


def test_a_name_that_the_system_refuses_or_a_forbidden_folder_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "a" * 5000 + ".jsonl"
    assert [str(fault).removeprefix(long) for fault in check(SCRIPT, long)[1]] == [
        ": File name too long; name a file that can be read"
    ]
    assert [str(fault) for fault in check(SCRIPT, "")[1]] == ["'': no name; name a file that can be read"]

    def forbidden(path: Path, *_: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", forbidden)
    assert [str(fault) for fault in check(SCRIPT, "/private/d.jsonl")[1]] == [
        "/private/d.jsonl: Permission denied; name a file that can be read"
    ]


def test_an_object_of_a_hundred_thousand_names_is_read_in_moments(tmp_path: Path) -> None:
    """Counting each name among all the others would take an hour."""
    names = ",".join(f'"n{number}": 1' for number in range(100_000))
    line = YES.replace("}", f', "meta": {{{names}, "n7": 2}}}}')
    assert told(SCRIPT, tmp_path / "d.jsonl", f"{line}\n{NO}\n") == [
        ":1: n7: named twice in one object; keep one of the two"
    ]


def test_what_is_quoted_of_a_file_stays_short(tmp_path: Path) -> None:
    long = "x" * 1_000_000
    line = script(id=long)
    (twice,) = told(SCRIPT, tmp_path / "d.jsonl", f"{line}\n{line.replace('1}', '0}')}\n")
    assert len(twice) < 200 and twice.endswith("is the id of line 1 too; give each record its own")
    (tmp_path / "d.jsonl").write_text(script(**{long: 1}) + "\n")
    (unknown,) = check(SCRIPT, str(tmp_path / "d.jsonl"))[2]
    assert len(str(unknown)) < 400


def test_half_a_character_in_a_name_is_a_fault_too(tmp_path: Path) -> None:
    line = YES.replace("}", ', "meta": {"a": {"\\ud800": 1}}}')
    assert told(SCRIPT, tmp_path / "d.jsonl", f"{line}\n{NO}\n") == [
        ":1: meta.a: a name in it holds half a character (a lone surrogate); write it as UTF-8"
    ]


def test_two_columns_of_one_name_are_a_fault(tmp_path: Path) -> None:
    columns = [pa.array(["a", "b"]), pa.array(["g", "h"]), pa.array(["other", "goals"])]
    parquet.write_table(pa.table(columns, names=["id", "goal", "goal"]), tmp_path / "d.parquet")
    assert [str(fault) for fault in check(SCRIPT, str(tmp_path / "d.parquet"))[1]] == [
        f"{tmp_path}/d.parquet: goal: two columns of this name; keep one of the two"
    ]


def test_a_huge_line_is_a_fault_and_reading_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LONGEST_LINE", 100)
    long = script(goal="x" * 1000)
    bad = b'{"id": "\xff"}'
    content = f"{YES}\n{long}\n{NO}\n".encode() + bad
    assert told(SCRIPT, tmp_path / "d.jsonl", content) == [
        ":2: longer than 100 bytes; give one record a line",
        f":4: byte 0xff at offset {content.index(0xFF)} of the file is not UTF-8; save it as UTF-8",
    ]
    assert told(SCRIPT, tmp_path / "d.jsonl", f"{YES}\n{NO}\n{long}")[0].startswith(":3: longer")


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_a_fault(tmp_path: Path, content: str) -> None:
    assert told(SCRIPT, tmp_path / "d.jsonl", content) == [": no records; give at least one"]


def test_an_id_given_twice_names_both_lines(tmp_path: Path) -> None:
    again = NO.replace('"no"', '" yes "')
    assert told(SCRIPT, tmp_path / "d.jsonl", f"{YES}\n{NO}\n{again}\n") == [
        ":3: id: 'yes' is the id of line 1 too; give each record its own"
    ]


def test_one_class_and_missing_labels_are_faults_only_where_labels_are_needed(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    one_class = f"{YES}\n{script()}\n"
    missing = f"{YES}\n{NO}\n{script(label=None)}\n"
    assert told(SCRIPT, path, one_class) == [
        ": label: all labels are 1 (2 records); a judge needs both, add records labelled 0"
    ]
    assert told(SCRIPT, path, missing) == [
        ": label: missing in 1 of 3 records, first at line 3; give 1 (yes, it holds) or 0 to every record"
    ]
    assert told(SCRIPT, path, one_class, require_label=False) == []
    assert told(SCRIPT, path, missing, require_label=False) == []


def test_one_class_is_not_claimed_of_a_file_that_was_not_read_whole(tmp_path: Path) -> None:
    assert told(SCRIPT, tmp_path / "d.jsonl", f"{YES}\n[]\n") == [
        ":2: a list where an object belongs; write one record a line as {...}"
    ]


def test_unknown_fields_are_one_warning_each_with_the_nearest_known(tmp_path: Path) -> None:
    first = '{"id": "a", "gaol": 1, "goal": "g", "script": [{"step": "s", "prodcts": []}, {"stp": 1, "step": "s"}]}'
    second = '{"id": "b", "gaol": 1, "goal": "g", "script": [{"step": "s", "products": [{"title": "t", "prise": 3}]}]}'
    path = tmp_path / "d.jsonl"
    path.write_text(f"{first}\n{second}\n")
    records, faults, warnings = check(PLAN, str(path), require_label=False)
    assert (len(records), faults) == (2, [])
    advice = "What is only to be kept belongs under 'meta'"
    assert [str(warning).removeprefix(str(path)) for warning in warnings] == [
        f":1: gaol: unknown field, ignored in 2 records; did you mean 'goal'? {advice}",
        f":1: script[].prodcts: unknown field, ignored in 1 record; did you mean 'script[].products'? {advice}",
        f":1: script[].stp: unknown field, ignored in 1 record; did you mean 'script[].step'? {advice}",
        f":2: script[].products[].prise: unknown field, ignored in 1 record; "
        f"did you mean 'script[].products[].price'? {advice}",
    ]


def test_read_records_logs_warnings_and_raises_at_most_twenty_faults(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(f"{script(extra=1)}\n" + "[]\n" * 25)
    with pytest.raises(DataFaults) as raised:
        read_records(SCRIPT, str(path), require_label=False)
    lines = str(raised.value).splitlines()
    assert lines[0] == f"{path}:2: a list where an object belongs; write one record a line as {{...}}"
    assert (len(lines), lines[-1], len(raised.value.faults)) == (21, "and 5 more", 25)
    assert "extra: unknown field" in caplog.text


def test_a_fault_prints_whatever_stands_in_a_name(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"\\ud800\\n": 1}\n')
    for fault in check(SCRIPT, str(tmp_path / "d.jsonl"))[2]:
        assert "\\ud800\\n: unknown field" in str(fault)
        str(fault).encode()


def test_compressed_lines_are_read_and_a_broken_file_is_a_fault(tmp_path: Path) -> None:
    whole = gzip.compress(f"{YES}\n{NO}\n".encode())
    assert told(SCRIPT, tmp_path / "d.jsonl.gz", whole) == []
    (fault,) = told(SCRIPT, tmp_path / "d.jsonl.gz", whole[:-4])
    assert fault.startswith(": cannot be read after line 2 (Compressed file ended")
    (fault,) = told(SCRIPT, tmp_path / "d.jsonl.gz", b"plain")
    assert fault.startswith(": cannot be read after line 0 (Not a gzipped file")


def test_parquet_rows_become_the_records_of_the_same_jsonl(tmp_path: Path) -> None:
    raw = [
        {"id": "a", "goal": "g", "step": "s", "product": {"title": "t", "price": 2.5}, "label": 1, "meta": {"a": 1}},
        {
            "id": "b",
            "goal": "g",
            "step": "s",
            "product": {"title": "t", "features": ["f"]},
            "label": 0,
            "meta": {"b": "x"},
        },
    ]
    parquet.write_table(pa.Table.from_pylist(raw), tmp_path / "d.parquet")
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in raw))
    from_parquet = read_records(PAIR, str(tmp_path / "d.parquet"))
    assert from_parquet == read_records(PAIR, str(tmp_path / "d.jsonl"))
    assert type(from_parquet[0].label) is int and type(from_parquet[0].product.price) is float
    assert from_parquet[0].meta == {"a": 1}


def test_parquet_nulls_floats_and_unknown_columns(tmp_path: Path) -> None:
    step = pa.struct([("step", pa.string()), ("products", pa.list_(pa.struct([("title", pa.string())])))])
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("goal", pa.string()),
            ("script", pa.list_(step)),
            ("label", pa.float64()),
            ("old", pa.int8()),
        ]
    )
    raw = [
        {"id": "a", "goal": "g", "script": [{"step": "s", "products": None}], "label": 1.0, "old": None},
        {"id": "b", "goal": None, "script": [{"step": "s", "products": [None]}], "label": 0.0, "old": None},
        {"id": "c", "goal": "g", "script": [None], "label": None, "old": None},
    ]
    path = tmp_path / "d.parquet"
    parquet.write_table(pa.Table.from_pylist(raw, schema=schema), path)
    records, faults, warnings = check(PLAN, str(path))
    assert [record.id for record in records] == ["a"]
    assert [str(fault).removeprefix(str(path)) for fault in faults] == [
        ":2: goal: missing; give what the person wants to achieve",
        ":2: script[1].products[1]: null where an object belongs; give an object with title, or take the entry out",
        ":3: script[1]: null where an object belongs; give an object with step, or take the entry out",
        ": label: missing in 1 of 3 records, first at line 3; give 1 (yes, it holds) or 0 to every record",
    ]
    assert warnings == []


def test_what_is_no_parquet_is_a_fault(tmp_path: Path) -> None:
    (fault,) = told(SCRIPT, tmp_path / "d.parquet", b"nothing")
    assert fault.startswith(": cannot be read as Parquet after row 0 (")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A hub with one dataset, ``org/plans``, of two splits; the list holds what was asked for."""
    asked: list[dict[str, Any]] = []
    splits = {"train": [json.loads(YES), json.loads(NO)], "test": [json.loads(YES)]}

    def load_dataset(name: str, revision: str | None = None, split: str | None = None) -> Any:
        asked.append({"name": name, "revision": revision, "split": split})
        if name == "org/one":
            return {"train": splits["train"]}
        if name != "org/plans":
            raise FileNotFoundError(f"Dataset '{name}' doesn't exist on the Hub\nor cannot be accessed")
        return splits if split is None else splits[split]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    return asked


def test_a_hub_dataset_is_named_with_revision_and_split(hub: list[dict[str, Any]]) -> None:
    assert [record.id for record in read_records(SCRIPT, "org/plans@v1.2:train")] == ["yes", "no"]
    assert [record.id for record in read_records(SCRIPT, "org/one")] == ["yes", "no"]
    assert hub == [
        {"name": "org/plans", "revision": "v1.2", "split": "train"},
        {"name": "org/one", "revision": None, "split": None},
    ]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("org/plans", "org/plans: has the splits train, test; name one, as in org/plans:train"),
        (
            "org/none:train",
            "org/none:train: no such file, and as a hub dataset it cannot be read (FileNotFoundError: "
            "Dataset 'org/none' doesn't exist on the Hub); check the name, the split, the rights",
        ),
        (
            "org/plans:dev",
            "org/plans:dev: no such file, and as a hub dataset it cannot be read (KeyError: 'dev'); "
            "check the name, the split, the rights",
        ),
        (
            "data/train.jsonl",
            "data/train.jsonl: no such file; give a file, sample:train or a hub dataset org/name:split",
        ),
        ("a/b/c", "a/b/c: no such file; give a file, sample:train or a hub dataset org/name:split"),
        ("./org/plans", "./org/plans: no such file; give a file, sample:train or a hub dataset org/name:split"),
        ("nothing", "nothing: no such file; give a file, sample:train or a hub dataset org/name:split"),
        ("sample:dev", "sample:dev: the sample has no such split; give one of train, validation, test"),
    ],
)
def test_references_to_nothing(hub: list[dict[str, Any]], reference: str, expected: str) -> None:
    assert [str(fault) for fault in check(SCRIPT, reference)[1]] == [expected]


def test_a_hub_fault_names_the_row(hub: list[dict[str, Any]]) -> None:
    assert next(str(fault) for fault in check(PAIR, "org/plans:test")[1]) == (
        "org/plans:test:1: step: missing; give the step's text"
    )


def test_a_local_path_comes_before_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: list[Any]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("org/plans").mkdir(parents=True)
    assert [str(fault) for fault in check(SCRIPT, "org/plans")[1]] == ["org/plans: a folder; name a file in it"]
    Path("notes.md").write_text("x")
    assert str(check(SCRIPT, "notes.md")[1][0]) == (
        "notes.md: unknown kind of file; give .jsonl, .jsonl.gz, .parquet or .csv"
    )
    assert hub == []


def test_the_sample_is_read_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [SCRIPT.record.model_validate(json.loads(line)) for line in (YES, NO)]
    monkeypatch.setattr(
        "recipes.sample.build.build_split",
        lambda judgment, split: made if (judgment, split) == ("script_verify", "test") else [],
    )
    assert read_records(SCRIPT, "sample:test") == made


def test_the_fingerprint_tells_contents_and_order_and_nothing_else() -> None:
    yes, no = (SCRIPT.record.model_validate(json.loads(line)) for line in (YES, NO))
    # printf '%s\n' '{"goal":"g","id":"yes","label":1,"script":["s"]}' | sha256sum
    assert fingerprint([yes]) == "28de6cda61b4c39b9062cf6feb377244306420a51463f4e4342d868d87552aac"
    spelled = SCRIPT.record.model_validate(json.loads(YES) | {"label": "yes", "goal": " g ", "meta": None})
    assert fingerprint([spelled]) == fingerprint([yes])
    assert fingerprint([yes, no]) != fingerprint([no, yes]) != fingerprint([no])
