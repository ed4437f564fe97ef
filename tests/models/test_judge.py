"""A judge says the same alone and in any batch, saved and loaded, here and with peft and transformers alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plain
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import DECODERS, ENCODERS, tiny_checkpoint
from tiny_judges import COMBINATIONS, PROMPTS, Made, Prompt, logits_of, shake

from models.backbone import LoadSettings
from models.checkpoint import PACKAGED, Checkpoint, resolve
from models.judge import Base, Judge, JudgeSpec, base_checkpoint, load_judge, new_judge
from models.lora import LoraSettings, attach_lora
from models.spec import SPEC_FILE

FLOAT32 = LoadSettings(dtype="float32")


@pytest.fixture(scope="module")
def elsewhere(made: Callable[..., Made], tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], Any]:
    """What a fresh process with peft and transformers alone says of every judge."""
    jobs = {}
    for architecture, head in COMBINATIONS:
        for dtype in ("float32", "bfloat16"):
            judge = made(architecture, head, dtype)
            texts = plain.texts_of(PROMPTS, head, architecture in ENCODERS)
            paths = {"adapter": str(judge.folder), "base": str(judge.base)}
            jobs[architecture, head, dtype] = {**paths, "head": head, "texts": texts}
    path = tmp_path_factory.mktemp("jobs") / "jobs.json"
    path.write_text(json.dumps(list(jobs.values())))
    command = [sys.executable, plain.__file__, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=path.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(jobs, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_a_fresh_process_without_us_gives_the_same_logits_and_the_very_same_head(
    made: Callable[..., Made], elsewhere: dict[Any, Any], architecture: str, head: str, dtype: str
) -> None:
    judge, found = made(architecture, head, dtype), elsewhere[architecture, head, dtype]
    ours = judge.logits(load_judge(judge.folder, str(judge.base), FLOAT32))
    assert np.abs(np.array(found["logits"]) - ours.numpy()).max() < 1e-5
    assert ours.std(dim=0).max() > 1e-3  # the texts are told apart, so that the line above says something
    in_memory = plain.head_digests(judge.judge.model)
    assert found["head"] == in_memory
    assert bool(in_memory) == (head == "classification")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_a_judge_is_loaded_as_it_was_trained_and_says_the_same_to_the_last_bit(
    made: Callable[..., Made], architecture: str, head: str, dtype: str
) -> None:
    judge = made(architecture, head, dtype)
    loaded = load_judge(judge.folder, str(judge.base))
    assert loaded.spec == judge.judge.spec
    assert next(loaded.model.parameters()).dtype == getattr(torch, dtype)
    assert torch.equal(judge.logits(), judge.logits(loaded))
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert [loaded.encoder.encode(PROMPTS), loaded.max_length] == [judge.encoded, judge.judge.max_length]


@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_no_batch_and_no_padding_changes_a_logit(made: Callable[..., Made], architecture: str, head: str) -> None:
    judge = made(architecture, head)
    tokenizer, model = plain.load(str(judge.folder), str(judge.base), head)
    words = [" No", " Yes"] if head == "verbalizer" else None
    alone = torch.tensor(plain.logits(tokenizer, model, plain.texts_of(PROMPTS, head, architecture in ENCODERS), words))
    rows = judge.encoded
    pairs = torch.cat([logits_of(judge.judge, [rows[2], row])[1:] for row in rows])
    batches = {
        "together": logits_of(judge.judge, rows),
        "backwards": logits_of(judge.judge, rows[::-1]).flip(0),
        "padded further": logits_of(judge.judge, rows, length=300),
        "beside the longest": pairs,
    }
    for name, found in batches.items():
        assert (found - alone).abs().max() < 1e-5, name


@pytest.mark.parametrize(("architecture", "head"), [pair for pair in COMBINATIONS if pair[0] in DECODERS])
def test_the_other_side_of_padding_gives_the_same_logits(
    made: Callable[..., Made], architecture: str, head: str
) -> None:
    judge = made(architecture, head)
    tokenizer = judge.judge.encoder.tokenizer
    ids = [row["input_ids"] for row in judge.encoded]
    tokenizer.padding_side = {"verbalizer": "right", "classification": "left"}[head]
    batch = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
    tokenizer.padding_side = {"verbalizer": "left", "classification": "right"}[head]
    with torch.inference_mode():
        if head == "classification":
            found = judge.judge.model(**batch).logits
        else:
            hidden = judge.judge.model.get_base_model().model(**batch).last_hidden_state
            last = hidden[range(len(ids)), [len(row) - 1 for row in ids]]
            words = judge.judge.model.get_output_embeddings().weight[list(judge.judge.label_ids or ())]
            found = last @ words.T
    assert (found - judge.logits()).abs().max() < 1e-5


@pytest.mark.parametrize("head", ["classification", "verbalizer"])
def test_a_backbone_that_is_published_padding_with_its_end_token_gets_another(tmp_path: Path, head: str) -> None:
    folder = tiny_checkpoint(tmp_path / "llama")
    edit(folder / "config.json", pad_token_id=2, eos_token_id=2)
    edit(folder / "tokenizer_config.json", pad_token="</s>")
    torch.manual_seed(0)
    settings = LoadSettings(head=head, dtype="float32")  # type: ignore[arg-type]
    judge = new_judge(resolve(str(folder)), "j", "j-1", ("No", "Yes"), settings, LoraSettings(rank=2))
    shake(judge)
    endings = [*PROMPTS, Prompt(("Check.",), "It ends here.</s>")]  # pooled at its end, not before it
    rows = judge.encoder.encode(endings)
    judge.save(tmp_path / "adapter")
    tokenizer, model = plain.load(str(tmp_path / "adapter"), str(folder), head)
    assert (tokenizer.pad_token, judge.model.config.pad_token_id) == ("<pad>", 0)
    words = [" No", " Yes"] if head == "verbalizer" else None
    alone = torch.tensor(plain.logits(tokenizer, model, plain.texts_of(endings, head, False), words))
    assert (logits_of(judge, rows, length=300) - alone).abs().max() < 1e-5


@pytest.mark.parametrize("architecture", DECODERS)
def test_the_verbalizer_s_logits_are_those_of_a_plain_pass_over_the_whole_vocabulary(
    base: Callable[..., Path], fresh: Callable[..., Judge], architecture: str
) -> None:
    judge = fresh(architecture, "verbalizer", lora=None)
    tokenizer, model = plain.load_whole(str(base(architecture)), "verbalizer", dtype="float32")
    expected = plain.logits(tokenizer, model, plain.texts_of(PROMPTS, "verbalizer", False), [" No", " Yes"])
    found = logits_of(judge, judge.encoder.encode(PROMPTS))
    assert (found - torch.tensor(expected)).abs().max() < 1e-5
    assert (judge.style, found.shape) == ("instruction", (len(PROMPTS), 2))


@pytest.mark.parametrize(
    ("architecture", "head"), [("llama", "classification"), ("llama", "verbalizer"), ("bert", "classification")]
)
def test_a_whole_model_is_saved_and_loaded_and_is_an_ordinary_checkpoint(
    fresh: Callable[..., Judge], tmp_path: Path, architecture: str, head: str
) -> None:
    judge = fresh(architecture, head, lora=None)
    assert all(parameter.requires_grad for parameter in judge.model.parameters())
    judge.model.train()
    rows = judge.encoder.encode(PROMPTS)
    torch.nn.functional.cross_entropy(judge.logits(judge.encoder.pad(rows)), torch.tensor([0, 1, 1, 0])).backward()
    torch.optim.SGD(judge.model.parameters(), lr=0.1).step()
    trained = logits_of(judge, rows)
    judge.save(tmp_path / "adapter")
    assert torch.equal(logits_of(load_judge(tmp_path / "adapter"), rows), trained)
    tokenizer, model = plain.load_whole(str(tmp_path / "adapter"), head)
    words = [" No", " Yes"] if head == "verbalizer" else None
    alone = plain.logits(tokenizer, model, plain.texts_of(PROMPTS, head, architecture in ENCODERS), words)
    assert (torch.tensor(alone) - trained).abs().max() < 1e-5
    if head == "classification":
        assert model.config.id2label == {0: "no", 1: "yes"}


def test_a_whole_judge_in_bfloat16_still_has_fine_logits(fresh: Callable[..., Judge], tmp_path: Path) -> None:
    fresh("roberta", lora=None, dtype="bfloat16").save(tmp_path / "whole")
    judge = load_judge(tmp_path / "whole")
    logits = logits_of(judge, judge.encoder.encode(PROMPTS))
    assert judge.model.classifier.out_proj.weight.dtype == torch.float32
    assert not torch.equal(logits, logits.bfloat16().float())


def test_a_verbalizer_in_bfloat16_has_fine_logits_too(made: Callable[..., Made]) -> None:
    logits = made("qwen2", "verbalizer", "bfloat16").logits()
    assert not torch.equal(logits, logits.bfloat16().float())


def test_loading_in_another_folder_than_that_of_the_same_name_needs_no_network(
    made: Callable[..., Made], fresh: Callable[..., Judge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the network was used")

    judge = made("llama")
    shutil.copytree(judge.folder, tmp_path / "minilm")
    monkeypatch.chdir(tmp_path)  # a judge's folder called like a packaged model is still that folder
    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    assert torch.equal(judge.logits(), judge.logits(load_judge(Path("minilm"), str(judge.base))))
    whole = fresh("llama", lora=None)
    whole.save(Path("smollm2-135m"))
    assert torch.equal(judge.logits(whole), judge.logits(load_judge(Path("smollm2-135m"))))


# What a folder holds


def judge_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_adapter_s_folder_holds_peft_s_files_the_tokenizer_and_the_description(made: Callable[..., Made]) -> None:
    judge = made("llama", "verbalizer", "bfloat16")
    assert judge_files(judge.folder) == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "judge.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    spec = json.loads((judge.folder / "judge.json").read_text())
    yes, no = (judge.judge.encoder.tokenizer.convert_tokens_to_ids(word) for word in ("ĠYes", "ĠNo"))
    assert spec == {
        "judgment": "script_verify",
        "template_version": "script_verify-1",
        "label_words": ["No", "Yes"],
        "label_ids": [no, yes],
        "head": "verbalizer",
        "threshold": 0.4,
        "temperature": 1.5,
        "max_length": None,
        "versions": {},
        "base": {
            "id": "llama",
            "revision": None,
            "model_type": "llama",
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "dtype": "bfloat16",
            "quantization": "none",
            "fingerprint": spec["base"]["fingerprint"],
        },
    }
    assert re.fullmatch("[0-9a-f]{16}", spec["base"]["fingerprint"])
    assert json.loads((judge.folder / "adapter_config.json").read_text())["base_model_name_or_path"] == "llama"
    assert json.loads((judge.folder / "tokenizer_config.json").read_text())["padding_side"] == "left"


def assert_names_no_machine(folder: Path) -> None:
    """No path in any text: neither those of this run nor anything that looks like one. (In weights only the former.)"""
    home, here = str(Path.home()), os.getcwd()
    for path in folder.iterdir():
        data = path.read_bytes()
        for private in (str(folder.parent), home, here, "/tmp", f"/{os.environ.get('USER') or 'home'}/"):
            assert private.encode() not in data, (path.name, private)
        if path.suffix == ".json":
            assert not re.search(rb'"(file:/)?/\w[^"]*/|[A-Z]:\\\\|local_files_only|is_local', data), path.name


@pytest.mark.parametrize(("architecture", "head"), COMBINATIONS)
def test_no_file_of_an_adapter_names_the_machine(made: Callable[..., Made], architecture: str, head: str) -> None:
    assert_names_no_machine(made(architecture, head).folder)


def test_no_file_of_a_whole_judge_names_the_machine(fresh: Callable[..., Judge], tmp_path: Path) -> None:
    for head in ("classification", "verbalizer"):
        fresh("qwen2", head, lora=None).save(tmp_path / head)
        assert_names_no_machine(tmp_path / head)


def test_saving_the_same_judge_twice_gives_the_same_bytes(made: Callable[..., Made], tmp_path: Path) -> None:
    judge = made("mistral")
    judge.judge.save(tmp_path / "again")
    for path in judge.folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_a_save_that_fails_leaves_the_earlier_judge_as_it_was(
    made: Callable[..., Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = made("llama")
    shutil.copytree(judge.folder, tmp_path / "adapter")
    before = {path.name: path.read_bytes() for path in (tmp_path / "adapter").iterdir()}

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(judge.judge.encoder.tokenizer, "save_pretrained", full)
    with pytest.raises(OSError, match="No space left"):
        judge.judge.with_spec(threshold=0.9).save(tmp_path / "adapter")
    assert {path.name: path.read_bytes() for path in (tmp_path / "adapter").iterdir()} == before
    assert list(tmp_path.iterdir()) == [tmp_path / "adapter"]


def test_a_save_that_wrote_other_tensors_is_noticed(
    made: Callable[..., Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = made("llama").judge
    write = judge.model.save_pretrained

    def write_empty(folder: str, **options: Any) -> None:  # as under a sharded optimizer (peft#2450)
        write(folder, **options)
        path = Path(folder) / "adapter_model.safetensors"
        tensors = load_file(path)
        name = next(name for name in tensors if "score" in name)
        save_file({**tensors, name: torch.empty(0)}, path)

    monkeypatch.setattr(judge.model, "save_pretrained", write_empty)
    with pytest.raises(RuntimeError, match=r"score.weight is empty or not what the model holds"):
        judge.save(tmp_path / "adapter")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_other_things_is_not_replaced(made: Callable[..., Made], tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"thesis holds other things \(no judge.json"):
        made("llama").judge.save(tmp_path / "thesis")
    with pytest.raises(ValueError, match=r"chapter.tex is a file"):
        made("llama").judge.save(tmp_path / "thesis" / "chapter.tex")
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


# What is refused


@pytest.fixture
def copy(made: Callable[..., Made], tmp_path: Path) -> Callable[..., tuple[Path, str]]:
    """``copy(head)``: a judge's folder to spoil, and its backbone."""

    def make(head: str = "classification") -> tuple[Path, str]:
        judge = made("llama", head)
        shutil.copytree(judge.folder, tmp_path / "adapter")
        return tmp_path / "adapter", str(judge.base)

    return make


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("architecture", "said"),
    [("mistral", "model_type llama.*mistral has model_type mistral"), ("bert", "model_type")],
)
def test_a_backbone_of_another_architecture_is_refused(
    copy: Callable[..., tuple[Path, str]], base: Callable[..., Path], architecture: str, said: str
) -> None:
    with pytest.raises(ValueError, match=rf"(?s){said}.*wrong base"):
        load_judge(copy()[0], str(base(architecture)))


