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

    A ValueError (faults in data or settings) or an OSError (files that are absent, forbidden or find no room) ends
    every process with status 1; the main process says the sentence. Ctrl-C ends it with 130, as the shell would.
    """
    state = this_process()
    try:
        yield state
    except (ValueError, OSError) as error:
        if state.is_main_process:
            print(f"error: {in_words(error)}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        if state.is_main_process:
            print("interrupted; the same command goes on from here", file=sys.stderr)
        sys.exit(130)
    finally:
        state.destroy_process_group()


def in_words(error: Exception) -> str:
    """What to tell of an error: the system's as "/data/run: Permission denied", any other in its own words."""
    if isinstance(error, OSError) and error.strerror:
        where = error.filename2 or error.filename
        return f"{where}: {error.strerror}" if where else error.strerror
    return str(error)
