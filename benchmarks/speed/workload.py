"""What is timed: prompts of the shipped sample, the same tokens for everyone, written to a file that any tool reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.ecomscript.fewshot import draw_shots
from models.backbone import LoadSettings, load_tokenizer
from models.checkpoint import resolve
from models.encoding import Encoder
from models.judge import new_judge
from recipes.base import Prompt
from recipes.judgments import get_judgment
from recipes.reading import read_records


@dataclass(frozen=True)
class Workload:
    """Prompts for one judgment with so many solved examples, and the label words where an answer begins.

    ``texts`` are the prompts as a model reads them, chat template included; ``prefixes`` and ``suffixes`` are the same
    before the template. For an encoder, whose head is a classifier, there are no label words and a text is the pair of
    prefix and suffix.
    """

    judgment: str
    shots: int
    model: str
    labels: tuple[str, str] | None
    texts: list[str]
    prefixes: list[list[str]]
    suffixes: list[str]

    @property
    def prompts(self) -> list[Prompt]:
        return [Prompt(tuple(prefix), suffix) for prefix, suffix in zip(self.prefixes, self.suffixes, strict=True)]

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(asdict(self), ensure_ascii=False), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path) -> Workload:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        labels = found["labels"]
        return cls(**{**found, "labels": labels and tuple(labels)})

    def first(self, records: int) -> Workload:
        """The first so many records alone."""
        parts = {name: getattr(self, name)[:records] for name in ("texts", "prefixes", "suffixes")}
        return replace(self, **parts)


def make_workload(checkpoint: str, judgment_name: str, shots: int, records: int, seed: int = 0) -> Workload:
    """The first ``records`` test records of the sample in instruction style."""
    judgment = get_judgment(judgment_name)
    found = resolve(checkpoint)
    encoder = Encoder(load_tokenizer(found), "verbalizer", bidirectional=False)
    judged: list[Any] = read_records(judgment, "sample:test")[:records]
    train: list[Any] = read_records(judgment, "sample:train")
    examples = draw_shots(train, shots, seed, judged) if shots else ()
    prompts = [judgment.render(record, "instruction", examples) for record in judged]
    lead = "" if encoder.chat else " "
    return Workload(
        judgment=judgment_name,
        shots=shots,
        model=found.path,
        labels=(lead + judgment.label_words[0], lead + judgment.label_words[1]),
        texts=[encoder.text(prompt) for prompt in prompts],
        prefixes=[list(prompt.prefix) for prompt in prompts],
        suffixes=[prompt.suffix for prompt in prompts],
    )


def make_pairs(checkpoint: str, judgment_name: str, records: int, folder: Path, seed: int = 0) -> Workload:
    """The same records as an encoder reads them. The encoder gets a random classification head, the same one for every
    tool, and is written to ``folder``."""
    judgment = get_judgment(judgment_name)
    torch.manual_seed(seed)
    settings = LoadSettings(head="classification", dtype="float32")
    judge = new_judge(resolve(checkpoint), judgment_name, judgment.template_version, judgment.label_words, settings)
    judge.save(folder)
    judged: list[Any] = read_records(judgment, "sample:test")[:records]
    prompts = [judgment.render(record, "plain") for record in judged]
    return Workload(
        judgment=judgment_name,
        shots=0,
        model=str(folder),
        labels=None,
        texts=[prompt.text for prompt in prompts],
        prefixes=[list(prompt.prefix) for prompt in prompts],
        suffixes=[prompt.suffix for prompt in prompts],
    )