def test_a_backbone_of_the_same_sizes_but_other_weights_is_refused(
    copy: Callable[..., tuple[Path, str]], base: Callable[..., Path]
) -> None:
    with pytest.raises(ValueError, match=r"llama has the same sizes but other weights: wrong base"):
        load_judge(copy()[0], str(base("llama", seed=1)))


@pytest.mark.parametrize("trained", [{}, {"dtype": "bfloat16"}, {"dtype": "float16"}, {"quantization": "nf4"}])
def test_the_same_backbone_is_known_in_any_precision(
    base: Callable[..., Path], fresh: Callable[..., Judge], tmp_path: Path, trained: dict[str, Any]
) -> None:
    fresh("llama", **trained).save(tmp_path / "adapter")
    for settings in (FLOAT32, LoadSettings(dtype="bfloat16"), LoadSettings(dtype="float16", quantization="int8")):
        load_judge(tmp_path / "adapter", str(base("llama")), settings)


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
def test_half_an_adapter_is_refused(copy: Callable[..., tuple[Path, str]], name: str) -> None:
    folder, backbone = copy()
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"adapter: {name} is missing; copy the whole folder again"):
        load_judge(folder, backbone)


@pytest.mark.parametrize("kept", [0, 4, 500, 10_000])
def test_cut_weights_are_refused(copy: Callable[..., tuple[Path, str]], kept: int) -> None:
    folder, backbone = copy()
    path = folder / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"adapter_model.safetensors: cut short or altered .*; copy it again"):
        load_judge(folder, backbone)


