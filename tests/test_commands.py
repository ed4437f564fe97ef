"""What every command has in common: how it helps, how it ends, and that what it says is plain where nobody looks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import COMMANDS, ROOT, run

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


def test_what_is_said_is_plain_where_it_is_no_terminal() -> None:
    """Even where a terminal's colours are asked for by its kind: the same words, no escape, no carriage return."""
    code = "from rich.console import Console; from rich.table import Table; t = Table('a'); t.add_row('[red]b[/]')\n"
    code += "Console(highlight=False).print(t); Console(stderr=True).status('encoding').start()"
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    environment.pop("FORCE_COLOR", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr
