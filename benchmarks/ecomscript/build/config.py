"""The configuration of a construction: every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from models.backbone import Dtype, Quantization
from models.limits import SEEDS, THREADS, Limits

Averaging = Literal["cosine_of_mean", "mean_of_cosines"]
Index = Literal["exact", "approximate"]
StageName = Literal[
    "ingest", "goals", "scripts", "needs", "intents", "keywords", "index", "align", "sample", "annotate"
]


@dataclass(frozen=True)
class ReviewsConfig:
    """Which reviews a goal is inferred from.

    Attributes:
        fewest_words: shorter ones say too little.
        verified: only those of verified purchases.
        limit: take the first so many (that pass the filter); None takes all.
    """

    fewest_words: Annotated[int, Limits(0)] = 10
    verified: bool = True
    limit: Annotated[int, Limits(1)] | None = None


@dataclass(frozen=True)
class AlignConfig:
    """Which products serve a step.

    Attributes:
        embedder: the sentence encoder of steps and intents: a packaged name, a folder, or a hub id.
        averaging: a product's similarity is the cosine of the step with the mean vector of its intents, or the mean of
            the step's cosines with them.
        among: a step is compared with the products that its keywords find, or with all.
        candidates: products that the keywords find at most, best (bm25) first.
        index: exact search, or an approximate one (inverted lists), which pays among all products.
        probes: lists that the approximate search looks into; more are slower and nearer to exact.
        threshold: a product is kept from this similarity on.
        products: that are kept for a step at most.
    """

    embedder: str = "minilm"
    averaging: Averaging = "cosine_of_mean"
    among: Literal["keywords", "all"] = "keywords"
    candidates: Annotated[int, Limits(1)] = 1000
    index: Index = "exact"
    probes: Annotated[int, Limits(1)] = 32
    threshold: Annotated[float, Limits(-1, 1)] = 0.45
    products: Annotated[int, Limits(1)] = 3


@dataclass(frozen=True)
class AnnotationConfig:
    """What people are asked, and what becomes of their votes.

    Attributes:
        items: drawn for each judgment.
        shown: products a step that a whole plan shows at most.
        votes: asked for each item.
        fewest_votes: an item with fewer is left out.
        train, validation, test: shares of the records; records of one goal stay together.
    """

    items: Annotated[int, Limits(1)] = 5000
    shown: Annotated[int, Limits(1)] = 1
    votes: Annotated[int, Limits(1)] = 5
    fewest_votes: Annotated[int, Limits(1)] = 3
    train: Annotated[float, Limits(0, 1)] = 0.8
    validation: Annotated[float, Limits(0, 1)] = 0.1
    test: Annotated[float, Limits(0, 1)] = 0.1


@dataclass(frozen=True)
class EcomScriptBuildConfig:
    """Build an EcomScriptBench from product metadata and reviews.

    Attributes:
        metadata: files of product metadata as Amazon Reviews 2023 has them (.jsonl, .jsonl.gz), or folders of them.
        reviews: files of reviews, likewise.
        generator: who writes: a packaged name (smollm2-135m), a folder, a hub id (org/name[@revision]), or a served
            model (http://host:port/v1#model).
        intents_per_product: purchase intents that are asked for.
        steps: of a script at most.
        keywords: of a step at most.
        prompts: a folder whose files stand in for the shipped ones of the same name
            (benchmarks/ecomscript/build/prompts).
        temperature: of all that is written; 0 takes the likeliest words.
        max_tokens: tokens of a reply at most.
        seed: fixes what is drawn.
        chunk: rows that a process does at once and a kill can cost; larger ones for a large run (1024).
        until: the last stage to run.
        redo: forget this stage and all that follow it, and make them anew.
        rows: texts that a local checkpoint writes side by side.
        concurrency: requests that a server gets at once, from each process.
        threads: CPU threads a process; None shares the machine's cores among the processes on it.
        out: the folder. What was stopped goes on there; with several machines, one that all of them see.
    """

    metadata: list[str]
    reviews: list[str]
    generator: str
    intents_per_product: Annotated[int, Limits(1)] = 10
    steps: Annotated[int, Limits(2)] = 10
    keywords: Annotated[int, Limits(1)] = 5
    review: ReviewsConfig = field(default_factory=ReviewsConfig)
    align: AlignConfig = field(default_factory=AlignConfig)
    annotation: AnnotationConfig = field(default_factory=AnnotationConfig)
    prompts: str | None = None
    temperature: Annotated[float, Limits(0)] = 0.7
    max_tokens: Annotated[int, Limits(1)] = 512
    seed: Annotated[int, SEEDS] = 0
    chunk: Annotated[int, Limits(1)] = 64
    until: StageName = "annotate"
    redo: StageName | None = None
    dtype: Dtype = "auto"
    quantization: Quantization = "none"
    trust_remote_code: bool = False
    rows: Annotated[int, Limits(1)] | None = None
    concurrency: Annotated[int, Limits(1)] | None = None
    threads: Annotated[int, THREADS] | None = None
    out: str = "build/ecomscript"
