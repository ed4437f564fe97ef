"""The configuration of a construction: every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from benchmarks.ecomqa.retrieval import Method
from models.backbone import Dtype, Quantization
from models.limits import SEEDS, THREADS, Limits


@dataclass(frozen=True)
class EcomQABuildConfig:
    """Build a set of questions from texts.

    A corpus is a folder of .txt and .jsonl files, one such file, or sample. A writer is a packaged name (smollm2-135m),
    a folder, a hub id (org/name[@revision]), or a served model (http://host:port/v1#model).

    Attributes:
        corpus: the texts that questions are drawn from, rich in knowledge of e-commerce.
        generator: who writes the questions.
        checker: who checks them; None is the generator.
        answerers: who tries to answer them: a question that all of them get right is too easy. None of them leaves
            this stage out.
        web: the corpus that the generality check searches, texts of the general web; None searches nothing.
        shop: the corpus that the expertise check searches, texts of shops and encyclopaedias of products.
        retrieval: bm25, dense (sentence embeddings) or both.
        embedder: the sentence encoder of dense and both.
        passages: passages that a check is shown.
        tasks: the sub-concepts to ask about.
        per_passage: questions drafted from each passage.
        language: the language of the questions, by its English name.
        until: what was public by this day must suffice to answer.
        prompts: a folder whose files stand in for the shipped ones of the same name (benchmarks/ecomqa/build/prompts).
        limit: use only the first so many passages.
        temperature: of drafting; checks and answers are greedy.
        max_tokens: tokens of a reply at most.
        seed: fixes what is drawn.
        human: sheet writes a table to be filled in, and reads it back on the next call; skip leaves the human check
            out, and build.json says so.
        sheet: the filled table; None is sheet.csv in the folder.
        rows: texts that a local checkpoint writes side by side.
        concurrency: requests that a server gets at once.
        out: the folder. What was stopped goes on there.
        overwrite: forget what is there and start anew.
    """

    corpus: str
    generator: str
    checker: str | None = None
    answerers: list[str] = field(default_factory=list)
    web: str | None = None
    shop: str | None = None
    retrieval: Method = "bm25"
    embedder: str = "minilm"
    passages: Annotated[int, Limits(1)] = 5
    tasks: list[str] = field(default_factory=lambda: ["IDC", "CC", "BC", "AC"])
    per_passage: Annotated[int, Limits(1)] = 2
    language: str = "Chinese"
    until: str = "31 December 2023"
    prompts: str | None = None
    limit: Annotated[int, Limits(1)] | None = None
    temperature: Annotated[float, Limits(0)] = 0.7
    max_tokens: Annotated[int, Limits(1)] = 1024
    seed: Annotated[int, SEEDS] = 0
    human: Literal["sheet", "skip"] = "sheet"
    sheet: str | None = None
    dtype: Dtype = "auto"
    quantization: Quantization = "none"
    trust_remote_code: bool = False
    rows: Annotated[int, Limits(1)] | None = None
    concurrency: Annotated[int, Limits(1, 1024)] | None = None
    threads: Annotated[int, THREADS] | None = None
    out: str = "build/ecomqa"
    overwrite: bool = False
