"""The configuration of an evaluation: every field is a flag and a YAML key."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from benchmarks.ecomqa import calibration, rag
from benchmarks.ecomqa.answering import TooLong
from benchmarks.ecomqa.data import SAMPLE, Repeated
from benchmarks.ecomqa.grading import Split, Unparsed
from benchmarks.ecomqa.panel import RULES, Asked
from benchmarks.ecomqa.retrieval import Method
from models.backbone import Dtype, Quantization
from models.limits import SEEDS, THREADS, Limits


@dataclass(frozen=True)
class GradingConfig:
    """How the judges grade.

    Attributes:
        prompts: prompts of the judges (standard, examples, reasoned), with commas between; each model judges under
            each. Empty is all three for a single model, else standard: one model has three votes, three have one each.
        panel: all (models vote on every answer, so that their agreement with the rules is known) or open (only where
            they decide).
        split: the grade where no grade has more than half of the votes: wrong, not_attempted, correct, or first (the
            judge named first decides).
        unparsed: what a vote that cannot be read counts as: ignore, wrong or not_attempted.
        max_tokens: tokens a judge may write; None is 16, or 128 under ``reasoned``. Judges that reason need more.
        guided: hold local judges by a grammar to a vote that can be read, without reasoning blocks.
    """

    prompts: str = ""
    panel: Asked = "all"
    split: Split = "wrong"
    unparsed: Unparsed = "ignore"
    max_tokens: Annotated[int, Limits(1)] | None = None
    guided: bool = False


@dataclass(frozen=True)
class ConfidenceConfig:
    """Calibration: the questions are asked again, with a request to state a confidence from 0 to 100.

    Attributes:
        ask: ask again, with that request.
        tasks: sub-concepts, with commas between.
        bins: bins of equal width over the stated confidences.
    """

    ask: bool = False
    tasks: str = ",".join(calibration.TASKS)
    bins: Annotated[int, Limits(1)] = 10

    def __post_init__(self) -> None:
        if not self.ask:
            _refuse_idle(self, "confidence", "nobody is asked for a confidence; give --confidence.ask true")


@dataclass(frozen=True)
class RagConfig:
    """Retrieval: the questions are asked again, with passages in the prompt.

    Attributes:
        corpus: a folder or file of texts (txt, jsonl), or sample; None retrieves nothing.
        method: bm25, dense (sentence embeddings), or both.
        encoder: the checkpoint that embeds.
        tasks: sub-concepts, with commas between.
        passages: passages a question at most.
        tokens: tokens of a question's passages at most.
    """

    corpus: str | None = None
    method: Method = "bm25"
    encoder: str = "minilm"
    tasks: str = ",".join(rag.TASKS)
    passages: Annotated[int, Limits(1)] = rag.PASSAGES
    tokens: Annotated[int, Limits(1)] = rag.TOKENS

    def __post_init__(self) -> None:
        if not self.corpus:
            _refuse_idle(self, "rag", "nothing is retrieved without rag.corpus; give it", "corpus")


@dataclass(frozen=True)
class EcomQAConfig:
    """An evaluation on ChineseEcomQA, or on a set of one's own in its format.

    Attributes:
        data: a JSONL file of system_prompt, prompt, gt, task (the released one, say), or sample.
        checkpoint: a packaged name (smollm2-135m), a folder, a hub id (org/name[@revision]), or a served model
            (http://host:port/v1#model). May be left out where the adapter names its backbone.
        adapter: a folder with a LoRA adapter.
        judges: names with commas between: checkpoints, http://host:port/v1#model, and rules. ``rules`` grades answers
            of a closed form without a model; models beside it grade the rest. Without ``rules`` the models grade all.
        tasks: sub-concepts to ask, with commas between (CC,BC); empty is all.
        limit: ask at most so many questions of each sub-concept, the first ones.
        repeated: a question asked twice with different references becomes one that accepts both (merge), or stays as
            released (keep).
        shots: leave the solved examples in the instructions (--no_shots takes them out).
        too_long: what happens to a question that does not fit the model together with max_tokens: refuse (the run),
            no_shots (ask it without the examples), or not_attempted. What still does not fit is not attempted.
        max_tokens: tokens of an answer at most, its reasoning included: give reasoning models thousands.
        temperature: how freely answers are drawn; 0 is greedy.
        top_p: answers are drawn from the likeliest tokens that together have this probability; 1 is all.
        stop: texts that end an answer, with commas between; None is the next question's markers for a model without a
            chat template, and nothing otherwise.
        thinking: switch a chat template's reasoning on or off; None leaves it to the template.
        behaviour: sort reasoning traces into the four thinking behaviours, by the vote of the model judges.
        dtype: of local checkpoints: auto is bfloat16 where the hardware is fast at it, else float32; exact is float32
            without faster libraries.
        quantization: of local checkpoints.
        trust_remote_code: run the Python code that a checkpoint brings along.
        rows: answers that a local model writes side by side; None is 32 on a CPU, 128 elsewhere.
        concurrency: requests that a server gets at once.
        compare: the folder of another evaluation of the same questions, for a paired comparison.
        seed: draws answers (with a temperature) and the bootstrap's resamples.
        resamples: bootstrap resamples of a paired comparison.
        threads: CPU threads a process; None shares the machine's cores among the processes on it.
        out: the results' folder; None is results/ecomqa/<model>. What was stopped goes on there.
        overwrite: forget what is there and start anew.
    """

    data: str = SAMPLE
    checkpoint: str | None = None
    adapter: str | None = None
    judges: str = "rules"
    tasks: str = ""
    limit: Annotated[int, Limits(1)] | None = None
    repeated: Repeated = "merge"
    shots: bool = True
    too_long: TooLong = "refuse"
    max_tokens: Annotated[int, Limits(1)] = 512
    temperature: Annotated[float, Limits(0)] = 0.0
    top_p: Annotated[float, Limits(above=0, most=1)] = 1.0
    stop: str | None = None
    thinking: bool | None = None
    behaviour: bool = False
    grading: GradingConfig = field(default_factory=GradingConfig)
    confidence: ConfidenceConfig = field(default_factory=ConfidenceConfig)
    rag: RagConfig = field(default_factory=RagConfig)
    dtype: Dtype = "auto"
    quantization: Quantization = "none"
    trust_remote_code: bool = False
    rows: Annotated[int, Limits(1)] | None = None
    concurrency: Annotated[int, Limits(1, 1024)] | None = None
    compare: str | None = None
    seed: Annotated[int, SEEDS] = 0
    resamples: Annotated[int, Limits(1, 1_000_000)] = 10_000
    threads: Annotated[int, THREADS] | None = None
    out: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        if not {name.strip() for name in self.judges.split(",")} - {"", RULES}:
            # ``split`` is also the grade of an answer that rules alone cannot read.
            _refuse_idle(self.grading, "grading", "no model votes; name one in --judges", "split")


def _refuse_idle(settings: Any, name: str, why: str, *but: str) -> None:
    """Raises ValueError for the first setting that was changed and can have no effect."""
    for one in fields(settings):
        if one.name not in but and getattr(settings, one.name) != one.default:
            given = getattr(settings, one.name)
            raise ValueError(f"{name}.{one.name}: {given} given, but {why}, or leave {name}.{one.name} out")
