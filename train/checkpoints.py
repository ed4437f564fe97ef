"""The checkpoints of a run: sealed when they are on the disk, the best and the last kept, the newest gone on from.

Trainer writes a checkpoint file by file. Killed in between, out of space, or with the power gone, it leaves a folder
that looks like the others; only a sealed one is used.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from models.manifest import flush
from models.runtime import this_process
from train.runs import write_text

SEAL = "whole.json"
NAME = re.compile(r"checkpoint-(\d+)")


class Checkpoints(TrainerCallback):
    """Seals every checkpoint once each process has written its part, and removes all but the best and the last.

    Trainer itself would remove the oldest by the clock, which may have been set back, or be that of copying.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Point at the best checkpoint where it lies now: the run's folder may have been moved.

        Raises FileNotFoundError if it is gone: Trainer would take the last one in its place, without a word.
        """
        if not state.best_global_step:
            return
        best = self.folder / f"checkpoint-{state.best_global_step}"
        if written_by(best) is None:
            raise FileNotFoundError(
                f"{best}: the best checkpoint so far is gone or was altered; put it back, or start anew with "
                "--run.overwrite"
            )
        state.best_model_checkpoint = str(best)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        process = this_process()
        process.wait_for_everyone()
        if process.is_main_process:
            seal(self.folder / f"checkpoint-{state.global_step}", process.num_processes)
            for step, folder in numbered(self.folder):
                if step not in (state.global_step, state.best_global_step):
                    shutil.rmtree(folder)


def seal(folder: Path, processes: int) -> None:
    """Flush every file of a checkpoint to the disk and then say so in it, with the files' sizes in bytes."""
    paths = [path for path in sorted(folder.rglob("*")) if path.name != SEAL]
    for path in [*paths, folder]:
        flush(path)
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths if path.is_file()}
    write_text(folder / SEAL, json.dumps({"processes": processes, "sizes": sizes}, indent=2) + "\n")


def written_by(folder: Path) -> int | None:
    """The number of processes that wrote a checkpoint; None unless it is sealed and every file has its size."""
    try:
        found = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        whole = all((folder / name).stat().st_size == size for name, size in found["sizes"].items())
        return int(found["processes"]) if whole else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def newest_whole(checkpoints: Path) -> Path | None:
    """The newest checkpoint that is whole; newer ones that are not are removed, for they are about to be made again."""
    for _, folder in reversed(numbered(checkpoints)):
        if written_by(folder) is not None:
            return folder
        shutil.rmtree(folder)
    return None


def numbered(checkpoints: Path) -> list[tuple[int, Path]]:
    """(update, folder) of every checkpoint, by update; what bears another name is none of Trainer's."""
    found = ((NAME.fullmatch(path.name), path) for path in checkpoints.glob("checkpoint-*") if path.is_dir())
    return sorted((int(match[1]), path) for match, path in found if match)
