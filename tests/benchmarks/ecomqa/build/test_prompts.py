"""The construction's prompts: those shipped, and those of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ecomqa.build.items import Item
from benchmarks.ecomqa.build.prompting import SHIPPED, Prompts
from benchmarks.ecomqa.corpus import Passage

ITEMS = [
    Item("a", "IDC", "问一？", "答", False, ("甲", "乙", "丙"), "p"),
    Item("=b", "CC", "问二？", "红", True, ("红", "绿"), "p"),
]


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("drafts", "问".encode(), r"drafts\.jinja: no prompt has this name, did you mean draft\.jinja\?"),
        ("draft", "问".encode("gbk"), r"draft\.jinja: not UTF-8 at byte 0; save it as UTF-8"),
        ("draft", b"{{ 1 +", r"draft\.jinja: TemplateSyntaxError: .*; mend the template"),
    ],
)
def test_prompts_that_cannot_be_used_are_told_at_once(tmp_path: Path, name: str, raw: bytes, message: str) -> None:
    (tmp_path / "criteria.jinja").write_text("{% include 'words.jinja' %}", encoding="utf-8")
    (tmp_path / "words.jinja").write_text("{{ item.question + 1 }}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"criteria\.jinja: TypeError: .*; mend the template"):
        Prompts("German", "now", str(tmp_path)).render("criteria", item=ITEMS[0])
    (tmp_path / f"{name}.jinja").write_bytes(raw)
    with pytest.raises(ValueError, match=message):
        Prompts("German", "now", str(tmp_path))


def test_a_folder_of_ones_own_replaces_prompts_by_name(tmp_path: Path) -> None:
    (tmp_path / "criteria.jinja").write_text("{{ language }}? {{ item.question }}", encoding="utf-8")
    own, shipped = Prompts("German", "now", str(tmp_path)), Prompts("German", "now")
    assert own.render("criteria", item=ITEMS[0]) == "German? 问一？"
    assert "public by now" in shipped.render("criteria", item=ITEMS[0])
    assert own.digest != shipped.digest != Prompts("Chinese", "now").digest
    with pytest.raises(FileNotFoundError, match="none of the prompts"):
        Prompts("German", "now", str(tmp_path / "empty"))
    (tmp_path / "criteria.jinja").write_text("{{ item.questoin }}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"UndefinedError: .*questoin.*; mend the template"):
        Prompts("German", "now", str(tmp_path)).render("criteria", item=ITEMS[0])


def test_questions_of_other_languages_have_cues_of_their_own() -> None:
    prompts = Prompts("German", "now")
    assert prompts.render("question", item=ITEMS[1]) == "***Question***: 问二？\n***Candidates***: 红,绿\n***Answer***:"
    assert "choose the right one" in prompts.render("system", item=ITEMS[1])


def test_every_shipped_prompt_can_be_rendered() -> None:
    prompts = Prompts("Chinese", "now")
    values = {"item": ITEMS[0], "passages": [], "passage": Passage("p", "", "t"), "count": 1, "tasks": {"IDC": "x"}}
    for path in SHIPPED.glob("*.jinja"):
        assert prompts.render(path.stem, answer="a", **values)
