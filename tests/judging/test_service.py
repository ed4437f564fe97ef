"""The service answers as the judge does, says what it refuses, and tells its keepers how it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from shop_rows import plan, row

from judging.answers import answer
from judging.config import ServeConfig
from judging.judges import NamedJudge, find_judges, load
from judging.plans import Plan, judge_plans
from judging.service import Service
from judging.serving import read_token
from recipes.step_product import StepProductRecord


@pytest.fixture(scope="module")
def judges(base: Path, adapter: Callable[..., Path]) -> list[NamedJudge]:
    folders = [str(adapter(name)) for name in ("script_verify", "step_product", "holistic_verify")]
    return load(find_judges(folders), ServeConfig(adapter=(), checkpoint=str(base)), torch.device("cpu"))


@contextmanager
def client(judges: list[NamedJudge], token: str | None = None, **settings: Any) -> Iterator[TestClient]:
    service = Service(judges, ServeConfig(adapter=(), **settings), token)
    with TestClient(service.gate, raise_server_exceptions=False) as made:
        made.app_state["service"] = service
        yield made


def metric(made: TestClient, name: str, **labels: str) -> float | None:
    """A sample of /metrics, read by Prometheus' own parser."""
    for family in text_string_to_metric_families(made.get("/metrics").text):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return float(sample.value)
    return None


def test_answers_are_those_of_the_judge_in_the_order_of_the_records(judges: list[NamedJudge]) -> None:
    rows: list[Any] = [row(number) for number in range(5)]
    del rows[1]["id"]
    rows.insert(2, {"goal": "bake", "step": 7})
    with client(judges) as made:
        said = made.post("/judge", json={"judge": "step_product", "records": rows})
    assert said.status_code == 200
    body = said.json()
    assert (body["judge"], body["judgment"]) == ("step_product/run", "step_product")
    assert [one["id"] for one in body["answers"]] == ["r0", "2", "3", "r2", "r3", "r4"]
    alone = answer(judges[1], [StepProductRecord.model_validate(row(number)) for number in range(5)])
    told = [one["p_yes"] for one in body["answers"] if one["reason"] is None]
    assert told == pytest.approx([one.p_yes for one in alone], abs=1e-5)
    assert body["answers"][2] == {
        "id": "3",
        "p_yes": None,
        "verdict": None,
        "shortened": False,
        "reason": "invalid",
        "detail": 'step: the number 7 where text belongs; write "7" if this is the text; '
        "product: missing; give an object with title",
    }


def test_a_plan_is_judged_as_a_whole(judges: list[NamedJudge]) -> None:
    with client(judges) as made:
        said = made.post("/plan", json=plan(3))
        assert metric(made, "ecomjudge_answers_total", judge="script_verify/run") == 1
    (expected,) = judge_plans({one.judgment.name: one for one in judges}, [Plan.model_validate(plan(3))])
    assert said.status_code == 200
    assert said.json() == expected.model_dump()


def test_what_is_not_judged_is_said_in_words(judges: list[NamedJudge]) -> None:
    cases: list[tuple[str, Any, int, str]] = [
        ("/judge", {"judge": "step_product", "records": []}, 422, "at least 1 item"),
        ("/judge", {"judge": "step_product", "record": [row(1)]}, 422, "Field required"),
        ("/judge", {"records": [row(1)]}, 422, "judge: None names 3 of the judges; there are script_verify/run"),
        ("/judge", {"judge": "judy", "records": [row(1)]}, 422, "judge: 'judy' names 0 of the judges"),
        ("/judge", {"judge": "step_product", "records": [row(1)] * 9}, 413, "9 records to judge; the most in one"),
        ("/plan", plan(1) | {"products": [{"title": "lamp"}] * 4}, 413, "11 records to judge"),
        ("/plan", {"goal": "bake"}, 422, "Field required"),
    ]
    with client(judges, max_records=8) as made:
        for path, body, status, words in cases:
            said = made.post(path, json=body)
            assert (said.status_code, words in said.text) == (status, True), said.text
        assert made.post("/judge", content=b"{").status_code == 422
        kind = {"Content-Type": "application/json"}
        for path, text in (  # what Python reads, and JSON cannot say
            ("/plan", '{"goal": NaN, "script": ["a"], "products": [{"title": "t", "price": Infinity}]}'),
            ("/plan", '{"goal": "\\ud800", "script": ["a"], "products": []}'),
            ("/judge", '{"records": NaN}'),
        ):
            said = made.post(path, content=text.encode(), headers=kind)
            assert (said.status_code, said.json()["detail"][0]["loc"][0]) == (422, "body")
        half = json.dumps({"judge": "step_product", "records": [row(1) | {"id": "\ud800"}]})
        named = made.post("/judge", content=half.encode(), headers=kind)
        assert (named.status_code, named.json()["answers"][0]["id"]) == (200, "\\ud800")
        assert made.get("/nowhere").status_code == 404
        assert metric(made, "ecomjudge_requests_total", path="/judge", status="422") == 6
        assert metric(made, "ecomjudge_requests_total", path="other", status="404") == 1


def test_a_body_that_is_too_long_is_not_read(judges: list[NamedJudge]) -> None:
    with client(judges, max_bytes=1000) as made:
        said = made.post("/judge", json={"judge": "step_product", "records": [row(1) | {"meta": {"x": "y" * 1000}}]})
        assert (said.status_code, said.headers["connection"]) == (413, "close")
        assert "longer than 1000 bytes; send fewer records" in said.text
        assert made.post("/judge", json={"judge": "step_product", "records": [row(1)]}).status_code == 200


