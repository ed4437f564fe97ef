"""Judges as anyone loads them: peft and transformers alone, one unpadded text at a time, and nothing of ours.

Also a program: `python plain.py JOBS.json` prints what `answer` gives for each job, one JSON line each.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer


def load(adapter: str, base: str, head: str) -> tuple[Any, Any]:
    tokenizer = AutoTokenizer.from_pretrained(adapter)
    if head == "verbalizer":
        model = AutoModelForCausalLM.from_pretrained(base, dtype="float32")
    else:
        model = AutoModelForSequenceClassification.from_pretrained(
            base, num_labels=2, dtype="float32", pad_token_id=tokenizer.pad_token_id
        )
    return tokenizer, PeftModel.from_pretrained(model, adapter).eval()


def load_whole(folder: str, head: str, **options: Any) -> tuple[Any, Any]:
    auto = AutoModelForCausalLM if head == "verbalizer" else AutoModelForSequenceClassification
    return AutoTokenizer.from_pretrained(folder), auto.from_pretrained(folder, **options).eval()


@torch.inference_mode()
def logits(tokenizer: Any, model: Any, texts: list[list[str]], words: list[str] | None = None) -> list[list[float]]:
    """Logits (no, yes) of each text or pair of texts; with ``words``, of the tokens that begin these after the text."""
    rows = []
    for text in texts:
        found = model(**tokenizer(*text, return_tensors="pt")).logits[0]
        if words is not None:
            length = len(tokenizer(*text)["input_ids"])
            found = found[-1, [tokenizer(text[0] + word)["input_ids"][length] for word in words]]
        rows.append(found.float().tolist())
    return rows


def texts_of(prompts: list[tuple[tuple[str, ...], str]], head: str, encoder: bool) -> list[list[str]]:
    """What each prompt is to a model, by the rules of the documentation: a pair, a text, or a text and "Answer:"."""
    if encoder:
        return [["".join(prefix).strip(), suffix.strip()] for prefix, suffix in prompts]
    whole = ["".join(prefix) + suffix for prefix, suffix in prompts]
    return [[f"{text}\nAnswer:"] if head == "verbalizer" else [text.strip()] for text in whole]


def head_digests(model: Any) -> dict[str, str]:
    """sha256 of each trained head tensor, by its name without peft's prefixes."""
    state = {name: parameter for name, parameter in model.named_parameters() if ".modules_to_save.default." in name}
    return {
        name.replace(".modules_to_save.default", "").removeprefix("base_model.model."): hashlib.sha256(
            parameter.detach().numpy().tobytes()
        ).hexdigest()
        for name, parameter in state.items()
    }


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Logits of the job's texts, the head's digests and the labels' names."""
    tokenizer, model = load(job["adapter"], job["base"], job["head"])
    words = [" No", " Yes"] if job["head"] == "verbalizer" else None
    return {"logits": logits(tokenizer, model, job["texts"], words), "head": head_digests(model)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in json.loads(Path(sys.argv[1]).read_text()):
        print(json.dumps(answer(line)))
    assert not {"models", "recipes", "train", "benchmarks"} & set(sys.modules)
