"""The independent validator lets what is built pass, and finds each thing that is spoiled."""

from __future__ import annotations

import ast
import copy
import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ecomagent import validator
from benchmarks.ecomagent.build.config import EcomAgentBuildConfig
from benchmarks.ecomagent.build.run import build
from benchmarks.ecomagent.sample.build import sample_catalogue
from benchmarks.ecomagent.samples import TASKS
from benchmarks.ecomagent.tasks import INTENTS
from benchmarks.ecomagent.validator import main, paid, validate

Line = dict[str, Any]


@pytest.fixture(scope="module")
def shipped() -> list[Line]:
    """The tasks that come with the toolkit."""
    return [json.loads(line) for line in gzip.decompress(TASKS.read_bytes()).splitlines()]


@pytest.fixture(scope="module")
def lines(shipped: list[Line]) -> dict[str, Line]:
    """One task of each intent."""
    return {task["intent_category"]: task for task in shipped}


def faults(tmp_path: Path, *tasks: Line) -> list[str]:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return validate(path, sample_catalogue())


def test_every_shipped_task_is_valid(shipped: list[Line], tmp_path: Path) -> None:
    assert Counter(task["intent_category"] for task in shipped) == dict.fromkeys(INTENTS, 25)
    assert faults(tmp_path, *shipped) == []


@pytest.mark.slow
def test_the_shipped_tasks_are_those_that_are_built(tmp_path: Path) -> None:
    build(EcomAgentBuildConfig(out=str(tmp_path / "built")))
    assert (tmp_path / "built" / "tasks.jsonl").read_bytes() == gzip.decompress(TASKS.read_bytes())


