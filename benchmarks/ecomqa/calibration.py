"""Does a model know what it knows? It states its confidence with each answer, and accuracy is held against that."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmarks.ecomqa.data import Question

# The sub-concepts that the paper examines.
TASKS = ("CC", "BC")
REQUEST = "请先给出答案，再另起一行写出你对这个答案的把握，用0到100之间的整数表示，格式为“置信度：整数”。"
_NAME = r"(?:置信度|置信水平|信心(?:程度|指数)?|把握(?:程度)?|自信程度|confidence(?:\s*(?:score|level))?)"
# What may stand between is short, so that no text of spaces or stars takes long to read.
# Behind the name, the scale: (0-100), (整数).
_SCALE = r"(?:\([ \t]{0,2}(?:[^()\d\n]{0,8}|[^()\d\n]{0,4}0\s*%?\s*[-~–—到至]\s*100[^()\n]{0,4})[ \t]{0,2}\))?"
_TO = r"[:=]|是|为|约|大约|大概|有|[\[【(\"“「'{]|\s|\*"
_ONE = r"[ \t]{0,2}(?:百分之)?\d+(?:\.\d+)?[ \t]?%?"
# A number as it is stated, with what makes it none: a bound, a range, a choice, a fraction, a mark inside the number.
_NUMBER = (
    r"(?P<bound>[<>≤≥]|至少|至多|不到|超过|[低高]于|[大小]于)?[ \t]{0,2}(?P<percent>百分之)?(?P<number>\d+(?:\.\d+)?)"
    r"(?:[ \t]{0,2}(?P<unit>%|/[ \t]?100?(?![\d.])|分))?"
    rf"(?P<range>(?:[ \t]{{0,2}}(?:[-~–—−±/]|到|至|或者?|\bto\b|\bor\b){_ONE}|"
    r"[,.]\d+|，\d{3}(?![\d年])|e[+-]?\d+|[ \t]?以[上下]|\+)+"
    r"(?:[ \t]?分)?)?"
)
_STATED = re.compile(
    rf"[(（\[【]?\s?\*{{0,3}}{_NAME}\*{{0,3}}\s?{_SCALE}(?:{_TO}){{0,12}}{_NUMBER}\s?[)）\]】\"”」'}}*]*", re.IGNORECASE
)
# Behind an answer (a number that is the only line is the answer itself): percentages, or a whole number up to 100.
_LAST_NUMBER = re.compile(
    rf"(?<=\S)[^\S\n]*\n\s*\*{{0,3}}(?=[^\n]*%\W*$|(?:100|\d{{1,2}})\**[.。]?\s*$){_NUMBER}\**[.。]?\s*$", re.IGNORECASE
)


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
    percentage alone or of a whole number up to 100, such as the request asks for.
    A range (80-90, 80%到90%, 80或90, 80以上), another fraction (4/5), a number with other marks in it (1,000), and what
    lies outside 0 to 100 are no confidence; they are taken off the answer all the same.
    """
    # A full-width comma parts sentences, and stays apart from the comma inside a number.
    plain = "，".join(unicodedata.normalize("NFKC", piece) for piece in answer.split("，"))
    found = list(_STATED.finditer(plain)) or list(_LAST_NUMBER.finditer(plain))[-1:]
    if not found:
        return Stated(answer.strip(), None)
    rest = plain
    for match in reversed(found):
        between = "\n" if "\n" in match[0] else ""  # lines stay lines
        rest = rest[: match.start()] + between + rest[match.end() :]
    return Stated(rest.strip(" \n,，。;；"), _value(found[-1]))


def _value(match: re.Match[str]) -> float | None:
    number, unit = float(match["number"]), (match["unit"] or match["percent"] or "").replace(" ", "")
    if match["range"] or match["bound"]:
        return None
    if unit == "/10" or ("." in match["number"] and number <= 1 and unit == ""):
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
        "ece": _error(table) if pairs else None,
        "bins": [asdict(entry) for entry in table],
    }


def _error(table: Sequence[Bin]) -> float:
    """From the table that is shown, so that the two cannot part."""
    gaps = ((entry.n, entry.accuracy, entry.confidence) for entry in table)
    weighted = [n * abs(right - sure) for n, right, sure in gaps if right is not None and sure is not None]
    return float(sum(weighted) / sum(entry.n for entry in table))
