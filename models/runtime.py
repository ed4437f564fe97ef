"""One process of a command: its CPU threads, the versions beneath it, and how it ends."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import huggingface_hub
import torch
import transformers
from accelerate import PartialState
from accelerate.utils import parse_flag_from_env

from models.endings import FAILED, FAULTS, STOPPED, in_words, interrupted

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


def resident_memory() -> int:
    """Bytes of main memory that this process holds now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def return_freed_memory() -> None:
    """Give the system what this process has freed and the C library keeps; nothing where the library cannot (musl)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))


def this_process() -> PartialState:
    """This process among those that a launcher started, or alone.

    Without an accelerator accelerate must be told so: otherwise each of several processes takes itself for the only
    one (accelerate 1.15, PartialState._prepare_backend). An accelerator that a launcher's ``use_cpu`` forbids is left
    alone. The first call in a process decides.
    """
    return PartialState(cpu=not torch.accelerator.is_available() or parse_flag_from_env("ACCELERATE_USE_CPU"))


def plain_output() -> None:
    """No bars that are drawn over themselves: in a file they are thousands of lines. Those of ours know it already."""
    huggingface_hub.utils.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()


@contextmanager
def one_of_many(goes_on: bool = True) -> Iterator[PartialState]:
    """This process among those that a launcher started (or alone), its process group closed at the end.

    A ValueError (faults in data or settings) or an OSError (files that are absent, forbidden or find no room) ends
    every process with status 1; the main process says the sentence. Ctrl-C ends it with 130, as the shell would.

    Args:
        goes_on: the same command goes on from where it was stopped.
    """
    state = this_process()
    if not sys.stderr.isatty():
        plain_output()
    try:
        yield state
    except FAULTS as error:
        if state.is_main_process:
            print(f"error: {in_words(error)}", file=sys.stderr)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        if state.is_main_process:
            print(interrupted(goes_on), file=sys.stderr)
        sys.exit(STOPPED)
    finally:
        state.destroy_process_group()
