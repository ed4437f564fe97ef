"""How prompts become tokens and batches: special tokens once, answers where they begin, padding on the right side."""

from __future__ import annotations

from typing import Any

import pytest
from tiny import CHATML, tiny_tokenizer
from tiny_judges import PROMPTS, WORDS, Prompt
from tokenizers.processors import TemplateProcessing

from models.encoding import Encoder

BOS_IN_TEMPLATE = "{{ bos_token }}" + CHATML
LLAMA_2 = (
    "{% for message in messages %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + message['content'] }}"
    "{{ ' [/INST]' }}{% else %}{{ ' ' + message['content'] + ' ' + eos_token }}{% endif %}{% endfor %}"
)
# As Qwen3 has it: told not to think, the prompt ends with an empty thought.
ASSISTANT = "{% if add_generation_prompt %}<|im_start|>assistant\n"
THINKING = CHATML.replace(ASSISTANT, ASSISTANT + "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}")


def decoder(template: str | None = None, adds: str = "$A") -> Any:
    """A decoder's tokenizer with a chat template, whose post-processor adds special tokens around a text ($A)."""
    tokenizer = tiny_tokenizer("decoder")
    ids = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("<s>", "</s>")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=adds, special_tokens=ids)
    tokenizer.chat_template = template
    return tokenizer


def tokens(encoder: Encoder, prompt: Prompt) -> list[str]:
    words: list[str] = encoder.tokenizer.convert_ids_to_tokens(encoder.encode([prompt])[0]["input_ids"])
    return words


@pytest.mark.parametrize("adds", ["$A", "<s> $A", "<s> $A </s>"])
@pytest.mark.parametrize("template", [None, CHATML, BOS_IN_TEMPLATE, LLAMA_2, THINKING])
@pytest.mark.parametrize("head", ["classification", "verbalizer"])
def test_a_text_begins_once_and_an_answer_s_place_comes_last(head: str, template: str | None, adds: str) -> None:
    encoder = Encoder(decoder(template, adds), head, bidirectional=False)  # type: ignore[arg-type]
    for prompt in PROMPTS:
        found = tokens(encoder, prompt)
        chat = head == "verbalizer" and template is not None
        begins = "bos_token" in str(template) if chat else "<s>" in adds
        assert found.count("<s>") == int(begins)
        assert found[0] == "<s>" or not begins
        assert found.count("</s>") == int(head == "classification" and "</s>" in adds)
        if head == "verbalizer" and template is None:
            assert found[-1] == ":"


def test_a_classifier_reads_the_bare_text_even_where_there_is_a_chat_template() -> None:
    encoder = Encoder(decoder(CHATML), "classification", bidirectional=False)
    assert encoder.text(Prompt(("Check.\n",), "mix flour\n")) == "Check.\nmix flour"


def test_a_verbalizer_asks_for_an_answer_or_uses_the_chat_template() -> None:
    prompt = Prompt(("Check.\n",), "mix flour")
    assert Encoder(decoder(), "verbalizer", False).text(prompt) == "Check.\nmix flour\nAnswer:"
    assert Encoder(decoder(CHATML), "verbalizer", False).text(prompt) == (
        "<|im_start|>user\nCheck.\nmix flour<|im_end|>\n<|im_start|>assistant\n"
    )
    assert Encoder(decoder(THINKING), "verbalizer", False).text(prompt).endswith("assistant\n<think>\n\n</think>\n\n")


@pytest.mark.parametrize("adds", ["$A", "<s> $A", "<s> $A </s>"])
@pytest.mark.parametrize("template", [CHATML, BOS_IN_TEMPLATE, LLAMA_2, THINKING])
def test_a_chat_is_encoded_as_transformers_itself_encodes_it(template: str, adds: str) -> None:
    encoder = Encoder(decoder(template, adds), "verbalizer", bidirectional=False)
    for prompt in PROMPTS:
        messages = [{"role": "user", "content": "".join(prompt.prefix) + prompt.suffix}]
        expected = encoder.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, enable_thinking=False, return_dict=True
        )
        assert encoder.encode([prompt])[0]["input_ids"] == expected["input_ids"]


@pytest.mark.parametrize("adds", ["$A", "<s> $A", "<s> $A </s>"])
@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (None, ["ĠNo", "ĠYes"]),  # "Answer: Yes"
        (CHATML, ["No", "Yes"]),  # "assistant\nYes"
        (BOS_IN_TEMPLATE, ["No", "Yes"]),
        (LLAMA_2, ["ĠNo", "ĠYes"]),  # "[/INST] Yes"
        (THINKING, ["No", "Yes"]),
    ],
)
def test_label_words_are_the_tokens_with_which_an_answer_begins(
    template: str | None, expected: list[str], adds: str
) -> None:
    encoder = Encoder(decoder(template, adds), "verbalizer", bidirectional=False)
    assert encoder.tokenizer.convert_ids_to_tokens(encoder.label_ids(WORDS)) == expected


