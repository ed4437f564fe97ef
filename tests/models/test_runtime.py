"""How a command ends: a sentence and a status for what a person can mend, a traceback for what only we can."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.runtime import one_of_many


def missing(folder: Path) -> None:
    (folder / "none").read_text()


def blocked(folder: Path) -> None:
    (folder / "file").touch()
    (folder / "file" / "run").mkdir()


def full(folder: Path) -> None:
    with open("/dev/full", "w") as file:
        file.write("more than there is room for")


def wrong(folder: Path) -> None:
    raise ValueError("data.jsonl:3: label: missing")


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (missing, "error: {folder}/none: No such file or directory\n"),
        (blocked, "error: {folder}/file/run: Not a directory\n"),
        (full, "error: No space left on device\n"),
        (wrong, "error: data.jsonl:3: label: missing\n"),
    ],
)
def test_what_a_person_can_mend_ends_in_a_sentence(
    work: object, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, one_of_many():
        work(tmp_path)  # type: ignore[operator]
    assert ended.value.code == 1
    assert capsys.readouterr().err == said.format(folder=tmp_path)


def test_ctrl_c_says_that_the_command_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, one_of_many():
        raise KeyboardInterrupt
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted; the same command goes on from here\n"


def test_our_own_mistakes_keep_their_traceback() -> None:
    with pytest.raises(ZeroDivisionError), one_of_many():
        1 / 0  # noqa: B018
