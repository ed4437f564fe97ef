"""The questions of ChineseEcomQA: the released file as it is, our own sets in the same four fields, or the sample.

A line is ``{"system_prompt", "prompt", "gt", "task"}``, with no id and in any order. What is not plain about the
released file is dealt with here:

- The first line of ``gt`` is the answer. In late RLC rows the author's reasoning follows, under headings such as
  "not to be shown"; ``gt_raw`` keeps it.
- A question that is asked twice with different references becomes one question that accepts either, unless
  ``repeated="keep"`` asks for the rows as released.
- Three yes/no questions of CC ("is it a ...?") have the category they ask about as reference: it affirms, so that
  the plain yes is accepted too.
- The system prompt of SC stands in literal double quotes, which an export left behind; they are taken off.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from recipes.csv_files import csv_rows
from recipes.faults import DataFaults, Fault, explain, unknown_fields
from recipes.raw import Row
from recipes.rows import file_rows

# Names as the paper gives them, in the order of its main table.
SUB_CONCEPTS = {
    "IC": "industry categorization",
    "IDC": "industry concept",
    "CC": "category concept",
    "BC": "brand concept",
    "AC": "attribute concept",
    "SC": "spoken concept",
    "ITC": "intent concept",
    "RVC": "review concept",
    "RLC": "relevance concept",
    "PC": "personalised concept",
}
SAMPLE = "sample"
YES, NO = "是", "否"
HALF = "holds half a character (a lone surrogate); write the text as UTF-8"
Repeated = Literal["merge", "keep"]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """A question as it is asked and graded.

    Attributes:
        id: made of the task and the text asked (and the occurrence, from the second on): the same in any order.
        gt: the answer, on one line; ``gt_raw`` is the file's whole field.
        references: every accepted answer, ``gt`` first.
        rows: 0-based rows of the file that ask it.
    """

    id: str
    task: str
    system_prompt: str
    prompt: str
    gt: str
    gt_raw: str
    references: tuple[str, ...]
    rows: tuple[int, ...] = ()


class Line(BaseModel):
    """The four fields of a line. Each description completes the sentence "give ..." of a fault."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    system_prompt: StrictStr = Field(description='the instruction and its examples, or ""')
    prompt: StrictStr = Field(description="the question")
    gt: StrictStr = Field(description="the reference answer, on its first line")
    task: StrictStr = Field(description="the code of its sub-concept: " + ", ".join(SUB_CONCEPTS))


def read_questions(reference: str, repeated: Repeated = "merge") -> list[Question]:
    """The questions of a JSONL file (also .gz or Parquet), or of the shipped ``sample``, in the file's order.

    Args:
        repeated: what becomes of a text that is asked again: ``merge`` accepts all its references in one question,
            ``keep`` makes a question of each row.

    Raises DataFaults (a ValueError) that names every fault with its line and field, and what to do.
    """
    lines, faults = _read(reference)
    if faults:
        raise DataFaults(faults)
    found: dict[str, Question] = {}
    occurrences: dict[str, int] = {}
    for row, line in enumerate(lines):
        question = _question(line, row)
        first = found.get(question.id)
        if first is None:
            found[question.id] = question
        elif repeated == "merge":
            found[question.id] = _merged(first, question)
        else:
            occurrences[question.id] = count = occurrences.get(question.id, 1) + 1
            again = replace(question, id=f"{question.id}-{count}")
            found[again.id] = again
    return list(found.values())


def questions_fingerprint(questions: Iterable[Question]) -> str:
    """sha256 (hex) over what is asked and accepted, in the order given."""
    digest = hashlib.sha256()
    for question in questions:
        parts = (question.id, question.system_prompt, question.prompt, *question.references)
        digest.update(("\x00".join(parts) + "\n").encode())
    return digest.hexdigest()