def test_a_token_is_asked_for_where_there_is_one(judges: list[NamedJudge], tmp_path: Path) -> None:
    (tmp_path / "token").write_text(" s3cret \n")
    token = read_token(str(tmp_path / "token"))
    body = {"judge": "step_product", "records": [row(1)]}
    with client(judges, token) as made:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}):
            for said in (made.post("/judge", json=body, headers=headers), made.get("/metrics", headers=headers)):
                assert (said.status_code, said.headers["www-authenticate"]) == (401, "Bearer")
        assert made.post("/plan", json=plan(1)).status_code == 401
        good = {"Authorization": "Bearer s3cret"}
        assert made.post("/judge", json=body, headers=good).status_code == 200
        assert made.get("/metrics", headers=good).status_code == 200
        assert made.get("/health").status_code == 200
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ValueError, match="is empty; write the token"):
        read_token(str(tmp_path / "token"))
    with pytest.raises(FileNotFoundError, match="no such file; write the token"):
        read_token(str(tmp_path / "none"))


def test_health_says_whether_more_may_come(judges: list[NamedJudge]) -> None:
    with client(judges) as made:
        served = {"script_verify/run": "script_verify", "step_product/run": "step_product"}
        said = made.get("/health")
        assert said.status_code == 200 and "connection" not in said.headers
        assert said.json() == {"status": "ok", "judges": served | {"holistic_verify/run": "holistic_verify"}}
        made.app_state["service"].gate.draining = True
        said = made.get("/health")
        assert (said.status_code, said.json()["status"], said.headers["connection"]) == (503, "draining", "close")


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Judging waits until the event is set."""
    gate = threading.Event()

    def waits(one: NamedJudge, records: Any, budget: int) -> Any:
        gate.wait(10)
        return answer(one, records, budget)

    monkeypatch.setattr("judging.service.answer", waits)
    yield gate
    gate.set()


def test_what_takes_too_long_or_comes_on_top_is_refused(
    judges: list[NamedJudge], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"judge": "step_product", "records": [row(1)] * 3}
    with held(monkeypatch) as gate, client(judges, timeout_s=0.3, max_waiting=4) as made:
        first, waiting = (threading.Thread(target=made.post, args=("/judge",), kwargs={"json": body}) for _ in "ab")
        first.start()
        while metric(made, "ecomjudge_open_requests") != 2:  # it, and the asking for metrics
            pass
        waiting.start()
        while metric(made, "ecomjudge_waiting_records") != 3:
            pass
        said = made.post("/judge", json=body)
        assert (said.status_code, said.headers["retry-after"]) == (503, "1")
        first.join()
        waiting.join()
        assert metric(made, "ecomjudge_requests_total", path="/judge", status="504") == 2
        gate.set()
        assert made.post("/judge", json=body).status_code == 200


def test_a_fault_in_judging_is_no_end(judges: list[NamedJudge], monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"judge": "step_product", "records": [row(1)]}
    with client(judges) as made:
        with monkeypatch.context() as patched:
            patched.setattr("judging.service.answer", lambda *_: 1 / 0)
            said = made.post("/judge", json=body)
        assert (said.status_code, said.json()["detail"]) == (500, "judging failed; the service's log says why")
        assert made.post("/judge", json=body).status_code == 200
        assert made.get("/health").status_code == 200


def test_the_service_documents_itself_without_a_network(judges: list[NamedJudge]) -> None:
    with client(judges) as made:
        page = made.get("/docs").text
        assert "http://" not in page and "https://" not in page
        assert made.get("/static-offline-docs/swagger-ui-bundle.js").status_code == 200
        described = made.get("/openapi.json").json()
        assert set(described["paths"]) == {"/judge", "/plan", "/health", "/metrics"}
        assert set(described["paths"]["/judge"]["post"]["responses"]) >= {"200", "401", "413", "422", "503", "504"}
        shown = described["paths"]["/judge"]["post"]["requestBody"]["content"]["application/json"]["examples"]
        for judgment, example in shown.items():
            said = made.post("/judge", json=example["value"] | {"judge": judgment}).json()
            assert said["answers"][0]["verdict"] in (0, 1)
        (shown,) = described["paths"]["/plan"]["post"]["requestBody"]["content"]["application/json"][
            "examples"
        ].values()
        assert made.post("/plan", json=shown["value"]).json()["plan"]["verdict"] in (0, 1)


def test_two_judges_of_one_judgment_are_told_apart_and_judge_no_plans(base: Path, adapter: Callable[..., Path]) -> None:
    folders = [str(adapter("step_product", run)) for run in ("a", "b")]
    config = ServeConfig(adapter=(), checkpoint=str(base))
    with client(load(find_judges(folders), config, torch.device("cpu"))) as made:
        assert made.post("/plan", json=plan(1)).status_code == 404
        said = [made.post("/judge", json={"judge": name, "records": [row(1)]}).json() for name in "ab"]
        assert said[0]["answers"] != said[1]["answers"]
        assert "names 2 of the judges" in made.post("/judge", json={"judge": "step_product", "records": [row(1)]}).text
