"""A local checkpoint writes what transformers' own generate writes for each chat alone, whatever stands beside it."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny import tiny_checkpoint
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from models.backbone import LoadSettings
from models.decoding import causal_in_pieces
from models.generation import Chat, Completion, Message, SamplingSettings, chat
from models.generators import find_generator, open_generator
from models.local import LocalGenerator, common_prefix
from models.served import ServerGenerator

SHOTS = "You check plans. Given a goal and a script of ordered steps, say whether following the script is feasible."
CHATS = [
    *(chat(f"Goal: bake {'bread at home ' * (k % 5)}{k}", SHOTS) for k in range(11)),
    *(chat(f"hang the lights {k}") for k in range(3)),
    Chat((Message("user", "mix"), Message("assistant", "flour"), Message("user", "and water"))),
    chat("Goal: plan an autumn party", "Answer Yes or No."),
]


def plain_generate(folder: Path, chats: Sequence[Chat], settings: SamplingSettings) -> list[str]:
    """transformers' generate, one chat at a time, by its own attention and cache."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    told = model.generation_config.eos_token_id
    ends = told if isinstance(told, list) else [told]
    texts = []
    for one in chats:
        turns = [{"role": message.role, "content": message.content} for message in one.messages]
        ids = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt")["input_ids"]
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=settings.max_tokens, do_sample=False
        )
        new = out[0, ids.shape[1] :].tolist()
        texts.append(tokenizer.decode(new[:-1] if new[-1] in ends else new, skip_special_tokens=True))
    return texts


def windowed(folder: Path, architecture: str, **changes: Any) -> Path:
    """A tiny checkpoint that sees only the last few tokens, in all layers or in every other one."""
    tiny_checkpoint(folder, architecture, chat=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        folder = tmp_path_factory.getbasetemp() / "generation" / name
        if name in made:
            return made[name]
        if name == "mistral-windowed":
            windowed(folder, "mistral", sliding_window=9)
        elif name == "qwen2-mixed":
            layers = ["full_attention", "sliding_attention"]
            windowed(folder, "qwen2", use_sliding_window=True, sliding_window=9, layer_types=layers)
        else:
            tiny_checkpoint(folder, name, chat=True)
        # A tenth of all tokens end a text, so that rows end at different times.
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, *range(13, 400, 10)]}))
        made[name] = folder
        return folder

    return make


def local(folder: Path, **options: Any) -> LocalGenerator:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return LocalGenerator(model, AutoTokenizer.from_pretrained(folder), "tiny", {}, **options)


def written(generator: Any, chats: Sequence[Chat], settings: SamplingSettings) -> list[Completion]:
    found = dict(generator.generate(chats, settings))
    assert sorted(found) == list(range(len(chats)))
    return [found[row] for row in range(len(chats))]


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "qwen3", "gemma", "mistral-windowed", "qwen2-mixed"])
def test_greedy_texts_are_those_of_transformers_for_each_chat_alone(
    checkpoint: Callable[[str], Path], name: str
) -> None:
    settings = SamplingSettings(max_tokens=20)
    expected = plain_generate(checkpoint(name), CHATS, settings)
    found = written(local(checkpoint(name), rows=3), CHATS, settings)
    assert [completion.text for completion in found] == expected


@pytest.mark.parametrize("rows", [1, 2, 5, 64])
def test_neither_the_number_of_rows_nor_the_order_changes_a_text(checkpoint: Callable[[str], Path], rows: int) -> None:
    settings = SamplingSettings(max_tokens=20)
    expected = written(local(checkpoint("qwen3"), rows=3), CHATS, settings)
    order = random.Random(rows).sample(range(len(CHATS)), len(CHATS))
    shuffled = written(local(checkpoint("qwen3"), rows=rows), [CHATS[row] for row in order], settings)
    assert shuffled == [expected[row] for row in order]
    assert len({completion.tokens for completion in expected}) > 2  # rows end at different times


