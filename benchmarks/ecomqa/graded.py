"""Answers with their grades: what predictions.jsonl holds, one line a question.

id, task, form, closed: the question; its sub-concept, its form, whether rules can tell right from wrong.
prompt, references: its text and the accepted answers.
text: all that the model wrote; trace and answer are parts of it.
finish: stop, length (cut by the limit) or too_long (not asked). unfinished: the trace never ended.
tokens, prompt_tokens, shots: what was written and read, and whether the solved examples were shown.
rules: {"grade", "said", "f1"} of the rules, whoever decides; an answer that cannot be read has no grade.
votes: [{"judge", "grade", "text"}] of the model judges; a vote that cannot be read has no grade.
panel: {"grade", "how"} that the votes come to, whoever decides; null without votes.
grade, correct, by, how: the grade; by rules, panel or no_answer (an empty answer is not attempted, nobody is asked).
label, said, f1: reference and answer as one of the form's names; F1 of a list.
confidence: in a run that asks for one (null where none could be read). retrieved: ids of the passages shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.completions import Line
from benchmarks.ecomqa.calibration import read_confidence
from benchmarks.ecomqa.data import Question
from benchmarks.ecomqa.forms import Form, form_of
from benchmarks.ecomqa.grading import Decision, VotingRules, decide
from benchmarks.ecomqa.panel import Vote
from benchmarks.ecomqa.rules import Ruling, rule
from benchmarks.traces import part

NO_ANSWER = Decision("not_attempted", "unanimous")


@dataclass(frozen=True)
class Answer:
    """A question's answer, read: parted from its trace (and its confidence), and held against the rules."""

    question: Question
    form: Form
    line: Line
    text: str
    trace: str | None
    unfinished: bool
    ruling: Ruling
    confident: bool = False
    confidence: float | None = None


def read_answers(questions: Sequence[Question], lines: Mapping[str, Line], confident: bool = False) -> list[Answer]:
    """The answers to questions, in their order.

    Args:
        confident: a confidence was asked for, and is taken off the answers.
    """
    found = []
    for question in questions:
        parted = part(lines[question.id]["text"])
        text, confidence = parted.answer, None
        if confident:
            stated = read_confidence(text)
            text, confidence = stated.answer, stated.confidence
        form = form_of(question)
        ruling = rule(question, text, form)
        found.append(
            Answer(
                question,
                form,
                lines[question.id],
                text,
                parted.trace,
                parted.unfinished,
                ruling,
                confident,
                confidence,
            )
        )
    return found


def rules_decide(answer: Answer, rules: bool, panel: bool) -> bool:
    """Whether the rules' grade stands: they are among the judges, can read the answer, and the form is theirs to grade
    (every form, where there is no panel)."""
    return rules and (answer.form.closed or not panel) and answer.ruling.grade is not None


def graded(
    answers: Sequence[Answer],
    votes: Sequence[Mapping[str, Vote]],
    rules: bool,
    voting: VotingRules,
    notes: Mapping[str, Mapping[str, Any]],
) -> list[Line]:
    """The lines of ``predictions.jsonl``.

    Args:
        votes: each judge's, by id of the question; not every answer needs one.
        rules: whether the rules are among the judges.
        notes: what else is to be kept of a question.
    """
    lines = []
    for answer in answers:
        one = answer.question
        cast = [judge[one.id] for judge in votes if one.id in judge]
        by, decision = _decided(answer, cast, rules, bool(votes), voting)
        lines.append(
            {
                **_asked_and_answered(answer),
                "rules": asdict(answer.ruling),
                "votes": [asdict(vote) for vote in cast],
                "panel": asdict(decide([vote.grade for vote in cast], voting)) if cast else None,
                "grade": decision.grade,
                "by": by,
                "how": decision.how,
                "correct": decision.grade == "correct",
                **notes.get(one.id, {}),
            }
        )
    return lines


def _asked_and_answered(answer: Answer) -> Line:
    one = answer.question
    said = answer.form.name_of(answer.ruling.said[0]) if len(answer.ruling.said) == 1 else None
    line: Line = {
        "id": one.id,
        "task": one.task,
        "form": answer.form.kind,
        "closed": answer.form.closed,
        "prompt": one.prompt,
        "references": list(one.references),
        "text": answer.line["text"],
        "answer": answer.text,
        "trace": answer.trace,
        "unfinished": answer.unfinished,
        "finish": answer.line["finish"],
        "tokens": answer.line["tokens"],
        "prompt_tokens": answer.line["prompt_tokens"],
        "shots": answer.line.get("shots", True),
        "label": next(filter(None, map(answer.form.name_of, one.references)), None),
        "said": said,
        "f1": answer.ruling.f1,
    }
    return {**line, "confidence": answer.confidence} if answer.confident else line


def _decided(
    answer: Answer, votes: Sequence[Vote], rules: bool, panel: bool, voting: VotingRules
) -> tuple[str, Decision]:
    """Who decides, and what: nobody needs to be asked about an answer that is not there."""
    if not answer.text:
        return "no_answer", NO_ANSWER
    if rules_decide(answer, rules, panel):
        return "rules", decide([answer.ruling.grade], voting)
    return ("panel" if votes else "rules"), decide([vote.grade for vote in votes], voting)