def test_an_adapter_s_configuration_that_is_cut_is_refused(copy: Callable[..., tuple[Path, str]]) -> None:
    folder, backbone = copy()
    (folder / "adapter_config.json").write_text('{"r": 4,')
    with pytest.raises(ValueError, match=r"adapter_config.json: cut short or altered"):
        load_judge(folder, backbone)


def without(part: str) -> Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    return lambda tensors: {name: tensor for name, tensor in tensors.items() if part not in name}


def narrower(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {
        name: tensor[:2].clone() if "layers.0.mlp.up_proj.lora_A" in name else tensor
        for name, tensor in tensors.items()
    }


@pytest.mark.filterwarnings("ignore:Found missing adapter keys")
@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (without("score"), "adapter holds no trained score: its head would be one of random weights"),
        (without("layers.1.self_attn.q_proj.lora_B"), "do not belong together or were altered"),
        (narrower, "do not belong together or were altered"),
        (lambda tensors: {**tensors, "base_model.model.extra.lora_A.weight": torch.ones(1)}, "extra.lora_A"),
    ],
)
def test_weights_without_a_part_or_of_other_shapes_are_refused(
    copy: Callable[..., tuple[Path, str]], alter: Callable[[Any], Any], said: str
) -> None:
    folder, backbone = copy()
    path = folder / "adapter_model.safetensors"
    save_file(alter(load_file(path)), path)
    with pytest.raises(ValueError, match=said):
        load_judge(folder, backbone)