def test_a_beginning_that_chats_share_is_read_once(
    checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = local(checkpoint("llama"), rows=4)
    read = []
    generator.model.model.register_forward_pre_hook(  # type: ignore[operator]
        lambda module, args, kwargs: read.append(kwargs["input_ids"].numel()), with_kwargs=True
    )
    settings = SamplingSettings(max_tokens=1)
    chats = CHATS[:11]
    written(generator, chats, settings)
    lengths = generator.prompt_tokens(chats)
    shared = common_prefix([generator.text.encode([generator.text.render(one, None)])[0] for one in chats])
    own = [length - shared for length in lengths]
    assert shared > 30
    assert read[0] == shared
    assert sum(read[1:]) == sum(own)  # the rest, without padding


@pytest.mark.parametrize(
    ("new", "every", "window"), [(1, 1, None), (70, 70, None), (130, 300, None), (65, 200, 50), (200, 200, 9)]
)
def test_attention_in_pieces_is_attention(new: int, every: int, window: int | None) -> None:
    numbers = torch.Generator().manual_seed(new)
    query, key, value = (
        torch.randn(1, heads, tokens, 16, generator=numbers) for heads, tokens in ((6, new), (2, every), (2, every))
    )
    places = torch.arange(every)
    back = places[every - new :, None] - places
    seen = (back >= 0) & (back < (window or every))
    wide = [tensor.double().repeat_interleave(3, dim=1) for tensor in (key, value)]
    expected = torch.nn.functional.scaled_dot_product_attention(query.double(), *wide, attn_mask=seen, scale=0.3)
    found = causal_in_pieces(query, key, value, 0.3, window)
    assert torch.allclose(found.double(), expected.transpose(1, 2), atol=2e-6)


def test_a_grammar_leaves_a_text_what_the_model_finds_likeliest_of_it(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "model", "llama", chat=True)
    generator = local(folder, rows=3)
    texts = ["yes", "no way", "hang"]
    grammar = "start: " + " | ".join(f'"{text}"' for text in texts)
    found = written(generator, CHATS, SamplingSettings(max_tokens=20, grammar=grammar))
    assert {completion.finish for completion in found} == {"stop"}
    tokenizer = generator.text.tokenizer
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for one, completion in zip(CHATS, found, strict=True):
        so_far, ids = "", generator.text.encode([generator.text.render(one, None)])[0]
        while so_far not in texts:  # token by token, with nothing but the tokenizer's own texts to go by
            order = model(torch.tensor([ids])).logits[0, -1].argsort(descending=True).tolist()
            pieces = ((token, so_far + tokenizer.decode([token])) for token in order)
            token, so_far = next(
                (token, text) for token, text in pieces if text != so_far and any(t.startswith(text) for t in texts)
            )
            ids = [*ids, token]
        assert completion.text == so_far
    assert len({completion.text for completion in found}) > 1


def test_only_rows_that_are_not_finished_are_computed(checkpoint: Callable[[str], Path]) -> None:
    generator = local(checkpoint("qwen3"), rows=64)
    rows = []
    generator.model.model.register_forward_pre_hook(  # type: ignore[operator]
        lambda module, args, kwargs: rows.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    found = written(generator, CHATS[:11], SamplingSettings(max_tokens=20))
    steps = [count for count, length in rows[2:] if length == 1]
    # Each text's first token comes of reading its prompt, each other one of one row in one step.
    assert sum(steps) == sum(completion.tokens - 1 for completion in found)
    assert len(steps) == max(completion.tokens for completion in found) - 1


def test_each_batch_of_a_plan_writes_the_same_alone(checkpoint: Callable[[str], Path]) -> None:
    settings = SamplingSettings(max_tokens=12)
    generator = local(checkpoint("llama"), rows=1)
    plan = generator.plan(CHATS, settings)
    assert sorted(row for batch in plan for row in batch) == list(range(len(CHATS)))
    assert max(map(len, plan)) == 4  # rows written side by side, times the rounds of a batch
    whole = written(generator, CHATS, settings)
    for batch in reversed(plan):
        part = dict(local(checkpoint("llama"), rows=1).generate(CHATS, settings, [batch]))
        assert part == {row: whole[row] for row in batch}


def test_limit_and_end_token_say_how_a_text_ended(checkpoint: Callable[[str], Path]) -> None:
    found = written(local(checkpoint("qwen3")), CHATS, SamplingSettings(max_tokens=20))
    assert {completion.finish for completion in found} == {"stop", "length"}
    for completion in found:
        assert (completion.finish == "length") == (completion.tokens == 20)


def test_a_text_ends_before_a_stop_text(checkpoint: Callable[[str], Path]) -> None:
    free = written(local(checkpoint("llama")), CHATS, SamplingSettings(max_tokens=20))
    stop = free[0].text[4:6]
    stopped = written(local(checkpoint("llama")), CHATS, SamplingSettings(max_tokens=20, stop=("never", stop)))
    for before, after in zip(free, stopped, strict=True):
        assert after.text == before.text.split(stop)[0]
        if stop in before.text:
            assert after.finish == "stop"
            assert after.tokens <= before.tokens
    assert stopped[0].tokens < 20


def test_draws_follow_from_seed_turns_and_sample_alone(checkpoint: Callable[[str], Path]) -> None:
    settings = SamplingSettings(max_tokens=8, temperature=1.0, seed=3)
    five = [chat("bake", SHOTS, sample=number) for number in range(5)]
    together = written(local(checkpoint("llama"), rows=5), [*CHATS, *five], settings)[-5:]
    alone = [written(local(checkpoint("llama"), rows=1), [one], settings)[0] for one in five]
    assert together == alone
    assert len({completion.text for completion in alone}) == 5
    other = written(local(checkpoint("llama")), five, SamplingSettings(max_tokens=8, temperature=1.0, seed=4))
    assert other != alone


def test_draws_follow_the_model_s_distribution_within_top_p(checkpoint: Callable[[str], Path]) -> None:
    generator = local(checkpoint("llama"))
    prompt = generator.text.render(chat("bake"), None)
    model = AutoModelForCausalLM.from_pretrained(checkpoint("llama"), dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.tensor(generator.text.encode([prompt]))).logits[0, -1]
    p, order = (logits / 0.25).softmax(-1).sort(descending=True)
    kept = int((p.cumsum(0) < 0.8).sum()) + 1
    assert kept >= 2
    expected: dict[str, float] = {}
    for token, share in zip(order[:kept].tolist(), (p[:kept] / p[:kept].sum()).tolist(), strict=True):
        text = "" if token in generator.ends else generator.text.decode([token])
        expected[text] = expected.get(text, 0.0) + share

    draws = 800
    settings = SamplingSettings(max_tokens=1, temperature=0.25, top_p=0.8)
    found = written(generator, [chat("bake", sample=number) for number in range(draws)], settings)
    seen = [completion.text for completion in found]
    assert set(seen) <= set(expected)
    for text, share in expected.items():
        assert abs(seen.count(text) / draws - share) < 4 * (share * (1 - share) / draws) ** 0.5 + 1e-9


def test_a_prompt_that_does_not_fit_is_refused_in_words(checkpoint: Callable[[str], Path]) -> None:
    generator = local(checkpoint("llama"))
    assert generator.context == 512
    with pytest.raises(ValueError, match=r"tiny takes 512 tokens; the longest prompt has \d+, and max_tokens is 500"):
        list(generator.generate([chat("bake " * 20)], SamplingSettings(max_tokens=500)))


def test_without_a_template_the_turns_stand_one_below_the_other(tmp_path: Path) -> None:
    generator = local(tiny_checkpoint(tmp_path / "base", "llama"))
    assert generator.text.render(chat("***query***: x", "Answer.\n"), None) == "Answer.\n***query***: x"
    assert generator.text.render(chat("x", "Answer."), None) == "Answer.\nx"


def test_a_template_without_a_system_turn_gets_it_in_the_first_question(tmp_path: Path) -> None:
    generator = local(tiny_checkpoint(tmp_path / "tiny", "gemma", chat=True))
    generator.text.tokenizer.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
        "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}{% endfor %}"
    )
    assert generator.text.render(chat("x", "Answer."), None) == "<user>Answer.\n\nx"


def test_a_reasoning_block_that_the_template_opens_begins_the_text(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "tiny", "llama", chat=True)
    generator = local(folder)
    plain = written(generator, CHATS[:1], SamplingSettings(max_tokens=4))[0]
    generator.text.tokenizer.chat_template += (
        "{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}"
    )
    assert written(generator, CHATS[:1], SamplingSettings(max_tokens=4))[0].text.startswith("<think>\n")
    assert written(generator, CHATS[:1], SamplingSettings(max_tokens=4, thinking=False))[0] == plain


def test_an_adapter_writes_what_peft_writes_with_it(tmp_path: Path) -> None:
    folder = tiny_checkpoint(tmp_path / "tiny", "llama", chat=True)
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=4, init_lora_weights=False))
    adapted.save_pretrained(str(tmp_path / "adapter"))
    merged = adapted.merge_and_unload()
    merged.save_pretrained(str(tmp_path / "merged"))
    AutoTokenizer.from_pretrained(folder).save_pretrained(str(tmp_path / "merged"))
    settings = SamplingSettings(max_tokens=12)
    generator = open_generator(str(folder), str(tmp_path / "adapter"), LoadSettings(dtype="float32"))
    texts = [completion.text for completion in written(generator, CHATS, settings)]
    assert texts == plain_generate(tmp_path / "merged", CHATS, settings)
    assert texts != plain_generate(folder, CHATS, settings)
    assert generator.name == f"tiny+{tmp_path.name}"
    assert str(tmp_path) not in json.dumps(generator.facts)
    found = find_generator(str(folder), str(tmp_path / "adapter"), LoadSettings(dtype="float32"))
    assert (found.name, found.facts) == (generator.name, generator.facts)
    assert (found.facts["template"], found.facts["dtype"], found.facts["rows"]) == ("chat", "float32", 32)


