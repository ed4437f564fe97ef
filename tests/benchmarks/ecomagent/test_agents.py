"""The reference agents: what each may know, and the order in which they come out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from errands import LAMP_LINE
from tiny_shop import shop

from benchmarks.ecomagent.agents import AGENTS, ReferenceAgent
from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.config import EcomAgentConfig
from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.grading.grade import grade_all
from benchmarks.ecomagent.matching import Wishes, score
from benchmarks.ecomagent.playing import Errand, deal, play
from benchmarks.ecomagent.run import evaluate, limited
from benchmarks.ecomagent.sample.build import sample_catalogue
from benchmarks.ecomagent.samples import TASKS
from benchmarks.ecomagent.tasks import Task, read_tasks
from benchmarks.ecomagent.tools import Mode, Toolbox
from benchmarks.ecomagent.trajectory import calls, told


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue(sample_catalogue())


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    """One task of each intent."""
    return limited(read_tasks(TASKS), 1)


Record = dict[str, Any]


def records(name: str, catalogue: Catalogue, tasks: list[Task], mode: Mode = "strict", **changed: Any) -> list[Record]:
    found: dict[str, Record] = {}
    play(
        ReferenceAgent(name, **changed),
        deal([Errand(task) for task in tasks], 2),
        lambda errand: Episode(errand.task, Toolbox(catalogue, errand.task, mode)),
        lambda episode: found.update({episode.task.id: episode.record(name)}),
    )
    return [found[task.id] for task in tasks]


@pytest.mark.parametrize("mode", ["strict", "compat"])
def test_the_oracle_is_right_everywhere_and_hears_everything(
    catalogue: Catalogue, tasks: list[Task], mode: Mode
) -> None:
    played = records("oracle", catalogue, tasks, mode)
    grades = grade_all(catalogue, tasks, [record["predicted_product_id"] for record in played])
    assert all(grade.exact and grade.all_satisfied for grade in grades)
    for task, record in zip(tasks, played, strict=True):
        known = told(task, record["trajectory"])
        assert known.profile and all(known.knows(task, item) for item in task.rubrics)
        searched = next(call for call in calls(record["trajectory"]) if call.name == "search_products")
        assert task.target_id in [product["product_id"] for product in searched.result["products"]]


def used(record: Record) -> set[str]:
    return {call.name for call in calls(record["trajectory"])}


def test_each_agent_goes_to_its_own_sources(catalogue: Catalogue, tasks: list[Task]) -> None:
    for name, asks in (("thorough", True), ("visible-only", False), ("random", False)):
        for record in records(name, catalogue, tasks[:3]):
            assert ({"ask_user", "get_user_profile"} <= used(record)) is asks
            assert not ({"ask_user", "get_user_profile"} & used(record)) or asks
            assert record["stop_reason"] == "recommended"
            assert record["ask_user_calls"] <= 10 and record["total_tool_calls"] <= 100


def test_an_agent_does_the_same_for_the_same_seed(catalogue: Catalogue, tasks: list[Task]) -> None:
    once, again = (records("random", catalogue, tasks) for _ in range(2))
    assert once == again
    other = records("random", catalogue, tasks, seed=1)
    assert [record["predicted_product_id"] for record in once] != [record["predicted_product_id"] for record in other]


@pytest.mark.parametrize("mode", ["strict", "compat"])
@pytest.mark.parametrize("name", ["thorough", "visible-only", "random"])
def test_who_finds_nothing_ends_without_a_product_and_the_same_every_time(
    tmp_path: Path, tasks: list[Task], name: str, mode: Mode
) -> None:
    strange = shop(tmp_path, [{"parent_asin": "X", "title": "Zzyzx"}], [])
    once, again = (records(name, strange, tasks[:2], mode) for _ in range(2))
    assert once == again
    for record in once:
        assert (record["stop_reason"], record["predicted_product_id"]) == ("no_call", None)
        assert record["reasoning"] == "Nothing that I found fits." and "error" not in record


def test_a_search_that_is_refused_costs_the_oracle_nothing(catalogue: Catalogue, tasks: list[Task]) -> None:
    target = tasks[0].target_product.model_copy(update={"title": "lamp " * 61})  # strict takes 300 characters
    (record,) = records("oracle", catalogue, [tasks[0].model_copy(update={"target_product": target})])
    assert (record["stop_reason"], record["predicted_product_id"]) == ("recommended", tasks[0].target_id)


def product(**details: str) -> dict[str, Any]:
    return {"details": details, "price": 30.0, "rating_number": 50, "average_rating": 4.0}


def test_what_is_known_is_weighed() -> None:
    query = 'A lamp of oak. It must not be made of brass. It should have at least 40 ratings. Say "tin is fine".'
    wishes = Wishes(query, {"color_preference": "Teal", "avoid_preferences": ["Shape: Round"]}, ["I like it matte."])
    plain = score(wishes, product())
    assert score(wishes, product(Material="Oak")) == plain + 1
    assert score(wishes, product(Material="Brass")) == plain + 1 - 2
    assert score(wishes, product(Material="Tin")) == plain  # what reviews should say is no wish for an attribute
    assert score(wishes, product(Color="Teal")) == plain + 3
    assert score(wishes, product(Shape="Round")) == plain - 3
    assert score(wishes, product(**{"Finish Type": "Matte"})) == plain + 3
    assert score(wishes, {**product(), "rating_number": 39}) == plain - 2


def test_prices_before_a_voucher_may_be_higher_than_the_budget() -> None:
    assert score(Wishes("It must cost less than $30."), product()) == -2
    assert score(Wishes("It must cost less than $31."), product()) == 0
    assert score(Wishes("With my voucher I want to pay at most $25."), product()) == 0


def test_names_that_answers_bear_are_those_of_agents() -> None:
    assert list(AGENTS) == ["oracle", "thorough", "visible-only", "random"]
    assert json.loads(json.dumps(ReferenceAgent("oracle").facts))["agent"] == "oracle"
    assert LAMP_LINE["id"]


@pytest.mark.slow
def test_the_order_comes_out_and_satisfaction_falls_from_what_is_visible(tmp_path: Path) -> None:
    found = {name: evaluate(EcomAgentConfig(agent=name, out=str(tmp_path / name))) for name in AGENTS}  # type: ignore[arg-type]
    accuracy = {name: results["intervals"]["overall_accuracy"] for name, results in found.items()}
    assert accuracy["oracle"]["value"] == 1.0 and found["oracle"]["total_samples"] == 200
    for better, worse in (("oracle", "thorough"), ("thorough", "visible-only"), ("visible-only", "random")):
        assert accuracy[better]["low"] > accuracy[worse]["value"], (better, worse)
    assert accuracy["thorough"]["low"] > accuracy["visible-only"]["high"] > accuracy["random"]["high"]
    by_source = {name: row["satisfaction"] for name, row in found["visible-only"]["by_source"].items()}
    assert by_source["query"] > by_source["persona"] and by_source["query"] > by_source["clarification"]
    assert found["oracle"]["overall_rubric_satisfaction"] == 1.0
