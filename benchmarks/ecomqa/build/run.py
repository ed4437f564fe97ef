"""A construction from configuration to questions: the stages in order, what each dropped, and the set."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from transformers.utils import logging as transformers_logging

from benchmarks.ecomqa.build.checks import CRITERIA, EXPERTISE, FACTUAL, GENERALITY, run_check, searches
from benchmarks.ecomqa.build.config import EcomQABuildConfig
from benchmarks.ecomqa.build.difficulty import filter_easy, prompt_of
from benchmarks.ecomqa.build.drafting import draft
from benchmarks.ecomqa.build.items import TASKS, Item
from benchmarks.ecomqa.build.prompting import Prompts
from benchmarks.ecomqa.build.sheet import read_sheet, write_sheet
from benchmarks.ecomqa.build.tools import Drop, Tools
from benchmarks.ecomqa.corpus import Passage, corpus_fingerprint, read_corpus
from benchmarks.ecomqa.data import read_questions
from benchmarks.ecomqa.retrieval import Retriever, make_retriever
from benchmarks.results import EvaluationFolder, to_json, to_line, write_text
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.embedding import Embedder
from models.folder import sole_writer
from models.generation import Found, Generator, SamplingSettings
from models.generators import find_generator
from models.runtime import this_process, use_threads, versions

STEPS, SHEET, DROPS, QUESTIONS, RESULTS = "steps", "sheet.csv", "drops.jsonl", "questions.jsonl", "build.json"
# Settings that fix what is drafted and how it is judged.
FIXING = ("tasks", "per_passage", "passages", "temperature", "max_tokens", "seed")
STAGES = ("draft", "criteria", "generality", "expertise", "factual", "difficulty", "human")


def build(config: EcomQABuildConfig) -> dict[str, Any]:
    """Build a set as far as it goes without people: to the sheet, or from the filled sheet to the questions.

    Returns what ``build.json`` says. Raises ValueError or FileNotFoundError in words.
    """
    if this_process().num_processes > 1:
        raise ValueError("a construction runs in one process; start it with python, not with accelerate launch")
    use_threads(config.threads)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    say = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
    config = replace(config, tasks=_tasks(config.tasks))
    passages = read_corpus(config.corpus)[: config.limit]
    others = {name: read_corpus(where) for name, where in (("web", config.web), ("shop", config.shop)) if where}
    prompts = Prompts(config.language, config.until, config.prompts)
    identity = _identity(config, prompts, passages, others)
    with sole_writer(Path(config.out)):
        return _built(config, prompts, passages, others, identity, say)


def _built(
    config: EcomQABuildConfig,
    prompts: Prompts,
    passages: Sequence[Passage],
    others: dict[str, list[Passage]],
    identity: dict[str, Any],
    say: Console,
) -> dict[str, Any]:
    out = _open(config, identity)
    tools = _tools(config, prompts, out / STEPS, others)
    items, drops, right = _stages(config, tools, passages, say)
    sheet = Path(config.sheet) if config.sheet else out / SHEET
    waiting = config.human == "sheet" and bool(items) and not sheet.is_file() and not config.sheet
    if waiting:
        write_sheet(sheet, items, {passage.id: passage for passage in passages}, right)
    elif config.human == "sheet" and items:
        items, dropped = read_sheet(sheet, items)
        drops += dropped
    results = _results(config, tools, passages, items, drops, waiting)
    write_text(out / DROPS, "".join(to_line(asdict(drop)) for drop in drops))
    write_text(out / RESULTS, to_json(results))
    if not waiting:
        _write_questions(out / QUESTIONS, tools, items)
    _tell(say, out, results, sheet if waiting else None)
    return results


def _tasks(given: Sequence[str]) -> list[str]:
    """Sub-concepts as a list or with commas between, in either case, each once."""
    names = [name.strip().upper() for entry in given for name in entry.split(",") if name.strip()]
    if not names:
        raise ValueError(f"tasks: none to ask about; give some of {', '.join(TASKS)}")
    if unknown := [name for name in names if name not in TASKS]:
        raise ValueError(f"tasks: {', '.join(unknown)} is no sub-concept; there are {', '.join(TASKS)}")
    return list(dict.fromkeys(names))


def _stages(
    config: EcomQABuildConfig, tools: Tools, passages: Sequence[Passage], say: Console
) -> tuple[list[Item], list[Drop], dict[str, int]]:
    """Stages 1 to 6: (items, drops, how many answerers got each item right)."""
    items, drops = draft(tools, passages, config.tasks, config.per_passage)
    say.print(f"draft: {len(items)} questions from {len(passages)} passages")
    queries: dict[str, list[str]] = {}
    for check in (CRITERIA, GENERALITY, EXPERTISE, FACTUAL):
        if check is GENERALITY:
            queries = searches(tools, items)
        items, dropped = run_check(tools, check, items, queries)
        drops += dropped
        say.print(f"{check.stage}: {len(items)} kept, {len(dropped)} dropped")
    (items, dropped), right = filter_easy(tools, items, [_loader(config, name) for name in config.answerers])
    say.print(f"difficulty: {len(items)} kept, {len(dropped)} dropped")
    return items, drops + dropped, right


def _tools(config: EcomQABuildConfig, prompts: Prompts, folder: Path, others: dict[str, list[Passage]]) -> Tools:
    embedder = None
    if config.retrieval != "bm25" and others:
        embedder = Embedder(resolve(config.embedder), device=this_process().device)
    retrievers: dict[str, Retriever] = {
        name: make_retriever(config.retrieval, texts, embedder, folder.parent / "vectors")
        for name, texts in others.items()
    }
    checking = SamplingSettings(max_tokens=config.max_tokens, seed=config.seed)
    drafting = SamplingSettings(max_tokens=config.max_tokens, seed=config.seed, temperature=config.temperature)
    generator, checker = _loader(config, config.generator), _loader(config, config.checker or config.generator)
    return Tools(folder, generator, checker, prompts, drafting, checking, retrievers, config.passages)


def _loader(config: EcomQABuildConfig, reference: str) -> Callable[[], Generator]:
    """Loads a model when it is first needed; one that is named twice is loaded once."""
    return lambda: _load(reference, _settings(config), config.rows, config.concurrency, config.overwrite)


# Two: the checker and whoever answers, so that several answerers need not fit into memory together.
@lru_cache(maxsize=2)
def _load(reference: str, settings: LoadSettings, rows: int | None, concurrency: int | None, anew: bool) -> Generator:
    return _find(reference, settings, rows, concurrency, anew).open()


def _find(
    reference: str, settings: LoadSettings, rows: int | None, concurrency: int | None, anew: bool = False
) -> Found:
    device = this_process().device
    return find_generator(reference, settings=settings, rows=rows, device=device, concurrency=concurrency, anew=anew)


def _settings(config: EcomQABuildConfig) -> LoadSettings:
    return LoadSettings(
        dtype=config.dtype, quantization=config.quantization, trust_remote_code=config.trust_remote_code
    )


def _identity(
    config: EcomQABuildConfig, prompts: Prompts, passages: Sequence[Passage], others: dict[str, list[Passage]]
) -> dict[str, Any]:
    """Everything that fixes what the stages do; no path among it."""

    def facts(reference: str) -> dict[str, Any]:
        return _find(reference, _settings(config), config.rows, config.concurrency).facts

    return {
        "benchmark": "ecomqa-build",
        "corpus": corpus_fingerprint(passages),
        **{name: corpus_fingerprint(texts) for name, texts in others.items()},
        "prompts": prompts.digest,
        "generator": facts(config.generator),
        "checker": facts(config.checker) if config.checker else None,
        "answerers": [facts(reference) for reference in config.answerers],
        "retrieval": config.retrieval,
        "embedder": None if config.retrieval == "bm25" else resolve(config.embedder).identity,
        "settings": {name: getattr(config, name) for name in FIXING},
    }


def _open(config: EcomQABuildConfig, identity: dict[str, Any]) -> Path:
    """The folder of this construction. Raises ValueError where it holds another one."""
    out = Path(config.out)
    folder = EvaluationFolder(out, identity, kind="construction")
    folder.refuse_other(config.overwrite)
    if config.overwrite and out.is_dir():
        shutil.rmtree(out / STEPS, ignore_errors=True)
        for name in (SHEET, DROPS, QUESTIONS, RESULTS):
            (out / name).unlink(missing_ok=True)
    folder.open()
    (out / STEPS).mkdir(exist_ok=True)
    return out


def _results(
    config: EcomQABuildConfig,
    tools: Tools,
    passages: Sequence[Passage],
    items: Sequence[Item],
    drops: Sequence[Drop],
    waiting: bool,
) -> dict[str, Any]:
    counts = Counter(drop.stage for drop in drops)
    kept = len(items) + sum(counts[stage] for stage in STAGES[1:])
    stages: dict[str, Any] = {}
    for stage in STAGES:
        entered = len(passages) if stage == "draft" else kept
        kept -= counts[stage] if stage != "draft" else 0
        stages[stage] = {"entered": entered, "dropped": counts[stage], "kept": kept}
    if waiting:  # nobody has kept anything yet
        stages["human"] |= {"dropped": None, "kept": None}
    left_out = [] if config.answerers else ["difficulty"]
    left_out += ["human"] if config.human == "skip" else []
    without = [name for name in ("web", "shop") if name not in tools.retrievers]
    return {
        "questions": None if waiting else len(items),
        "by_task": dict(sorted(Counter(item.task for item in items).items())),
        "stages": stages,
        "left_out": left_out,
        "checked_without": without,
        "waits_for_people": waiting,
        "tokens": _tokens(tools.folder),
        "versions": versions(),
    }


def _tokens(folder: Path) -> int:
    """Tokens read and written in all steps, however often the construction was stopped."""
    texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.jsonl"))
    return sum(int(json.loads(line)["tokens"]) for text in texts for line in text.split("\n") if line)


def _write_questions(path: Path, tools: Tools, items: Sequence[Item]) -> None:
    """The set in the four fields that the benchmark reads, read back once to be sure of it."""
    lines = []
    for item in items:
        prompt, system = prompt_of(tools.prompts, item)
        lines.append({"system_prompt": system, "prompt": prompt, "gt": item.answer, "task": item.task})
    write_text(path, "".join(map(to_line, lines)))
    if items:
        read_questions(str(path))


def _tell(say: Console, out: Path, results: dict[str, Any], sheet: Path | None) -> None:
    human = results["stages"]["human"]
    title = f"{human['entered']} questions wait for people" if sheet else f"{results['questions']} questions"
    table = Table("stage", "entered", "dropped", "kept", title=f"{out.name}: {title}")
    for stage, counts in results["stages"].items():
        note = " (left out)" if stage in results["left_out"] else ""
        cells = (counts[key] for key in ("entered", "dropped", "kept"))
        table.add_row(stage + note, *("-" if cell is None else str(cell) for cell in cells))
    Console(highlight=False, markup=False, emoji=False).print(table)
    if sheet:
        say.print(f"{sheet}: fill in the column verdict (keep, fix or drop), then give the same command again")
    else:
        say.print(f"{out}: {QUESTIONS}, {DROPS}, {RESULTS}")
