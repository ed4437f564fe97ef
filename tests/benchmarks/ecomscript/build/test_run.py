"""The whole construction with a writer who can be foreseen: from files to judgment sets, stopped and gone on."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from plan_writer import GOALS, IDLE, INTENTS, THINGS, reply, write_shop
from scripted import Scripted
from tiny import tiny_checkpoint

from benchmarks.ecomscript.build import run
from benchmarks.ecomscript.build.config import AlignConfig, AnnotationConfig, EcomScriptBuildConfig, StageName
from benchmarks.ecomscript.build.run import STAGES, build, followers
from benchmarks.ecomscript.build.shop import sample_products
from benchmarks.ecomscript.build.shop import write_shop as write_sample
from benchmarks.ecomscript.build.tables import Rows
from models.generation import Found


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    scripted = Scripted(reply)
    monkeypatch.setattr(run, "find_generator", lambda *_: Found(scripted.name, scripted.facts, lambda: scripted))
    return scripted


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_checkpoint(tmp_path_factory.mktemp("encoder") / "tiny", "bert"))


@pytest.fixture
def config(tmp_path: Path, encoder: str) -> EcomScriptBuildConfig:
    metadata, reviews = write_shop(tmp_path / "shop")
    return EcomScriptBuildConfig(
        [metadata],
        [reviews],
        "http://localhost:1/v1#writer",
        intents_per_product=INTENTS,
        align=AlignConfig(embedder=encoder, threshold=-1.0),
        annotation=AnnotationConfig(items=20, votes=3, train=0.5, validation=0.25, test=0.25),
        chunk=3,
        threads=1,
        out=str(tmp_path / "out"),
    )


def rows(config: EcomScriptBuildConfig, name: str) -> list[dict[str, Any]]:
    table = Rows(Path(config.out) / f"{name}.parquet")
    return table.read(0, len(table))


def manifest(config: EcomScriptBuildConfig, stage: StageName) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(config.out) / stage / "manifest.json").read_text())
    return found


def vote(config: EcomScriptBuildConfig) -> None:
    """Fill in the sheets: yes to every other item, all agreed."""
    for path in (Path(config.out) / "sheets").glob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as file:
            found = list(csv.DictReader(file))
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            table = csv.DictWriter(file, found[0])
            table.writeheader()
            for k, row in enumerate(found):
                table.writerow({**row, **{f"vote_{n}": ("yes", "no")[k % 2] for n in (1, 2, 3)}})


def test_a_catalogue_and_its_reviews_become_judgment_sets(config: EcomScriptBuildConfig, writer: Scripted) -> None:
    assert not build(config)  # people are asked first
    scripts = rows(config, "align/align")
    # Ten reviews, two of each goal; nobody plans how to grow vegetables.
    assert [row["goal"] for row in scripts] == [
        f"{goal}{number}" for number in ("", " 1") for key, (goal, _) in GOALS.items() if key != "bed"
    ]
    for row in scripts:
        things = next(things for goal, things in GOALS.values() if row["goal"].startswith(goal))
        assert row["steps"] == [IDLE, *(THINGS[thing][1] for thing in things)] and row["needs"] == [False, True, True]
        for thing, found in zip(things, row["products"][1:], strict=True):
            kinds = {hit["product"].split("-")[0] for hit in found}
            assert kinds <= ({"rope", "spade"} if thing == "rope" else {thing}) and len(found) >= 2
    kept = {stage: manifest(config, stage)["kept"] for stage in STAGES[1:8]}
    assert kept == {"goals": 10, "scripts": 8, "needs": 8, "intents": 20, "keywords": 8, "index": 20, "align": 8}
    assert manifest(config, "scripts")["rejected"] == {"it holds no JSON": 2}
    (reject, _) = rows(config, "scripts/rejects")
    assert reject["reply"] == "I would rather not."
    vote(config)
    assert build(config)
    sets = manifest(config, "annotate")["sets"]
    assert {name: about["labelled"] for name, about in sets.items()} == {
        "script_verify": 8,
        "step_product": 20,
        "holistic_verify": 8,
    }
    assert sets["step_product"]["fleiss"]["kappa"] == 1.0


def test_each_manifest_says_what_its_stage_was_made_from(config: EcomScriptBuildConfig, writer: Scripted) -> None:
    build(replace(config, until="needs"))
    goals, needs = manifest(config, "goals"), manifest(config, "needs")
    assert goals["identity"]["inputs"]["ingest"] == {
        name: about["sha256"] for name, about in manifest(config, "ingest")["files"].items()
    }
    assert needs["identity"]["generator"] == {"served": "scripted"} and needs["identity"]["chunk"] == 3
    assert needs["identity"]["writing"]["temperature"] == 0.7 and needs["tokens"] > 0
    assert needs["identity"]["prompt"] != goals["identity"]["prompt"]
    told = "".join(path.read_text() for path in Path(config.out).glob("*/manifest.json"))
    assert config.out not in told and "localhost" not in told
    assert not (Path(config.out) / "intents").exists()


def contents(folder: Path) -> dict[str, bytes]:
    """What a construction has made, without what it cost."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "manifest.json":
            found[name] = json.dumps({**json.loads(path.read_text()), "cost": None}).encode()
        elif path.is_file() and not path.name.startswith(".") and path.suffix != ".sqlite":
            found[name] = path.read_bytes()
    return found