def test_a_head_that_is_not_the_weights_own_is_refused(copy: Callable[..., tuple[Path, str]]) -> None:
    folder, backbone = copy("verbalizer")
    edit(folder / SPEC_FILE, head="classification", label_ids=None)
    with pytest.raises(ValueError, match="holds no trained score"):
        load_judge(folder, backbone)


@pytest.mark.parametrize("words", [["Yes", "No"], ["Yes", "yes"], ["Yes"], "Yes"])
def test_other_label_words_are_refused(copy: Callable[..., tuple[Path, str]], words: Any) -> None:
    folder, backbone = copy("verbalizer")
    edit(folder / SPEC_FILE, label_words=words)
    with pytest.raises(ValueError, match=r"the judge was taught tokens|unpack|tokens after a prompt"):
        load_judge(folder, backbone)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"calibration": "isotonic"}, "calibration: not known here; if a newer ecomjudge wrote it, update this one"),
        ({"base": {"id": "x"}}, "dtype, hidden_size, model_type, num_hidden_layers, revision: absent"),
        ({"base": "llama"}, '"llama" stands where the description of a Base belongs'),
        ({"head": "regression"}, "head is 'regression', not one of classification, verbalizer"),
        ({"threshold": float("nan")}, "threshold is nan, not between 0 and 1"),
        ({"threshold": "0.5"}, "judge.json"),
        ({"temperature": 0}, "temperature is 0, not above 0"),
    ],
)
def test_a_description_that_says_something_else_is_refused_by_the_name_of_the_part(
    copy: Callable[..., tuple[Path, str]], changes: dict[str, Any], said: str
) -> None:
    folder, _ = copy()
    edit(folder / SPEC_FILE, **changes)
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        JudgeSpec.read(folder)
    assert str(folder / SPEC_FILE) in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"judge"'])
