"""The rules of an episode, turn by turn, with a scripted agent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from errands import LAMP_LINE, as_meta
from tiny_shop import shop

from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.playing import Errand, PlayerGone, deal, play
from benchmarks.ecomagent.prompts import ONE_CALL, REMINDER, RESULT_LEFT_OUT, system_prompt
from benchmarks.ecomagent.replay import replay
from benchmarks.ecomagent.replies import Reply, ToolCall
from benchmarks.ecomagent.tasks import Task
from benchmarks.ecomagent.tools import Toolbox

TASK = Task.model_validate(LAMP_LINE)
SEARCH = ("search_products", {"query": "lamp"})
PROFILE = ("get_user_profile", {})
ASK = ("ask_user", {"question": "What is your budget?"})
BUY = ("recommend_product", {"product_id": "B0LAMP0001", "reasoning": "It fits."})


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    target = LAMP_LINE["target_product"]
    products = [as_meta(target)] + [as_meta(target, parent_asin=f"B0OTHER{k:03}", title=f"Lamp {k}") for k in range(30)]
    return shop(tmp_path_factory.mktemp("shop"), products, [])


def episode(catalogue: Catalogue, mode: Any = "strict", **settings: Any) -> Episode:
    return Episode(TASK, Toolbox(catalogue, TASK, mode), **settings)


def calling(*calls: tuple[str, Any], content: str = "Thought.", **more: Any) -> Reply:
    made = [
        ToolCall(f"c{number}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for number, (name, arguments) in enumerate(calls)
    ]
    return Reply(content, tuple(made), **more)


def results(played: Episode) -> list[Any]:
    return [json.loads(message["content"]) for message in played.trajectory if message["role"] == "tool"]


def test_an_episode_from_the_query_to_the_recommendation(catalogue: Catalogue) -> None:
    played = episode(catalogue)
    assert played.view() == [
        {"role": "system", "content": system_prompt(100)},
        {"role": "user", "content": LAMP_LINE["user_query"]},
    ]
    for call in (PROFILE, ASK, SEARCH, BUY):
        assert not played.done
        played.take(calling(call, input_tokens=10, computed_tokens=4, output_tokens=3))
    record = played.record("scripted")
    assert record["predicted_product_id"] == "B0LAMP0001"
    expected = {
        "finished": True,
        "stop_reason": "recommended",
        "total_tool_calls": 4,
        "ask_user_calls": 1,
        "get_profile_calls": 1,
        "turns": 4,
        "revealed_slots": ["cl_2"],
        "reasoning": "It fits.",
        "input_tokens": 40,
        "computed_tokens": 16,
        "output_tokens": 12,
        "model": "scripted",
    }
    assert {name: record[name] for name in expected} == expected
    roles = [message["role"] for message in record["trajectory"]]
    assert roles == ["system", "user", *["assistant", "tool"] * 4]
    profile, answer, found, bought = results(played)
    assert profile == {"profile": LAMP_LINE["user_persona"]}
    assert answer["user_response"] == "Less than 40 dollars, please."
    assert found["products"][0].keys() == {"product_id", "title"}
    assert bought["recommended_product"]["product_id"] == "B0LAMP0001"


def test_one_reminder_then_silence_ends_without_a_recommendation(catalogue: Catalogue) -> None:
    played = episode(catalogue)
    played.take(Reply("Let me think."))
    assert played.view()[-1] == {"role": "user", "content": REMINDER}
    played.take(calling(SEARCH))  # a call makes up for it
    played.take(Reply("Hm."))
    assert not played.done
    played.take(Reply("I would buy the first."))
    record = played.record("scripted")
    assert (record["stop_reason"], record["finished"], record["predicted_product_id"]) == ("no_call", True, None)
    assert (record["reasoning"], record["total_tool_calls"], record["turns"]) == ("I would buy the first.", 1, 4)


def test_of_several_calls_the_first_is_made_and_the_model_is_told(catalogue: Catalogue) -> None:
    played = episode(catalogue)
    played.take(calling(PROFILE, BUY))
    assert not played.done and len(results(played)) == 1
    shown = played.view()[2:]
    assert [call["function"]["name"] for call in shown[0]["tool_calls"]] == ["get_user_profile"]
    assert shown[2] == {"role": "user", "content": ONE_CALL}
    discarded = played.trajectory[2]["discarded_tool_calls"]
    assert [call["function"]["name"] for call in discarded] == ["recommend_product"]
    assert played.record("x")["total_tool_calls"] == 1


@pytest.mark.parametrize(
    "call",
    [("search_products", "{not json"), ("search_products", "[1]"), ("recommend_product", '"B0"'), ("buy_it", "{}")],
)
def test_a_call_that_cannot_be_understood_is_a_result_and_counts(catalogue: Catalogue, call: tuple[str, str]) -> None:
    played = episode(catalogue)
    played.take(calling(call))
    assert not played.done and "error" in results(played)[0]
    assert played.record("x")["total_tool_calls"] == 1


def test_an_unknown_product_ends_a_compat_episode_and_not_a_strict_one(catalogue: Catalogue) -> None:
    unknown = ("recommend_product", {"product_id": "B0NOWHERE0", "reasoning": "?"})
    lenient = episode(catalogue, "compat")
    lenient.take(calling(unknown))
    record = lenient.record("x")
    assert (record["stop_reason"], record["finished"], record["predicted_product_id"]) == (
        "unknown_product",
        True,
        None,
    )
    strict = episode(catalogue)
    strict.take(calling(unknown))
    assert not strict.done and "error" in results(strict)[0]


def test_the_budget_ends_an_episode_and_nothing_is_guessed(catalogue: Catalogue) -> None:
    played = episode(catalogue, max_steps=3)
    for _ in range(3):
        played.take(calling(SEARCH))
    record = played.record("x")
    assert (record["stop_reason"], record["finished"], record["predicted_product_id"]) == ("budget", False, None)


def test_older_results_are_left_out_first_and_the_shopper_s_words_never(catalogue: Catalogue) -> None:
    played = episode(catalogue)
    for call in (PROFILE, SEARCH, SEARCH, ASK, SEARCH, SEARCH, SEARCH):
        played.take(calling(call))
    tools = [number for number, message in enumerate(played.view()) if message["role"] == "tool"]
    profile, one, two, answer, three, four, five = tools

    def left_out() -> list[int]:
        return [number for number, message in enumerate(played.view()) if message["content"] == RESULT_LEFT_OUT]

    assert played.shorten() and left_out() == [one, two]  # half of the three older ones, rounded up
    assert played.shorten() and left_out() == [one, two, three]
    assert played.shorten() and left_out() == [one, two, three, four]  # only now the newest two
    assert played.shorten() and left_out() == [one, two, three, four, five]
    assert not played.shorten()
    assert profile not in left_out() and answer not in left_out()
    assert RESULT_LEFT_OUT not in json.dumps(played.trajectory)  # the record keeps everything


def test_a_conversation_that_cannot_be_shortened_ends(catalogue: Catalogue) -> None:
    played = episode(catalogue)
    played.take(Reply(overflow=True))
    record = played.record("x")
    assert (record["stop_reason"], record["finished"], record["turns"]) == ("context", False, 0)


def test_every_message_is_handed_on_as_soon_as_it_is_there(catalogue: Catalogue) -> None:
    seen: list[Any] = []
    played = episode(catalogue, sink=seen.append)
    assert len(seen) == 2
    played.take(calling(SEARCH, reasoning="because"))
    assert seen == played.trajectory
    assert seen[2]["reasoning_trace"] == "because"
    assert "reasoning_trace" not in played.view()[2]


CODE = ("python_execute", {"code": "print(34.5 - 5)"})


def test_a_record_plays_again_without_its_model(catalogue: Catalogue) -> None:
    played = episode(catalogue, max_steps=9)
    for reply in (calling(PROFILE, SEARCH), Reply("Hm."), calling(ASK), calling(CODE), calling(BUY)):
        played.take(reply)
    record = json.loads(json.dumps(played.record("x")))
    again = replay(record, TASK, Toolbox(catalogue, TASK), max_steps=9)
    costs = ("input_tokens", "computed_tokens", "output_tokens")
    assert again.record("x") == {name: value for name, value in record.items() if name not in costs}
    assert json.loads(record["trajectory"][-3]["content"])["output"] == "29.5\n"


def test_a_replay_in_another_shop_is_refused(catalogue: Catalogue, tmp_path: Path) -> None:
    played = episode(catalogue)
    played.take(calling(SEARCH))
    other = shop(tmp_path, [as_meta(LAMP_LINE["target_product"])], [])
    with pytest.raises(ValueError, match="message 3 of the replay is another"):
        replay(played.record("x"), TASK, Toolbox(other, TASK))


class Scripted:
    """Plays every errand with the same calls, and keeps who was asked together."""

    name, facts = "scripted", {"agent": "scripted"}

    def __init__(self, batched: bool, calls: Callable[[Episode], Reply]) -> None:
        self.batched, self.calls = batched, calls
        self.together: list[list[tuple[int, str]]] = []

    def reply(self, turns: Sequence[tuple[int, Episode]]) -> list[Reply]:
        self.together.append([(lane, played.task.id) for lane, played in turns])
        return [self.calls(played) for _, played in turns]


def errands(count: int) -> list[Errand]:
    return [Errand(TASK.model_copy(update={"id": f"t{number}"})) for number in range(count)]


def test_lanes_keep_their_errands_whatever_is_done() -> None:
    whole = errands(7)
    assert [[one.task.id for one in lane] for lane in deal(whole, 3)] == [
        ["t0", "t3", "t6"],
        ["t1", "t4"],
        ["t2", "t5"],
    ]
    rest = deal(whole, 3, {"t0", "t1", "t4"})
    assert [[one.task.id for one in lane] for lane in rest] == [["t3", "t6"], [], ["t2", "t5"]]


def test_a_batched_player_is_asked_for_all_lanes_at_once(catalogue: Catalogue) -> None:
    def reply(played: Episode) -> Reply:
        longer = played.task.id == "t1" and played.steps == 0
        return calling(SEARCH if longer else BUY)

    player, over = Scripted(True, reply), []
    play(player, deal(errands(4), 2), start(catalogue), lambda one: over.append(one.task.id))
    assert player.together == [[(0, "t0"), (1, "t1")], [(0, "t2"), (1, "t1")], [(1, "t3")]]
    assert over == ["t0", "t2", "t1", "t3"]


def start(catalogue: Catalogue) -> Callable[[Errand], Episode]:
    return lambda errand: Episode(errand.task, Toolbox(catalogue, errand.task), errand.trial)


def test_episodes_apart_play_at_the_same_time_and_one_that_fails_harms_no_other(catalogue: Catalogue) -> None:
    meeting = threading.Barrier(3, timeout=20)  # passed only if three episodes are under way at once

    def reply(played: Episode) -> Reply:
        meeting.wait()
        if played.task.id == "t1":
            raise ConnectionError("no server")
        return calling(BUY)

    over: dict[str, Episode] = {}
    lanes = deal(errands(3), 3)
    play(Scripted(False, reply), lanes, start(catalogue), lambda one: over.update({one.task.id: one}))
    assert {name: one.stop_reason for name, one in over.items()} == {
        "t0": "recommended",
        "t1": "error",
        "t2": "recommended",
    }
    record = over["t1"].record("x")
    assert (record["error"], record["finished"]) == ("ConnectionError: no server", False)


@pytest.mark.parametrize("batched", [True, False])
def test_a_run_in_which_every_episode_breaks_down_ends_and_keeps_none_of_them(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, batched: bool
) -> None:
    def broken(self: Toolbox, name: str, arguments: Any) -> Any:
        if self.task.id in bad:  # type: ignore[attr-defined]
            raise OSError("disk gone")
        return whole(self, name, arguments)

    def played(count: int, lanes: int, proven: bool = False) -> list[str]:
        over.clear()
        player = Scripted(batched, lambda episode: calling(BUY))
        play(player, deal(errands(count), lanes), start(catalogue), lambda one: over.append(one.task.id), proven)
        return sorted(over)

    whole, over = Toolbox.call, list[str]()
    monkeypatch.setattr(Toolbox, "call", broken)
    bad = {f"t{number}" for number in range(9)}
    for count, lanes, told in ((9, 1, 3), (9, 4, 4), (3, 8, 3)):
        with pytest.raises(
            PlayerGone, match=rf"the first {told} episodes all broke down, t\d first: OSError: disk gone"
        ):
            played(count, lanes)
        assert over == []
    assert played(4, 1, proven=True) == ["t0", "t1", "t2", "t3"]  # earlier episodes have ended otherwise
    assert played(2, 1) == ["t0", "t1"]  # too few to tell
    bad.remove("t2")
    assert played(4, 1) == ["t0", "t1", "t2", "t3"]


def test_a_tool_that_breaks_down_ends_its_episode_only(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Toolbox, name: str, arguments: Any) -> Any:
        if self.task.id == "t0":  # type: ignore[attr-defined]
            raise OSError("disk gone")
        return whole(self, name, arguments)

    whole = Toolbox.call
    monkeypatch.setattr(Toolbox, "call", broken)
    over: dict[str, Any] = {}
    play(
        Scripted(True, lambda played: calling(BUY)),
        deal(errands(2), 2),
        start(catalogue),
        lambda one: over.update({one.task.id: one.stop_reason}),
    )
    assert over == {"t0": "error", "t1": "recommended"}
