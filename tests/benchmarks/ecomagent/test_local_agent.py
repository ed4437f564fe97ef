"""Models as agents: what a local checkpoint says is what transformers says of the whole conversation, kept or not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from errands import LAMP_LINE, as_meta
from tiny import tiny_checkpoint
from tiny_shop import shop
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks.ecomagent import turn_cost
from benchmarks.ecomagent.catalogue import Catalogue
from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.local_agent import LocalAgent, LocalSettings
from benchmarks.ecomagent.playing import Errand, PlayerGone, deal, play
from benchmarks.ecomagent.prompts import RESULT_LEFT_OUT
from benchmarks.ecomagent.replies import Reply, ToolCall
from benchmarks.ecomagent.server_agent import ServerAgent
from benchmarks.ecomagent.tasks import Task
from benchmarks.ecomagent.tools import TOOLS, Toolbox
from models.backbone import LoadSettings
from models.conversations import Answer, Turn
from models.generation import SamplingSettings
from models.generators import open_generator
from models.local import LocalGenerator
from models.served import ServerGenerator

TASK = Task.model_validate(LAMP_LINE)
GREEDY = SamplingSettings(max_tokens=8)
CALLS = [
    ("get_user_profile", {}),
    ("ask_user", {"question": "price?"}),
    ("search_products", {"query": "lamp"}),
    ("get_product_details", {"product_id": "B0LAMP0001"}),
    ("recommend_product", {"product_id": "B0LAMP0001", "reasoning": "It fits."}),
]


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    target = LAMP_LINE["target_product"]
    products = [as_meta(target)] + [as_meta(target, parent_asin=f"B0OTHER{k:03}", title=f"Lamp {k}") for k in range(9)]
    return shop(tmp_path_factory.mktemp("shop"), products, [])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny chat model with room for the tools."""
    folder = tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"), "llama", chat=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 16384}))
    return folder


@pytest.fixture(scope="module")
def generator(checkpoint: Path) -> LocalGenerator:
    made = open_generator(str(checkpoint), settings=LoadSettings(dtype="float32"))
    assert isinstance(made, LocalGenerator)
    return made


class Prompted(LocalAgent):
    """A local agent whose calls are given; its words and all computing are the model's."""

    seen: list[tuple[list[int], list[int]]]

    def _read(self, episode: Episode, turn: Turn, answer: Answer, seconds: float) -> Reply:
        self.__dict__.setdefault("seen", []).append((list(turn.ids), answer.written))
        name, arguments = CALLS[min(episode.steps, len(CALLS) - 1)]
        call = ToolCall(f"call_{episode.steps}", name, json.dumps(arguments))
        return replace(super()._read(episode, turn, answer, seconds), calls=(call,))


def agent(generator: LocalGenerator, catalogue: Catalogue, kind: type[LocalAgent] = Prompted, **settings: Any) -> Any:
    sampling = settings.pop("sampling", GREEDY)
    # Two schemas are enough to see where they stand, and quickly read.
    return kind(generator, Toolbox(catalogue, TASK).schemas()[:2], sampling, LocalSettings(**settings))


def errands(count: int) -> list[Errand]:
    queries = ["A lamp, please.", "I need a reading lamp by Zweig.", "Teal?", "The query is a longer one " * 6]
    return [
        Errand(TASK.model_copy(update={"id": f"t{number}", "user_query": queries[number % 4]}))
        for number in range(count)
    ]


def played(player: Any, catalogue: Catalogue, lanes: Sequence[Sequence[Errand]]) -> dict[str, dict[str, Any]]:
    records: dict[str, dict[str, Any]] = {}
    play(
        player,
        lanes,
        partial(begun, catalogue),
        lambda episode: records.update({episode.task.id: episode.record("x")}),
    )
    return records


def begun(catalogue: Catalogue, errand: Errand) -> Episode:
    return Episode(errand.task, Toolbox(catalogue, errand.task), errand.trial)


