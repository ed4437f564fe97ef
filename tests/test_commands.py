"""What every command has in common: how it helps, how it ends, and that what it says is plain where nobody looks."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMANDS, ROOT, run

from train.config import TrainConfig
from train.learning import training_arguments
from train.runs import RunFolder

GOES_ON = "interrupted; the same command goes on from here\n"
STARTS_AGAIN = "interrupted; the same command starts again\n"
each = pytest.mark.parametrize("command", COMMANDS)


def test_every_command_is_here() -> None:
    files = {f"{room}/{path.name}" for room in ("scripts", "train") for path in (ROOT / room).glob("*.py")}
    started = {file for file in files if '__name__ == "__main__"' in (ROOT / file).read_text(encoding="utf-8")}
    assert started == {command.split()[0] for command in COMMANDS}


@each
def test_help_gives_examples_of_itself_and_defaults(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, command, "--help") == 0
    text = capsys.readouterr().out
    examples = text.split("\nexamples:\n")[1]
    assert f"{command} " in examples or f"{command}\n" in examples
    flags = re.findall(r"^  +(--[\w.]+)", text.split("\nexamples:\n")[0], re.MULTILINE)
    told = re.search(r"default", text)
    only_switches = {"scripts/fetch_checkpoint.py", "scripts/validate_data.py"}  # off, unless they are given
    assert flags and (told or command in only_switches)
    assert "\x1b[" not in text


@each
def test_unknown_flags_are_wrong_usage(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, _ = COMMANDS[command]
    assert run(monkeypatch, command, "--no_such_flag=1", *words.split()) == 2
    said = capsys.readouterr().err
    assert "no_such_flag" in said
    assert "Traceback" not in said


@each
@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (ValueError("a.jsonl:3: label: missing"), 1, {"error: a.jsonl:3: label: missing\n"}),
        (PermissionError(13, "Permission denied", "there"), 1, {"error: there: Permission denied\n"}),
        (KeyboardInterrupt(), 130, {GOES_ON, STARTS_AGAIN}),
    ],
    ids=["fault", "file", "ctrl-c"],
)
def test_commands_end_with_a_sentence_and_a_status(
    command: str,
    raised: BaseException,
    status: int,
    said: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    words, called = COMMANDS[command]
    monkeypatch.setattr(called, fail)
    assert run(monkeypatch, command, *words.split()) == status
    assert capsys.readouterr().err in said


@pytest.mark.parametrize("command", ["scripts/evaluate.py", "scripts/build.py"])
def test_a_family_of_commands_lists_its_members(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, command, "--help") == 0
    listed = capsys.readouterr().out
    members = [name.split()[1] for name in COMMANDS if name.startswith(f"{command} ")]
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == members
    assert run(monkeypatch, command, "ecomscrpt") == 2
    assert "did you mean 'ecomscript'?" in capsys.readouterr().err


TABLE = """
from rich.console import Console; from rich.table import Table
table = Table("judge"); table.add_row("[red]worse[/]"); Console(highlight=False).print(table)
with Console(stderr=True).status("encoding"): pass
"""
COLOUR = re.compile(r"\x1b\[[0-9;]*(3|4|9|10)[0-7]m")


def environment(**more: str) -> dict[str, str]:
    """That of a terminal with colours."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    return {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", **more}


def in_a_terminal(**more: str) -> str:
    """What a terminal is sent."""
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", TABLE], stdout=theirs, stderr=theirs, env=environment(**more), check=True)
    sent = os.read(ours, 65536).decode()
    os.close(theirs)
    os.close(ours)
    return sent


def test_what_is_said_is_plain_where_it_is_no_terminal() -> None:
    """As all commands say it, with rich's console: the same words, no escape, nothing drawn over itself."""
    command = [sys.executable, "-c", TABLE]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    assert "worse" in done.stdout
    assert not {"\x1b", "\r"} & set(done.stdout + done.stderr)


def test_a_terminal_has_colours_unless_there_shall_be_none() -> None:
    assert COLOUR.search(in_a_terminal())
    assert not COLOUR.search(in_a_terminal(NO_COLOR="1"))


def test_training_draws_no_bars_where_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig()
    for looks in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda looks=looks: looks)
        assert training_arguments(config, RunFolder(config, "step_product"), 32, 1).disable_tqdm is not looks
