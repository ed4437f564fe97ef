"""The lines of a card that load a judge and ask it, with peft and transformers alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.spec import JudgeSpec

CLASSIFIER = """\
from peft import PeftModel
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({judge})
base = AutoModelForSequenceClassification.from_pretrained(
    {base}, num_labels=2, dtype="float32", pad_token_id=tokenizer.pad_token_id
)
model = PeftModel.from_pretrained(base, {judge}).eval()
logits = model(**tokenizer({example}, return_tensors="pt")).logits  # (no, yes)
"""
VERBALIZER = """\
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({judge})
base = AutoModelForCausalLM.from_pretrained({base}, dtype="float32")
model = PeftModel.from_pretrained(base, {judge}).eval()
inputs = tokenizer({example}, add_special_tokens={special}, return_tensors="pt")
logits = model(**inputs).logits[:, -1, {ids}]  # (no, yes)
"""
WHOLE_CLASSIFIER = """\
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({judge})
model = AutoModelForSequenceClassification.from_pretrained({judge}, dtype="float32").eval()
logits = model(**tokenizer({example}, return_tensors="pt")).logits  # (no, yes)
"""
WHOLE_VERBALIZER = """\
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({judge})
model = AutoModelForCausalLM.from_pretrained({judge}, dtype="float32").eval()
inputs = tokenizer({example}, add_special_tokens={special}, return_tensors="pt")
logits = model(**inputs).logits[:, -1, {ids}]  # (no, yes)
"""


def loading_code(spec: JudgeSpec, facts: Mapping[str, Any], name: str, revision: str | None, whole: bool) -> str:
    """Python that loads the judge and gives its logits on the example.

    Args:
        facts: of training.json: the example, and whether the tokenizer adds special tokens to it.
        name: the folder or repository that holds the judge.
        whole: it holds a whole model, and no adapter.
    """
    head = (WHOLE_CLASSIFIER, WHOLE_VERBALIZER) if whole else (CLASSIFIER, VERBALIZER)
    return head[spec.label_ids is not None].format(
        judge=_place(name, revision),
        base=_place(spec.base.id, spec.base.revision),
        example=", ".join(map(repr, facts["example"])),
        special=facts["special_tokens"],
        ids=list(spec.label_ids or ()),
    )


def _place(name: str, revision: str | None) -> str:
    return repr(name) if revision is None else f"{name!r}, revision={revision!r}"
