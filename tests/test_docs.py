"""The pages of docs/: every command is one that its parser takes, training can be tried, no link leads nowhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate.commands.launch import launch_command_parser
from commands import COMMANDS, ROOT, run
from tiny import tiny_checkpoint

from recipes.judgments import JUDGMENTS
from train.arguments import leaf_types
from train.config import TrainConfig

PAGES = sorted((ROOT / "docs").glob("*.md"))
OURS = r"(python|accelerate launch) (?!-m )"
# What other tools' commands need to be right: the files that they name.
OTHERS = ("wandb sweep ", "source ")


def commands_of(page: Path) -> list[str]:
    """The commands in a page's blocks, continued lines joined, comments left out."""
    blocks = re.findall(r"^```(?:sh|bash)?\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line.partition(" # ")[0].strip() for line in lines if line.strip()]


def started(command: str) -> list[str]:
    """What python is given: the script and its words; the launcher's own words are given to its parser."""
    words = shlex.split(command)
    if words[0] == "python":
        return words[1:]
    launched = launch_command_parser().parse_args(words[2:])
    if launched.config_file:
        assert (ROOT / launched.config_file).is_file()
    return [launched.training_script, *launched.training_script_args]


ALL = [(page.stem, command) for page in PAGES for command in commands_of(page) if re.match(OURS, command)]
TRAINING = [(page, command) for page, command in ALL if "train/" in command and "/shared/" not in command]


class Reached(Exception):
    """The command has read its words and would begin."""


@pytest.mark.parametrize(("page", "command"), ALL)
def test_every_command_of_the_pages_is_one_that_its_parser_takes(
    page: str, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def reached(*_: Any, **__: Any) -> None:
        raise Reached

    file, *words = started(command)
    if words and f"{file} {words[0]}" in COMMANDS:
        file = f"{file} {words.pop(0)}"
    if words == ["--help"]:
        return  # of every command, see test_commands.py
    monkeypatch.setattr(COMMANDS[file][1], reached)
    if "runs/sweeps/first/best.yaml" in words:
        words[words.index("runs/sweeps/first/best.yaml")] = str(ROOT / "configs/step_product/minilm.yaml")
    with pytest.raises(Reached):
        run(monkeypatch, file, *words)


def test_the_files_that_other_tools_are_given_are_there() -> None:
    given = [command for page in PAGES for command in commands_of(page) if command.startswith(OTHERS)]
    assert len(given) >= 2
    assert all((ROOT / command.split()[-1]).is_file() for command in given)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command"), TRAINING)
def test_training_as_the_pages_say_can_be_tried(
    page: str, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a tiny random model and the sample: nothing is trained, everything before that is done."""
    file, *words = started(command)
    checkpoint = tiny_checkpoint(tmp_path / "tiny", "qwen2", chat=True, max_position_embeddings=4096)
    sample = {"data.train": "sample:train", "data.validation": "sample:validation"}
    words = [word.replace("runs/sweeps/first/best.yaml", "configs/step_product/minilm.yaml") for word in words]
    more = [f"--{key}={value}" for key, value in sample.items()]
    more += [f"--checkpoint={checkpoint}", "--model.dtype=float32", "--threads=1", "--dry_run", "--push_to_hub=false"]
    # The tiny tokenizer makes several tokens of a word: more than the page's own limit allows.
    more += ["--data.max_length=4096", "--data.drop_too_long", f"--run.folder={tmp_path}"]
    assert run(monkeypatch, file, *words, *more) == 0
    assert "nothing was trained; leave out --dry_run to start" in capsys.readouterr().out


def test_the_index_names_every_page_and_links_lead_somewhere() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert {page.name for page in PAGES if page.name != "README.md" and f"({page.name})" not in index} == set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_configuration_and_flag_that_a_page_names_exists() -> None:
    flags = {f"--{name}" for name in leaf_types(TrainConfig)}
    groups = tuple(f"--{name.split('.')[0]}." for name in leaf_types(TrainConfig) if "." in name)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"--[a-z_]+\.[a-z_]+", text))
        assert {flag for flag in named if flag.startswith(groups)} <= flags, page.name
        for path in re.findall(r"(?:configs|scripts|train)/[\w./-]+\.(?:yaml|py|bash)", text):
            assert (ROOT / path).is_file(), f"{page.name}: {path}"


def test_the_table_of_backbones_names_the_configurations_of_every_judgment() -> None:
    text = (ROOT / "docs" / "backbones.md").read_text(encoding="utf-8")
    named = {name for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)}
    for judgment in JUDGMENTS:
        files = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "configs" / judgment).glob("*.yaml")}
        assert set(files) == named
