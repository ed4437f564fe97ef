"""What a reasoning model does with its doubts: each trace is sorted into four behaviours by the vote of judges.

The four are the paper's (arXiv 2502.20196, its analysis of reasoning models): a trace that reflects confirms what was
right, repairs what was wrong, spoils what was right, or comes to no confident answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.ecomqa.denial import another_follows, denied_before
from models.generation import Chat, chat

BEHAVIOURS = {
    "A": "reflection confirms a right answer",
    "B": "reflection repairs a mistake",
    "C": "reflection turns right into wrong",
    "D": "keeps reflecting, no confident answer",
}
SHORT = {"A": "A confirms", "B": "B repairs", "C": "C spoils", "D": "D stays unsure"}
# Characters of a trace that a judge reads: some 6,000 tokens; of longer ones the beginning and the end.
LONGEST = 8000
# Characters of a text that is taken for a bare letter; in a longer one an "A" may be a word.
TERSE = 12
# Tokens a judge may write.
VOTE_TOKENS = 256
SYSTEM = "你是严谨的评审，负责判断一段思考过程属于哪一类行为。"
PROMPT = """下面是一道电商知识题、它的标准答案，以及某个模型作答前的思考过程和最后的回答。请判断这段思考过程属于哪一类：
A：先得到正确的答案，再经过反思确认了它。
B：先得到错误的答案，反思之后改成了正确的答案。
C：本来得到了正确的答案，或者思路是对的，反思之后却变成了错误的答案。
D：反复反思，始终没有得到有把握的答案。

【题目】
{question}

【标准答案】
{references}

【思考过程】
{trace}

【最后的回答】
{answer}

请先用一句话说明理由，再另起一行只写：行为：X（X 是 A、B、C、D 之一）。"""
_STATED = re.compile(r"行为(?:类别|类型)?\s*[:：是为]*\s*[*“\"'（(\[【]*([ABCD])(?![A-Za-z])")
_LETTER = re.compile(r"(?<![A-Za-z])([ABCD])(?![A-Za-z])")


@dataclass(frozen=True)
class Trace:
    """A question with what a model thought and answered. ``references`` are the accepted answers."""

    id: str
    question: str
    references: tuple[str, ...]
    trace: str
    answer: str


def with_traces(traces: Sequence[Trace], model: str) -> list[Trace]:
    """Those that hold any thought. Raises ValueError where none does: there is nothing to judge then."""
    kept = [one for one in traces if one.trace.strip()]
    if not kept:
        raise ValueError(
            f"{model}: none of its {len(traces)} answers holds a reasoning trace (<think> ... </think>); thinking "
            "behaviour is a matter of models that reason, with their reasoning switched on and kept in the answer"
        )
    return kept


def behaviour_chat(one: Trace) -> Chat:
    """What a judge is asked about a trace."""
    references = " / ".join(one.references)
    trace, answer = _shortened(one.trace.strip()), one.answer.strip() or "（没有回答）"
    return chat(PROMPT.format(question=one.question, references=references, trace=trace, answer=answer), SYSTEM)


def read_behaviour(text: str) -> str | None:
    """The letter that a judge's text names: the last that is stated as asked, or the only one of a text that says
    little else; None where there is none, or two at once ("A或B"), or it is turned down ("不是A").
    """
    plain = unicodedata.normalize("NFKC", text)
    found = list(_STATED.finditer(plain))[-1:]
    if not found and len(plain.strip()) <= TERSE:
        found = list(_LETTER.finditer(plain))
    if len({one[1] for one in found}) != 1:
        return None
    one = found[-1]
    spoilt = another_follows(plain, one.end(), "ABCD") or denied_before(plain, one.start())
    return None if spoilt else str(one[1])


def decide(votes: Sequence[str | None]) -> str | None:
    """The behaviour that more than half of the readable votes name; None where none has that many."""
    counts = Counter(vote for vote in votes if vote is not None)
    if not counts:
        return None
    behaviour, most = counts.most_common(1)[0]
    return behaviour if 2 * most > counts.total() else None


@dataclass(frozen=True)
class Thinking:
    """How a model thinks.

    Attributes:
        answers, traces, decided: how many answers there were, held a trace, were sorted by the judges.
        shares: behaviour -> percent of the decided traces.
        unread: votes in which no behaviour could be read.
    """

    answers: int
    traces: int
    decided: int
    counts: Mapping[str, int]
    shares: Mapping[str, float]
    unread: int


def summarise(lines: Sequence[Mapping[str, Any]], answers: int) -> Thinking:
    """Proportions from lines with ``behaviour`` (None where undecided) and ``votes`` (behaviour or None of each judge).

    Args:
        answers: all answers of the model, those without a trace among them.
    """
    counts = {behaviour: sum(line["behaviour"] == behaviour for line in lines) for behaviour in BEHAVIOURS}
    decided = sum(counts.values())
    shares = {behaviour: 100 * count / decided if decided else 0.0 for behaviour, count in counts.items()}
    unread = sum(vote is None for line in lines for vote in line["votes"])
    return Thinking(answers, len(lines), decided, counts, shares, unread)


def _shortened(trace: str) -> str:
    if len(trace) <= LONGEST:
        return trace
    half = LONGEST // 2
    return f"{trace[:half]}\n……（中间略去 {len(trace) - 2 * half} 字）……\n{trace[-half:]}"
