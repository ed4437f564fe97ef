"""The HTTP service: judging records and plans, and what its keepers ask for (health, metrics, documentation)."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

from fastapi import Body, Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel, ConfigDict, Field

from judging.answers import REASONS, Answer, answer
from judging.batching import Batcher, TooBusy
from judging.config import ServeConfig
from judging.gate import Gate
from judging.judges import NamedJudge
from judging.plans import JudgedPlan, Plan, ask_about
from judging.telemetry import Telemetry
from judging.windows import read, records_of
from models.runtime import versions
from recipes.raw import Row

T = TypeVar("T")
PATHS = frozenset({"/judge", "/plan", "/health", "/metrics", "/docs", "/redoc", "/openapi.json"})
ABOUT = (
    "Yes/no judges of e-commerce plans. `/judge` answers records of one judgment, `/plan` a whole plan. A record that "
    "cannot be judged gets a `reason` in place of a verdict: " + "; ".join(f"`{k}` ({v})" for k, v in REASONS.items())
)
PRODUCT = {"title": "String Lights, 20 m", "features": ["weatherproof"], "price": 24.9}
EXAMPLES = {
    "step_product": {"goal": "Plan an autumn party", "step": "Hang warm lights in the garden", "product": PRODUCT},
    "script_verify": {"goal": "Plan an autumn party", "script": ["Choose a date", "Hang warm lights in the garden"]},
    "holistic_verify": {
        "goal": "Plan an autumn party",
        "script": [{"step": "Choose a date"}, {"step": "Hang warm lights in the garden", "products": [PRODUCT]}],
    },
}
PLAN = {"goal": "Plan an autumn party", "script": ["Choose a date", "Hang warm lights"], "products": [PRODUCT]}
ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"description": "no bearer token, or a wrong one"},
    413: {"description": "too long a body, or too many records"},
    503: {"description": "too many records wait already; come again"},
    504: {"description": "it took too long"},
}


class Asked(BaseModel):
    """Records of one judgment; a label is of no use, and an id may be left out."""

    model_config = ConfigDict(extra="forbid")

    records: list[dict[str, Any]] = Field(min_length=1)
    judge: str | None = Field(default=None, description="a judge's name or its judgment, where there are several")


class Identified(Answer):
    id: str = Field(description="the record's own, else its number, from 1")


class Answered(BaseModel):
    """One answer a record, in their order."""

    judge: str
    judgment: str
    answers: list[Identified]


class Service:
    """The application over some judges. ``gate`` is what a server runs.

    Args:
        token: what requests must bear, but for /health and the documentation; None asks for none.

    Plans are judged where no two of the judges make the same judgment.
    """

    def __init__(self, judges: Sequence[NamedJudge], config: ServeConfig, token: str | None = None) -> None:
        self.config, self.token = config, token
        self.judges = {one.name: one for one in judges}
        self.by_judgment = {one.judgment.name: one for one in judges}
        self.batcher = Batcher(self._work, config.batch, config.max_waiting, lambda batch: self.telemetry.judged(batch))
        self.telemetry = Telemetry(judges, lambda: self.batcher.waiting)
        self.gate = Gate(self._app(), self.telemetry, config.max_bytes, PATHS)

    def _work(self, judge: str, records: Sequence[Any]) -> list[Answer]:
        return answer(self.judges[judge], records, self.config.token_budget)

    def _app(self) -> FastAPI:
        @asynccontextmanager
        async def life(_: FastAPI) -> AsyncIterator[None]:
            self.batcher.start()
            yield
            await self.batcher.stop()

        app: FastAPI = FastAPIOffline(
            title="ecomjudge", version=versions()["ecomjudge"], description=ABOUT, lifespan=life
        )
        app.exception_handler(RequestValidationError)(refused)
        known = [Depends(self._known)]
        app.get("/health", response_model=None)(self.health)
        app.get("/metrics", dependencies=known, response_model=None, responses={401: ERRORS[401]})(self.metrics)
        app.post("/judge", dependencies=known, responses=ERRORS)(self.judge)
        if len(self.by_judgment) == len(self.judges):  # else it would be unclear who judges a plan
            app.post("/plan", dependencies=known, responses=ERRORS)(self.plan)
        return app

    def _known(
        self, given: Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
    ) -> None:
        if self.token is None:
            return
        if given is None or not hmac.compare_digest(given.credentials.encode(), self.token.encode()):
            raise HTTPException(401, "give the service's bearer token", {"WWW-Authenticate": "Bearer"})

    async def judge(
        self,
        asked: Annotated[
            Asked, Body(openapi_examples={name: {"value": {"records": [one]}} for name, one in EXAMPLES.items()})
        ],
    ) -> Answered:
        """Judge records of one judgment."""
        one = self._chosen(asked.judge)
        self._limit(len(asked.records))
        rows = [read(Row(number, record), one.judgment.record) for number, record in enumerate(asked.records, 1)]
        found = iter(await self._in_time(self.batcher.ask(one.name, records_of(rows))))
        answers = [row.fault or next(found) for row in rows]
        self.telemetry.said(one.name, answers)
        told = [Identified(id=row.id, **said.model_dump()) for row, said in zip(rows, answers, strict=True)]
        return Answered(judge=one.name, judgment=one.judgment.name, answers=told)

    async def plan(self, plan: Annotated[Plan, Body(openapi_examples={"plan": {"value": PLAN}})]) -> JudgedPlan:
        """Judge a goal's script, the candidate products of each step, and the plan with those that suit."""
        self._limit(2 + sum(map(len, plan.candidates())))
        return await self._in_time(self._plan(plan))

    async def _plan(self, plan: Plan) -> JudgedPlan:
        asking = ask_about([plan], self.config.products_per_step)
        question = next(asking)
        while True:
            answers: Sequence[Answer | None] = [None] * len(question.records)
            if one := self.by_judgment.get(question.judgment):
                found = await self.batcher.ask(one.name, question.records)
                self.telemetry.said(one.name, found)
                answers = found
            try:
                question = asking.send(answers)
            except StopIteration as done:
                (judged,) = done.value
                return JudgedPlan.model_validate(judged)

    async def health(self) -> Response:
        """200 while requests are welcome; 503 once the service is about to stop, or cannot judge."""
        state = "draining" if self.gate.draining else "ok" if self.batcher.alive else "broken"
        told = Health(status=state, judges={name: one.judgment.name for name, one in self.judges.items()})
        return Response(told.model_dump_json(), 200 if state == "ok" else 503, media_type="application/json")

    async def metrics(self) -> Response:
        """Figures for Prometheus."""
        return Response(self.telemetry.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    def _chosen(self, name: str | None) -> NamedJudge:
        """The judge asked for by its name or judgment; the only one where nothing is asked for."""
        fitting = [one for one in self.judges.values() if name in (None, one.name, one.judgment.name)]
        if len(fitting) != 1:
            there = ", ".join(f"{one.name} ({one.judgment.name})" for one in self.judges.values())
            raise HTTPException(422, f"judge: {name!r} names {len(fitting)} of the judges; there are {there}")
        return fitting[0]

    def _limit(self, records: int) -> None:
        if records > self.config.max_records:
            raise HTTPException(
                413, f"{records} records to judge; the most in one request is {self.config.max_records}"
            )

    async def _in_time(self, answers: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(answers, self.config.timeout_s)
        except TimeoutError:
            raise HTTPException(504, f"not judged within {self.config.timeout_s:g} seconds; come again") from None
        except TooBusy:
            raise HTTPException(503, "too many records wait already; come again", {"Retry-After": "1"}) from None
        except Exception:
            raise HTTPException(500, "judging failed; the service's log says why") from None


async def refused(_: Request, error: RequestValidationError) -> Response:
    """422 with what is wrong and where, and not with what was sent: JSON cannot say all that Python's reader takes."""
    detail = [{name: one[name] for name in ("type", "loc", "msg")} for one in error.errors()]
    return Response(json.dumps({"detail": detail}), 422, media_type="application/json")


class Health(BaseModel):
    status: str
    judges: dict[str, str]
