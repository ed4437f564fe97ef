"""Every command of ours: words that it accepts, and how to start it in this process."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Command -> words that it accepts, and what it then calls.
COMMANDS = {
    "train/script_verify.py": ("", "train.run.train"),
    "train/step_product.py": ("", "train.run.train"),
    "train/holistic_verify.py": ("", "train.run.train"),
    "scripts/ablate.py step_product": ("--", "benchmarks.ecomscript.ablation.ablate"),
    "scripts/bench.py": ("", "benchmarks.speed.run.bench"),
    "scripts/build.py ecomqa": ("--corpus x --generator y", "benchmarks.ecomqa.build.run.build"),
    "scripts/build.py ecomagent": ("", "benchmarks.ecomagent.build.run.build"),
    "scripts/build.py ecomagent-catalogue": ("--sample --out x", "benchmarks.ecomagent.catalogue_command._build"),
    "scripts/build.py ecomscript": (
        "--metadata x --reviews y --generator z",
        "benchmarks.ecomscript.build.run.build",
    ),
    "scripts/build.py ecomscript-cost": ("--built x", "benchmarks.ecomscript.build.cost.show_cost"),
    "scripts/build.py ecomscript-pilot": ("", "benchmarks.ecomscript.build.pilot.pilot"),
    "scripts/build.py ecomscript-speed": ("", "benchmarks.ecomscript.build.speed.measure_speed"),
    "scripts/compare.py": ("x y", "benchmarks.ecomscript.finished.read_run"),
    "scripts/compare_ranks.py": ("x y", "benchmarks.ecomqa.ranks.read_scores"),
    "scripts/demo.py": ("", "subprocess.run"),
    "scripts/evaluate.py ecomscript": ("--judgment step_product", "benchmarks.ecomscript.run.evaluate"),
    "scripts/evaluate.py ecomqa": ("", "benchmarks.ecomqa.run.evaluate"),
    "scripts/evaluate.py ecomagent": ("", "benchmarks.ecomagent.run.evaluate"),
    "scripts/fetch_checkpoint.py": ("minilm", "models.checkpoint.fetch"),
    "scripts/gpu_check.py": ("", "benchmarks.speed.accelerator.check"),
    "scripts/import_data.py": ("piqa x --out y", "recipes.importing.pipeline.import_data"),
    "scripts/judge.py": ("--adapter x --out y", "judging.bulk.judge_rows"),
    "scripts/learning_curve.py": ("step_product --sizes 2", "benchmarks.ecomscript.learning_curve.draw_curve"),
    "scripts/merge.py": ("x y", "models.merge.merge"),
    "scripts/publish.py": ("x y", "train.publishing.publish.Wish"),
    "scripts/serve.py": ("--adapter x", "judging.serving.serve"),
    "scripts/sweep.py": ("x", "train.sweep.sweep_file.read_sweep"),
    "scripts/validate_data.py": ("step_product x", "recipes.reading.check"),
}


def run(monkeypatch: pytest.MonkeyPatch, command: str, *words: str) -> object:
    """Start a command as python does, in this process; the status that it ends with."""
    file, *more = command.split()
    monkeypatch.setattr(sys, "argv", [file, *more, *words])
    monkeypatch.chdir(ROOT)
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as ended:
        return ended.code or 0
    return 0