def test_every_turn_is_what_a_plain_pass_over_the_whole_conversation_gives(
    generator: LocalGenerator, catalogue: Catalogue, checkpoint: Path
) -> None:
    player = agent(generator, catalogue, lanes=2)
    records = played(player, catalogue, deal(errands(3), 2))
    assert {record["stop_reason"] for record in records.values()} == {"recommended"}
    assert len(player.seen) == 3 * len(CALLS)
    plain = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    for ids, written in player.seen:
        given = torch.tensor([ids])
        made = plain.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=8, do_sample=False)
        assert made[0, len(ids) :].tolist() == written


def test_the_conversation_is_read_as_its_template_writes_it(
    generator: LocalGenerator, catalogue: Catalogue, checkpoint: Path
) -> None:
    player = agent(generator, catalogue, lanes=1)
    played(player, catalogue, [errands(1)])
    text = AutoTokenizer.from_pretrained(checkpoint).decode(player.seen[1][0])
    assert text.startswith("<|im_start|>system\nYou are a personal shopping assistant.")
    assert '{"name": "search_products", "description": ' in text  # the template knows no tools
    assert '\n{"name": "get_user_profile", "arguments": {}}<|im_end|>\n<|im_start|>user\nResult: {"profile": ' in text
    assert text.endswith("<|im_end|>\n<|im_start|>assistant\n")


def test_keeping_changes_the_cost_and_nothing_else(generator: LocalGenerator, catalogue: Catalogue) -> None:
    lanes = deal(errands(3), 2)
    kept = played(agent(generator, catalogue, lanes=2), catalogue, lanes)
    anew = played(agent(generator, catalogue, lanes=2, keep=False), catalogue, lanes)
    for name, record in anew.items():
        assert record.pop("computed_tokens") == record["input_tokens"]
        computed = kept[name].pop("computed_tokens")
        # Without keeping, the tools alone are read once a turn.
        assert computed < record["input_tokens"] / 2
    assert kept == anew


def test_records_do_not_depend_on_what_was_played_before(generator: LocalGenerator, catalogue: Catalogue) -> None:
    whole = played(agent(generator, catalogue, lanes=2), catalogue, deal(errands(4), 2))
    rest = deal(errands(4), 2, {"t0", "t1", "t3"})
    assert played(agent(generator, catalogue, lanes=2), catalogue, rest) == {"t2": whole["t2"]}


def test_drawn_turns_follow_from_seed_task_and_trial(generator: LocalGenerator, catalogue: Catalogue) -> None:
    def words(lanes: int, trial: int = 1, seed: int = 0) -> list[str]:
        sampling = SamplingSettings(max_tokens=8, temperature=1.0, seed=seed)
        player = agent(generator, catalogue, lanes=lanes, sampling=sampling)
        trials = [replace(errand, trial=trial) for errand in errands(2)]
        records = played(player, catalogue, deal(trials, lanes))
        return [message["content"] for message in records["t1"]["trajectory"] if message["role"] == "assistant"]

    assert words(1) == words(2)
    assert words(1) != words(1, trial=2)
    assert words(1) != words(1, seed=1)


def test_what_does_not_fit_is_left_out_and_what_never_fits_is_refused(
    generator: LocalGenerator, catalogue: Catalogue
) -> None:
    player = agent(generator, catalogue, lanes=1)
    played(player, catalogue, [errands(1)])
    first, last = len(player.seen[0][0]), len(player.seen[-1][0])
    tight = agent(generator, catalogue, lanes=1, context=last + 8 - 1)
    record = played(tight, catalogue, [errands(1)])["t0"]
    assert (record["stop_reason"], record["results_left_out"]) == ("recommended", 1)
    decoded = tight.tokenizer.decode(tight.seen[-1][0])
    assert RESULT_LEFT_OUT in decoded and "Less than 40 dollars, please." in decoded
    over = played(agent(generator, catalogue, lanes=1, context=first + 8 + 5), catalogue, [errands(1)])["t0"]
    assert (over["stop_reason"], over["turns"]) == ("context", 1)  # the profile is never left out
    long = agent(generator, catalogue, lanes=1, context=first + 7)  # a token too few for the first message
    assert (record := played(long, catalogue, [errands(1)])["t0"])["turns"] == 0 and record["stop_reason"] == "context"
    same = [replace(errand, task=TASK.model_copy(update={"id": f"t{k}"})) for k, errand in enumerate(errands(1) * 3)]
    with pytest.raises(PlayerGone, match=r"the first 3 episodes all broke down, t0 first: its first message leaves no"):
        played(agent(generator, catalogue, lanes=1, context=first + 7), catalogue, [same])
    small = agent(generator, catalogue, lanes=1, context=100)
    with pytest.raises(
        ValueError, match=r"a context of 100 tokens; the tools .* have \d+.*give fewer --max_new_tokens"
    ):
        played(small, catalogue, [errands(1)])
    assert small.talks is None  # nothing was read by then


