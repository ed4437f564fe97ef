"""Does a model know what it knows? It states its confidence with each answer, and accuracy is held against that."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmarks.ecomqa.data import Question
from recipes.metrics import expected_calibration_error

# The sub-concepts that the paper examines.
TASKS = ("CC", "BC")
REQUEST = "请先给出答案，再另起一行写出你对这个答案的把握，用0到100之间的整数表示，格式为“置信度：整数”。"
_NAME = r"(?:置信度|置信水平|信心(?:程度|指数)?|把握(?:程度)?|自信程度|confidence(?:\s*(?:score|level))?)"
_STATED = re.compile(
    rf"[(（\[【]?\s*\**{_NAME}\**\s*(?:[:=]|是|为|约|大约|大概|有|\s|\*)*(?P<number>\d+(?:\.\d+)?)(?P<range>\s*(?:-|~|到|至)\s*\d+)?"
    r"\s*(?P<unit>%|/\s*100|/\s*10(?!0)|分)?\s*[)）\]】]?",
    re.IGNORECASE,
)
# Behind an answer: a number that is the only line is the answer itself.
_LAST_NUMBER = re.compile(r"(?<=\S)\s*\n\s*\**(?P<number>100|\d{1,2}|\d+(?:\.\d+)?(?=\s*%))\s*%?\**[.。]?\s*$")


@dataclass(frozen=True)
class Stated:
    """An answer without its statement of confidence, and the confidence (0 to 100); None where none can be read."""

    answer: str
    confidence: float | None


def asked_for_confidence(question: Question) -> Question:
    """The question with the request for a confidence in its instruction, behind the examples."""
    head = question.system_prompt.rstrip()
    return replace(question, system_prompt=f"{head}\n{REQUEST}\n" if head else f"{REQUEST}\n")


def read_confidence(answer: str) -> Stated:
    """The last confidence that an answer states.

    Read are numbers behind a word for confidence (85, 85%, 85/100, 8/10, 0.85) and, behind an answer, a last line of a
    percentage alone or of a whole number up to 100, such as the request asks for. A range, and what lies outside 0 to
    100, is no confidence.
    """
    plain = unicodedata.normalize("NFKC", answer)
    found = list(_STATED.finditer(plain)) or list(_LAST_NUMBER.finditer(plain))[-1:]
    if not found:
        return Stated(answer.strip(), None)
    rest = plain
    for match in reversed(found):
        between = "\n" if "\n" in match[0] else ""  # lines stay lines
        rest = rest[: match.start()] + between + rest[match.end() :]
    return Stated(rest.strip(" \n,，。;；"), _value(found[-1]))


def _value(match: re.Match[str]) -> float | None:
    groups = match.groupdict()
    number, unit = float(groups["number"]), (groups.get("unit") or "").replace(" ", "")
    if groups.get("range"):
        return None
    if unit == "/10" or ("." in groups["number"] and number <= 1 and unit == ""):
        number *= 10 if unit == "/10" else 100
    return number if 0 <= number <= 100 else None


@dataclass(frozen=True)
class Bin:
    """Answers with a confidence from ``low`` up to ``high`` (percent): how sure they were, and how often right."""

    low: float
    high: float
    n: int
    confidence: float | None
    accuracy: float | None


def calibration(confidences: Sequence[float | None], right: Sequence[bool], bins: int = 10) -> dict[str, Any]:
    """Accuracy by confidence in bins of equal width, and the expected calibration error (percentage points).

    ECE = sum over bins of n_bin / n * |accuracy - mean confidence| (Guo et al. 2017, eq. 5). Answers without a readable
    confidence are left out and counted. A confidence of 100 is in the last bin; a bin holds its lower end.
    """
    pairs = [(stated, ok) for stated, ok in zip(confidences, right, strict=True) if stated is not None]
    stated = np.array([pair[0] for pair in pairs], np.float64)
    correct = np.array([pair[1] for pair in pairs], np.float64)
    place = np.minimum((stated * bins / 100).astype(np.int64), bins - 1)
    table = []
    for number in range(bins):
        inside = place == number
        known = bool(inside.any())
        table.append(
            Bin(
                low=100 * number / bins,
                high=100 * (number + 1) / bins,
                n=int(inside.sum()),
                confidence=float(stated[inside].mean()) if known else None,
                accuracy=float(100 * correct[inside].mean()) if known else None,
            )
        )
    return {
        "n": len(pairs),
        "unread": len(confidences) - len(pairs),
        "confidence": float(stated.mean()) if pairs else None,
        "accuracy": float(100 * correct.mean()) if pairs else None,
        "ece": 100 * expected_calibration_error(correct, stated / 100, bins) if pairs else None,
        "bins": [asdict(entry) for entry in table],
    }
