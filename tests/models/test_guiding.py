"""A guide lets a text of the grammar through and nothing else."""

from __future__ import annotations

import json

import pytest
import torch
from tiny import tiny_tokenizer

from models.guiding import Guide, Guides

END = 2
WORDS = 'start: "yes" | "no way"'


@pytest.fixture(scope="module")
def tokenizer():  # type: ignore[no-untyped-def]
    return tiny_tokenizer("decoder")


@pytest.fixture(scope="module")
def guides(tokenizer) -> Guides:  # type: ignore[no-untyped-def]
    return Guides(tokenizer, 416, {END})  # a model's table may be larger than its tokenizer


def allowed(guide: Guide) -> set[int]:
    logits = torch.zeros(416)
    guide.narrow(logits)
    return set(torch.isfinite(logits).nonzero().flatten().tolist())


def test_every_allowed_token_begins_a_text_of_the_grammar(guides: Guides, tokenizer) -> None:  # type: ignore[no-untyped-def]
    for token in allowed(guides.guide(WORDS)):
        text = tokenizer.decode([token])
        assert text and ("yes".startswith(text) or "no way".startswith(text)), text


def test_at_the_end_of_the_grammar_only_the_end_token_is_left(guides: Guides, tokenizer) -> None:  # type: ignore[no-untyped-def]
    guide = guides.guide(WORDS)
    for token in tokenizer.encode("yes", add_special_tokens=False):
        assert token in allowed(guide)
        guide.took(token)
    assert allowed(guide) == {END}
    assert allowed(guides.guide(WORDS)) != {END}  # each text has a guide of its own


def test_a_random_walk_through_a_schema_is_valid_json(guides: Guides, tokenizer) -> None:  # type: ignore[no-untyped-def]
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}}, "required": ["n"]}
    schema["additionalProperties"] = False
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        guide, written = guides.guide(f"start: %json {json.dumps(schema)}"), list[int]()
        while not written or written[-1] != END:
            choices = sorted(allowed(guide))
            spaceless = [token for token in choices if tokenizer.decode([token]).strip()] or choices
            written.append(spaceless[int(torch.randint(len(spaceless), (1,), generator=generator))])
            guide.took(written[-1])
        assert json.loads(tokenizer.decode(written[:-1]))["n"] <= 99


def test_what_does_not_fit_is_refused(guides: Guides) -> None:
    with pytest.raises(ValueError, match="does not fit the grammar"):
        guides.guide(WORDS).took(5)
    with pytest.raises(ValueError, match="the grammar cannot be used"):
        guides.guide("start: %json {")