def test_it_shares_no_code_with_construction_and_grading() -> None:
    tree = ast.parse(Path(validator.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in names if name.split(".")[0] in ("benchmarks", "models", "recipes")}


def of(task: Line, source: str, kind: str | None = None) -> Line:
    """The task's first item of a source (and type)."""
    return next(item for item in task["rubrics"] if item["info_source"] == source and kind in (None, item["type"]))


def hidden_value(task: Line) -> str:
    return str(of(task, "persona", "attribute_match")["expected_value"])


def profile(task: Line) -> Line:
    required: Line = task["user_persona"]["product_requirements"]
    return required


def script(task: Line) -> Line:
    told: Line = task["clarification_script"]
    return told


def add(task: Line, words: str) -> None:
    task["user_query"] += f" {words}"


PLAIN: list[tuple[Callable[[Line], Any], str]] = [
    (lambda t: t.update(intent_category="window_shopping"), "is not one of the eight"),
    (lambda t: t["rubrics"][1].update(id="r9"), "item ids do not run from r1"),
    (lambda t: t["rubrics"].pop(0), "item ids do not run from r1"),
    (lambda t: t["rubrics"].reverse(), "must name the kind of product"),
    (lambda t: t["rubrics"][1].update(field=t["rubrics"][0]["field"]), "2 items look at"),
    (lambda t: t["feature_partition"].update(query_count=99), "the partition says 99"),
    (lambda t: t["extracted_features"].pop(), "features were lost or doubled"),
    (lambda t: t["implicit_rubric_ids"].pop(), "at least 2 are wanted"),
    (lambda t: t.update(user_query="A thing, please."), "the query does not have its words"),
    (lambda t: add(t, hidden_value(t)), "gives"),
    (lambda t: add(t, f"I'd pay ${t['target_product']['price']:.2f}."), "the query tells the target's price"),
    (lambda t: t["user_persona"]["lifestyle"].update(shoe_size="44"), "the profile's lifestyle has the keys"),
    (lambda t: profile(t).clear(), "the profile does not tell"),
    (lambda t: profile(t).update(mood="good"), "2 items are its own"),
    (lambda t: script(t)["clarification_slots"].pop(), "do not match one to one"),
    (lambda t: script(t)["clarification_slots"][0].update(user_response="Hm."), "the answer does not say"),
    (lambda t: script(t).update(max_clarification_turns=1), "too few turns"),
    (lambda t: t["target_product"].update(product_id="B0NOWHERE0"), "the target is not in the catalogue"),
    (lambda t: t["target_product"].update(title="Another"), "the target's title is 'Another'"),
    (lambda t: of(t, "persona").update(expected_value="Plaid Gold"), "the target does not meet it"),
    (lambda t: t["rubrics"][-1].update(title_span="Zeppelin"), "does not have the words that name the kind"),
    (lambda t: t.pop("rubrics"), "cannot be checked any further: KeyError"),
]
SPECIAL: list[tuple[str, Callable[[Line], Any], str]] = [
    ("coupon_budget", lambda t: t.update(voucher=None), "have one budget and a voucher"),
    ("coupon_budget", lambda t: of(t, "query", "budget_match").update(expected_value=0.5), "does not meet it"),
    ("review_driven", lambda t: t["rubrics"].remove(of(t, "query", "review_opinion")), "have two opinions"),
    ("review_driven", lambda t: of(t, "query", "review_opinion").update(expected_value="it sings"), "does not meet it"),
    ("negative_constraint", lambda t: t.update(intent_category="product_search"), "exclude something"),
    ("rating_quality", lambda t: of(t, "query", "numeric_range").update(expected_value={"min": 9**9}), "does not meet"),
]
SPOILS = [*(("product_search", spoil, said) for spoil, said in PLAIN), *SPECIAL]


@pytest.mark.parametrize(("intent", "spoil", "said"), SPOILS, ids=[said for _, _, said in SPOILS])
def test_each_spoiled_task_is_found(
    lines: dict[str, Line], tmp_path: Path, intent: str, spoil: Callable[[Line], Any], said: str
) -> None:
    task = copy.deepcopy(lines[intent])
    task["target_product"]["price"] = task["target_product"]["price"] or 12.34
    spoil(task)
    found = faults(tmp_path, task)
    assert any(said in fault for fault in found), found


def test_an_exclusion_that_the_target_has_or_that_is_empty_is_found(lines: dict[str, Line], tmp_path: Path) -> None:
    task = copy.deepcopy(lines["negative_constraint"])
    item = next(item for item in task["rubrics"] if item["type"] == "negative_attribute")
    own = task["target_product"]["details"].get(item["field"].removeprefix("details."))
    for values in ([], [own]):
        if values != [None]:
            item["expected_value"] = values
            assert any(f"{item['id']}: the target does not meet it" in fault for fault in faults(tmp_path, task))


def test_repeated_ids_and_empty_files_are_found(lines: dict[str, Line], tmp_path: Path) -> None:
    task = lines["product_search"]
    assert faults(tmp_path, task, task) == [f"the id {task['id']} stands 2 times"]
    assert faults(tmp_path) == ["no task"]


def test_the_command_ends_with_the_verdict(
    lines: dict[str, Line], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(lines["product_search"]) + "\n")
    assert main([str(path), str(sample_catalogue())]) == 0
    path.write_text("[]\n")
    assert main([str(path), str(sample_catalogue())]) == 1
    assert "cannot be checked" in capsys.readouterr().out
    assert main([]) == 2


def test_files_that_cannot_be_checked_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text("{}\n")
    for tasks, catalogue, said in (
        (path, tmp_path / "none.db", "none.db: no catalogue, or a damaged one (unable to open"),
        (tmp_path / "none.jsonl", sample_catalogue(), "none.jsonl: cannot be read ([Errno 2] No such file"),
    ):
        assert main([str(tasks), str(catalogue)]) == 1
        assert said in capsys.readouterr().err


def test_its_own_voucher_arithmetic() -> None:
    fixed = {"discount_type": "fixed", "threshold": 30, "face_value": 5}
    assert (paid(3450, fixed), paid(2999, fixed)) == (2950, 2999)
    share = {"discount_type": "percentage", "threshold": 20, "discount": 0.2, "cap": 6}
    assert (paid(2500, share), paid(5000, share)) == (2000, 4400)
    tiers = {"discount_type": "tiered", "tiers": [fixed, {**share, "threshold": 60, "cap": 20}]}
    assert (paid(2000, tiers), paid(5000, tiers), paid(6000, tiers)) == (2000, 4500, 4800)
    stacked = {"discount_type": "stacked", "threshold": 40, "coupons": [share, fixed]}
    assert (paid(3000, stacked), paid(6000, stacked)) == (3000, 4900)
