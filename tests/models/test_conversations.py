"""Conversations whose keys and values are kept: what they say is what reading everything anew would say."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from tiny import DECODERS, tiny_checkpoint
from transformers import AutoModelForCausalLM, PreTrainedModel

from models.conversations import Answer, Conversations, Turn
from models.decoding import use_slots
from models.generation import SamplingSettings

GREEDY = SamplingSettings(max_tokens=6)
NEVER = [-1]


def tokens(count: int, seed: int) -> list[int]:
    return random.Random(seed).choices(range(10, 390), k=count)


BEGINNING = tokens(30, 0)
WORDS = [[tokens(20 + 9 * turn + lane, 10 * lane + turn) for turn in range(4)] for lane in range(3)]


@pytest.fixture(scope="module", params=DECODERS)
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[PreTrainedModel, ...]:
    """A tiny model that attends over slots, and the same as transformers has it."""
    folder = tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"), request.param)
    slotted, plain = (AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval() for _ in range(2))
    use_slots(slotted, request.param)
    return slotted, plain


def say(talks: Conversations, texts: dict[int, list[int]], settings: SamplingSettings = GREEDY) -> list[Answer]:
    turns = [Turn(slot, ids, random.Random(slot)) for slot, ids in texts.items()]
    return talks.answer(turns, settings, lambda written: written[-1] in NEVER)


def converse(
    talks: Conversations, lanes: Sequence[int], settings: SamplingSettings = GREEDY
) -> dict[int, list[list[int]]]:
    """Several conversations of four turns each, side by side; what was written in each turn."""
    texts = {lane: list(BEGINNING) for lane in lanes}
    written: dict[int, list[list[int]]] = {lane: [] for lane in lanes}
    for turn in range(4):
        for lane in lanes:
            texts[lane] += WORDS[lane][turn]
        for lane, answer in zip(lanes, say(talks, texts, settings), strict=True):
            written[lane].append(answer.written)
            texts[lane] += answer.written
    return written


@torch.inference_mode()
def likeliest(model: PreTrainedModel, ids: list[int], count: int) -> list[int]:
    """Greedy decoding by plain forward passes over everything."""
    made: list[int] = []
    for _ in range(count):
        made.append(int(model(input_ids=torch.tensor([[*ids, *made]]), use_cache=False).logits[0, -1].argmax()))
    return made


def test_turns_are_what_plain_passes_over_the_whole_text_give(models: tuple[PreTrainedModel, ...]) -> None:
    talks = Conversations(models[0], 3)
    talks.begin_with(BEGINNING)
    written = converse(talks, [0, 1, 2])
    for lane, turns in written.items():
        ids = list(BEGINNING)
        for turn, made in enumerate(turns):
            ids += WORDS[lane][turn]
            assert made == likeliest(models[1], ids, 6)
            ids += made


def test_keeping_nothing_says_the_same(models: tuple[PreTrainedModel, ...]) -> None:
    kept, anew = Conversations(models[0], 2), Conversations(models[0], 2, keep=False)
    kept.begin_with(BEGINNING)
    anew.begin_with(BEGINNING)
    assert converse(kept, [0, 1]) == converse(anew, [0, 1])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> PreTrainedModel:
    folder = tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"), "llama")
    slotted: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    use_slots(slotted, "llama")
    return slotted


def test_a_turn_reads_its_new_tokens_only(model: PreTrainedModel) -> None:
    talks = Conversations(model, 2)
    talks.begin_with(BEGINNING)
    ids = [*BEGINNING, *tokens(20, 1)]
    (first,) = say(talks, {1: ids})
    assert first.computed == 20
    ids += [*first.written, *tokens(7, 2)]
    (second,) = say(talks, {1: ids})
    assert second.computed == 1 + 7  # the last token written has not been read yet
    (third,) = say(talks, {1: [*ids[:40], *tokens(5, 3)]})  # a history that is told in other words
    assert third.computed == 5
    (same,) = say(talks, {1: [*ids[:40], *tokens(5, 3)]})
    assert (same.computed, same.written) == (1, third.written)


def test_of_the_last_conversation_only_the_common_beginning_is_kept(model: PreTrainedModel) -> None:
    talks = Conversations(model, 1)
    talks.begin_with(BEGINNING)
    query = tokens(20, 1)
    say(talks, {0: [*BEGINNING, *query, *tokens(9, 2)]})
    talks.restart(0)
    (next_one,) = say(talks, {0: [*BEGINNING, *query, *tokens(5, 3)]})
    assert next_one.computed == 20 + 5  # though the last one began with the same query


def test_the_numbers_of_a_conversation_do_not_depend_on_the_others(model: PreTrainedModel) -> None:
    alone, together = [], []
    for lanes, kept in (([1], alone), ([0, 1, 2], together)):
        talks = Conversations(model, 3)
        talks.begin_with(BEGINNING)
        converse(talks, lanes)
        talks.restart(1)
        say(talks, {1: [*BEGINNING, *tokens(9, 5)], **({2: tokens(300, 6)} if len(lanes) > 1 else {})})
        count = len(talks.held[1])
        kept += [(keys[1, :, :count].clone(), values[1, :, :count].clone()) for keys, values in talks.store.layers]
    for one, other in zip(alone, together, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_slots_grow_with_what_they_hold(model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    roomy = converse(Conversations(model, 2), [0, 1])
    monkeypatch.setattr("models.conversations.FIRST_ROOM", 16)
    monkeypatch.setattr("models.conversations.READ_TOKENS", 8)  # prompts in several passes
    assert converse(Conversations(model, 2), [0, 1]) == roomy


def test_drawn_answers_follow_from_their_dice(model: PreTrainedModel) -> None:
    drawn = SamplingSettings(max_tokens=6, temperature=1.0)
    together, alone = converse(Conversations(model, 3), [0, 1, 2], drawn), converse(Conversations(model, 3), [1], drawn)
    assert together[1] == alone[1]
    assert together[0] != converse(Conversations(model, 3), [0])[0]


def test_an_answer_ends_where_it_is_finished(model: PreTrainedModel) -> None:
    talks = Conversations(model, 1)
    (whole,) = say(talks, {0: BEGINNING})
    last = whole.written[2]
    (cut,) = talks.answer([Turn(0, BEGINNING)], GREEDY, lambda written: written[-1] == last)
    assert cut.written == whole.written[: whole.written.index(last) + 1]


class OnlyEven:
    """Allows even tokens, and keeps what was taken."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def narrow(self, logits: torch.Tensor) -> None:
        logits[1::2] = float("-inf")

    def took(self, token: int) -> None:
        self.taken.append(token)


def test_a_guide_narrows_the_choice_of_its_own_conversation(model: PreTrainedModel) -> None:
    guide = OnlyEven()
    turns = [Turn(0, BEGINNING, guide=guide), Turn(1, BEGINNING)]
    guided, free = Conversations(model, 2).answer(turns, GREEDY, lambda written: False)
    assert guided.written == guide.taken and all(token % 2 == 0 for token in guided.written)
    assert free.written == say(Conversations(model, 2), {1: BEGINNING})[0].written
