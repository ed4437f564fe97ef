"""The report: what stands in it, that nothing in it can do harm, and that it works in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import opened
from errands import LAMP_LINE, as_meta
from tiny_shop import shop

from benchmarks.ecomagent import run
from benchmarks.ecomagent.config import EcomAgentConfig
from benchmarks.ecomagent.report import write_report
from benchmarks.ecomagent.run import evaluate
from benchmarks.ecomagent.shown import episode, turns

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation of two tasks, one of which has a query that would break a careless page."""
    where = tmp_path_factory.mktemp("report")
    target = LAMP_LINE["target_product"]
    shop(
        where / "shop", [as_meta(target), as_meta(target, parent_asin="B0RED00001", title="Red Clock", price=90.0)], []
    )
    lines = [LAMP_LINE, {**LAMP_LINE, "id": "t2", "user_query": f"Clock? {HOSTILE} {LAMP_LINE['user_query']}"}]
    (where / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = EcomAgentConfig(
        tasks=str(where / "tasks.jsonl"),
        catalogue=str(where / "shop" / "shop.db"),
        agent="visible-only",
        resamples=50,
        threads=1,
        out=str(where / "out"),
    )
    evaluate(config)
    return where / "out"


def text_of(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def test_the_report_holds_every_table_and_every_episode(folder: Path) -> None:
    page = text_of(folder)
    for heading in (
        "Where requirements come from",
        "Why episodes fail",
        "Intents",
        "Published results",
        "Every episode",
    ):
        assert heading in page
    assert "Claude Opus 4.6" in page and "visible-only (here)" in page
    data = json.loads(re.findall(r'type="application/json">(.*?)</script>', page, re.DOTALL)[0])
    assert len(data["rows"]) == 2 and data["noun"] == "episodes"
    names = [name for name, _ in data["rows"][0][2]]
    assert names[0] == "Query" and names[1] == "Turn 1" and names[-3:] == ["Recommended", "Requirements", "Id"]
    assert "Repeated trials" not in page and "Code and judge" not in page  # there were none


def test_nothing_of_an_episode_becomes_markup(folder: Path) -> None:
    assert "<img" not in text_of(folder) and "onerror" in text_of(folder)


def test_it_is_written_again_from_what_lies_in_the_folder(folder: Path) -> None:
    before = text_of(folder)
    (folder / "report.html").unlink()
    write_report(folder)
    assert text_of(folder) == before
    with pytest.raises(FileNotFoundError, match="give the folder of a finished evaluation"):
        write_report(folder / "playing")


def call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_turns_show_thought_call_and_result_and_what_was_not_made() -> None:
    trajectory = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "I ask.",
            "reasoning_trace": "Hm.",
            "tool_calls": [call("ask_user", '{"question": "price?"}')],
            "discarded_tool_calls": [call("search_products", "{broken")],
        },
        {"role": "tool", "tool_call_id": "c", "content": "x" * 30},
        {"role": "user", "content": "One call only."},
        {"role": "assistant", "content": "Done."},
    ]
    assert list(turns(trajectory, 10)) == [
        (
            "Turn 1",
            'Hm.\nI ask.\n→ ask_user(question="price?")\n(not made: search_products({broken))\n'
            f"← {'x' * 10}… (30 characters)\n(One call only.)",
        ),
        ("Turn 2", "Done."),
    ]


def test_results_are_shown_a_value_a_line() -> None:
    found = {"products": [{"product_id": "A1", "title": "Lamp"}], "page": 0, "product": {"details": {"Color": "Teal"}}}
    told = "products:\n  A1 · Lamp\npage: 0\nproduct:\n  details:\n    Color: Teal"
    trajectory = [
        {"role": "assistant", "content": None, "tool_calls": [call("search_products", '{"query": "lamp"}')]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps(found)},
    ]
    assert list(turns(trajectory, 500)) == [("Turn 1", f'→ search_products(query="lamp")\n← {told}')]


def test_an_episode_tells_what_it_was_laid_to() -> None:
    line = {
        "id": "t1",
        "trial": 1,
        "correct": False,
        "satisfaction_rate": 0.5,
        "exact_product_match": False,
        "predicted_product_id": None,
        "target_product_id": "B1",
        "rubric_results": [],
        "stop_reason": "budget",
    }
    cause = {"rubric_id": None, "source": None, "type": None, "fault": "no_recommendation", "reason": ""}
    shown = episode(line, cause)
    assert shown.values["fault"] == "recommended nothing" and shown.values["ended"] == "out of turns"
    assert ("Recommended", "nothing (the target was B1)") in shown.body
    laid = episode(line, {**cause, "rubric_id": "r3", "source": "persona", "type": "attribute_match", "reason": "so"})
    assert ("Laid to", "r3: so") in laid.body


def test_it_works_in_a_browser(folder: Path) -> None:
    assert run.REPORT == "report.html"
    with opened(folder / "report.html") as page:
        assert page.locator("#list .opener").count() == 2
        page.locator("#list .opener").first.click()
        assert "→ search_products(" in page.locator("#list tr.opened").inner_text()
        page.locator("#list select").first.select_option("right")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