@pytest.mark.parametrize("template", [None, CHATML, LLAMA_2])
def test_in_a_whole_conversation_the_label_s_token_stands_right_behind_the_prompt(template: str | None) -> None:
    encoder = Encoder(decoder(template), "verbalizer", bidirectional=False)
    ids = encoder.label_ids(WORDS)
    for prompt in PROMPTS:
        text = "".join(prompt.prefix) + prompt.suffix
        for word, label in zip(WORDS, ids, strict=True):
            if template is None:
                whole = encoder.tokenizer(f"{text}\nAnswer: {word}")["input_ids"]
            else:
                messages = [{"role": "user", "content": text}, {"role": "assistant", "content": word}]
                whole = encoder.tokenizer.apply_chat_template(messages, return_dict=True)["input_ids"]
            begins = encoder.encode([prompt])[0]["input_ids"]
            assert whole[: len(begins) + 1] == [*begins, label]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("No", "Absolutely"), r"label word 'Absolutely' is \d+ tokens after a prompt; .* needs words of one token"),
        (("No", "No"), r"label words \('No', 'No'\) are the same token"),
        (("No", ""), "label word '' is 0 tokens after a prompt"),
    ],
)
def test_label_words_of_several_tokens_or_the_same_are_refused(words: tuple[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Encoder(decoder(CHATML), "verbalizer", bidirectional=False).label_ids(words)


def test_an_encoder_reads_the_shared_part_and_the_record_as_a_pair() -> None:
    tokenizer = tiny_tokenizer("encoder")
    encoder = Encoder(tokenizer, "classification", bidirectional=True)
    row = encoder.encode([Prompt(("Is it so? ", "Yes "), " No\n")])[0]
    words = tokenizer.convert_ids_to_tokens(row["input_ids"])
    first, second = tokenizer.tokenize("Is it so? Yes"), tokenizer.tokenize("No")
    assert words == ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    assert row["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)


def test_a_decoder_gets_no_token_types_even_from_a_tokenizer_that_makes_them() -> None:
    tokenizer = decoder()
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    assert encoder_keys(Encoder(tokenizer, "classification", bidirectional=False)) == {"input_ids"}


def encoder_keys(encoder: Encoder) -> set[str]:
    return set(encoder.encode(PROMPTS)[0])


def test_lengths_count_every_token_and_nothing_is_cut(recwarn: pytest.WarningsRecorder) -> None:
    tokenizer = decoder(CHATML)
    tokenizer.model_max_length = 16
    encoder = Encoder(tokenizer, "verbalizer", bidirectional=False)
    long = Prompt((), "bake " * 500)
    assert encoder.lengths([long, *PROMPTS]) == [len(row["input_ids"]) for row in encoder.encode([long, *PROMPTS])]
    assert encoder.lengths([long])[0] > 500
    assert encoder.encode([]) == [] == encoder.lengths([])
    assert len(recwarn) == 0


# Batches, by hand


def test_a_classifier_s_rows_are_padded_on_the_right() -> None:
    encoder = Encoder(decoder(), "classification", bidirectional=False)
    batch = encoder.pad([{"input_ids": [7, 8, 9]}, {"input_ids": [5]}])
    assert {name: tensor.tolist() for name, tensor in batch.items()} == {
        "input_ids": [[7, 8, 9], [5, 0, 0]],
        "attention_mask": [[1, 1, 1], [1, 0, 0]],
    }


def test_a_verbalizer_s_rows_are_padded_on_the_left_and_counted_from_their_first_token() -> None:
    encoder = Encoder(decoder(), "verbalizer", bidirectional=False)
    batch = encoder.pad([{"input_ids": [7, 8, 9]}, {"input_ids": [5, 6]}], length=4)
    assert {name: tensor.tolist() for name, tensor in batch.items()} == {
        "input_ids": [[0, 7, 8, 9], [0, 0, 5, 6]],
        "attention_mask": [[0, 1, 1, 1], [0, 0, 1, 1]],
        "position_ids": [[0, 0, 1, 2], [0, 0, 0, 1]],
    }


def test_an_encoder_s_token_types_are_padded_with_zero() -> None:
    tokenizer = tiny_tokenizer("encoder")
    tokenizer.pad_token = "[MASK]"
    encoder = Encoder(tokenizer, "classification", bidirectional=True)
    rows = [{"input_ids": [2, 9, 3], "token_type_ids": [0, 1, 1]}, {"input_ids": [2], "token_type_ids": [0]}]
    batch = encoder.pad(rows)
    assert {name: tensor.tolist() for name, tensor in batch.items()} == {
        "input_ids": [[2, 9, 3], [2, 4, 4]],
        "token_type_ids": [[0, 1, 1], [0, 0, 0]],
        "attention_mask": [[1, 1, 1], [1, 0, 0]],
    }


def test_a_text_that_ends_with_the_pad_token_is_refused_where_its_end_is_looked_for() -> None:
    """A classification head pools the last token that does not pad (transformers#35352)."""
    tokenizer = decoder(adds="<s> $A </s>")
    tokenizer.pad_token = "</s>"
    with pytest.raises(ValueError, match=r"a text ends with the pad token '</s>'; .* a pad token of its own"):
        Encoder(tokenizer, "classification", bidirectional=False).encode(PROMPTS)
    Encoder(tokenizer, "verbalizer", bidirectional=False).encode(PROMPTS)  # reads its last place, whatever stands there


def test_a_text_that_holds_the_pad_token_elsewhere_is_taken() -> None:
    encoder = Encoder(decoder(), "classification", bidirectional=False)
    assert 0 in encoder.encode([Prompt((), "mix <pad> flour")])[0]["input_ids"]


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(ValueError, match="a text gives no token at all; give every record a text"):
        Encoder(decoder(), "classification", bidirectional=False).encode([Prompt((), " ")])
