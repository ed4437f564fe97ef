"""Construction, stage by stage, and the same bytes whatever process or machine builds."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from errands import LAMP
from scripted import Scripted

from benchmarks.ecomagent.build import features, llm, phrases, vouchers
from benchmarks.ecomagent.build.assemble import Assembler, Dropped, Settings, Shop, refused
from benchmarks.ecomagent.build.config import EcomAgentBuildConfig
from benchmarks.ecomagent.build.features import Feature, choose, extract, is_clean, price_cap
from benchmarks.ecomagent.build.gates import word_faults
from benchmarks.ecomagent.build.intents import INTENTS
from benchmarks.ecomagent.build.judging import JudgeGate
from benchmarks.ecomagent.build.kinds import Kinds
from benchmarks.ecomagent.build.llm import LanguageModel, anchored
from benchmarks.ecomagent.build.negatives import negate
from benchmarks.ecomagent.build.opinions import opinions
from benchmarks.ecomagent.build.partition import split
from benchmarks.ecomagent.build.plan import Plan, Words
from benchmarks.ecomagent.build.run import build
from benchmarks.ecomagent.build.template import Templates
from benchmarks.ecomagent.catalogue import Catalogue, Review
from benchmarks.ecomagent.fields import CANONICAL
from benchmarks.ecomagent.sample.build import sample_catalogue
from benchmarks.ecomagent.tasks import INTENTS as INTENT_NAMES
from benchmarks.ecomagent.tasks import Task, read_tasks
from benchmarks.ecomagent.wording import find
from models.generation import Chat

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue(sample_catalogue())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "tasks"
    build(EcomAgentBuildConfig(tasks=2, out=str(out)))
    return out


@pytest.fixture(scope="module")
def tasks(built: Path) -> list[Task]:
    return read_tasks(built / "tasks.jsonl")


# Features


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x" * 121,
        "Blue See more",
        "www.shop.example",
        "Tom &amp; Jerry",
        "Home › Kitchen",
        "B0ABCDEFGH",
        "Black-A01",
        "Blue 🌊",
        "12345",
        "Red Red Red",
        "not TPU)",
        "No",
        "4*Charger+4*6FT Cable",
        "V30+",
    ],
)
def test_values_that_no_shopper_would_ask_for_are_left_out(value: str) -> None:
    assert not is_clean(value, "Color")


def test_bare_numbers_are_values_of_few_attributes() -> None:
    assert is_clean("12", "Number of Items") and is_clean("6.7", "Screen Size")
    assert not is_clean("1", "Number of Items")  # a package of one is no wish


@pytest.mark.parametrize(
    ("price", "cap"), [(4.99, 5), (5.0, 10), (39.99, 40), (999.0, 1000), (1000.0, 1050), (1234, 1250)]
)
def test_a_price_is_asked_for_below_the_next_round_price(price: float, cap: int) -> None:
    assert price_cap(price) == cap


def test_ratings_are_asked_for_from_round_numbers_on() -> None:
    product = replace(LAMP, average_rating=4.3, rating_number=87, price=None)
    assert [feature.expected for feature in features.numeric(product)] == [{"min": 4.0}, {"min": 50}]
    few = replace(LAMP, average_rating=0.9, rating_number=9, price=None)
    assert list(features.numeric(few)) == []


def test_of_several_options_one_is_asked_for_and_other_names_are_understood() -> None:
    product = replace(LAMP, details={"Material Type": "Oak, Brass | Tin", "OS": "Linux, Windows", "Wattage": "8"})
    found = {feature.field: feature.expected for feature in extract(product, random.Random(1))}
    assert found["details.Material"] in ("Oak", "Brass", "Tin")
    assert found["details.Operating System"] == "Linux, Windows"  # not among the attributes with options
    assert "details.Wattage" not in found


def test_a_capacity_that_the_title_contradicts_or_another_repeats_is_left_out() -> None:
    details = {"RAM": "8 GB", "Memory Storage Capacity": "8 GB", "Hard Drive": "1 GB"}
    product = replace(LAMP, title="Phone 256GB / 8GB RAM", details=details)
    found = {feature.field for feature in extract(product, random.Random(1))}
    assert "details.RAM" in found
    assert not found & {"details.Memory Storage Capacity", "details.Hard Drive"}


def test_fields_that_were_used_least_come_first() -> None:
    every = [Feature(f"details.{name}", "attribute_match", "x", "x") for name in CANONICAL if name != "Brand"]
    used = {feature.field: 7 for feature in every} | {f"details.{name}": 0 for name in CANONICAL[1:6]}
    chosen = choose(every, INTENTS["product_search"], used, 6, random.Random(3))
    assert {feature.name for feature in chosen[:5]} == set(CANONICAL[1:6])
    assert len(chosen) == 6


def test_ratings_are_what_rating_quality_asks_for_and_coupons_leave_the_price_to_the_budget() -> None:
    for seed in range(20):
        rated = choose(extract(LAMP, random.Random(seed)), INTENTS["rating_quality"], {}, 4, random.Random(seed))
        assert {"average_rating", "rating_number"} <= {feature.field for feature in rated}
        priced = choose(extract(LAMP, random.Random(seed)), INTENTS["coupon_budget"], {}, 12, random.Random(seed))
        assert "price" not in {feature.field for feature in priced}


def test_an_exclusion_always_excludes_what_others_have_and_the_target_has_not() -> None:
    product = replace(LAMP, details={"Color": "Dark Blue", "Material": "Oak"})
    others = [replace(LAMP, id=color, details={"Color": color, "Material": "Oak"}) for color in ("Light Blue", "Red")]
    wanted = [Feature(f"details.{name}", "attribute_match", value, value) for name, value in product.details.items()]
    for seed in range(10):
        turned = negate(wanted, product, others, random.Random(seed))
        assert [(feature.type, feature.expected) for feature in turned] == [
            ("negative_attribute", ["Red"]),  # light blue is too near, and nobody has another material
            ("attribute_match", "Oak"),
        ]


def review(text: str, votes: int = 0, rating: float = 5.0) -> Review:
    return Review("B0LAMP0001", rating, "", text, votes, True, 0)


def test_opinions_are_what_buyers_said_of_the_product() -> None:
    told = [
        review("My sister bought it. The hinge stays firm for months.", 9),
        review("But it is heavy. It folds flat in a second.", 8),
        *(review("The light is warm, soft, even.", 0) for _ in range(8)),
        review("The hinge broke at once.", 99, rating=1.0),
    ]
    common = {"The light is warm, soft, even": 50}
    found = opinions(told, lambda statement: common.get(statement, 1), random.Random(0))
    claims = {feature.expected for feature in found}
    assert len(claims) == 2
    assert claims <= {
        "The hinge stays firm for months",
        "It folds flat in a second",
        "The light is warm, soft, even",
    }
    assert opinions(told[:9], lambda statement: 1, random.Random(0)) == []  # fewer than ten reviews


def test_vouchers_take_something_off_and_never_tell_the_price() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(400):
        price = random.Random(seed).uniform(5, 900)
        voucher = vouchers.draw(round(price, 2), random.Random(seed))
        kinds[voucher.discount_type] += 1
        assert voucher.price_after_voucher is not None and voucher.budget is not None
        assert 0.6 * price - 1 <= voucher.price_after_voucher < price
        assert voucher.price_after_voucher <= voucher.budget <= 1.08 * voucher.price_after_voucher + 0.011
        if voucher.tiers:
            first, second = voucher.tiers
            assert (first.threshold or 0) <= price < (second.threshold or 0)
    assert 120 < kinds["fixed"] + kinds["percentage"] < 280 and kinds["tiered"] > 50 and kinds["stacked"] > 50


def test_a_kind_is_what_categories_and_titles_call_a_product() -> None:
    office = replace(LAMP, title="Zweig Foldable Reading Lamp for Desks", categories=("Office", "Reading Lamps"))
    kind = Kinds([]).of(office)
    assert kind is not None and (kind.name, kind.span) == ("reading lamp", "Reading Lamp")
    shelf = [replace(LAMP, title=f"{name} Desk Clock, 20 cm") for name in ("Alba", "Brio", "Cado", "Dune")]
    kind = Kinds(shelf).of(shelf[0])
    assert kind is not None and (kind.name, kind.span) == ("desk clock", "Desk Clock")
    assert Kinds(shelf).of(replace(LAMP, title="Elba Egg Timer")) is None


# Sources


def wishes(*names: str) -> list[Feature]:
    return [Feature(f"details.{name}", "attribute_match", f"value {name}", f"value {name}") for name in names]


NAMES = (
    "Brand",
    "Color",
    "Style",
    "Material",
    "Scent",
    "Pattern",
    "Closure",
    "Shape",
    "Finish Type",
    "Number of Items",
)
MANY = wishes(*NAMES)
SEARCH = INTENTS["product_search"]


def anything(feature: Feature) -> bool:
    return True


def test_every_feature_gets_one_source_within_the_intent_s_lists() -> None:
    for seed in range(30):
        dealt = split(MANY, "A title", SEARCH, lambda feature: feature.name != "Brand", random.Random(seed))
        assert dealt is not None
        parts = [*dealt.query, *dealt.persona, *dealt.clarification]
        assert sorted(feature.field for feature in parts) == sorted(feature.field for feature in MANY)
        assert (len(dealt.persona), len(dealt.clarification)) == (2, 2)  # a quarter of nine, and at least two
        assert {feature.name for feature in dealt.persona} <= set(NAMES[:5])
        assert {feature.name for feature in dealt.clarification} <= set(NAMES[5:9])
        assert len(dealt.implicit) == 2 and dealt.implicit <= {feature.field for feature in dealt.query}


def test_what_the_title_says_is_the_query_s_to_tell() -> None:
    for seed in range(30):
        dealt = split(MANY, "With value Color and value Shape", SEARCH, anything, random.Random(seed))
        assert dealt is not None
        assert {"details.Color", "details.Shape"} <= {feature.field for feature in dealt.query}


def test_minimums_are_kept_and_not_relaxed() -> None:
    few = wishes("Brand", "Color", "Pattern", "Closure", "Number of Items", "Sheet Size", "Shape")
    assert split(few, "", SEARCH, anything, random.Random(0)) is None  # three are left for the query
    assert split(MANY, "", SEARCH, lambda feature: False, random.Random(0)) is None  # there is nothing to hint at


# Words


def test_no_clue_names_its_value() -> None:
    raw = yaml.safe_load((Path(phrases.__file__).parent / "hints.yaml").read_text(encoding="utf-8"))
    told = [(name, str(value), clue) for name, clues in raw.items() for value, clue in clues.items()]
    assert len(told) > 800 and {name for name, _, _ in told} <= set(CANONICAL)
    for name, value, clue in told:
        assert not any(find(clue, value)), (name, value)
        assert len(clue.split()) <= 18 and len(clue) <= 140, (name, value)


def test_every_attribute_can_be_said_and_asked_about() -> None:
    assert set(phrases.phrases()) == {*CANONICAL, "average_rating", "rating_number", "price"}


@pytest.mark.parametrize(
    ("noun", "spoken"),
    [
        ("desk lamp", "a desk lamp"),
        ("action camera", "an action camera"),
        ("USB hub", "a USB hub"),
        ("SSD", "an SSD"),
        ("unisex bag", "a unisex bag"),
        ("umbrella", "an umbrella"),
        ("hour glass", "an hour glass"),
        ("8 GB stick", "an 8 GB stick"),
        ("512 GB SSD", "a 512 GB SSD"),
        ("one-piece", "a one-piece"),
    ],
)
def test_articles_go_by_the_sound(noun: str, spoken: str) -> None:
    assert phrases.with_article(noun) == spoken


def test_ordinary_words_are_written_small_and_names_are_not() -> None:
    assert phrases.small("Powder Coated") == "powder coated"
    assert phrases.small("USB Powered") == "USB powered"
    assert phrases.small("macOS and H Shape") == "macOS and H shape"


def a_plan(catalogue: Catalogue, intent: str = "product_search", skip: int = 0) -> Plan:
    """The plan of the first products of the shop that become one."""
    assembler = Assembler(Shop(catalogue, 42), Settings(), Templates())
    for product_id in catalogue.ids():
        product = catalogue.product(product_id)
        assert product is not None
        planned = assembler.plan("t1", INTENTS[intent], product, {}, random.Random(7))
        if isinstance(planned, Plan):
            if not skip:
                return planned
            skip -= 1
    raise AssertionError("no plan")


def test_the_rubric_runs_from_the_query_to_the_kind(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue, "coupon_budget")
    assert [item.id for item in plan.items] == [f"r{number}" for number in range(1, len(plan.items) + 1)]
    sources = [item.info_source for item in plan.items]
    assert sources[-2:] == ["query", "query"]
    assert sources[:-2] == sorted(sources[:-2], key=["query", "persona", "clarification"].index)
    assert [item.type for item in plan.items[-2:]] == ["budget_match", "entity_match"]


PERSONA = {"product_requirements": {}}


def good_words(plan: Plan) -> Words:
    written = Templates(50).write(plan, random.Random(1), lambda words: word_faults(plan, PERSONA, words))
    assert written.words is not None
    return written.words


def test_the_gate_finds_what_is_wrong_with_words(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue)
    words = good_words(plan)
    hinted = next(item for item in plan.items if item.id in plan.implicit)
    hidden = plan.told_by("persona")[0]
    asked = plan.told_by("clarification")[0]
    plain = plan.explicit[0]

    def faults(**changed: Any) -> str:
        return " / ".join(word_faults(plan, PERSONA, replace(words, **changed)))

    assert f"{hinted.id}: the query gives" in faults(query=f"{words.query} {hinted.expected_value}")
    assert f"{hidden.id}: the query gives" in faults(query=f"{words.query} {hidden.expected_value}")
    assert f"{asked.id}: the answer 'Hm.' does not say" in faults(replies={**words.replies, asked.id: "Hm."})
    assert f"{plain.id}: the query has no words" in faults(surfaces={**words.surfaces, plain.id: "something else"})
    assert f"{plain.id}: the query has no words" in faults(surfaces={**words.surfaces, plain.id: ""})
    assert "does not say" in faults(surfaces={**words.surfaces, plain.id: words.query.split()[0]})
    long = " ".join(words.query.split()[:19])
    assert "more than 18 words say it" in faults(surfaces={**words.surfaces, plain.id: long})
    assert "more than 150 words" in faults(query=words.query + " please" * 150)
    told = {"product_requirements": {"x": asked.expected_value}}
    assert any("the persona gives" in fault for fault in word_faults(plan, told, words))


def test_answers_come_out_by_their_own_keywords_only(tasks: list[Task]) -> None:
    for task in tasks:
        keywords = [set(slot.trigger_keywords) for slot in task.clarification_script.clarification_slots]
        assert all(keywords) and not set.intersection(*keywords)


# A language model as the writer


def reply_for(plan: Plan, words: Words, **changed: Any) -> str:
    said = {"user_query": words.query, "surfaces": words.surfaces, "answers": words.replies, **changed}
    return f"Sure!\n```json\n{json.dumps(said)}\n```"


def test_a_language_model_is_told_what_the_gate_finds_wrong(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue)
    words = good_words(plan)
    secret = plan.told_by("persona")[0].expected_value
    replies = [reply_for(plan, words, user_query=f"{words.query} And {secret}!"), reply_for(plan, words)]
    writer = Scripted(lambda chat: replies.pop(0))
    written = LanguageModel(writer).write(plan, random.Random(1), lambda w: word_faults(plan, PERSONA, w))
    assert written.words is not None and written.words.query == words.query
    assert written.refused == 1
    assert f"the query gives {secret!r} away" in writer.asked[1].messages[-1].content


def test_a_language_model_that_fails_three_times_drops_the_plan(catalogue: Catalogue) -> None:
    plan, writer = a_plan(catalogue), LanguageModel(Scripted(lambda chat: "{}"))
    written = writer.write(plan, random.Random(1), lambda words: word_faults(plan, PERSONA, words))
    assert written.words is None and "the query has no words that say it" in written.problem


def test_an_answer_without_its_value_is_replaced(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue)
    asked = plan.told_by("clarification")[0]
    words = llm.words_of({"user_query": "x", "answers": {asked.id: "Something nice."}}, plan, random.Random(1))
    assert any(find(words.replies[asked.id], str(asked.expected_value)))


def test_surfaces_are_anchored_where_half_their_words_stand(catalogue: Catalogue) -> None:
    query = "It should be made of the metal that soda cans are made of."
    assert anchored("made of the metal", query) == "made of the metal"
    # Four of six words are the same; so they are in "the metal that soda cans", but the first of equals is taken.
    assert anchored("the metal of soda cans.", query) == "of the metal that soda"
    assert anchored("of rare woods", query) == ""


def test_the_prompt_holds_no_total_of_the_voucher(catalogue: Catalogue) -> None:
    plan = a_plan(catalogue, "coupon_budget")
    asked = llm.prompt(plan, "chatty")
    assert plan.voucher is not None
    assert "total_original_price" not in asked and "price_after_voucher" not in asked and "actual_discount" not in asked
    assert f'"budget": "${plan.voucher.budget:.2f}"' in asked


def test_a_judge_may_refuse_a_task_three_times(catalogue: Catalogue, tasks: list[Task]) -> None:
    def verdict(chat: Chat) -> str:
        return '{"passed": false, "issues": ["The hint is too vague."]}'

    gate = JudgeGate(Scripted(verdict))
    assert gate.issues(tasks[0]) == ["The hint is too vague."]
    assert JudgeGate(Scripted(lambda chat: "yes")).issues(tasks[0])[0].startswith("the judge gave no verdict")
    assembler = Assembler(Shop(catalogue, 42), Settings(), Templates(), gate)
    outcome = assembler.make("t1", INTENTS["product_search"], tasks[0].target_id, {})
    assert isinstance(outcome, Dropped) and outcome.stage == "judge"
    assert outcome.task is not None and outcome.task.sample_status == "final_validation_failed"
    passing = replace(assembler, gate=JudgeGate(Scripted(lambda chat: '{"passed": true}')))
    task = passing.make("t1", INTENTS["product_search"], tasks[0].target_id, {})
    assert isinstance(task, Task) and task.judge_passed is True


# The whole


def test_all_intents_are_built_and_every_requirement_has_one_source(tasks: list[Task]) -> None:
    assert Counter(task.intent_category for task in tasks) == dict.fromkeys(INTENT_NAMES, 2)
    assert len({task.target_id for task in tasks}) == len(tasks)
    for task in tasks:
        fields = [item.field for item in task.rubrics if item.field != "review"]
        assert len(fields) == len(set(fields))
        assert all(item.expected_value for item in task.rubrics if item.type == "negative_attribute")
        assert len(task.implicit_rubric_ids) == INTENTS[task.intent_category].implicit
        assert (task.sample_status, task.judge_passed) == ("ok", None)


def run(script: str, **environment: str) -> None:
    everything = {**os.environ, **environment}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=everything, check=True, capture_output=True)


def test_another_process_with_another_hash_seed_builds_the_same_bytes(built: Path, tmp_path: Path) -> None:
    script = (
        "from benchmarks.ecomagent.build.config import EcomAgentBuildConfig as C;"
        "from benchmarks.ecomagent.build.run import build;"
        f"build(C(tasks=2, out={str(tmp_path / 'again')!r}))"
    )
    run(script, PYTHONHASHSEED="4321", TZ="Asia/Tokyo")
    assert (tmp_path / "again" / "tasks.jsonl").read_bytes() == (built / "tasks.jsonl").read_bytes()


def test_another_seed_builds_others(built: Path, tmp_path: Path) -> None:
    build(EcomAgentBuildConfig(tasks=2, seed=43, intents=["product_search"], out=str(tmp_path / "other")))
    assert (tmp_path / "other" / "tasks.jsonl").read_bytes() not in (built / "tasks.jsonl").read_bytes()


class Killed(Exception):
    pass


@pytest.mark.parametrize("cut", [0, 5])
def test_a_killed_construction_goes_on_to_the_same_bytes(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    config = EcomAgentBuildConfig(tasks=2, out=str(tmp_path / "killed"))
    whole, seen = Assembler.make, Counter[str]()

    def make(self: Assembler, *arguments: Any) -> Any:
        seen["made"] += 1
        if seen["made"] == 12:
            raise Killed
        return whole(self, *arguments)

    monkeypatch.setattr(Assembler, "make", make)
    with pytest.raises(Killed):
        build(config)
    progress = tmp_path / "killed" / "progress.jsonl"
    progress.write_bytes(progress.read_bytes()[: -cut or None])  # the last line may be cut
    build(config)
    assert (tmp_path / "killed" / "tasks.jsonl").read_bytes() == (built / "tasks.jsonl").read_bytes()
    assert not progress.exists()
    made = seen["made"]
    build(config)  # finished: nothing is made again
    assert seen["made"] == made
    with pytest.raises(ValueError, match=r"holds another construction: settings.seed is 42 there and 7 here"):
        build(replace(config, seed=7))


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_finished_construction_of_which_a_file_was_lost_or_cut_is_built_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = EcomAgentBuildConfig(tasks=1, intents=["product_search"], out=str(tmp_path / "out"))
    build(config)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for name in ("tasks.jsonl", "failed.jsonl", "build.json"):
        for harm in (Path.unlink, half):
            harm(tmp_path / "out" / name)
            build(config)
            assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    capsys.readouterr()
    assert build(config) == json.loads(before["build.json"])
    assert "is finished" in capsys.readouterr().err


def test_a_line_of_the_progress_that_is_spoilt_is_built_again(built: Path, tmp_path: Path) -> None:
    config = EcomAgentBuildConfig(tasks=1, intents=["product_search"], out=str(tmp_path / "out"))
    build(config)
    task = (tmp_path / "out" / "tasks.jsonl").read_bytes()
    (tmp_path / "out" / "build.json").unlink()
    (tmp_path / "out" / "progress.jsonl").write_text('{"dropped": null, "task": {"id": 1}}\nnothing\n')
    build(config)
    assert (tmp_path / "out" / "tasks.jsonl").read_bytes() == task


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    config = EcomAgentBuildConfig(tasks=1, intents=["product_search"], out=str(tmp_path / "out"))
    build(config)
    (tmp_path / "out" / "build.json").unlink()
    (tmp_path / "out" / "progress.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: .*progress\.jsonl"):
        build(config)


def test_an_unknown_intent_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="intents: shoplifting is no intent; there are product_search"):
        build(EcomAgentBuildConfig(intents=["shoplifting"], out=str(tmp_path / "x")))


def test_an_intent_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="intents: product_search more than once; give each once, and more --tasks"):
        build(EcomAgentBuildConfig(intents=["product_search"] * 2, out=str(tmp_path / "x")))


def test_a_refused_task_says_by_whom(tasks: Sequence[Task]) -> None:
    by_code, by_judge = refused(tasks[0], ["a"]), refused(tasks[0], ["b"], by_judge=True)
    assert (by_code.validation_passed, by_code.validation_issues) == (False, ("a",))
    assert (by_judge.judge_passed, by_judge.judge_issues) == (False, ("b",))