def _read(reference: str) -> tuple[list[Line], list[Fault]]:
    where = str(files("benchmarks.ecomqa") / "sample" / "questions.jsonl") if reference == SAMPLE else reference
    shown = "sample" if reference == SAMPLE else reference
    lines: list[Line] = []
    faults: list[Fault] = []
    unknown: dict[str, int] = {}
    if not reference.strip() or not Path(where).exists():
        what = "no such file" if reference.strip() else "data: names nothing"
        return [], [Fault(shown, None, "", f"{what}; give a JSONL, Parquet or CSV file, or {SAMPLE}")]
    for row in _rows(where):
        if isinstance(row, Fault):
            faults.append(replace(row, where=shown))
            continue
        for field, _ in unknown_fields(row.value, Line):
            unknown.setdefault(field, row.line)
        line, wrong = _line(row.value)
        faults += [Fault(shown, row.line, field, message) for field, message in wrong]
        if line is not None and not wrong:
            lines.append(line)
    for field, first in unknown.items():
        log.warning("%s", Fault(shown, first, field, "unknown field, ignored; a question has " + _fields()))
    if not lines and not faults:
        faults.append(Fault(shown, None, "", "no questions; give at least one line with " + _fields()))
    return lines, faults


def _rows(where: str) -> Iterator[Row | Fault]:
    """The rows of a file. A CSV file's cells are texts as they stand, empty ones too; its header is row 1."""
    if not where.lower().endswith(".csv"):
        yield from file_rows(where)
        return
    for row in csv_rows(where):
        if isinstance(row, Row):
            yield Row(row.line + 1, {name: text or "" for name, text in row.value.items()})
        else:
            yield replace(row, line=row.line and row.line + 1)


def _fields() -> str:
    return ", ".join(Line.model_fields)


def _line(raw: object) -> tuple[Line | None, list[tuple[str, str]]]:
    """A raw line as (line or None, [(field, what is wrong; what to do)])."""
    try:
        line = Line.model_validate(raw)
    except ValidationError as error:
        return None, [explain(one, Line) for one in error.errors(include_url=False)]
    wrong = [
        (name, f"empty; give {Line.model_fields[name].description}")
        for name in ("prompt", "gt")
        if not _shown(getattr(line, name))
    ]
    for name, text in line:
        if half_character(text):
            wrong.append((name, HALF))
    if line.task not in SUB_CONCEPTS:
        near = get_close_matches(line.task.upper(), SUB_CONCEPTS, n=1, cutoff=0)[0]
        known = ", ".join(SUB_CONCEPTS)
        wrong.append(("task", f"{line.task!r} is no sub-concept; did you mean {near!r}? There are {known}"))
    return line, wrong


def _shown(text: str) -> str:
    """What of a text can be seen: zero-width spaces, say, cannot."""
    return "".join(filter(str.isprintable, text)).strip()


def half_character(text: str) -> bool:
    """Whether a text holds a lone surrogate, which no file can hold."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _question(line: Line, row: int) -> Question:
    digest = hashlib.sha256("\x00".join((line.task, line.system_prompt, line.prompt)).encode()).hexdigest()
    answer = line.gt.strip().splitlines()[0].strip()
    return Question(
        id=f"{line.task}-{digest[:12]}",
        task=line.task,
        system_prompt=_unquoted(line.system_prompt),
        prompt=line.prompt,
        gt=answer,
        gt_raw=line.gt,
        references=_accepted(line, answer),
        rows=(row,),
    )


def _unquoted(text: str) -> str:
    bare = text.strip()
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] == '"' and '"' not in bare[1:-1] else text


def _accepted(line: Line, answer: str) -> tuple[str, ...]:
    """The answer, and the plain yes where a yes/no question is answered with the very category it asks about."""
    asked = re.search(r"是(?P<category>[^是]+?)吗[？?]", line.prompt)
    affirms = line.task == "CC" and asked is not None and asked["category"] == answer
    return (answer, YES) if affirms else (answer,)


def _merged(first: Question, again: Question) -> Question:
    references: Sequence[str] = dict.fromkeys([*first.references, *again.references])  # type: ignore[assignment]
    return replace(first, references=tuple(references), rows=first.rows + again.rows)