def test_what_cannot_write_is_refused_in_words(tmp_path: Path) -> None:
    encoder = tiny_checkpoint(tmp_path / "encoder", "bert")
    with pytest.raises(ValueError, match=r"encoder \(bert\) writes no text; give a language model"):
        open_generator(str(encoder))
    with pytest.raises(FileNotFoundError, match="no adapter; give a folder with adapter_config"):
        open_generator(str(encoder), str(tmp_path))
    with pytest.raises(ValueError, match="no model is named; give http://host:port/v1#model"):
        open_generator("http://127.0.0.1:1/v1")
    config = AutoConfig.for_model("bloom", vocab_size=400, hidden_size=32, n_layer=2, n_head=4)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "bloom")
    AutoTokenizer.from_pretrained(tiny_checkpoint(tmp_path / "tiny", "llama")).save_pretrained(tmp_path / "bloom")
    with pytest.raises(ValueError, match=r"bloom \(bloom\) is not written with here: .*; serve it"):
        open_generator(str(tmp_path / "bloom"))


@pytest.mark.parametrize(
    ("rows", "shared"),
    [([[1, 2, 3], [1, 2, 4]], 2), ([[1, 2], [1, 2, 3]], 1), ([[5], [6]], 0), ([[1, 2, 3]], 0), ([[1, 2], [1, 2]], 1)],
)
def test_common_beginnings_leave_each_row_a_token(rows: list[list[int]], shared: int) -> None:
    assert common_prefix(rows) == shared


