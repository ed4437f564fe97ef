"""Nothing but progress bars comes from the libraries beneath, where nothing is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from models.backbone import LoadSettings
from models.checkpoint import resolve
from models.judge import load_judge, new_judge
from models.lora import LoraSettings
from models.merge import Probe, merge
from models.scoring import margins

out = Path(sys.argv[1])
for folder, head, quantization in (
    (sys.argv[2], "classification", "none"),
    (sys.argv[2], "verbalizer", "int8"),
    (sys.argv[2], "classification", "nf4"),
    (sys.argv[3], "classification", "none"),
):
    settings = LoadSettings(head, "bfloat16", quantization)
    judge = new_judge(resolve(folder), "j", "j-1", ("No", "Yes"), settings, LoraSettings(rank=4), None, True)
    judge.model.train()
    rows = judge.encoder.encode([Probe((), "bake bread"), Probe(("plan", "a party"), "hang the lights")])
    judge.logits(judge.encoder.pad(rows)).sum().backward()
    judge.save(out / "adapter")
    print(margins(load_judge(out / "adapter", folder), rows))
    if quantization == "none":
        merge(out / "adapter", out / "merged", folder)
"""


def test_a_judge_s_whole_life_is_silent(base: Callable[..., Path], tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(base("llama", "bfloat16")), str(base("roberta"))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr[-2000:]
    said = [line for line in re.split(r"[\r\n]+", done.stderr) if line.strip()]
    assert [line for line in said if not re.match(r"(Loading weights|Writing model shards): +\d+%", line)] == []
    assert done.stdout.count("[") == 4
