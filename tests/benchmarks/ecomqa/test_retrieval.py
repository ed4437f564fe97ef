"""Corpora, retrievers against independent computations, passages in prompts, and what retrieval brings."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import tiny_checkpoint

from benchmarks.ecomqa.corpus import Passage, corpus_fingerprint, divided, read_corpus
from benchmarks.ecomqa.data import read_questions
from benchmarks.ecomqa.rag import augment, compare, gain, search_text, token_counter, with_passages, within
from benchmarks.ecomqa.retrieval import Bm25, Dense, Fused, fuse, make_retriever, words
from models.checkpoint import resolve
from models.embedding import Embedder
from recipes.faults import DataFaults

CORPUS = read_corpus("sample")
PUBLISHED = Path(__file__).resolve().parents[3] / "benchmarks" / "ecomqa" / "published"


def passages(*names: str) -> list[Passage]:
    return [Passage(name, "", f"text of {name}") for name in names]


def ids(found: Sequence[Passage]) -> list[str]:
    return [passage.id for passage in found]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    folder = tiny_checkpoint(tmp_path_factory.mktemp("encoder") / "bert", "bert")
    return Embedder(resolve(str(folder)), dtype="float32")


# Corpora


def test_a_folder_of_texts_and_lines_becomes_passages(tmp_path: Path) -> None:
    (tmp_path / "shops").mkdir()
    (tmp_path / "shops" / "tea.txt").write_text("\ufeff绿茶不发酵。红茶全发酵。", encoding="utf-8")
    (tmp_path / "lines.jsonl").write_text('{"text": "一。", "title": "甲", "id": 7}\n\n{"text": "二。"}\n', "utf-8")
    (tmp_path / "picture.png").write_bytes(b"no text")
    assert read_corpus(str(tmp_path)) == [
        Passage("7", "甲", "一。"),
        Passage("lines.jsonl:3", "", "二。"),
        Passage("shops/tea.txt", "tea", "绿茶不发酵。红茶全发酵。"),
    ]
    assert len(read_corpus(str(tmp_path / "lines.jsonl"))) == 2


def test_long_documents_are_divided_between_sentences_and_lose_nothing() -> None:
    text = "第一句。第二句话！\n很长很长很长很长的一句没有停顿。末"
    parts = divided(Passage("d", "标题", text), longest=10)
    assert [part.text for part in parts] == ["第一句。第二句话！", "很长很长很长很长的一", "句没有停顿。末"]
    assert ids(parts) == ["d", "d#2", "d#3"] and {part.title for part in parts} == {"标题"}
    assert [part.text for part in divided(Passage("d", "", "甲乙丙丁。戊己庚辛。壬。"), longest=7)] == [
        "甲乙丙丁。",
        "戊己庚辛。壬。",
    ]


def test_every_fault_of_a_corpus_is_told(tmp_path: Path) -> None:
    lines = ['{"text": "好。", "id": "a"}', '{"title": "no text"}', '{"text": "又。", "id": "a"}', "{"]
    (tmp_path / "c.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "gbk.txt").write_bytes("绿茶".encode("gbk"))
    with pytest.raises(DataFaults) as raised:
        read_corpus(str(tmp_path))
    told = str(raised.value).splitlines()
    assert len(told) == 4
    lines_at, text_at = tmp_path / "c.jsonl", tmp_path / "gbk.txt"
    assert told[0].startswith(f"{lines_at}:2: text: missing, empty or not text")
    assert told[1] == f"{lines_at}:3: id: 'a' is the id of another document too"
    assert told[2].startswith(f"{lines_at}:4: not JSON")
    assert told[3].startswith(f"{text_at}: not UTF-8 at byte")


def test_half_a_character_in_a_corpus_is_told(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"text": "好\\ud83d"}\n{"text": "好", "title": "\\ude00"}\n', encoding="utf-8")
    with pytest.raises(DataFaults) as raised:
        read_corpus(str(tmp_path))
    assert [(fault.line, fault.field) for fault in raised.value.faults] == [(1, "text"), (2, "title")]
    assert "c.jsonl:1: text: holds half a character" in str(raised.value)


def test_files_of_other_kinds_are_passed_over_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a.txt", "b.md", "c.docx", ".hidden"):
        (tmp_path / name).write_text("绿茶。", encoding="utf-8")
    assert len(read_corpus(str(tmp_path))) == 1
    assert "2 files are passed over" in caplog.text and "b.md" in caplog.text
    caplog.clear()
    (tmp_path / "b.md").unlink()
    (tmp_path / "c.docx").unlink()
    read_corpus(str(tmp_path))
    assert not caplog.text


def test_no_name_is_no_corpus() -> None:
    with pytest.raises(FileNotFoundError, match="names nothing"):
        read_corpus("")


def test_an_absent_or_empty_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist; give a folder of"):
        read_corpus(str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"holds no \*\.txt"):
        read_corpus(str(tmp_path))
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(DataFaults, match="holds no text"):
        read_corpus(str(tmp_path))


# Retrievers


def test_words_are_the_same_in_question_and_passage_whatever_their_width_and_case() -> None:
    assert words("ＣＹ－Ｔ３ 帐篷") == words("cy-t3，帐篷！") == ["cy", "t3", "帐篷"]
    # A name that no dictionary has, where a guess at words takes its neighbour for a part of it.
    assert set(words("澄野")) <= set(words("老澄野好用吗"))


def test_bm25_ranks_as_its_formula_does() -> None:
    """idf = ln(1 + (N - df + 0.5) / (df + 0.5)); weight = tf / (tf + 1.5 (1 - 0.75 + 0.75 length / mean length))."""
    texts = [words(passage.content) for passage in CORPUS]
    mean = sum(map(len, texts)) / len(texts)

    def score(asked: list[str], text: list[str]) -> float:
        total = 0.0
        for word in asked:
            df, tf = sum(word in one for one in texts), text.count(word)
            idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            total += idf * tf / (tf + 1.5 * (0.25 + 0.75 * len(text) / mean))
        return total

    bm25 = Bm25(CORPUS)
    for query in ("登山杖怎么用", "海尔集团总部在哪个城市", "LED灯省电吗"):
        scores = [score(words(query), text) for text in texts]
        order = sorted(range(len(texts)), key=lambda row: -scores[row])
        wanted = [CORPUS[row].id for row in order[:5] if scores[row] > 0]
        assert ids(bm25.search([query], 5)[0]) == wanted


def test_a_query_without_a_shared_word_finds_nothing() -> None:
    assert Bm25(CORPUS).search(["zzz", "", "？！"], 3) == [[], [], []]


def test_bm25_finds_what_the_sample_asks_about() -> None:
    asked = [question for question in read_questions("sample") if question.task in ("BC", "CC", "IDC")]
    asked = [question for question in asked if "候选" not in question.prompt]
    found = Bm25(CORPUS).search([search_text(question) for question in asked], 3)
    texts = ["".join(passage.content for passage in one) for one in found]
    named = [question for question in asked if question.task != "IDC"]
    for question, text in zip(asked, texts, strict=True):
        if question in named:
            name = search_text(question).removeprefix("商品")[:2]
            assert name in text, question.prompt
    answered = [question.gt in text for question, text in zip(asked, texts, strict=True) if question.task == "IDC"]
    assert sum(answered) >= 12  # of 15; the others are worded otherwise there


def test_dense_ranks_by_cosine(embedder: Embedder) -> None:
    some = CORPUS[:12]
    vectors, query = embedder.embed([one.content for one in some]), "camping 帐篷"
    cosines = vectors @ embedder.embed([query])[0]
    wanted = [some[row].id for row in np.argsort(-cosines)[:4]]
    assert ids(Dense(some, embedder).search(["x", query], 4)[1]) == wanted


def test_vectors_are_stored_and_found_again(embedder: Embedder, tmp_path: Path) -> None:
    some = CORPUS[:6]
    first = Dense(some, embedder, tmp_path).search(["茶"], 3)
    (stored,) = tmp_path.iterdir()
    written = stored.stat().st_mtime_ns
    assert Dense(some, embedder, tmp_path).search(["茶"], 3) == first
    assert stored.stat().st_mtime_ns == written
    Dense(CORPUS[:7], embedder, tmp_path)  # another corpus is another file
    assert len(list(tmp_path.iterdir())) == 2


def test_fusion_by_hand() -> None:
    """a: 1/61 + 1/63, b: 1/62 + 1/61, c: 1/63, d: 1/62."""
    first, second = passages("a", "b", "c"), passages("b", "d", "a")
    assert ids(fuse([first, second], 3)) == ["b", "a", "d"]
    assert ids(fuse([passages("x"), passages("y")], 5)) == ["x", "y"]
    # Third in both is more than first in one: 2/63 > 1/61
    assert ids(fuse([passages("x", "a", "b"), passages("y", "c", "b")], 1)) == ["b"]


def test_both_is_the_fusion_of_bm25_and_dense(embedder: Embedder) -> None:
    both = make_retriever("both", CORPUS, embedder)
    assert isinstance(both, Fused)
    query = "露营帐篷"
    parts = [Bm25(CORPUS).search([query], 100)[0], Dense(CORPUS, embedder).search([query], 100)[0]]
    assert both.search([query], 4)[0] == fuse(parts, 4)


def test_embeddings_need_an_encoder() -> None:
    assert isinstance(make_retriever("bm25", CORPUS), Bm25)
    with pytest.raises(ValueError, match="'dense' needs a sentence encoder"):
        make_retriever("dense", CORPUS)


def test_another_corpus_has_another_fingerprint() -> None:
    assert corpus_fingerprint(passages("a", "b")) != corpus_fingerprint(passages("a", "c"))
    assert corpus_fingerprint(passages("a")) == corpus_fingerprint(passages("a"))


# Passages in the prompt


def test_passages_are_kept_while_they_fit() -> None:
    found = passages("a", "b", "c", "d")
    assert ids(within(found, [4, 9, 4, 1], budget=8)) == ["a", "c"]  # b is too long, c fits, then nothing is left
    assert within(found, [9, 9, 9, 9], budget=8) == []


def test_a_question_keeps_its_id_and_its_words_behind_the_passages() -> None:
    questions = [question for question in read_questions("sample") if question.task == "BC"]
    made = augment(questions, Bm25(CORPUS), lambda texts: [len(text) for text in texts], k=3, budget=150)
    contents = {passage.id: passage.content for passage in CORPUS}
    for plain, shown in zip(questions, made.questions, strict=True):
        assert shown.id == plain.id and shown.system_prompt == plain.system_prompt
        assert shown.prompt.endswith("\n" + plain.prompt)
        named = made.retrieved[plain.id]
        assert 1 <= len(named) <= 3 and sum(len(contents[name]) for name in named) <= 150
        for number, name in enumerate(named, 1):
            assert f"[{number}] {contents[name]}\n" in shown.prompt


def test_without_passages_the_prompt_is_the_plain_one() -> None:
    assert with_passages("问？", []) == "问？"


def test_markers_and_cues_are_not_searched_for() -> None:
    tasks = {question.task: search_text(question) for question in read_questions("sample")}
    assert tasks["BC"] == "穗和粮坊的大米产自哪个省份？"
    assert tasks["CC"] == "商品镜湖光学 JH-1021是天文望远镜吗？"
    assert tasks["IDC"] == "传统做法点豆腐时常用的两种凝固剂是什么？"
    assert "答案" not in tasks["RVC"]


class Counting:
    """A generator whose template takes 4 tokens, and that reads a token a word."""

    name, facts, context = "counting", {}, None

    def __init__(self, knows: bool) -> None:
        self.knows = knows

    def prompt_tokens(self, chats: Any) -> list[int] | None:
        return [4 + len(one.messages[-1].content.split()) for one in chats] if self.knows else None


def test_tokens_are_counted_without_the_template_or_by_character() -> None:
    assert token_counter(Counting(True))(["a b c", ""]) == [3, 0]  # type: ignore[arg-type]
    assert token_counter(Counting(False))(["a b c", ""]) == [5, 0]  # type: ignore[arg-type]


# What retrieval brings


def test_gain_by_hand() -> None:
    assert gain(40.0, 50.0).absolute == 10.0 and gain(40.0, 50.0).relative == 25.0
    assert gain(80.0, 60.0).relative == -25.0
    assert gain(0.0, 10.0).relative is None


def test_published_gains() -> None:
    """The paper names 27.9 points for Qwen2.5-14B and, from figures less rounded, 10.44 % for DeepSeek-V3."""
    with (PUBLISHED / "rag.csv").open(encoding="utf-8") as file:
        rows = {(row["model"], row["setting"]): row for row in csv.DictReader(file)}

    def of(model: str) -> list[float]:
        return [np.mean([float(rows[model, setting][task]) for task in ("BC", "CC")]) for setting in ("plain", "rag")]

    assert gain(*of("Qwen2.5-14b-instruct")).absolute == pytest.approx(27.9)
    assert gain(*of("DeepSeek-V3")).relative == pytest.approx(10.44, abs=0.05)


def test_sides_are_compared_question_by_question_and_averaged_over_sub_concepts() -> None:
    def lines(**right: Any) -> list[dict[str, Any]]:
        return [{"id": name, "task": name[:2], "correct": value} for name, value in right.items()]

    plain = lines(BC1=True, BC2=False, BC3=False, BC4=False, CC1=True, CC2=False, AC1=True)
    rag = lines(BC1=True, BC2=True, BC3=True, BC4=False, CC1=False, CC2=False)
    found = compare(plain, rag)
    assert list(found) == ["BC", "CC", "average"]
    assert (found["BC"].plain, found["BC"].rag, found["BC"].relative) == (25, 75, 200)
    assert (found["CC"].plain, found["CC"].rag, found["CC"].absolute) == (50, 0, -50)
    assert (found["average"].plain, found["average"].rag) == (37.5, 37.5)
    with pytest.raises(ValueError, match="1 questions were not asked without retrieval, first CC9"):
        compare(plain, [*rag, *lines(CC9=True)])
    with pytest.raises(ValueError, match="no question was asked with retrieval"):
        compare(plain, [])


def test_the_sample_corpus_is_whole() -> None:
    assert len(CORPUS) >= 60 and json.dumps(ids(CORPUS))
    assert max(len(passage.text) for passage in CORPUS) <= 400