class Server(ThreadingHTTPServer):
    """Answers with the last question's text; fails as often as told before that."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.moments: list[float] = []
        self.failures: list[int] = []
        self.delay = 0.0
        self.busy = self.most = 0
        self.lock = threading.Lock()
        self.message: dict[str, Any] = {}
        self.url = f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(body)
            self.server.moments.append(time.monotonic())
            self.server.busy += 1
            self.server.most = max(self.server.most, self.server.busy)
            status = self.server.failures.pop(0) if self.server.failures else 200
        time.sleep(self.server.delay)
        text = body["messages"][-1]["content"]
        message = {"role": "assistant", "content": text, **self.server.message}
        finish = "length" if len(text) > body["max_tokens"] else "stop"
        answer = {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 7, "completion_tokens": len(text), "total_tokens": 7 + len(text)},
        }
        data = json.dumps(answer if status == 200 else {"error": {"message": "told why"}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        with self.server.lock:
            self.server.busy -= 1

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()


def test_a_served_model_is_asked_with_the_settings_and_its_answers_are_told_apart(server: Server) -> None:
    generator = ServerGenerator(server.url, "m")
    with pytest.raises(ValueError, match="a grammar guides local checkpoints alone"):
        written(generator, [chat("x")], SamplingSettings(grammar='start: "x"'))
    settings = SamplingSettings(max_tokens=4, stop=("\n",), thinking=False)
    found = written(generator, [chat("abc", "sys"), chat("abcdefg")], settings)
    assert [(one.text, one.tokens, one.prompt_tokens, one.finish) for one in found] == [
        ("abc", 3, 7, "stop"),
        ("abcdefg", 7, 7, "length"),
    ]
    first = next(request for request in server.requests if len(request["messages"]) == 2)
    assert first["messages"] == [{"role": "system", "content": "sys"}, {"role": "user", "content": "abc"}]
    assert (first["model"], first["max_tokens"], first["temperature"], first["stop"]) == ("m", 4, 0.0, ["\n"])
    assert first["chat_template_kwargs"] == {"enable_thinking": False}
    assert "127.0.0.1" not in json.dumps(generator.facts)


def test_requests_run_side_by_side_within_the_bound(server: Server) -> None:
    server.delay = 0.05
    written(ServerGenerator(server.url, "m", concurrency=3), [chat(str(k)) for k in range(9)], SamplingSettings())
    assert server.most == 3


def test_failures_that_may_pass_are_tried_again_after_growing_waits(server: Server) -> None:
    server.failures = [503, 429]
    found = written(ServerGenerator(server.url, "m"), [chat("abc")], SamplingSettings())
    assert found[0].text == "abc"
    first, second, third = server.moments
    assert 0.3 < second - first < third - second < 3


def test_a_refusal_ends_at_once_with_the_server_s_reason(server: Server) -> None:
    server.failures = [404]
    with pytest.raises(ValueError, match=r"m: not there .*told why.*; give a model that the server lists"):
        written(ServerGenerator(server.url, "m"), [chat("abc")], SamplingSettings())
    assert len(server.requests) == 1


def test_no_server_is_said_in_words() -> None:
    with pytest.raises(ValueError, match="is the server running"):
        written(ServerGenerator("http://127.0.0.1:9/v1", "m", retries=0), [chat("abc")], SamplingSettings())


def test_what_was_answered_is_not_asked_again(server: Server, tmp_path: Path) -> None:
    cache = tmp_path / "answers.sqlite"
    chats = [chat("abc"), chat("abd")]
    first = written(ServerGenerator(server.url, "m", cache), chats, SamplingSettings())
    assert written(ServerGenerator(server.url, "m", cache), chats, SamplingSettings()) == first
    assert len(server.requests) == 2
    written(ServerGenerator(server.url, "m", cache), chats[:1], SamplingSettings(max_tokens=9))
    written(ServerGenerator(server.url, "other", cache), chats[:1], SamplingSettings())
    written(ServerGenerator(server.url, "m", cache), [chat("abc", sample=1)], SamplingSettings())
    assert len(server.requests) == 5


def test_reasoning_that_a_server_parts_from_the_answer_is_put_back(server: Server) -> None:
    server.message = {"reasoning_content": "hm"}
    generator = ServerGenerator(server.url, "m")
    assert written(generator, [chat("abc")], SamplingSettings())[0].text == "<think>\nhm\n</think>\n\nabc"
    server.message = {"reasoning_content": "hm", "content": None}
    assert written(generator, [chat("abc")], SamplingSettings())[0].text == "<think>\nhm"
