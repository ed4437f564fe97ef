"""Model judges: what they are asked about an answer, and how their reply is read.

The paper's grader prompt is not published; these say its three grades in our words. A panel is made of several models,
or of one model under several prompts.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from benchmarks.ecomqa.data import Question
from benchmarks.ecomqa.denial import another_follows, denied_before
from benchmarks.ecomqa.forms import Form
from benchmarks.ecomqa.rules import Grade
from benchmarks.traces import part
from models.generation import Chat, chat

LETTERS: dict[str, Grade] = {"A": "correct", "B": "wrong", "C": "not_attempted"}
WORDS: dict[str, Grade] = {
    "正确": "correct",
    "错误": "wrong",
    "不正确": "wrong",
    "未作答": "not_attempted",
    "correct": "correct",
    "incorrect": "wrong",
    "wrong": "wrong",
    "not attempted": "not_attempted",
    "not_attempted": "not_attempted",
}
LONGEST = 600  # characters of a question or an answer that a judge reads: the beginning and the end of longer ones

_GRADES = """A 正确：回答包含标准答案的全部内容，并且没有与它矛盾的内容。
B 错误：回答与标准答案矛盾，或者答成了别的内容。
C 未作答：没有给出答案（例如表示不知道、拒绝回答、只说了无关的话），也没有与标准答案矛盾的内容。"""
_ADVICE = """只比较内容，不计较措辞、标点、大小写、全角半角和列举的先后次序。
标准答案若列出几个可以接受的答案，与其中任何一个一致就算正确。"""
_STANDARD = f"""你是电商知识问答的评分员。请把【模型回答】与【标准答案】对照，评为下面三类之一：
{_GRADES}
{_ADVICE}
只输出一个字母：A、B 或 C。"""
_EXAMPLES = f"""请给电商知识问答的回答评分。评分只有三种：
{_GRADES}
{_ADVICE}

例一：标准答案是“陶瓷”，模型回答“这种杯子多用陶瓷制成” -> A
例二：标准答案是“跑步、游泳”，模型回答“跑步” -> B
例三：标准答案是“陶瓷”，模型回答“玻璃” -> B
例四：标准答案是“陶瓷”，模型回答“这个问题我不清楚” -> C

只输出一个字母：A、B 或 C。"""
_REASONED = f"""你要审核一道电商题的回答。先用一句话说明【模型回答】是否包含【标准答案】的全部内容、有没有矛盾，
再下结论：
{_GRADES}
{_ADVICE}
最后另起一行，只写“评分：”和一个字母。"""


@dataclass(frozen=True)
class JudgePrompt:
    """An instruction for a judge; ``max_tokens`` is what a reply to it takes, ``grammar`` what a guided reply is like
    (models.guiding)."""

    system: str
    max_tokens: int
    grammar: str


# A guided reason has 36 characters at most: in small vocabularies three tokens each, which leaves room for the letter.
PROMPTS = {
    "standard": JudgePrompt(_STANDARD, 16, "start: /[ABC]/"),
    "examples": JudgePrompt(_EXAMPLES, 16, "start: /[ABC]/"),
    "reasoned": JudgePrompt(_REASONED, 128, r'start: /[^\n]{1,36}/ "\n评分：" /[ABC]/'),
}
_CONCLUDED = re.compile(r"(?:评分|结论|评为|grade)\s*[:：是为]*\s*[*“\"(（\[【]*([ABC])(?![A-Za-z])", re.IGNORECASE)
_BARE = re.compile(r"[\W_]*(?:(?:评分|答案|结论)[\W_]*)?([ABC])(?:[\W_]*(正确|错误|未作答))?[\W_]*", re.IGNORECASE)
_WORD = re.compile(r"(不正确|正确|错误|未作答|\b(?:not[ _]attempted|incorrect|correct|wrong)\b)", re.IGNORECASE)
_ALONE = re.compile(r"(?<![A-Za-z])([ABC])(?![A-Za-z])")


def judge_chat(question: Question, form: Form, answer: str, prompt: JudgePrompt) -> Chat:
    """What a judge is asked about an answer (its trace taken off)."""
    told = "\n".join(f"- {_told(reference, form)}" for reference in question.references)
    references = told if len(question.references) > 1 else told.removeprefix("- ")
    asked, answered = _shortened(question.prompt), _shortened(answer) or "（空）"
    return chat(f"【问题】\n{asked}\n\n【标准答案】\n{references}\n\n【模型回答】\n{answered}", prompt.system)


def _told(reference: str, form: Form) -> str:
    """A reference as a judge needs it: an option's letter with its text."""
    texts = dict(zip(form.names, form.texts, strict=False))
    return f"{reference}（即：{texts[reference]}）" if reference in texts else reference


def _shortened(text: str) -> str:
    text = text.strip()
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 3]}\n……（中间略去）……\n{text[-2 * LONGEST // 3 :]}"


def read_vote(text: str) -> Grade | None:
    """The grade that a judge's reply names; None where it names none, or more than one.

    In this order: a reply that is a letter and no more; the concluding "评分：A"; the only letter that stands alone;
    the only grade that is named in words.
    """
    plain = unicodedata.normalize("NFKC", part(text).answer).strip()
    if bare := _BARE.fullmatch(plain):
        grade = LETTERS[bare[1].upper()]
        return grade if not bare[2] or WORDS[bare[2]] == grade else None
    for found, grades in (
        (list(_CONCLUDED.finditer(plain))[-1:], LETTERS),
        (list(_ALONE.finditer(plain)), LETTERS),
        (list(_WORD.finditer(plain)), {word.upper(): grade for word, grade in WORDS.items()}),
    ):
        if found:
            clear = not any(map(_spoilt, found)) and len({grades[one[1].upper()] for one in found}) == 1
            return grades[found[0][1].upper()] if clear else None
    return None


def _spoilt(found: re.Match[str]) -> bool:
    """Whether another letter is named in the same breath ("A或B"), or what is found is turned down ("不是A")."""
    return another_follows(found.string, found.end(), "ABC") or denied_before(found.string, found.start())
