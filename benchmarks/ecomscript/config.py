"""The configuration of an evaluation: every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from models.backbone import Dtype, Quantization
from models.limits import SEEDS, THREADS, Limits

Method = Literal[
    "auto",
    "judge",
    "verbalizer",
    "answer",
    "chain_of_thought",
    "self_consistency",
    "self_reflection",
    "masked_lm",
    "nli",
    "plausibility",
    "bag_of_words",
]


@dataclass(frozen=True)
class EcomScriptConfig:
    """An evaluation on one judgment.

    A data reference is a JSONL or Parquet file, a hub data set (org/name[@revision][:split]), or sample:train,
    sample:validation, sample:test.

    Attributes:
        judgment: script_verify, step_product or holistic_verify.
        data: the labelled records to judge; nothing is ever chosen on them.
        intents: files of purchase intents (see docs/intents.md) to be shown beside the products, for a judge that was
            taught with them; a product's own intents come first, one that nobody knows is shown alone.
        checkpoint: a packaged name (minilm, smollm2-135m), a folder, a hub id (org/name[@revision]), or a served model
            (http://host:port/v1#model). May be left out where the adapter names its backbone.
        adapter: the folder that training wrote (runs/.../adapter), or a merged or fully fine-tuned model's.
        method: judge (a trained judge), verbalizer (yes/no words of a language model), answer, chain_of_thought,
            self_consistency, self_reflection (what a language model writes is read; no probability), masked_lm, nli,
            plausibility (zero-shot with encoders), bag_of_words (TF-IDF and logistic regression, needs train). auto is
            judge with an adapter, else verbalizer for decoders, masked_lm for encoders, answer for served models.
        shots: solved examples in the prompt; the same ones for every record, so that they are a shared prefix.
        shots_from: where solved examples are drawn from; None is the sample's training records.
        train: what bag_of_words learns from, and what the majority baseline counts.
        validation: labelled records on which the threshold is chosen; None keeps the judge's own, or 0.5.
        limit: judge only the first so many records.
        max_length: tokens allowed a record; None is the judge's limit, or the checkpoint's. Longer records lose
            product text.
        drop_too_long: leave out (and count) what cannot be made to fit, where the default is to refuse.
        dtype: None is that of training for a judge, else auto: bfloat16 where the hardware is fast at it, else float32.
        quantization: none, nf4 or int8; None is that of training for a judge, else none.
        nli_against: the label that entailment is weighed against.
        samples: chains of thought of self_consistency.
        max_tokens: tokens of a written text at most; None is 16 for an answer alone, 512 for one with its reasons.
        sampling_temperature: of written texts; None is 0.7 for self_consistency, else 0 (the likeliest words).
        rows: texts that a local checkpoint writes side by side.
        concurrency: requests that a server gets at once.
        token_budget: padded tokens computed at once; None is 1,024 on a CPU and 16,384 on a GPU, where batches that do
            not fit are halved.
        resamples: bootstrap resamples of the groups.
        bins: bins of the calibration errors.
        seed: draws the examples, the bootstrap's resamples and the random baseline's coin.
        threads: CPU threads a process; None shares the machine's cores among the processes on it.
        out: the results' folder; None is results/ecomscript/<judgment>/<checkpoint or adapter>-<method>-<shots>shot.
            What was stopped goes on there.
        overwrite: forget what is there and start anew.
    """

    judgment: Literal["script_verify", "step_product", "holistic_verify"]
    data: str = "sample:test"
    intents: tuple[str, ...] = ()
    checkpoint: str | None = None
    adapter: str | None = None
    method: Method = "auto"
    shots: Annotated[int, Limits(0)] = 0
    shots_from: str | None = None
    train: str | None = None
    validation: str | None = None
    limit: Annotated[int, Limits(1)] | None = None
    max_length: Annotated[int, Limits(1)] | None = None
    drop_too_long: bool = False
    dtype: Dtype | None = None
    quantization: Quantization | None = None
    attention: str | None = None
    trust_remote_code: bool = False
    nli_against: Literal["neutral", "contradiction"] = "neutral"
    samples: Annotated[int, Limits(1)] = 5
    max_tokens: Annotated[int, Limits(1)] | None = None
    sampling_temperature: Annotated[float, Limits(0)] | None = None
    rows: Annotated[int, Limits(1)] | None = None
    concurrency: Annotated[int, Limits(1)] | None = None
    token_budget: Annotated[int, Limits(1)] | None = None
    resamples: Annotated[int, Limits(0)] = 2000
    bins: Annotated[int, Limits(1)] = 10
    seed: Annotated[int, SEEDS] = 0
    threads: Annotated[int, THREADS] | None = None
    out: str | None = None
    overwrite: bool = False