def test_a_description_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / SPEC_FILE).write_text(text)
    with pytest.raises(ValueError, match=r"judge.json: .*; restore the file, or train again"):
        JudgeSpec.read(tmp_path)


def test_a_folder_without_a_description_is_no_judge(base: Callable[..., Path]) -> None:
    with pytest.raises(FileNotFoundError, match=r"no judge.json; give the folder that training wrote"):
        load_judge(base("llama"))


def test_a_whole_judge_without_its_head_is_refused(fresh: Callable[..., Judge], tmp_path: Path) -> None:
    fresh("llama", lora=None).save(tmp_path / "whole")
    path = tmp_path / "whole" / "model.safetensors"
    save_file(without("score")(load_file(path)), path, {"format": "pt"})
    with pytest.raises(ValueError, match=r"whole holds no trained score: its head would be one of random weights"):
        load_judge(tmp_path / "whole")


# Which backbone a folder means


def base_of(name: str, revision: str | None = None) -> Base:
    return Base(name, revision, "llama", 32, 2, "float32")


@pytest.mark.parametrize("name", ["llama", "./minilm", "/srv/llama", "~/llama", "../llama", "a/b/c", "a/", "/a"])
def test_a_local_folder_is_never_guessed_from_its_name(
    made: Callable[..., Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    judge = made("llama")
    shutil.copytree(judge.folder, tmp_path / "adapter")
    spec = JudgeSpec.read(judge.folder)
    replace(spec, base=replace(spec.base, id=name)).write(tmp_path / "adapter")
    shutil.copytree(judge.base, tmp_path / "llama")  # the very backbone lies there, and is still not taken
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"trained on a local folder called .*; give that folder as the checkpoint"):
        load_judge(Path("adapter"))
    assert load_judge(Path("adapter"), "llama").spec.base.id == name


def test_a_hub_id_means_the_hub_even_where_a_folder_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_checkpoint(tmp_path / "org" / "name")
    monkeypatch.chdir(tmp_path)
    found = base_checkpoint(base_of("org/name", "a" * 40), tmp_path)
    assert found == Checkpoint("org/name", "org/name", revision="a" * 40, local=False, identity="org/name")


def test_a_packaged_name_is_fetched_where_the_cache_lacks_it(
    base: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def fetch(name: str, may_fetch: bool = True) -> Path:
        assert may_fetch
        fetched.append(name)
        return base("llama")

    monkeypatch.setattr("models.checkpoint.cached", fetch)
    name = next(iter(PACKAGED))
    judge = new_judge(resolve(name), "j", "j-1", ("No", "Yes"), LoadSettings(dtype="float32"))
    judge = Judge(attach_lora(judge.model, "classification", LoraSettings(rank=2)), judge.encoder, judge.spec)  # type: ignore[arg-type]
    shake(judge)
    judge.save(tmp_path / "adapter")
    fetched.clear()
    assert load_judge(tmp_path / "adapter").spec.base.id == name
    assert fetched == [name]


def test_new_heads_and_adapters_follow_the_seed(base: Callable[..., Path]) -> None:
    def weights(seed: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(seed)
        judge = new_judge(
            resolve(str(base("roberta"))),
            "j",
            "j-1",
            ("No", "Yes"),
            LoadSettings(dtype="float32"),
            LoraSettings(rank=2),
        )
        return {name: p.clone() for name, p in judge.model.named_parameters() if p.requires_grad}

    one, same, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one if "lora_A" in name or "out_proj.weight" in name)
