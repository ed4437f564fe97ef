"""The ways in which the questions of a run are asked: plainly, with a stated confidence, with retrieved passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.ecomqa import rag
from benchmarks.ecomqa.calibration import asked_for_confidence
from benchmarks.ecomqa.config import RagConfig
from benchmarks.ecomqa.data import Question
from benchmarks.ecomqa.prepare import Plan, asked_of
from benchmarks.ecomqa.retrieval import Retriever, make_retriever
from models.checkpoint import resolve
from models.generation import Generator
from models.packaged import cache_folder

PLAIN, CONFIDENCE, RAG = "plain", "confidence", "rag"


@dataclass(frozen=True)
class Variant:
    """One way of asking. Ids are those of the plain questions.

    Attributes:
        notes: what is kept of a question beside its answer, by id.
    """

    name: str
    questions: Sequence[Question]
    notes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def plain(plan: Plan) -> Variant:
    """The questions as they are."""
    return Variant(PLAIN, plan.questions)


def with_confidence(plan: Plan) -> Variant:
    """The questions with a request for a confidence. Raises ValueError where none is of a sub-concept asked for."""
    questions = asked_of(plan.questions, plan.config.confidence.tasks, "confidence.tasks")
    return Variant(CONFIDENCE, [asked_for_confidence(question) for question in questions])


def with_passages(plan: Plan, generator: Generator) -> Variant:
    """The questions with retrieved passages, as many as fit the budget in the generator's tokens."""
    settings = plan.config.rag
    questions = asked_of(plan.questions, settings.tasks, "rag.tasks")
    shown = rag.augment(
        questions, _retriever(plan, settings), rag.token_counter(generator), settings.passages, settings.tokens
    )
    return Variant(RAG, shown.questions, {one: {"retrieved": ids} for one, ids in shown.retrieved.items()})


def _retriever(plan: Plan, settings: RagConfig) -> Retriever:
    if settings.method == "bm25":
        return make_retriever("bm25", plan.passages)
    from models.embedding import Embedder

    embedder = Embedder(resolve(settings.encoder))
    return make_retriever(settings.method, plan.passages, embedder, cache_folder() / "embeddings")