def test_a_turn_ends_with_its_call(generator: LocalGenerator, catalogue: Catalogue) -> None:
    player = agent(generator, catalogue, LocalAgent)
    encode = player.tokenizer.encode

    def finished(text: str) -> bool:
        return bool(player._finished(encode(text, add_special_tokens=False)))

    assert finished('Now {"name": "ask_user", "arguments": {"question": "price?"}}')
    assert not finished('Now {"name": "ask_user", "arguments": {"question": "price?"}')
    assert not finished('{"a": 1}')
    assert finished("That is all.</s>")
    hermes = agent(generator, catalogue, LocalAgent, form="hermes")
    assert hermes._finished(encode('<tool_call>{"name": "x"}</tool_call>', add_special_tokens=False))
    assert not hermes._finished(encode('<tool_call>{"name": "x"}', add_special_tokens=False))


def test_the_measurement_computes_the_same_turns_kept_and_anew(
    generator: LocalGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_cost, "TOOLS", dict(list(TOOLS.items())[:2]))
    monkeypatch.setattr(turn_cost, "LAST", 4)
    found = turn_cost.measure(generator, 2, 4)
    for turn in ("second", "turn_4"):
        assert found[turn]["same_answers"] and found[turn]["tokens_computed"] < found[turn]["tokens"]
    assert found["turn_4"]["tokens"] > found["second"]["tokens"]


@pytest.mark.slow
def test_the_twentieth_turn_costs_little_more_than_the_second() -> None:
    generator = open_generator("smollm2-135m", settings=LoadSettings(dtype="float32"))
    assert isinstance(generator, LocalGenerator)
    found = turn_cost.measure(generator, 2, 32)
    assert found["second"]["same_answers"] and found["turn_20"]["same_answers"]
    assert found["last_over_second_kept"] <= 2.5
    assert found["turn_20"]["seconds_kept"] < found["turn_20"]["seconds_anew"] / 2


@pytest.mark.parametrize("form", ["plain", "hermes", "llama3", "mistral"])
def test_guided_turns_are_a_thought_and_one_call_that_can_be_carried_out(
    generator: LocalGenerator, catalogue: Catalogue, form: Any
) -> None:
    sampling = SamplingSettings(max_tokens=1000, temperature=1.5, seed=1)
    player = agent(generator, catalogue, LocalAgent, lanes=1, form=form, guided=True, sampling=sampling)
    (errand,) = errands(1)
    episode = Episode(errand.task, Toolbox(catalogue, errand.task))
    (reply,) = player.reply([(0, episode)])
    (call,) = reply.calls  # a random model, and still
    assert call.name in ("search_products", "filter_by_attribute")  # the two tools that it was given
    result = json.dumps(episode.toolbox.call(call.name, call.arguments))
    assert "unknown argument" not in result and "no valid JSON" not in result
    assert len(reply.content) <= 240


def test_calls_in_tags_of_their_own_cannot_be_guided(generator: LocalGenerator, catalogue: Catalogue) -> None:
    with pytest.raises(ValueError, match="cannot be guided"):
        agent(generator, catalogue, LocalAgent, form="qwen_xml", guided=True)


class Server(BaseHTTPRequestHandler):
    """Answers chat completions with what the test put there, and keeps what it was asked."""

    answers: list[tuple[int, dict[str, Any] | bytes]]
    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.asked.append(json.loads(self.rfile.read(length)))
        status, body = self.answers.pop(0)
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[type[Server], ServerAgent]]:
    kind = type("Once", (Server,), {"answers": [], "asked": []})
    running = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    generator = ServerGenerator(f"http://127.0.0.1:{running.server_port}/v1", "small", retries=0, timeout=20)
    yield kind, ServerAgent(generator, SamplingSettings(max_tokens=64, temperature=0.5, seed=3))
    running.shutdown()
    running.server_close()


