"""The demo of `make demo`: teach a judge on the shipped sample, and examine it beside the untrained one.

examples:
  python scripts/demo.py
  python scripts/demo.py --judgment script_verify --checkpoint smollm2-135m
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.ecomscript.config import EcomScriptConfig
from benchmarks.ecomscript.run import evaluate
from models.checkpoint import resolve
from models.endings import ends_in_words
from models.judge import new_judge
from recipes.judgments import JUDGMENTS, get_judgment
from train.arguments import parse
from train.command import CONFIGS
from train.config import TrainConfig
from train.helping import described

RUNS = Path("runs")
RESULTS = Path("results")


def parser() -> argparse.ArgumentParser:
    parser = described(str(__doc__))
    parser.add_argument("--checkpoint", default="minilm", help="a config of the judgment: minilm or smollm2-135m")
    parser.add_argument("--judgment", default="step_product", choices=list(JUDGMENTS), help="what is judged")
    return parser


@ends_in_words(goes_on=True, also=(subprocess.CalledProcessError,))
def main(arguments: Sequence[str] | None = None) -> int:
    """0: taught and examined; 1: one of the two was not possible; 2: wrong usage."""
    chosen = parser().parse_args(arguments)
    config_file = CONFIGS / chosen.judgment / f"{chosen.checkpoint}.yaml"
    run = RUNS / chosen.judgment / f"demo-{chosen.checkpoint}"
    command = ["-m", "accelerate.commands.launch", "--config_file", str(CONFIGS / "accelerate" / "cpu.yaml")]
    command += [
        f"train/{chosen.judgment}.py",
        "--config",
        str(config_file),
        f"--run.name={run.name}",
        f"--run.folder={RUNS}",
    ]
    subprocess.run([sys.executable, *command, "--tracking.wandb=disabled"], check=True)
    untrained = make_untrained(chosen.judgment, config_file, run / "untrained")
    rows = {
        "bag of words": examine(chosen.judgment, "bag-of-words", method="bag_of_words", train="sample:train"),
        "untrained": examine(chosen.judgment, f"untrained-{chosen.checkpoint}", adapter=str(untrained)),
        "fine-tuned": examine(chosen.judgment, f"demo-{chosen.checkpoint}", adapter=str(run / "adapter")),
    }
    Console().print(
        side_by_side(f"{chosen.judgment}, {chosen.checkpoint}: records of goals never seen in training", rows)
    )
    return 0


def make_untrained(judgment_name: str, config_file: Path, folder: Path) -> Path:
    """The judge as it was before its first update: the same seed gives the same head."""
    config = parse(TrainConfig, ["--config", str(config_file)])
    judgment = get_judgment(judgment_name)
    torch.manual_seed(config.seed)
    judge = new_judge(
        resolve(config.checkpoint),
        judgment.name,
        judgment.template_version,
        judgment.label_words,
        config.model,
        config.lora,
    )
    judge.save(folder)
    return folder


def examine(judgment: str, name: str, **settings: Any) -> dict[str, Any]:
    """Results on the sample's test records."""
    out = RESULTS / "demo" / judgment / name
    return evaluate(EcomScriptConfig(judgment=judgment, out=str(out), overwrite=True, **settings))  # type: ignore[arg-type]


def side_by_side(title: str, rows: dict[str, dict[str, Any]]) -> Table:
    """One line for each judge: metrics with 95 % intervals over goals."""
    table = Table(title=title)
    for column in ("judge", "accuracy", "macro-F1", "AUC"):
        table.add_column(column, justify="left" if column == "judge" else "right")
    for name, results in rows.items():
        cells = []
        for metric in ("accuracy", "macro_f1", "auc"):
            found = results["metrics"][metric]
            cells.append(f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]")
        table.add_row(name, *cells)
    return table


if __name__ == "__main__":
    sys.exit(main())
