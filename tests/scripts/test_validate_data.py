"""The commands about data: what they print and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import import_data, validate_data

YES = '{"id": "a", "goal": "g", "script": ["s"], "label": 1}\n'
NO = '{"id": "b", "goal": "g", "script": ["s"], "label": 0}\n'


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_clean_files_end_with_counts_and_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = write(tmp_path / "a.jsonl", YES + NO), write(tmp_path / "b.jsonl", YES + NO.replace("goal", "gaol"))
    assert validate_data.main(["script_verify", one]) == 0
    assert capsys.readouterr().out == "1 file, 2 records, 0 faults, 0 warnings\n"
    assert validate_data.main(["script_verify", one, two]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{two}:2: goal: missing; give what the person wants to achieve",
        f"warning: {two}:2: gaol: unknown field, ignored in 1 record; did you mean 'goal'? "
        "What is only to be kept belongs under 'meta'",
        f"warning: {two}: group: 1 group also in {one}, first 'g'; no group may cross the splits of a training run: "
        "split by group, as scripts/import_data.py does",
        "2 files, 3 records, 1 fault, 2 warnings",
    ]
    other = write(tmp_path / "c.jsonl", (YES + NO).replace('"g"', '"h"'))
    assert validate_data.main(["script_verify", one, other]) == 0
    assert capsys.readouterr().out == "2 files, 4 records, 0 faults, 0 warnings\n"


def test_warnings_alone_end_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extra = write(tmp_path / "a.jsonl", YES + NO.replace('"label"', '"note": 1, "label"'))
    assert validate_data.main(["script_verify", extra]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 file, 2 records, 0 faults, 1 warning"


def test_every_fault_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate_data.main(["script_verify", write(tmp_path / "a.jsonl", "[]\n" * 50)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert (len(out), out[-1]) == (51, "1 file, 0 records, 50 faults, 0 warnings")


def test_unlabelled_data_pass_where_this_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.jsonl", YES.replace(', "label": 1', ""))
    assert validate_data.main(["script_verify", file]) == 1
    assert validate_data.main(["script_verify", "--unlabelled", file]) == 0


def test_an_unknown_judgment_or_no_file_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["script_verfy", "x.jsonl"], ["script_verify"]):
        with pytest.raises(SystemExit) as ended:
            validate_data.main(arguments)
        assert ended.value.code == 2
    assert "did you mean 'script_verify'?" in capsys.readouterr().err


def test_import_then_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"goal": f"Goal {n}", "sol1": f"Do {n}.", "sol2": f"Undo {n}.", "label": n % 2} for n in range(20)]
    source = write(tmp_path / "p.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    command = ["piqa", source, "--out", str(tmp_path / "out"), "--shares", "0.5,0.25,0.25"]
    assert import_data.main(command) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("train             20 records, 50.0 % yes")
    files = [str(tmp_path / "out" / f"{split}.jsonl") for split in ("train", "validation", "test")]
    assert validate_data.main(["script_verify", *files]) == 0
    assert import_data.main(command) == 1
    assert "exists; choose another folder" in capsys.readouterr().err
    assert import_data.main([*command, "--overwrite"]) == 0


@pytest.mark.parametrize(
    "wrong", [["nothing", "f"], ["piqa", "f", "--shares", "0.5"], ["piqa", "f", "--shares", "a,b,c"]]
)
def test_wrong_usage_of_import_ends_with_2(tmp_path: Path, wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        import_data.main([*wrong, "--out", str(tmp_path)])
    assert ended.value.code == 2


def test_head_and_a_terminal_of_few_characters_end_without_a_traceback(tmp_path: Path) -> None:
    faulty = write(tmp_path / "é.jsonl", "[]\n" * 20_000)
    command = [sys.executable, validate_data.__file__, "script_verify", faulty]
    few = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PYTHONIOENCODING": "ascii"})
    assert few.stdout and few.stderr
    assert few.stdout.readline().endswith(
        b"\\xe9.jsonl:1: a list where an object belongs; write one record a line as {...}\n"
    )
    few.stdout.close()
    assert few.stderr.read() == b""
    few.wait()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"goal": f"Goal {n}", "sol1": f"Do {n}.", "sol2": f"Undo {n}.", "label": n % 2} for n in range(20)]
    source = write(tmp_path / "p.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert import_data.main(["piqa", source, "--out", source]) == 1
    assert capsys.readouterr().err == f"error: {source}: cannot be written (File exists); nothing was changed there\n"
