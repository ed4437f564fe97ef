"""What a judge says of records: a probability and a verdict, or the reason why it can say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from judging.judges import NamedJudge
from models.encoding import Encoded
from models.scoring import Scoring, probabilities
from recipes.fitting import fit

REASONS = {
    "unreadable": "the row is no JSON object, or no text",
    "invalid": "a field is missing, or not what the judgment needs",
    "too_long": "more tokens than the judge takes, even without product text",
    "no_tokens": "the judge's tokenizer makes nothing of the text, or takes its end for padding",
    "not_finite": "the model's numbers are not finite; try --dtype float32",
}


class Answer(BaseModel):
    """A judge's answer to one record: either ``p_yes`` and ``verdict``, or ``reason`` and ``detail``."""

    model_config = ConfigDict(frozen=True)

    p_yes: float | None = Field(default=None, description="the probability of yes")
    verdict: int | None = Field(default=None, description="1 where p_yes reaches the judge's threshold, else 0")
    shortened: bool = Field(default=False, description="whether product text was left out to make the record fit")
    reason: str | None = Field(default=None, description=f"why there is no verdict: {', '.join(REASONS)}")
    detail: str | None = Field(default=None, description="the reason in words")


def answer(one: NamedJudge, records: Sequence[Any], token_budget: int | None = None) -> list[Answer]:
    """A judge's answers to records, in their order.

    Batches follow from the records alone: the same records get the same answers, to the bit on a CPU.
    """
    prepared = _prepare(one, records)
    answers = [entry if isinstance(entry, Answer) else Answer() for entry in prepared]
    rows = [row for row, entry in enumerate(prepared) if not isinstance(entry, Answer)]
    encoded = [entry[0] for entry in prepared if not isinstance(entry, Answer)]
    shortened = [not isinstance(entry, Answer) and entry[1] for entry in prepared]
    spec = one.judge.spec
    for batch, margins in Scoring(one.judge, encoded, token_budget):
        kept = np.round(margins, 6) + 0.0  # as in an evaluation's predictions, so that both say the same
        for place, margin, p_yes in zip(batch, kept, probabilities(kept, spec.temperature), strict=True):
            row = rows[place]
            if not np.isfinite(margin):
                answers[row] = Answer(reason="not_finite", detail=REASONS["not_finite"])
                continue
            verdict = int(p_yes >= spec.threshold)
            answers[row] = Answer(p_yes=float(p_yes), verdict=verdict, shortened=shortened[row])
    return answers


Prepared = Answer | tuple[Encoded, bool]


def _prepare(one: NamedJudge, records: Sequence[Any]) -> list[Prepared]:
    """Each record's tokens and whether it was shortened; or its answer, where it cannot be judged."""
    limit = one.judge.max_length
    prepared: list[Prepared] = []
    for record, encoded in zip(records, _encode(one, records), strict=True):
        if isinstance(encoded, Answer):
            prepared.append(encoded)
        elif len(encoded["input_ids"]) <= limit:
            prepared.append((encoded, False))
        else:
            prepared.append(_shortened(one, record, limit))
    return prepared


def _encode(one: NamedJudge, records: Sequence[Any]) -> list[Encoded | Answer]:
    prompts = [one.judgment.render(record, one.judge.style) for record in records]
    try:
        return list(one.judge.encoder.encode(prompts))
    except ValueError as error:
        if len(records) == 1:
            return [Answer(reason="no_tokens", detail=str(error))]
        return [entry for record in records for entry in _encode(one, [record])]


def _shortened(one: NamedJudge, record: Any, limit: int) -> Prepared:
    def count(some: Sequence[Any]) -> list[int]:
        return one.judge.encoder.lengths([one.judgment.render(each, one.judge.style) for each in some])

    fitted = fit(one.judgment, [record], count, limit)
    if fitted.refused:
        (tokens,) = fitted.refused.values()
        detail = f"{tokens} tokens even without product text; the judge takes {limit}"
        return Answer(reason="too_long", detail=detail)
    (encoded,) = _encode(one, fitted.records)
    return encoded if isinstance(encoded, Answer) else (encoded, True)
