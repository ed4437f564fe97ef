"""Tab completion as bash asks for it: flags, choices, benchmarks; under python and under accelerate launch."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Stands for python: says what a command's --help says, and notes that it was asked.
STAND_IN = """#!/bin/sh
echo "$@" >> "$ASKED"
case "$*" in
  scripts/evaluate.py\\ --help) printf 'Examine.\\n  ecomscript  The three tasks.\\n  ecomqa      Questions.\\n';;
  scripts/evaluate.py\\ ecomqa\\ --help) printf 'options:\\n  --rag.method {bm25,dense}\\n  --out OUT\\n';;
  *) printf 'options:\\n  -h, --help  show\\n  --optim.warmup X\\n  --optim.epochs X\\n  --method {lora,full}\\n';;
esac
"""
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "python").write_text(STAND_IN)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def completed(home: Path, line: str) -> list[str]:
    """What TAB offers at the end of a line."""
    words = " ".join(f"'{word}'" for word in line.split(" "))
    code = f"source scripts/completion.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
    code += '_ecomjudge; printf "%s\\n" "${COMPREPLY[@]}"'
    environment = {**os.environ, "XDG_CACHE_HOME": str(home / "cache"), "ASKED": str(home / "asked")}
    environment["PATH"] = f"{home}:{environment['PATH']}"
    done = subprocess.run(["bash", "-c", code], cwd=ROOT, capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("python train/step_product.py --optim.", ["--optim.warmup", "--optim.epochs"]),
        ("accelerate launch --num_processes 2 train/step_product.py --m", ["--method"]),
        ("accelerate launch train/step_product.py --seed 1 --method f", ["full"]),
        ("python scripts/evaluate.py ecom", ["ecomscript", "ecomqa"]),
        ("python scripts/evaluate.py ecomqa --rag.method b", ["bm25"]),
        ("python scripts/evaluate.py ecomqa --o", ["--out"]),
        ("python train/step_product.py --data.train tr", []),  # a file: readline's own
        ("python -m pytest --", []),  # no command of ours
    ],
)
def test_tab_offers_what_the_command_takes(home: Path, line: str, offered: list[str]) -> None:
    assert completed(home, line) == offered


def test_a_command_is_asked_once(home: Path) -> None:
    for _ in range(3):
        completed(home, "python train/step_product.py --opt")
    assert (home / "asked").read_text() == "train/step_product.py --help\n"


def test_the_flags_of_a_real_command_are_offered(home: Path) -> None:
    (home / "python").unlink()
    (home / "python").symlink_to(shutil.which("true") or "/bin/true")
    line = f"{ROOT}/.venv/bin/python scripts/merge.py --"
    if not Path(line.split()[0]).exists():
        pytest.skip("no .venv")
    assert completed(home, line) == ["--help", "--checkpoint", "--dtype", "--onto_full_precision"]
    assert completed(home, line + "dtype b") == ["bfloat16"]
