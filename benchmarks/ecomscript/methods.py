"""From a configuration to who is examined: which method, which files, and what is refused before anything is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.ecomscript.asking import WAYS, Asking, make_asking
from benchmarks.ecomscript.baselines import BagOfWords
from benchmarks.ecomscript.config import EcomScriptConfig
from benchmarks.ecomscript.scorer import Scorer, check_spec, trained_judge, verbalizer
from benchmarks.ecomscript.zero_shot import CANDIDATES, NLI, STATEMENTS, is_vera, load_zero_shot
from models.backbone import LoadSettings, is_encoder, load_config, pinned, resolve_dtype
from models.checkpoint import Checkpoint, files_digest, resolve
from models.generation import Found
from models.generators import find_generator, is_served
from models.judge import ADAPTER_WEIGHTS, SPEC_FILE, JudgeSpec
from models.manifest import folder_digest
from recipes.base import Judgment
from recipes.judgments import get_judgment


@dataclass(frozen=True)
class Subject:
    """Who is examined. ``name`` names the results' folder; ``facts`` fix the predictions and hold no path.

    ``found`` is who writes, where written answers are read.
    """

    method: str
    name: str
    settings: LoadSettings
    facts: dict[str, Any]
    checkpoint: Checkpoint | None = None
    folder: Path | None = None
    found: Found | None = None


def judgment_of(config: EcomScriptConfig) -> Judgment[Any]:
    """The judgment that is examined, with purchase intents beside products where the judge was taught with them."""
    folder = Path(config.adapter or config.checkpoint or "").expanduser()
    taught = config.method in ("auto", "judge") and (folder / SPEC_FILE).is_file()
    return get_judgment(config.judgment, JudgeSpec.read(folder).template_version if taught else "")


def find_subject(config: EcomScriptConfig, judgment: Judgment[Any], device: torch.device) -> Subject:
    """Choose the method and find its files. Raises ValueError or FileNotFoundError in words."""
    if config.method == "bag_of_words":
        subject = Subject("bag_of_words", "bag_of_words", LoadSettings(), {})
        if config.train is None or config.checkpoint or config.adapter:
            raise ValueError("method bag_of_words learns from --train FILE, and takes no checkpoint or adapter")
    elif config.method in WAYS or is_served(config.checkpoint or ""):
        subject = _writing(config, device)
    elif (folder := _judge_folder(config)) is not None:
        subject = _trained(config, judgment, folder)
    else:
        subject = _untrained(config, judgment)
    if config.shots and subject.settings.head != "verbalizer":
        raise ValueError(
            f"shots: {config.shots} given; only a verbalizer head reads solved examples, {subject.name} has none"
        )
    return subject


def _writing(config: EcomScriptConfig, device: torch.device) -> Subject:
    """A language model that is asked for text. Raises ValueError where that cannot be."""
    method = "answer" if config.method == "auto" else config.method
    if method not in WAYS:
        raise ValueError(
            f"method {method} reads a model's numbers, and {config.checkpoint} is a served model; give one of "
            f"{', '.join(WAYS)}"
        )
    if config.validation:
        raise ValueError(
            "a written answer has no threshold to choose; leave out --validation (--train may name what the majority "
            "baseline counts)"
        )
    settings = LoadSettings(
        head="verbalizer",
        dtype=config.dtype or "auto",
        quantization=config.quantization or "none",
        attention=config.attention,
        trust_remote_code=config.trust_remote_code,
    )
    found = find_generator(
        config.checkpoint or "", config.adapter, settings, config.rows, device, config.concurrency, config.overwrite
    )
    return Subject(method, found.name, settings, found.facts, found=found)


def asking_of(config: EcomScriptConfig, subject: Subject, judgment: Judgment[Any], examples: Sequence[Any]) -> Asking:
    """How a model that writes is asked."""
    way = next(way for way in WAYS if way == subject.method)
    return make_asking(
        way, judgment, examples, config.samples, config.max_tokens, config.sampling_temperature, config.seed
    )


def _judge_folder(config: EcomScriptConfig) -> Path | None:
    """The folder of the trained judge to examine; None if none is."""
    if config.adapter is not None:
        if config.method not in ("auto", "judge"):
            raise ValueError(f"method {config.method} takes no adapter; leave out --adapter, or --method")
        return Path(config.adapter)
    if config.checkpoint is None:
        raise ValueError("nobody to examine: give --checkpoint or --adapter, or --method bag_of_words with --train")
    whole = (Path(config.checkpoint).expanduser() / SPEC_FILE).is_file()
    if config.method == "judge" and not whole:
        raise ValueError(
            f"{config.checkpoint} is no trained judge (it has no {SPEC_FILE}), and a head of random weights is not "
            "examined; give --adapter, or --method verbalizer for the language model as it is"
        )
    return Path(config.checkpoint).expanduser() if whole and config.method in ("auto", "judge") else None


def _trained(config: EcomScriptConfig, judgment: Judgment[Any], folder: Path) -> Subject:
    spec = JudgeSpec.read(folder)
    check_spec(spec, judgment, folder)
    settings = LoadSettings(
        head=spec.head,
        dtype=config.dtype or spec.base.dtype,
        quantization=config.quantization or spec.base.quantization,
        attention=config.attention,
        trust_remote_code=config.trust_remote_code,
    )
    adapted = (folder / ADAPTER_WEIGHTS).is_file()
    if config.checkpoint and config.adapter and not adapted:
        raise ValueError(f"{folder} holds a whole model and not an adapter; leave out --checkpoint")
    base = resolve(config.checkpoint) if adapted and config.checkpoint else None
    own = folder.absolute()
    facts = {
        "head": spec.head,
        "judge": folder_digest(folder),
        "trained_on": asdict(spec.base),
        "base": base and files_digest(base),
    }
    return Subject("judge", own.parent.name if own.name == "adapter" else own.name, settings, facts, base, folder)


def _untrained(config: EcomScriptConfig, judgment: Judgment[Any]) -> Subject:
    checkpoint = pinned(resolve(str(config.checkpoint)))
    found = load_config(checkpoint, config.trust_remote_code)
    method = config.method
    if method == "auto":
        method = "plausibility" if is_vera(found) else "masked_lm" if is_encoder(found) else "verbalizer"
    if method != "verbalizer" and config.quantization not in (None, "none"):
        raise ValueError(f"method {method} takes no quantization")
    settings = LoadSettings(
        head="verbalizer" if method == "verbalizer" else "classification",
        dtype=config.dtype or "auto",
        quantization=config.quantization or "none",
        attention=config.attention,
        trust_remote_code=config.trust_remote_code,
    )
    facts: dict[str, Any] = {
        "checkpoint": checkpoint.identity,
        "revision": checkpoint.revision,
        "weights": files_digest(checkpoint),
    }
    if method == "verbalizer":
        facts["label_words"] = judgment.label_words
    elif method == "masked_lm":
        facts["statements"] = CANDIDATES
    else:
        facts["statements"] = STATEMENTS[judgment.name]
    if method == "nli":
        facts["against"] = config.nli_against
    return Subject(method, checkpoint.identity.rsplit("/", 1)[-1], settings, facts, checkpoint)


def build_scorer(
    subject: Subject,
    config: EcomScriptConfig,
    judgment: Judgment[Any],
    train: Sequence[Any],
    examples: tuple[Any, ...],
    device: torch.device,
) -> Scorer:
    """Load who is examined."""
    settings, length = subject.settings, config.max_length
    if subject.method == "bag_of_words":
        return BagOfWords(judgment, train)
    if subject.folder is not None:
        base = config.checkpoint if config.adapter else None
        return trained_judge(judgment, subject.folder, base, settings, length, examples, device)
    assert subject.checkpoint is not None
    if subject.method == "verbalizer":
        return verbalizer(judgment, subject.checkpoint, settings, length, examples, device)
    scorer = load_zero_shot(subject.method, judgment, subject.checkpoint, settings, length, device)
    if isinstance(scorer, NLI):
        scorer.against = config.nli_against
    return scorer


def settings_facts(subject: Subject, config: EcomScriptConfig) -> dict[str, Any]:
    """Settings that fix the predictions; how a model that writes is asked is said by `benchmarks.ecomscript.asking`."""
    if subject.found is not None:
        return {"max_length": config.max_length, "drop_too_long": config.drop_too_long}
    words = subject.method == "bag_of_words"
    return {
        "dtype": "float64" if words else str(resolve_dtype(subject.settings.dtype)).removeprefix("torch."),
        "quantization": subject.settings.quantization,
        "attention": subject.settings.attention,
        "max_length": config.max_length,
        "drop_too_long": config.drop_too_long,
        "token_budget": config.token_budget,
    }
