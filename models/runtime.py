"""One process of a command: its CPU threads, the versions beneath it, and how it ends."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from accelerate import PartialState
from accelerate.utils import parse_flag_from_env

VERSIONED = ("torch", "transformers", "peft", "accelerate", "bitsandbytes", "tokenizers", "ecomjudge")


def use_threads(threads: int | None) -> int:
    """Set the CPU threads of this process and return their number; None shares the cores among the processes here.

    `accelerate launch` sets one a process unless told otherwise; that is not kept.
    """
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.set_num_threads(threads or max(1, len(os.sched_getaffinity(0)) // local))
    return torch.get_num_threads()


def versions() -> dict[str, str]:
    """Versions of what makes a result."""
    return {name: importlib.metadata.version(name) for name in VERSIONED}


def this_process() -> PartialState:
    """This process among those that a launcher started, or alone.

    Without an accelerator accelerate must be told so: otherwise each of several processes takes itself for the only
    one (accelerate 1.15, PartialState._prepare_backend). An accelerator that a launcher's ``use_cpu`` forbids is left
    alone. The first call in a process decides.
    """
    return PartialState(cpu=not torch.accelerator.is_available() or parse_flag_from_env("ACCELERATE_USE_CPU"))


@contextmanager
def one_of_many() -> Iterator[PartialState]:
    """This process among those that a launcher started (or alone), its process group closed at the end.

    A ValueError or FileNotFoundError (faults in data or settings) ends every process with status 1; the main process
    says the sentence.
    """
    state = this_process()
    try:
        yield state
    except (ValueError, FileNotFoundError) as error:
        if state.is_main_process:
            print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    finally:
        state.destroy_process_group()
