"""Files of metadata and reviews, line by line, plain or gzip, from any place that was reached before."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ENDINGS = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True, order=True)
class Place:
    """How far reading has come: ``file`` (its number), lines read of it, and bytes (of the unpacked text)."""

    file: int = 0
    line: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Line:
    """A line and the place behind it."""

    text: bytes
    place: Place


def metadata_files(given: Sequence[Path]) -> tuple[Path, ...]:
    """Files as given; of a folder its ``meta_*`` files in the order of their names, or all if none is called so."""
    return _files(given, metadata=True)


def review_files(given: Sequence[Path]) -> tuple[Path, ...]:
    """Files as given; of a folder those that are not called ``meta_*``, in the order of their names."""
    return _files(given, metadata=False)


def _files(given: Sequence[Path], metadata: bool) -> tuple[Path, ...]:
    files: list[Path] = []
    for path in given:
        if path.is_dir():
            found = sorted(entry for entry in path.iterdir() if entry.name.endswith(ENDINGS))
            called = [path for path in found if path.name.startswith("meta_") == metadata]
            chosen = called or (found if metadata else [])
            if not chosen:
                raise FileNotFoundError(f"{path}: no fitting .jsonl or .jsonl.gz file in this folder; name the files")
            files += chosen
        elif path.is_file():
            files.append(path)
        elif path.exists():
            raise ValueError(f"{path}: no ordinary file; give .jsonl or .jsonl.gz")
        else:
            raise FileNotFoundError(f"{path}: no such file or folder; give .jsonl or .jsonl.gz")
    return tuple(files)


def lines(files: Sequence[Path], place: Place = Place()) -> Iterator[Line]:
    """The lines behind a place, blank ones left out, through all files.

    Raises ValueError where a compressed file breaks off.
    """
    for number in range(place.file, len(files)):
        start = place if number == place.file else Place(number)
        line, offset = start.line, start.offset
        try:
            with _open(files[number]) as file:
                file.seek(offset)
                for text in file:
                    line, offset = line + 1, offset + len(text)
                    if text.strip():
                        yield Line(text, Place(number, line, offset))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{files[number]}:{line + 1}: the compressed data break off here ({error}); fetch the file again"
            ) from None


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb")  # type: ignore[return-value]
