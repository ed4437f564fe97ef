"""A folder that is written whole or not at all, and by one command at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from models.manifest import flush


@contextmanager
def written_whole(folder: Path, marker: str) -> Iterator[Path]:
    """A draft beside ``folder``, which takes its place when the block ends well; after any error all is as it was.

    Args:
        marker: a file by which a folder is known that may be replaced; one that holds other things is left alone.

    Raises:
        ValueError: ``folder`` is a file, or holds something but no ``marker``.
    """
    folder = folder.absolute()
    check_replaceable(folder, marker)
    draft, old = (folder.with_name(f".{folder.name}.{kind}") for kind in ("draft", "old"))
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        _settle(draft)
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        try:
            draft.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
        flush(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """No other process is in such a block for ``folder`` while this one is. However the process ends, its claim does.

    Raises ValueError if another process is in one, OSError where nothing can be written.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One lock an address in a process, so that what is called from a block may open one for the same folder.
    path = folder.with_name(f".{folder.name}.lock")
    path.touch()  # a place where nothing can be written is no place where another one writes
    lock = FileLock(path, is_singleton=True)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ValueError(f"{folder}: another process is writing there; wait until it ends, or name another") from None
    try:
        yield
    finally:
        lock.release()


def check_replaceable(folder: Path, marker: str) -> None:
    """Raises ValueError where writing to ``folder`` would destroy what is none of ours."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give the folder to write")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / marker).is_file():
        raise ValueError(f"{folder} holds other things (no {marker} among them); give an empty or a new folder")


def _settle(draft: Path) -> None:
    """Flush every file to disk, readable like any new file here (safetensors writes its own for the owner only)."""
    usual = draft.stat().st_mode & 0o666
    for path in draft.rglob("*"):
        if path.is_file():
            path.chmod(usual)
            flush(path)
