"""What a judge must beat: the constant answer, the coin, and a bag of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from benchmarks.ecomscript.scorer import UNCHOSEN, EachAlone
from models.scoring import TOKEN_BUDGET, plan_batches
from recipes.base import Judgment, Record

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Baseline:
    """Margins and verdicts (0 or 1) of every record, [records], and what is to be said of them."""

    margins: Floats
    verdicts: NDArray[np.int64]
    facts: dict[str, Any]


def majority(counted: Sequence[Record], where: str, records: int) -> Baseline:
    """The commoner label among ``counted``, always; yes where both are as common.

    Args:
        where: what ``counted`` is. On the examined records themselves it is the best constant, chosen with the labels.
    """
    yes = sum(record.label or 0 for record in counted)
    label = int(2 * yes >= len(counted))
    return Baseline(np.zeros(records), np.full(records, label), {"class": label, "class_from": where})


def coin(labels: Sequence[int], seed: int) -> Baseline:
    """A fair coin, thrown once for each record with the seed, and what it is worth on average.

    With a share s of yes, the expected counts give F1 of s / (s + 1/2) for yes and (1 - s) / (3/2 - s) for no.
    """
    margins = np.random.default_rng(seed).random(len(labels)) - 0.5
    share = float(np.mean(labels))
    expected = {"accuracy": 0.5, "macro_f1": (share / (share + 0.5) + (1 - share) / (1.5 - share)) / 2, "auc": 0.5}
    return Baseline(margins, (margins >= 0).astype(np.int64), {"seed": seed, "expected": expected})


class BagOfWords:
    """Logistic regression on TF-IDF of one and two words of the plain text: what the wording alone gives away.

    scikit-learn's defaults (lower case, L2 with C = 1), with sublinear term frequencies. "Tokens" are words here.
    """

    max_length = 2**31
    temperature = 1.0
    threshold = 0.5
    threshold_from = UNCHOSEN
    shots = 0

    def __init__(self, judgment: Judgment[Any], train: Sequence[Any]) -> None:
        self.judgment = judgment
        self.words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        self.model = Pipeline([("words", self.words), ("classes", LogisticRegression(max_iter=1000))])
        self.model.fit(self._texts(train), [record.label for record in train])

    def _texts(self, records: Sequence[Any]) -> list[str]:
        return [self.judgment.render(record, "plain").text for record in records]

    def lengths(self, records: Sequence[Any]) -> list[int]:
        return [len(text.split()) for text in self._texts(records)]

    def plan(
        self, records: Sequence[Any], lengths: Sequence[int], token_budget: int | None, threshold: float
    ) -> EachAlone:
        return EachAlone(records, plan_batches(lengths, token_budget or TOKEN_BUDGET), self.margins)

    def margins(self, records: Sequence[Any]) -> Floats:
        return np.asarray(self.model.decision_function(self._texts(records)), dtype=np.float64)
