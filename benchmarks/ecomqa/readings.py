"""What an answer of a closed form chooses: labels and candidates, option letters, yes or no.

Precision comes before recall: what names several, or turns down what it names, is no clear choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.ecomqa.data import NO, YES
from benchmarks.ecomqa.denial import turned_down
from benchmarks.ecomqa.forms import Form
from benchmarks.ecomqa.normalise import bare, contains, normal, places, without_cue

# Other words for a label, and words that hold a label and are none.
ALIASES = {
    "不正确": "错误",
    "不对": "错误",
    "无关": "不相关",
    "怎么挑": "怎么挑/怎么买",
    "怎么买": "怎么挑/怎么买",
    "相关性": "",
    "相关度": "",
    "相关程度": "",
    "正确性": "",
    "是否正确": "",
    "是否相关": "",
}
_CONCLUSION = re.compile(r"答案|回答|因此|所以|综上|选择|应为|answer", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """The names that an answer chooses, each once; ``clear`` where it can be read in one way only."""

    names: tuple[str, ...] = ()
    denied: bool = False

    @property
    def clear(self) -> bool:
        return len(self.names) < 2 and not self.denied


def lines_of(answer: str) -> list[str]:
    """The lines of an answer that hold something, without cues."""
    lines = (without_cue(line) for line in without_cue(answer).splitlines())
    return [line for line in lines if any(map(str.isalnum, line))]


def read_names(answer: str, form: Form) -> Reading:
    """The labels or candidates that an answer names: in its first line, else in a concluding last, else anywhere.

    A name on each of the first lines is a list of names, as on one line.
    """
    lines = lines_of(answer)
    known = {bare(name) for name in form.names}
    alone = next((row for row, line in enumerate(lines) if bare(line) not in known), len(lines))
    last = [line for line in lines[-1:] if _CONCLUSION.search(answer.splitlines()[-1])]
    found = Reading()
    for text in ["\n".join(lines[: max(1, alone)]), *last, "\n".join(lines)]:
        found = named(text, form)
        if found.names and found.clear:
            break
    return found


def named(text: str, form: Form) -> Reading:
    """The labels or candidates of a text, and whether it turns one of them down."""
    names = (*form.names, *(alias for alias, meant in ALIASES.items() if not meant or meant in form.names))
    plain = normal(text)
    meant = [(ALIASES.get(name, name), start, end) for name, start, end in places(plain, names)]
    said = [place for place in meant if place[0]]
    return Reading(tuple(dict.fromkeys(name for name, _, _ in said)), any(turned_down(plain, *at) for _, *at in said))


_OR = r"\s*(?:[、/|+&]|或者?|还是|和|与|及|以及|\bor\b|\band\b)\s*(?:选项?|option\s)?[(\[【\"“]*"
_TELLS = (
    r"(?:答案|(?<![不没未])选择?(?!项)|正确选项|answer)(?:应该|应|就|is)?\s*[是为:]*\s*(?:选项?|option\s)?[(\[【\"“]*"
)


def _letter(form: Form) -> str:
    """A pattern for an option letter that stands alone (not in A4); an "a" before an English word is an article."""
    verbs = "is|and|or|but|because|since|rather|instead|not|fits|seems|option"
    article = rf"(?!(?<=a) (?!(?:{verbs})\b)[a-z]{{2}})"
    return rf"(?<![a-z0-9])([{''.join(form.names).lower()}])(?![a-z0-9]){article}"


def read_options(answer: str, form: Form) -> Reading:
    """The option letters that an answer chooses: by what it opens with, else by what its last line tells, else by the
    letters anywhere (those it says it chooses, before others), else by the whole texts of options.
    """
    lines = [normal(line) for line in lines_of(answer)]
    plain = [_without_texts(line, form) for line in lines]
    letter, whole = _letter(form), "\n".join(plain)
    opening = _opening(plain, letter)
    last = _told(plain[-1], letter) if len(plain) > 1 else Reading()
    if clear := next((found for found in (opening, last) if found.names and found.clear), None):
        return clear
    for found in (opening, _told(whole, letter), _choices(whole, re.finditer(letter, whole), letter)):
        if found.names:
            return found
    text = "\n".join(lines)
    chosen = [name for name, says in zip(form.names, form.texts, strict=True) if says and contains(text, says)]
    return Reading(tuple(chosen), any(turned_down(text, *at) for _, *at in places(text, form.texts)))


def _without_texts(line: str, form: Form) -> str:
    """A line without the options' own texts: what they hold is nothing that the answer says."""
    for text in sorted(map(normal, form.texts), key=len, reverse=True):
        line = line.replace(text, "") if len(text) > 1 else line
    return line