def answer(name: str, arguments: dict[str, Any], **message: Any) -> tuple[int, dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    said = {"role": "assistant", "tool_calls": [{"id": "x1", "type": "function", "function": function}], **message}
    usage = {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97}
    usage |= {"prompt_tokens_details": {"cached_tokens": 60}}  # type: ignore[dict-item]
    choice = {"index": 0, "message": {"content": None, **said}, "finish_reason": "tool_calls"}
    return 200, {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "small",
        "choices": [choice],
        "usage": usage,
    }


def refusal(message: str) -> tuple[int, dict[str, Any]]:
    return 400, {"error": {"message": message, "type": "invalid_request_error", "code": None}}


TOO_LONG = refusal("This model's maximum context length is 4096 tokens.")


def test_a_served_model_plays_through_openai_s_tool_calls(
    server: tuple[type[Server], ServerAgent], catalogue: Catalogue
) -> None:
    kind, player = server
    kind.answers += [answer(*CALLS[0], reasoning_content="Hm."), answer(*CALLS[2]), TOO_LONG, answer(*CALLS[-1])]
    record = played(player, catalogue, [[Errand(TASK, trial=2)]])[TASK.id]
    assert (record["stop_reason"], record["predicted_product_id"]) == ("recommended", "B0LAMP0001")
    assert (record["input_tokens"], record["computed_tokens"], record["output_tokens"]) == (270, 90, 21)
    assert record["reasoning_trace"] == [{"step": 1, "raw_reasoning": "Hm."}]
    assert record["results_left_out"] == 1
    first, *_, last = kind.asked
    assert first["tools"] == Toolbox(catalogue, TASK).schemas()
    assert (first["model"], first["max_tokens"], first["seed"], first["tool_choice"]) == ("small", 64, 3000011, "auto")
    assert [message["role"] for message in last["messages"]] == ["system", "user", *["assistant", "tool"] * 2]
    assert last["messages"][-1]["content"] == RESULT_LEFT_OUT


def test_a_server_s_refusal_ends_its_episode(server: tuple[type[Server], ServerAgent], catalogue: Catalogue) -> None:
    kind, player = server
    kind.answers += [refusal("tool_choice is not supported")]
    record = played(player, catalogue, [[Errand(TASK)]])[TASK.id]
    assert record["stop_reason"] == "error" and "tool_choice is not supported" in record["error"]
    kind.answers += [TOO_LONG]
    assert played(player, catalogue, [[Errand(TASK)]])[TASK.id]["stop_reason"] == "context"
    bodies: tuple[bytes, dict[str, Any]] = (b"<html>", {"choices": []})
    for body in bodies:
        kind.answers += [(200, body)]
        record = played(player, catalogue, [[Errand(TASK)]])[TASK.id]
        assert f"{player.generator.url}: small: what it answers is no chat completion; give" in record["error"]
    kind.answers += [(500, {})] * 3
    with pytest.raises(
        PlayerGone, match=r"the first 3 episodes all broke down, t0 first: ServerError: http.*status 500"
    ):
        played(player, catalogue, [errands(3)])


@pytest.mark.parametrize(("status", "said"), [(401, "refused .*set OPENAI_API_KEY"), (404, "not there")])
def test_a_server_that_refuses_everybody_ends_the_evaluation(
    server: tuple[type[Server], ServerAgent], catalogue: Catalogue, status: int, said: str
) -> None:
    kind, player = server
    kind.answers += [answer(*CALLS[-1]), (status, {"error": {"message": "no"}})]
    kept: list[str] = []
    with pytest.raises(PlayerGone, match=said):
        play(player, [errands(9)], partial(begun, catalogue), lambda episode: kept.append(episode.task.id))
    assert kept == ["t0"] and len(kind.asked) == 2


def test_a_server_that_is_away_ends_the_evaluation(catalogue: Catalogue) -> None:
    generator = ServerGenerator("http://127.0.0.1:9/v1", "small", retries=0)
    with pytest.raises(PlayerGone, match=r"127.0.0.1:9/v1: no answer .*refused.*; is the server running"):
        played(ServerAgent(generator, GREEDY), catalogue, [[Errand(TASK)]])
