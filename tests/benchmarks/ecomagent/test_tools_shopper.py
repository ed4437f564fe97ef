"""The profile, and the scripted shopper: the published matching with its oddities, and ours without them."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_shop import shop, task

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.tools import Mode, Toolbox

MODES = ["strict", "compat"]
MOUNT = {"keywords": ["mount", "mounting type", "clamp"], "answer": "It should clamp onto the table."}
PRICE = {"keywords": ["price", "budget", "cost"], "answer": "Less than 40 dollars."}
OUTDOOR = {"keywords": ["weatherproof", "company"], "answer": "It stays outside."}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return shop(tmp_path_factory.mktemp("shop"))


def ask(box: Toolbox, question: str) -> str:
    return str(box.call("ask_user", {"question": question})["user_response"])


@pytest.mark.parametrize("mode", MODES)
def test_the_profile_comes_whole(catalogue: Catalogue, mode: Mode) -> None:
    persona = {
        "user_id": "U_1",
        "product_requirements": {"color_preference": "Teal", "budget": {"value": 40, "op": "<"}},
    }
    box = Toolbox(catalogue, task(persona=persona), mode)
    assert box.call("get_user_profile", {}) == {"profile": persona}
    assert box.profile_count == 1
    empty = Toolbox(catalogue, task(), mode).call("get_user_profile", "{}")
    assert empty["profile"] == {} and empty["message"]


@pytest.mark.parametrize("mode", MODES)
def test_a_question_with_a_keyword_is_answered_from_the_script(catalogue: Catalogue, mode: Mode) -> None:
    box = Toolbox(catalogue, task([MOUNT, PRICE]), mode)
    result = box.call("ask_user", {"question": "What is your budget?"})
    assert result == {"user_response": "Less than 40 dollars.", "turns_remaining": 9}
    assert (box.ask_count, box.revealed) == (1, ["cl_2"])


@pytest.mark.parametrize("mode", MODES)
def test_what_nothing_matches_gets_the_default(catalogue: Catalogue, mode: Mode) -> None:
    box = Toolbox(catalogue, task([MOUNT]), mode)
    assert ask(box, "Do you like jazz?") == "Not sure."
    bare = Toolbox(catalogue, task(default_response=""), mode)
    result = bare.call("ask_user", {"question": "Which colour?"})
    assert result["user_response"] and result["turns_remaining"] == 9


@pytest.mark.parametrize("mode", MODES)
def test_one_question_tells_one_thing_and_equals_go_to_the_earlier_slot(catalogue: Catalogue, mode: Mode) -> None:
    box = Toolbox(catalogue, task([MOUNT, PRICE]), mode)
    assert ask(box, "Which mount and price?") == "It should clamp onto the table."
    assert ask(box, "Which mount and price?") == "Less than 40 dollars."


@pytest.mark.parametrize("mode", MODES)
def test_the_better_slot_wins_over_the_earlier(catalogue: Catalogue, mode: Mode) -> None:
    box = Toolbox(catalogue, task([MOUNT, PRICE]), mode)
    assert ask(box, "Which price or cost, for a clamp?") == "Less than 40 dollars."


@pytest.mark.parametrize("mode", MODES)
def test_turns_run_out(catalogue: Catalogue, mode: Mode) -> None:
    box = Toolbox(catalogue, task([PRICE], max_clarification_turns=2), mode)
    left = [box.call("ask_user", {"question": "Hm?"})["turns_remaining"] for _ in range(4)]
    assert left == [1, 0, 0, 0]
    refused = box.call("ask_user", {"question": "What price?"})
    assert refused["user_response"] not in ("Less than 40 dollars.", "Not sure.") and refused["turns_remaining"] == 0
    assert box.revealed == []


@pytest.mark.parametrize("mode", MODES)
def test_the_last_question_is_answered(catalogue: Catalogue, mode: Mode) -> None:
    box = Toolbox(catalogue, task([PRICE], max_clarification_turns=1), mode)
    assert box.call("ask_user", {"question": "What price?"}) == {
        "user_response": "Less than 40 dollars.",
        "turns_remaining": 0,
    }


def test_exactly_100_characters_are_allowed(catalogue: Catalogue) -> None:
    question = "What price" + "?" * 90
    for mode in MODES:
        assert len(question) == 100
        assert ask(Toolbox(catalogue, task([PRICE]), mode), question) == "Less than 40 dollars."  # type: ignore[arg-type]


def test_a_longer_question_costs_a_turn_in_compat_and_is_refused_in_strict(catalogue: Catalogue) -> None:
    question = {"question": "What price" + "?" * 91}
    compat, strict = Toolbox(catalogue, task([PRICE]), "compat"), Toolbox(catalogue, task([PRICE]), "strict")
    told = compat.call("ask_user", question)
    assert told["turns_remaining"] == 9 and "100" in told["user_response"] and compat.revealed == []
    assert "101 characters; give at most 100" in strict.call("ask_user", question)["error"]
    assert strict.ask_count == 0


@pytest.mark.parametrize(
    ("question", "compat", "strict"),
    [
        ("Tell me the size", "It stays outside.", "Not sure."),  # "the" is inside "weatherproof"
        ("Have you any wishes?", "It stays outside.", "Not sure."),  # "any" is inside "company"
        ("Is weatherproofing a must?", "It stays outside.", "Not sure."),  # the keyword is inside a word
        ("Weatherproof?", "It stays outside.", "It stays outside."),
        ("Is it ok?", "Not sure.", "Not sure."),  # words under three letters count in neither
    ],
)
def test_accidental_letters_reveal_something_in_compat_only(
    catalogue: Catalogue, question: str, compat: str, strict: str
) -> None:
    assert ask(Toolbox(catalogue, task([OUTDOOR]), "compat"), question) == compat
    assert ask(Toolbox(catalogue, task([OUTDOOR]), "strict"), question) == strict


def test_compat_scores_2_for_a_keyword_in_the_question_and_1_for_an_accident(catalogue: Catalogue) -> None:
    # "power source" stands there (2). The other slot: "powered" is not in the question, but "power" is in it (1);
    # "resource" is not in the question, but holds no word of it: "source?" with its mark is no part of it (0).
    slots = [
        {"keywords": ["powered", "resource"], "answer": "one"},
        {"keywords": ["power source"], "answer": "two"},
    ]
    assert ask(Toolbox(catalogue, task(slots), "compat"), "Which power source?") == "two"
    # Without the mark "source" is in "resource": one and one make two, and the earlier slot wins.
    assert ask(Toolbox(catalogue, task(slots), "compat"), "Which power source") == "one"


def test_compat_passes_over_words_of_one_and_two_letters(catalogue: Catalogue) -> None:
    slot = {"keywords": ["sofa", "bitter"], "answer": "told"}
    assert ask(Toolbox(catalogue, task([slot]), "compat"), "so it is") == "Not sure."
    assert ask(Toolbox(catalogue, task([slot]), "compat"), "so it is a bit") == "told"


def test_compat_never_tells_twice_and_lets_the_next_best_slot_answer(catalogue: Catalogue) -> None:
    box = Toolbox(catalogue, task([PRICE, OUTDOOR]), "compat")
    assert ask(box, "What is the price?") == "Less than 40 dollars."
    assert ask(box, "What is the price?") == "It stays outside."  # "the" again
    assert ask(box, "What is the price?") == "Not sure."


def test_strict_tells_again_what_it_told_and_nothing_else(catalogue: Catalogue) -> None:
    box = Toolbox(catalogue, task([PRICE, OUTDOOR]), "strict")
    assert [ask(box, "What is the price?") for _ in range(2)] == ["Less than 40 dollars."] * 2
    assert box.revealed == ["cl_1"]


@pytest.mark.parametrize(
    "question", ["What kind of MOUNTS?", "mounting types, please", "Which mount-ing type or mount"]
)
def test_strict_knows_plurals(catalogue: Catalogue, question: str) -> None:
    assert ask(Toolbox(catalogue, task([MOUNT]), "strict"), question) == "It should clamp onto the table."


def test_strict_wants_a_keyword_of_several_words_whole_and_counts_them(catalogue: Catalogue) -> None:
    screen: list[dict[str, Any]] = [
        {"keywords": ["size"], "answer": "large"},
        {"keywords": ["screen size"], "answer": "13 inches"},
    ]
    assert ask(Toolbox(catalogue, task(screen), "strict"), "Which screen size?") == "13 inches"
    assert ask(Toolbox(catalogue, task(screen), "strict"), "Which size should it have?") == "large"
    assert ask(Toolbox(catalogue, task(screen[1:]), "strict"), "Which size of the screen?") == "Not sure."


def test_a_generic_question_learns_nothing_in_strict_and_walks_through_the_slots_in_compat(
    catalogue: Catalogue,
) -> None:
    slots = [
        {"keywords": ["weather protection", "hull"], "answer": "one"},
        {"keywords": ["whatsapp", "anything goes"], "answer": "two"},
        {"keywords": ["mother board"], "answer": "three"},
    ]
    question = "Is there any other thing you want?"
    strict, compat = Toolbox(catalogue, task(slots), "strict"), Toolbox(catalogue, task(slots), "compat")
    assert [ask(strict, question) for _ in range(3)] == ["Not sure."] * 3
    assert {ask(compat, question) for _ in range(3)} == {"two", "three", "Not sure."}