@pytest.mark.parametrize("most", [0, 5, 14, 25, 40, 52])
def test_a_killed_construction_goes_on_to_the_same_files(
    config: EcomScriptBuildConfig, writer: Scripted, tmp_path: Path, most: int
) -> None:
    build(config)
    whole = len(writer.asked)
    writer.asked.clear()
    writer.most = most
    killed = replace(config, out=str(tmp_path / "killed"))
    with pytest.raises(KeyboardInterrupt):
        build(killed)
    writer.most = None
    build(killed)
    assert contents(tmp_path / "killed") == contents(tmp_path / "out")
    assert len(writer.asked) <= whole + 3 * 3  # three rows at a time, each with two repairs


def test_alignment_that_was_stopped_goes_on(
    config: EcomScriptBuildConfig, writer: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(config)
    for name, at in (("embed", 4), ("embed", 8)):
        real, calls = run.Embedder.embed, []

        def mortal(self: Any, *given: Any, real: Callable[..., Any] = real, at: int = at, calls: Any = calls) -> Any:
            calls.append(given)
            if len(calls) == at:
                raise KeyboardInterrupt
            return real(self, *given)

        monkeypatch.setattr(run.Embedder, name, mortal)
        killed = replace(config, out=str(tmp_path / f"killed-{at}"))
        with pytest.raises(KeyboardInterrupt):
            build(killed)
        monkeypatch.setattr(run.Embedder, name, real)
        build(killed)
        assert contents(tmp_path / f"killed-{at}") == contents(tmp_path / "out")


def test_both_indexes_find_the_same_where_everything_is_looked_at(
    config: EcomScriptBuildConfig, writer: Scripted, tmp_path: Path
) -> None:
    found = []
    for index in ("exact", "approximate"):
        align = replace(config.align, index=index, among="all")
        build(replace(config, align=align, until="align", out=str(tmp_path / index)))
        found.append(rows(replace(config, out=str(tmp_path / index)), "align/align"))
    assert found[0] == found[1]
    assert {len(step) for row in found[0] for step in row["products"]} == {0, 3}


def test_it_is_said_how_many_answers_came_from_the_cache(
    config: EcomScriptBuildConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Recalling(Scripted):
        recalled = 0

        def generate(self, *arguments: Any, **options: Any) -> Any:
            self.recalled += self.recalled < 3
            return super().generate(*arguments, **options)

    writer = Recalling(reply)
    monkeypatch.setattr(run, "find_generator", lambda *_: Found(writer.name, writer.facts, lambda: writer))
    build(replace(config, until="scripts"))
    said = capsys.readouterr().err
    assert "goals: 3 answers come from the cache of served answers" in said
    assert said.count("answers come from the cache") == 1  # those of goals are not counted again with scripts


def test_what_is_changed_is_made_anew_with_all_that_follows_and_nothing_else(
    config: EcomScriptBuildConfig, writer: Scripted, tmp_path: Path
) -> None:
    build(config)
    before = contents(tmp_path / "out")
    other = replace(config, keywords=1)
    with pytest.raises(ValueError, match=r"keywords was made from something else: keywords is 5 there and 1 here"):
        build(other)
    writer.asked.clear()
    build(replace(other, redo="keywords"))
    assert all(chat.messages[0].content.startswith("You name 1 to") for chat in writer.asked)
    after = contents(tmp_path / "out")
    changed = {name.partition("/")[0] for name in after if after[name] != before.get(name)}
    assert changed == {"keywords", "align", "sample", "sheets"}  # annotate has not begun without votes
    assert followers("needs") == ["needs", "keywords", "align", "sample", "annotate"]
    assert followers("intents") == ["intents", "index", "align", "sample", "annotate"]
    assert followers("ingest") == list(STAGES)


def test_votes_are_never_lost(config: EcomScriptBuildConfig, writer: Scripted, tmp_path: Path) -> None:
    build(config)
    vote(config)
    sheet = tmp_path / "out" / "sheets" / "step_product.csv"
    before = sheet.read_bytes()
    assert build(config) and build(replace(config, redo="annotate"))
    with pytest.raises(ValueError, match="is no item of this sample"):  # another sample than people have seen
        build(replace(config, redo="sample", annotation=replace(config.annotation, items=4)))
    assert sheet.read_bytes() == before


def test_one_construction_at_a_time(config: EcomScriptBuildConfig, writer: Scripted, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with FileLock(tmp_path / "out" / ".lock"), pytest.raises(ValueError, match="another construction is at work"):
        build(config)


def test_a_model_that_writes_nothing_of_use_ends_the_construction_in_words(
    config: EcomScriptBuildConfig, writer: Scripted
) -> None:
    writer.reply = lambda _: "Sorry."
    with pytest.raises(ValueError, match=r"goals: none of 10 rows could be used \(10 times: it holds no JSON\)"):
        build(config)


def test_the_sample_can_be_built_from(tmp_path: Path, writer: Scripted, config: EcomScriptBuildConfig) -> None:
    build(replace(config, metadata=["sample"], reviews=["sample"], until="ingest"))
    products = rows(config, "ingest/products")
    assert [row["id"] for row in products] == [name for name, _, _ in sample_products()]
    reviews = rows(config, "ingest/reviews")
    assert 300 < len(reviews) < 500
    assert all("{" not in row["text"] for row in reviews)
    write_sample(tmp_path / "again")
    for name in ("meta_sample.jsonl", "sample.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / "sample" / name).read_bytes()


@pytest.mark.parametrize(
    ("made", "table", "following"),
    [("goals", "goals.parquet", "scripts"), ("index", "means.npy", "align"), ("intents", "intents.parquet", "sample")],
)
def test_a_table_that_was_cut_since_is_named_before_anything_is_made_of_it(
    config: EcomScriptBuildConfig, writer: Scripted, made: StageName, table: str, following: StageName
) -> None:
    build(replace(config, until=STAGES[STAGES.index(following) - 1]))
    path = Path(config.out) / made / table
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=rf"{path} is not what the stage made.*--redo {made}"):
        build(replace(config, until=following))
    assert not (Path(config.out) / following).exists()


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:5000])])
def test_a_word_index_that_cannot_be_read_is_named(
    config: EcomScriptBuildConfig, writer: Scripted, spoil: Callable[[Path], Any]
) -> None:
    build(replace(config, until="index"))
    spoil(Path(config.out) / "index" / "catalogue.sqlite")
    with pytest.raises(ValueError, match=r"catalogue\.sqlite cannot be read .*--redo index"):
        build(replace(config, until="align"))
