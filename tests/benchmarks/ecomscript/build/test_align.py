"""Alignment: what a plain computation over all intents finds, by either rule of averaging, exact or approximate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console
from tiny import tiny_checkpoint

from benchmarks.ecomscript.build import align as module
from benchmarks.ecomscript.build.align import Aligner, Approximate, Exact, kept, ranked, write_approximate
from benchmarks.ecomscript.build.config import AlignConfig, Averaging
from benchmarks.ecomscript.build.index import MEANS, WORDS, Words, build_index, index_words, means_of
from benchmarks.ecomscript.build.mining import INTENT_SCHEMA
from benchmarks.ecomscript.build.pilot import sample_catalogue
from benchmarks.ecomscript.build.stages import Stage
from benchmarks.ecomscript.build.tables import Rows, write_table
from models.checkpoint import resolve
from models.embedding import Embedder

RULES: tuple[Averaging, ...] = ("mean_of_cosines", "cosine_of_mean")


def unit(*numbers: float) -> NDArray[np.float32]:
    vector = np.array(numbers, np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def table(folder: Path, products: Sequence[dict[str, Any]]) -> Rows:
    write_table(folder / "intents.parquet", list(products), INTENT_SCHEMA)
    return Rows(folder / "intents.parquet")


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    return Embedder(resolve(str(tiny_checkpoint(tmp_path_factory.mktemp("bert") / "tiny", "bert"))))


@pytest.mark.parametrize("averaging", RULES)
def test_alignment_on_the_sample_is_that_of_a_plain_computation(
    tmp_path: Path, embedder: Embedder, averaging: Averaging
) -> None:
    """Every intent of every candidate by itself, in float64, for every eighth step of the sample."""
    steps, products = sample_catalogue()
    source, steps = table(tmp_path, products), steps[::8]
    stage = Stage(tmp_path / "index", {}, Console(quiet=True))
    build_index(stage, source, lambda: embedder, chunk=100)
    config = AlignConfig(averaging=averaging, candidates=60, threshold=0.9)
    words = Words(stage.path / WORDS)
    means = np.load(stage.path / MEANS, mmap_mode="r")
    aligner = Aligner(Exact(means, averaging), words, embedder, source.column("id"), config)
    keywords = [[word for word in step.text.split() if len(word) > 4][:3] for step in steps]
    script = {
        "id": "s",
        "product": "p",
        "goal": "g",
        "steps": [step.text for step in steps],
        "needs": [bool(own) for own in keywords],
        "keywords": keywords,
    }
    (made,) = aligner.work([script]).rows

    vectors = np.concatenate([np.load(part) for part in sorted(stage.parts.iterdir())]).astype(np.float64)
    ends = np.cumsum([len(product["intents"]) for product in products])
    needed = embedder.embed([step.text for step, own in zip(steps, keywords, strict=True) if own]).astype(np.float64)
    queries, lengths = iter(needed), set()
    for own, found, count in zip(keywords, made["products"], made["candidates"], strict=True):
        if not own:
            assert (found, count) == ([], None)
            continue
        query, candidates = next(queries), words.search(own, 60)
        assert count == len(candidates)
        expected = []
        for row in candidates:
            intents = vectors[ends[row] - len(products[row]["intents"]) : ends[row]]
            if averaging == "mean_of_cosines":
                similarity = float(np.mean([intent @ query for intent in intents]))
            else:
                mean = intents.mean(axis=0)
                similarity = float(mean @ query / np.sqrt(mean @ mean))
            expected.append((-similarity, row))
        best = [(row, -negative) for negative, row in sorted(expected)[:3] if -negative >= 0.9]
        assert [hit["similarity"] for hit in found] == pytest.approx([similarity for _, similarity in best], abs=1e-6)
        assert [row for row, _ in best] == [hit["row"] for hit in found]
        assert all(products[hit["row"]]["id"] == hit["product"] for hit in found)
        lengths.add(len(found))
    assert lengths >= {0, 3}


def test_the_two_rules_differ_where_intents_differ() -> None:
    # One product's intents agree (cosine 0.6 each), the other's do not (0.96 and 0.28, mean 0.62).
    step = unit(1, 0)
    agreeing = np.stack([unit(0.6, 0.8), unit(0.6, 0.8)])
    parted = np.stack([unit(0.96, 0.28), unit(0.28, -0.96)])
    means = means_of(np.concatenate([agreeing, parted]), np.array([2, 2]))
    (by_mean,) = Exact(means, "mean_of_cosines").everywhere(step[None], 2)
    (by_vector,) = Exact(means, "cosine_of_mean").everywhere(step[None], 2)
    assert by_mean == [(1, 0.62), (0, 0.6)]
    # The mean of two orthogonal vectors has length 1 / sqrt(2): 0.62 * sqrt(2) = 0.876812.
    assert by_vector == [(1, 0.876812), (0, 0.6)]
    # Where a single intent is meant, the rules agree.
    one = means_of(parted, np.array([1, 1]))
    assert Exact(one, "mean_of_cosines").everywhere(step[None], 2) == [[(0, 0.96), (1, 0.28)]]
    assert Exact(one, "cosine_of_mean").everywhere(step[None], 2) == [[(0, 0.96), (1, 0.28)]]


def test_rules_may_rank_in_opposite_order() -> None:
    step = unit(1, 0)
    steady, torn = [unit(0.7, 0.71414284)] * 2, [unit(0.9, 0.4358899), unit(0.3, -0.9539392)]
    means = means_of(np.stack([*steady, *torn]), np.array([2, 2]))
    orders = [[row for row, _ in Exact(means, rule).everywhere(step[None], 2)[0]] for rule in RULES]
    assert orders == [[0, 1], [1, 0]]


def test_a_similarity_on_the_threshold_is_kept() -> None:
    query, means = unit(1, 0), np.stack([unit(0.45, np.sqrt(1 - 0.45**2)), unit(0.4499, np.sqrt(1 - 0.4499**2))])
    assert float(means[0] @ query) != 0.45  # float32 does not hit it
    (hits,) = Exact(means, "mean_of_cosines").everywhere(query[None], 3)
    assert hits == [(0, 0.45), (1, 0.4499)]
    assert kept(hits, 0.45) == [(0, 0.45)] and kept(hits, 0.450001) == []


def test_equal_products_come_in_the_order_of_the_catalogue() -> None:
    means = np.stack([unit(1, 2), unit(1, 0), unit(1, 0), unit(1, 0), unit(1, 0)])
    for search in (Exact(means, "cosine_of_mean"),):
        assert [row for row, _ in search.everywhere(unit(1, 0)[None], 3)[0]] == [1, 2, 3]
        assert [row for row, _ in search.among(unit(1, 0), np.array([0, 2, 4]), 2)] == [2, 4]
        assert search.among(unit(1, 0), np.array([], np.int64), 2) == []
    assert ranked(np.array([0.5, 0.5, 0.7], np.float32), np.array([8, 2, -1]), 3) == [(2, 0.5), (8, 0.5)]


def random_means(count: int, dimension: int = 16) -> NDArray[np.float32]:
    """Means of vectors that crowd around some directions, as those of real texts do."""
    chance = np.random.default_rng(0)
    centres = chance.standard_normal((20, dimension))
    vectors = centres[chance.integers(20, size=count)] + 0.3 * chance.standard_normal((count, dimension))
    return (0.8 * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    means, queries = random_means(500), random_means(9) / np.float32(0.8)
    whole = Exact(means, "cosine_of_mean").everywhere(queries, 3)
    monkeypatch.setattr(module, "BLOCK", 7)  # fewer than are asked for
    assert Exact(means, "cosine_of_mean").everywhere(queries, 3) == whole
    scores = queries @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
    assert [[row for row, _ in hits] for hits in whole] == np.argsort(-scores, axis=1)[:, :3].tolist()


@pytest.mark.parametrize("averaging", RULES)
def test_the_approximate_index_finds_what_exact_search_finds_when_it_looks_everywhere(
    tmp_path: Path, averaging: Averaging
) -> None:
    means, queries = random_means(3000), random_means(20) / np.float32(0.8)
    write_approximate(means, averaging, tmp_path / "i.faiss")
    exact, all_lists, few = Exact(means, averaging), *(Approximate(tmp_path / "i.faiss", n) for n in (10_000, 2))
    assert all_lists.everywhere(queries, 3) == exact.everywhere(queries, 3)
    rows = np.arange(0, 3000, 11)
    for query in queries:
        assert all_lists.among(query, rows, 3) == exact.among(query, rows, 3)
    near = zip(few.everywhere(queries, 3), exact.everywhere(queries, 3), strict=True)
    shared = sum(len({*a} & {*b}) for a, b in near)
    assert 30 < shared < 60  # most, but not all of them


def test_an_approximate_index_of_a_few_products_has_one_list(tmp_path: Path) -> None:
    means = random_means(12)
    write_approximate(means, "mean_of_cosines", tmp_path / "i.faiss")
    search = Approximate(tmp_path / "i.faiss", 32)
    assert search.probes == 1
    assert search.everywhere(means[:2], 20) == Exact(means, "mean_of_cosines").everywhere(means[:2], 20)


def test_words_find_by_stems_in_every_field_all_words_of_one_keyword(tmp_path: Path) -> None:
    def product(title: str, **more: Any) -> dict[str, Any]:
        return {"id": title, "title": title, "intents": ["because"], **more}

    source = table(
        tmp_path,
        [
            product("String Lights"),
            product("Fairy chain", features=["warm", "lights for gardens"]),
            product("Rope", description="Strings of hemp"),
            product("Lamp", category="Garden lighting"),
            product("AND"),
        ],
    )
    index_words(source, tmp_path / WORDS)
    words = Words(tmp_path / WORDS)
    assert words.search(["string light"], 9) == [0]
    assert sorted(words.search(["garden", "rope"], 9)) == [1, 2, 3]
    assert sorted(words.search(["light"], 9)) == [0, 1, 3]
    assert words.search(["light"], 1) in ([0], [1], [3]) and words.search(["umbrella"], 9) == []
    # What a model may write is no query language.
    assert words.search(['"; DROP', "(", "AND", "NEAR(a b)"], 9) == [4]
    assert words.search(["?!"], 9) == words.search([], 9) == []


def test_steps_without_need_or_candidates_have_no_products(tmp_path: Path, embedder: Embedder) -> None:
    source = table(tmp_path, [{"id": "a", "title": "Lamp", "intents": ["because they want to see"]}])
    index_words(source, tmp_path / WORDS)
    means = embedder.embed(["see"])
    script = {
        "id": "s",
        "product": "p",
        "goal": "g",
        "steps": ["Rest", "Light up", "Dig"],
        "needs": [False, True, True],
        "keywords": [[], ["lamp"], ["spade"]],
    }
    search, words, ids = Exact(means, "cosine_of_mean"), Words(tmp_path / WORDS), source.column("id")
    for threshold, outcome in ((-1.0, "with products"), (1.1, "without a product at the threshold")):
        made = Aligner(search, words, embedder, ids, AlignConfig(threshold=threshold)).work([script])
        (row,) = made.rows
        assert row["candidates"] == [None, 1, 0]
        assert [len(found) for found in row["products"]] == [0, int(threshold < 0), 0]
        assert made.counts == {f"steps {outcome}": 1, "steps without candidates": 1}
        assert "keywords" not in row
    aligner = Aligner(search, words, embedder, ids, AlignConfig(threshold=-1.0, among="all"))
    (row,) = aligner.work([script]).rows
    assert row["candidates"] == [None, 1, 1] and [len(found) for found in row["products"]] == [0, 1, 1]
    assert aligner.work([{**script, "needs": [False] * 3}]).rows[0]["products"] == [[], [], []]


def test_means_are_those_of_each_products_own_intents(tmp_path: Path, embedder: Embedder) -> None:
    intents = [
        ["because a b"],
        ["because they want to c", "because d", "because they want to e f"],
        ["because g", "because h"],
    ]
    source = table(tmp_path, [{"id": str(k), "title": "t", "intents": own} for k, own in enumerate(intents)])
    stage = Stage(tmp_path / "index", {}, Console(quiet=True))
    build_index(stage, source, lambda: embedder, chunk=2)
    means = np.load(stage.path / MEANS)
    texts = [["a b"], ["c", "d", "e f"], ["g", "h"]]
    expected = [np.mean([embedder.embed([text])[0] for text in own], axis=0) for own in texts]
    np.testing.assert_allclose(means, expected, atol=1e-6)
    # The vectors of all intents stay, part by part.
    assert [np.load(path).shape for path in sorted(stage.parts.iterdir())] == [(4, 32), (2, 32)]
    assert stage.manifest["intents"] == 6
