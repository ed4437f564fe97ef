"""What must not be published is found, with its file and line; and what only looks like it is left alone."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from train.publishing.privacy import Private, faults, private_here

HERE = Private(frozenset({"jdoe"}), "/home/jdoe", frozenset({"correct-horse-battery"}))


def found(text: str, name: str = "README.md", private: Private = HERE) -> list[str]:
    return [str(fault) for fault in faults({name: text.encode()}, private)]


@pytest.mark.parametrize(
    "text",
    [
        "trained on /mnt/corpora/train.jsonl",
        "cache:/home/jane/x",
        '"train": "/home/jane/train.jsonl"',
        "path=/tmp/x/y",
        "(/proc/self/maps)",  # no usual root, but there is such a folder here
        "file:///srv/data",
        "from ~/judges/first",
        '{"path": "D:\\\\corpora\\\\train.jsonl"}',
        r"C:\Users\jane\train.jsonl",
    ],
)
def test_absolute_paths(text: str) -> None:
    (one,) = found(f"first line\n{text}\n")
    assert one.startswith("README.md:2: the absolute path ")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("hf_" + "a1B2" * 9, "hf_a1B"),
        ("key: sk-" + "x" * 40, "sk-xxx"),
        ("ghp_" + "A" * 36, "ghp_AA"),
        ("AKIA" + "ABCD" * 4, "AKIAAB"),
        ("Authorization: Bearer " + "t" * 30, "Bearer"),
        ("password correct-horse-battery", "correc"),  # of this environment
    ],
)
def test_tokens_are_named_but_never_shown(text: str, start: str) -> None:
    (one,) = found(f"\n\n{text}")
    assert one.startswith(f"README.md:3: a token ({start}...); take it out, and revoke it")
    assert text.split()[-1] not in one


@pytest.mark.parametrize(
    "url",
    [
        "https://wandb.ai/jane/ecomjudge/runs/3k2j1h",
        "wandb.ai/jane/ecomjudge/sweeps/1",
        "https://www.comet.com/jane/x/1",
        "http://localhost:6006/#scalars",
        "http://192.168.0.7:8080/runs/1",
        "http://gpu3.cluster.internal/run",
    ],
)
def test_addresses_of_runs_and_machines(url: str) -> None:
    (one,) = found(f"see {url}.")
    assert one.startswith(f"README.md:1: the address '{url[:20]}")


def test_the_account_s_name_as_a_word() -> None:
    assert found("by jdoe.") == ["README.md:1: the name of your account, 'jdoe'; take it out, or say --allow jdoe"]
    assert found("by jdoes, jdoe-2 and ajdoe") == []
    assert found("see jdoe/judge", private=Private(HERE.users, allowed=("jdoe/judge",))) == []


def test_what_only_looks_private_is_left_alone() -> None:
    text = """\
    and/or, 24/7, </div>, https://huggingface.co/org/name/tree/main, runs/step_product/NAME/adapter, s/step, ~1/2
    revision 9a0b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d, sha256 30d3a6581f6a4a2eeec5edf0a415b04796ea72e8fa6eba42e84c
    POST /judge, `/health`, Q:\\nA:\\nYes, W&B (wandb.ai), risk-sk-1, org/name@main, /1/2
    """
    assert found(text) == []


def test_a_vocabulary_may_hold_any_word_but_no_token() -> None:
    vocabulary = json.dumps({"jdoe": 1, "/usr/local": 2, "/tmp/x": 3})
    assert found(vocabulary, "tokenizer.json") == found(vocabulary, "sub/vocab.json") == []
    assert len(found(json.dumps({"hf_" + "a" * 30: 1}, indent=0), "tokenizer.json")) == 1
    assert found('{"name_or_path": "/home/jdoe/base"}', "tokenizer.json")[0].startswith("tokenizer.json:1: your home")


def test_weights_that_are_no_safetensors(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "model.dat")
    buffer = io.BytesIO()
    pickle.dump([1], buffer, protocol=4)
    (tmp_path / "odd.safetensors").write_bytes(b"no header")
    files = {
        "pytorch_model.bin": b"x",
        "sub/optimizer.PT": b"x",
        "model.dat": tmp_path / "model.dat",
        "list": buffer.getvalue(),
        "odd.safetensors": tmp_path / "odd.safetensors",
    }
    told = [str(fault) for fault in faults(files, HERE)]
    assert [one.split(":")[0] for one in told] == list(files)
    assert told[0] == "pytorch_model.bin: weights as .bin; publish safetensors alone (save_pretrained writes them)"
    assert "can run code when loaded" in told[2] and "can run code when loaded" in told[3]


def test_the_header_of_weights_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(2)}, path, {"format": "pt", "source": "/home/jane/model"})
    (one,) = faults({path.name: path}, HERE)
    assert str(one).startswith("model.safetensors: header: the absolute path '/home/jane/model'")


def test_a_picture_is_looked_through_for_what_is_surely_private() -> None:
    picture = b"\x89PNG\r\n\x1a\n tEXt Source\x00/home/jdoe/plot.py and /usr/x/y jdoe"
    (one,) = faults({"calibration.png": picture}, HERE)
    assert str(one) == "calibration.png: your home folder '/home/jdoe'; take it out"


def test_what_is_private_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine api.wandb.ai\n  login user\n  password " + "k" * 40 + "\n")
    for name in ("LOGNAME", "SUDO_USER", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "jdoe")
    monkeypatch.setenv("HOME", "/home/jane.roe")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HF_TOKEN", "hf_mine_and_nobody_else_s")
    monkeypatch.setenv("MY_API_KEY", "short")
    private = private_here(["text"])
    assert {"jdoe", "jane.roe"} <= private.users and "root" not in private.users
    assert private.home == "/home/jane.roe" and private.allowed == ("text",)
    assert {"k" * 40, "hf_mine_and_nobody_else_s"} <= private.secrets and "short" not in private.secrets
    assert "hf_mine" not in repr(private)
