"""How a command ends: a sentence and a status for what a person can mend, a traceback for what only we can."""

from __future__ import annotations

import json
import subprocess
import sys
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


HOLES = """
from models.runtime import resident_memory, return_freed_memory
before = resident_memory()
kept = [bytearray(64_000) for _ in range(3_000)]  # 183 MiB, each of a size that is never a mapping of its own
full = resident_memory()
del kept[:-1]  # the last lies above all others, so that the heap does not shrink by itself
holes = resident_memory()
return_freed_memory()
print([round((now - before) / 2**20) for now in (full, holes, resident_memory())])
"""


def test_freed_memory_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    full, holes, returned = json.loads(done.stdout)
    assert full > 170 and holes > 170 and returned < 40
