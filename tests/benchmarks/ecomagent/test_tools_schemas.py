"""The tools as models see them, and calls that cannot be carried out: always a result to read, never a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tiny_shop import shop, task

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.tools import TOOLS, Mode, Toolbox

# The benchmark's table: tools in order, their arguments, and which of these are required.
TABLE = {
    "search_products": (["query", "page"], ["query"]),
    "filter_by_attribute": (["product_ids", "attribute_name", "attribute_value"],) * 2,
    "get_product_details": (["product_id"], ["product_id"]),
    "get_review_content": (["query", "product_id"], ["query", "product_id"]),
    "get_product_review_stats": (["product_ids"], ["product_ids"]),
    "get_store_products": (["store_name", "page"], ["store_name"]),
    "get_user_profile": ([], []),
    "ask_user": (["question"], ["question"]),
    "python_execute": (["code"], ["code"]),
    "recommend_product": (["product_id", "reasoning"], ["product_id", "reasoning"]),
}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return shop(tmp_path_factory.mktemp("shop"))


@pytest.mark.parametrize("mode", ["strict", "compat"])
def test_ten_tools_in_the_benchmarks_order_and_form(catalogue: Catalogue, mode: Mode) -> None:
    schemas = Toolbox(catalogue, task(), mode).schemas()
    assert json.loads(json.dumps(schemas)) == schemas
    assert [schema["function"]["name"] for schema in schemas] == list(TABLE)
    for schema in schemas:
        function = schema["function"]
        assert schema.keys() == {"type", "function"} and schema["type"] == "function"
        assert function.keys() == {"name", "description", "parameters"} and function["description"]
        parameters = function["parameters"]
        names, required = TABLE[function["name"]]
        assert parameters["type"] == "object"
        assert (list(parameters["properties"]), parameters["required"]) == (names, required)
        assert all(entry["description"] and entry["type"] for entry in parameters["properties"].values())


def test_limits_stand_in_the_schemas(catalogue: Catalogue) -> None:
    forms = {
        schema["function"]["name"]: schema["function"]["parameters"]["properties"]
        for schema in Toolbox(catalogue, task()).schemas()
    }
    assert forms["filter_by_attribute"]["product_ids"]["maxItems"] == 10
    assert forms["filter_by_attribute"]["product_ids"]["items"] == {"type": "string"}
    assert forms["ask_user"]["question"]["maxLength"] == 100
    assert forms["search_products"]["page"]["default"] == 0


BAD = [
    "",
    "{",
    "null",
    "[]",
    '"text"',
    "7",
    "[" * 100_000,
    "9" * 10_000,
    '{"query": 5}',
    '{"query": null, "product_id": null, "question": null, "code": null}',
    '{"product_ids": "A"}',
    '{"product_ids": [1, null]}',
    '{"query": "lamp", "page": "two"}',
    '{"query": "lamp", "page": 1e300}',
    '{"query": "lamp", "page": 99999999999999999999}',
    '{"query": "lamp", "colour": "teal"}',
    '{"store_name": ["Kelvora"]}',
    '{"product_id": {"id": "LAMP1"}, "reasoning": "x"}',
    '{"product_id": "LAMP1", "reasoning": 3}',
    '{"code": ["print(1)"]}',
]


@pytest.mark.parametrize("mode", ["strict", "compat"])
@pytest.mark.parametrize("name", [name for name in TABLE if name != "get_user_profile"])
def test_a_bad_call_is_an_error_to_read(catalogue: Catalogue, name: str, mode: Mode) -> None:
    box = Toolbox(catalogue, task(), mode)
    for arguments in BAD:
        result = box.call(name, arguments)
        assert list(result) == ["error"], arguments
        assert name in result["error"] and len(result["error"]) < 400
    assert not box.finished and box.ask_count == 0


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("search_products", {}, "search_products: query: missing; give words that the product's title should have"),
        ("search_products", {"qury": "lamp"}, "qury: unknown argument; did you mean query?"),
        ("get_user_profile", {"user": 1}, "user: unknown argument; it takes no arguments"),
        ("ask_user", "What colour?", "ask_user: the arguments are no valid JSON"),
        ("search_product", {"query": "lamp"}, "'search_product' is no tool; did you mean search_products?"),
        ("buy", {}, "'buy' is no tool; there are search_products, filter_by_attribute"),
        ("get_product_review_stats", {"product_ids": ["A", 4]}, "product_ids[2]: the number 4 where text belongs"),
    ],
)
def test_errors_say_what_to_do(catalogue: Catalogue, name: str, arguments: Any, told: str) -> None:
    assert told in Toolbox(catalogue, task()).call(name, arguments)["error"]


@pytest.mark.parametrize("mode", ["strict", "compat"])
def test_arguments_may_be_an_object_or_its_text(catalogue: Catalogue, mode: Mode) -> None:
    box = Toolbox(catalogue, task(), mode)
    assert box.call("get_product_details", {"product_id": "MUG1"}) == box.call(
        "get_product_details", '{"product_id": "MUG1"}'
    )
    assert box.call("get_user_profile", "") == box.call("get_user_profile", {})


@pytest.mark.parametrize("mode", ["strict", "compat"])
@pytest.mark.parametrize(
    "text", ["\ud800", "\0", "lamp\0\ud83d", '"', "a" * 5000, " OR ".join("ab"), "title: x", "NEAR(a)"]
)
def test_no_text_breaks_a_tool(catalogue: Catalogue, mode: Mode, text: str) -> None:
    calls: dict[str, Any] = {
        "search_products": {"query": text},
        "filter_by_attribute": {"product_ids": [text, "LAMP1"], "attribute_name": text, "attribute_value": text},
        "get_product_details": {"product_id": text},
        "get_review_content": {"query": text, "product_id": "LAMP1"},
        "get_product_review_stats": {"product_ids": [text]},
        "get_store_products": {"store_name": text},
        "ask_user": {"question": text},
        "python_execute": {"code": text},
        "recommend_product": {"product_id": text, "reasoning": text},
    }
    for name, arguments in calls.items():
        box = Toolbox(catalogue, task([{"keywords": ["color"], "answer": "Teal."}]), mode)
        json.dumps(box.call(name, arguments), ensure_ascii=False).encode("utf-8")


def test_the_visit_ends_with_the_recommendation(catalogue: Catalogue) -> None:
    box = Toolbox(catalogue, task())
    assert not box.finished
    assert box.call("recommend_product", {"product_id": "LAMP1", "reasoning": "It folds."}) == {
        "recommended_product": {"product_id": "LAMP1", "title": "Kelvora Foldable USB-C Desk Lamp"},
        "reasoning": "It folds.",
    }
    assert (box.finished, box.recommended, box.reasoning) == (True, "LAMP1", "It folds.")
    assert "ended" in box.call("recommend_product", {"product_id": "LAMP2", "reasoning": "No, this."})["error"]
    assert box.recommended == "LAMP1"


def test_an_unknown_product_ends_the_visit_in_compat_and_is_refused_in_strict(catalogue: Catalogue) -> None:
    given = {"product_id": "LAMP9", "reasoning": "a guess"}
    compat, strict = (Toolbox(catalogue, task(), mode) for mode in ("compat", "strict"))
    assert compat.call("recommend_product", given) == {"recommended_product": None, "reasoning": "a guess"}
    assert (compat.finished, compat.recommended) == (True, None)
    assert "no product has the id 'LAMP9'" in strict.call("recommend_product", given)["error"]
    assert not strict.finished


def test_two_visits_share_nothing(catalogue: Catalogue) -> None:
    shared = task([{"keywords": ["color"], "answer": "Teal."}])
    first, second = Toolbox(catalogue, shared), Toolbox(catalogue, shared)
    first.call("ask_user", {"question": "Which color?"})
    assert (first.ask_count, first.revealed) == (1, ["cl_1"])
    assert (second.ask_count, second.revealed) == (0, [])


def test_the_registry_holds_each_tool_under_its_name() -> None:
    assert [tool.name for tool in TOOLS.values()] == list(TOOLS)