def _opening(plain: list[str], letter: str) -> Reading:
    """The option that an answer begins with, and others that its first line (or a list it begins) chooses too."""
    head = re.compile(rf"(?:选项?|选择|option\s)?\s*[(\[【\"“]*{letter}")
    found = head.match(plain[0]) if plain else None
    if found is None:
        return Reading()
    alone = re.compile(rf"\W*{letter}\W*")
    item = alone.fullmatch if alone.fullmatch(plain[0]) else head.match
    more = next((row for row in range(1, len(plain)) if not item(plain[row])), len(plain))
    block = "\n".join(plain[:more])
    rest = re.sub(rf"[,;。]\s*{letter}(?:{_OR}{letter})*(?:选项)?[是都均也并则]*(?:不|错)", "", block[found.end() :])
    other = (
        rf"(?:{_OR}|{_TELLS}){letter}|[,;\n]\s*{letter}(?=\W|$)|(?<!than|over)\s{letter}(?=[.:)]|$|\s[a-z](?![a-z]))|"
        rf"(?<!比){letter}(?=[也更最才都]|同样)"
    )
    names = [found[1], *(one[one.lastindex or 0] for one in re.finditer(other, rest))]
    return _reading(names, turned_down(block, found.start(1), found.end(1)))


def _told(text: str, letter: str) -> Reading:
    return _choices(text, re.finditer(rf"{_TELLS}{letter}", text), letter)


def _choices(text: str, found: Iterable[re.Match[str]], letter: str) -> Reading:
    """Letters at the places found, with those listed right behind them."""
    names: list[str] = []
    denied = False
    listed = re.compile(rf"[)\]】\"”]*(?:{_OR}{letter}|\s*[,;]\s*{letter}(?=\W|$))")
    for one in found:
        names.append(one[1])
        denied |= turned_down(text, one.start(1), one.end(1))
        end = one.end()
        while more := listed.match(text, end):
            names.append(more[more.lastindex or 0])
            end = more.end()
    return _reading(names, denied)


def _reading(letters: Iterable[str], denied: bool) -> Reading:
    return Reading(tuple(dict.fromkeys(letter.upper() for letter in letters)), denied)


_CLAUSES = re.compile(r"[,。;:!?、/|\n]|或者?|还是|与|\bor\b|\band\b")
_NO = re.compile(r"否(?![则认定])|不是(?!不)|不属于|并不|并非(?!不)|no\b|不$")
_YES = re.compile(r"是(?!否|不是)|属于|yes\b")
_SPOILT = re.compile(r"是(?:错|假|误|不)")
_BUT = r"(?:但|也|又|而|却|可能|或许|其实|实际上?|它|这|答案|,)*"
_PLAIN_NO = re.compile(rf"{_BUT}(?:否|不|不是的?|不属于|并?非|不对|错误?的?|no|not)")
_PLAIN_YES = re.compile(rf"{_BUT}(?:是的?|属于|对的?|正确的?|yes)")
_DENIED_INSIDE = re.compile(r"不(?:能|可|应)(?:说|认为|算)?(?:不是|不属于|并非|就是|属于)|不是[\"“「'‘](?:否|不是|是)")
_NO_INSIDE, _YES_INSIDE = re.compile(r"不是|不属于|并非"), re.compile(r"确实是|就是|属于|是一[款台个种件]")


def read_yes_no(answer: str, form: Form) -> Reading:
    """Yes or no: by the first clause of the answer, where no other clause there is the plain opposite; else by verbs
    anywhere."""
    lines = [normal(line) for line in lines_of(answer)]
    bare_lines = next((row for row, line in enumerate(lines) if not _is_bare(line)), len(lines))
    clauses = [clause.strip() for clause in _CLAUSES.split("\n".join(lines[: max(1, bare_lines)])) if clause.strip()]
    if clauses and re.match("是否|是不是", clauses[0]) and len(clauses) > 1:
        clauses = clauses[1:]
    if clauses:
        first = clauses[0]
        no, yes = _NO.match(first) is not None, _YES.match(first) is not None
        if no or yes:
            opposite = _PLAIN_YES if no else _PLAIN_NO
            spoilt = yes and _SPOILT.match(first) is not None
            return Reading((NO if no else YES,), spoilt or any(map(opposite.fullmatch, clauses[1:])))
    whole = "\n".join(lines)
    found = [(name, at) for name, inside in ((NO, _NO_INSIDE), (YES, _YES_INSIDE)) for at in inside.finditer(whole)]
    denied = re.search(
        r"(?:不能|不可|不得不|不应)(?:说|认为|算)?(?:不是|不属于|并非|就是|属于)|不是[\"“「'‘](?:否|不是|是)", whole
    )
    return Reading(tuple(dict.fromkeys(name for name, _ in found)), denied is not None)


def _is_bare(line: str) -> bool:
    return bool(_PLAIN_NO.fullmatch(line) or _PLAIN_YES.fullmatch(line))
