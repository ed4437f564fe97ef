"""Metrics of six episodes, counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from errands import LAMP, LAMP_LINE, Shelf

from benchmarks.ecomagent.grading.grade import Grade, grade_all
from benchmarks.ecomagent.metrics import Outcome, Resampling, measure
from benchmarks.ecomagent.tasks import Task
from benchmarks.ecomagent.trajectory import calls, told
from recipes.intervals import ratio

RED = replace(LAMP, id="B0LAMP0003", price=41.0, details={**LAMP.details, "Color": "Red"})  # misses r4 and r7
CHAIR = replace(RED, id="B0CHAIR001", title="Folding Chair")  # misses r8 as well
TWIN = replace(LAMP, id="B0LAMP0002")
SHELF: Any = Shelf(LAMP, RED, CHAIR, TWIN)


def task(name: str, intent: str = "product_search", implicit: tuple[str, ...] = ("r3",)) -> Task:
    changed = {"id": name, "intent_category": intent, "implicit_rubric_ids": implicit}
    return Task.model_validate({**LAMP_LINE, **changed})


def turn(number: int, name: str, arguments: Any, result: Any) -> list[dict[str, Any]]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    content = json.dumps(result)
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": content},
    ]


PROFILE = turn(1, "get_user_profile", {}, {"profile": LAMP_LINE["user_persona"]})
PRICE = turn(2, "ask_user", {"question": "price?"}, {"user_response": "Less than 40 dollars, please."})
SHRUG = turn(3, "ask_user", {"question": "mood?"}, {"user_response": "I can't say."})


def record(*turns: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    trajectory = [message for part in turns for message in part]
    names = [call.name for call in calls(trajectory)]
    counts = {
        "total_tool_calls": len(names) + 1,
        "ask_user_calls": names.count("ask_user"),
        "get_profile_calls": names.count("get_user_profile"),
    }
    return {"finished": True, "trajectory": trajectory, **counts, **fields}


def outcome(name: str, predicted: str | None, made: dict[str, Any] | None, trial: int = 1, **more: Any) -> Outcome:
    grade: Grade = grade_all(SHELF, [task(name, **more)], [predicted])[0]
    return Outcome(grade, made, trial)


OUTCOMES = [
    outcome("a", "B0LAMP0001", record(PROFILE, PRICE, seconds=2.0, output_tokens=10)),
    outcome("b", "B0LAMP0003", record(PROFILE, SHRUG, seconds=4.0, output_tokens=30)),  # never asked for the price
    outcome("c", "B0CHAIR001", record(PROFILE, PRICE), intent="coupon_budget", implicit=("r1", "r3")),
    outcome("d", None, record(total_tool_calls=0), intent="coupon_budget"),
    outcome("e", None, record(error="boom", finished=False, total_tool_calls=0), intent="coupon_budget"),
    outcome("f", None, None, intent="coupon_budget"),
]
SUMMARY = measure(OUTCOMES, Resampling(resamples=200))


def test_every_task_counts_even_without_a_prediction() -> None:
    assert (SUMMARY["total_samples"], SUMMARY["evaluated_samples"], SUMMARY["missing_predictions"]) == (6, 5, 1)
    assert (SUMMARY["overall_accuracy"], SUMMARY["total_correct"]) == (1 / 6, 1)
    # 8 items each: a meets 8, b 6, c 5, the others none.
    assert SUMMARY["overall_rubric_satisfaction"] == 19 / 48
    assert (SUMMARY["prediction_finished_count"], SUMMARY["prediction_finished_rate"]) == (3, 3 / 6)
    assert SUMMARY["avg_tool_calls"] == (3 + 3 + 3) / 6
    assert SUMMARY["median_tool_calls"] == 1.5
    assert SUMMARY["runtime_error_examples"] == [{"id": "e", "trial": 1, "error_message": "boom"}]


def test_the_published_division_leaves_out_what_it_leaves_out() -> None:
    published = SUMMARY["published_denominators"]
    assert published["overall_accuracy"] == 1 / 4  # neither the crashed nor the missing one
    assert published["overall_rubric_satisfaction"] == 19 / 32
    assert published["prediction_finished_rate"] == 4 / 5  # d counts as finished
    assert published["avg_ask_user_calls"] == 3 / 4
    assert published["profile_called_rate"] == 3 / 4


def test_satisfaction_by_source_type_and_intent() -> None:
    # query: r1 r2 r3 r8; persona: r4 r5; clarification: r6 r7. b misses r4 r7, c misses r4 r7 r8.
    by_source = {name: (row["satisfied"], row["count"]) for name, row in SUMMARY["by_source"].items()}
    assert by_source == {"query": (4 + 4 + 3, 24), "persona": (2 + 1 + 1, 12), "clarification": (2 + 1 + 1, 12)}
    by_type = {name: (row["satisfied"], row["count"]) for name, row in SUMMARY["by_rubric_type"].items()}
    assert by_type == {"attribute_match": (5 + 4 + 4, 30), "numeric_range": (2 + 1 + 1, 12), "entity_match": (2, 6)}
    assert {name: (row["count"], row["accuracy"]) for name, row in SUMMARY["by_intent"].items()} == {
        "product_search": (2, 0.5),
        "coupon_budget": (4, 0.0),
    }
    assert {name: row["count"] for name, row in SUMMARY["by_implicit_count"].items()} == {"0-1": 5, "2": 1}


def test_every_failure_is_laid_to_one_requirement_and_its_source() -> None:
    found = SUMMARY["attribution"]
    told_of = {one["id"]: (one["rubric_id"], one["source"], one["fault"]) for one in found["causes"]}
    assert told_of == {
        "b": ("r7", "clarification", "never_asked"),  # before r4, which it knew
        "c": ("r8", "query", "known_not_met"),  # the kind of product comes first
        "d": (None, None, "no_recommendation"),
        "e": (None, None, "error"),
        "f": (None, None, "missing"),
    }
    assert found["failed"] == 5 == sum(found["by_source"].values())
    missed = {
        (row["source"], row["fault"]): row["count"] for row in found["missed_items"] if row["type"] != "entity_match"
    }
    assert missed == {
        ("persona", "known_not_met"): 2,
        ("clarification", "never_asked"): 1,
        ("clarification", "known_not_met"): 1,
    }


def test_questions_and_what_they_brought_out() -> None:
    found = SUMMARY["clarification_efficiency"]
    assert (found["total_ask_user_calls"], found["total_clarification_slots"], found["revealed_slots"]) == (3, 12, 2)
    assert (found["trigger_rate"], found["slots_per_question"]) == (2 / 12, 2 / 3)
    assert SUMMARY["persona_utilization"]["profile_called_rate"] == 3 / 6
    assert SUMMARY["stop_reasons"] == {"recommended": 3, "no_recommendation": 1, "error": 1, "missing": 1}
    assert SUMMARY["cost"]["seconds"] == {"mean": 3.0, "median": 3.0, "total": 6.0}


def test_pass_hat_k_is_the_share_of_draws_of_k_trials_that_are_all_right() -> None:
    verdicts = {"a": [1, 1, 0, 1], "b": [0, 0, 1, 0], "c": [1, 1, 1, 1]}
    outcomes = [
        outcome(name, "B0LAMP0001" if right else None, record(), trial)
        for name, rights in verdicts.items()
        for trial, right in enumerate(rights, 1)
    ]
    found = measure(outcomes, Resampling(resamples=50))["trials"]
    for k in range(1, 5):
        draws = [all(draw) for rights in verdicts.values() for draw in combinations(rights, k)]
        assert found["pass_hat_k"][str(k)] == pytest.approx(sum(draws) / len(draws))  # as many draws of each task
    assert found["accuracy_by_trial"] == {"1": 2 / 3, "2": 2 / 3, "3": 2 / 3, "4": 2 / 3}


def test_what_was_told_is_read_from_the_trajectory_alone() -> None:
    known = told(task("a"), [*PRICE, *SHRUG])
    assert (known.profile, known.slots) == (False, {"cl_2"})
    dropped = [{**PRICE[0], "tool_calls": [*PRICE[0]["tool_calls"], *PROFILE[0]["tool_calls"]]}, PRICE[1]]
    assert [call.name for call in calls(dropped)] == ["ask_user"]  # the second call of the turn was never made


def test_a_ratio_and_its_interval() -> None:
    # Two groups: resamples are (a, a), (a, b), (b, a), (b, b) with ratios 1/2, 4/6, 4/6, 3/4.
    found = ratio([1, 3], [2, 4], ["a", "b"], resamples=4000)
    assert (found.value, found.low, found.high) == (4 / 6, 0.5, 0.75)
    assert ratio([1], [2], ["a"]).low is None
    assert ratio([0, 0], [0, 0], ["a", "b"]).value is None
    assert ratio([], [], []).value is None
