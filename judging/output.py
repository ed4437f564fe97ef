"""Where answers go: a file that grows window by window and survives a kill, or standard output.

While rows are judged, each window's answers lie in a file of their own under ``<out>.parts/``, which is there whole or
not at all. At the end they become ``<out>``, in the order of the input, and ``<out>.run.json`` says what made it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from judging.tables import write_table
from judging.windows import Window

RUN = "run.json"
Line = Mapping[str, Any]


class Output(Protocol):
    """Takes the answers to windows of rows, each window once."""

    def has(self, window: Window) -> bool:
        """Whether an earlier run has answered this window."""

    def write(self, window: Window, lines: Sequence[Line]) -> None:
        """Take a window's answers, a line a row."""


class Stream:
    """Standard output: lines as they come."""

    def has(self, window: Window) -> bool:
        return False

    def write(self, window: Window, lines: Sequence[Line]) -> None:
        sys.stdout.write("".join(map(to_line, lines)))
        sys.stdout.flush()


class Parts:
    """A file in the making. ``identity`` is everything that fixes its content, but for the rows themselves.

    Every process makes one; `open` and `finish` are the main process's.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any]) -> None:
        self.out = out
        self.folder = out.with_name(f"{out.name}.parts")
        self.facts = out.with_name(f"{out.name}.{RUN}")
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))

    def open(self, overwrite: bool) -> bool:
        """Make ready to write; whether the file was finished before. One that is to be replaced stays until `finish`.

        Raises ValueError where another run's file, or another file, would be written over.
        """
        begun = self.folder / RUN
        if overwrite and begun.is_file():  # a folder without it is none of ours
            shutil.rmtree(self.folder)
        if begun.is_file():
            self._refuse_other(begun)
        elif not overwrite and self.facts.is_file() and self.out.is_file():
            self._refuse_other(self.facts)
            return True
        elif not overwrite and (self.out.exists() or self.folder.exists()):
            there = self.out if self.out.exists() else self.folder
            raise ValueError(f"{there} is there already; give another --out, or --overwrite to replace it")
        self.folder.mkdir(parents=True, exist_ok=True)
        for draft in self.folder.glob(".*.draft"):
            draft.unlink()
        _write_whole(begun, json.dumps({"identity": self.identity}, indent=2) + "\n")
        return False

    def has(self, window: Window) -> bool:
        """Raises ValueError where an earlier run has answered other rows in this place."""
        path = self._part(window)
        if path.is_file():
            return True
        if other := next(self.folder.glob(f"{window.number:08d}-*.jsonl"), None):
            lines = f"{window.rows[0].line} to {window.rows[-1].line}"
            raise ValueError(f"{other}: rows {lines} have changed since they were judged; give --overwrite")
        return False

    def write(self, window: Window, lines: Sequence[Line]) -> None:
        _write_whole(self._part(window), "".join(map(to_line, lines)))

    def finish(self, count: int) -> dict[str, Any]:
        """Put the parts of ``count`` windows together and remove them; what is in the file, counted.

        Raises ValueError where an earlier run has seen more windows.
        """
        parts = sorted(self.folder.glob("*.jsonl"))
        if len(parts) != count:
            raise ValueError(
                f"{self.folder} holds {len(parts)} windows, the input has {count}: it was longer when an earlier run "
                "judged it; give --overwrite"
            )
        tally: Counter[str] = Counter()
        with _whole(self.out) as draft:
            write_table(draft, self.out.suffix.lower(), _counted(parts, tally))
        summary = {"rows": tally.pop("rows", 0), "said": dict(sorted(tally.items()))}
        _write_whole(self.facts, json.dumps({"identity": self.identity, **summary}, indent=2) + "\n")
        shutil.rmtree(self.folder)
        return summary

    def summary(self) -> dict[str, Any]:
        """What a finished file holds."""
        found: dict[str, Any] = json.loads(self.facts.read_text(encoding="utf-8"))
        return {name: found[name] for name in ("rows", "said")}

    def _part(self, window: Window) -> Path:
        return self.folder / f"{window.number:08d}-{window.digest}.jsonl"

    def _refuse_other(self, path: Path) -> None:
        found = json.loads(path.read_text(encoding="utf-8")).get("identity") or {}
        for name in dict.fromkeys([*found, *self.identity]):
            there, here = found.get(name), self.identity.get(name)
            if there != here:
                raise ValueError(
                    f"{path}: an earlier run had {name} {json.dumps(there)}, this one has {json.dumps(here)}; give "
                    "another --out, or --overwrite to start anew"
                )


def _counted(parts: Sequence[Path], tally: Counter[str]) -> Iterator[dict[str, Any]]:
    """The lines of all parts; rows, verdicts and reasons are counted as they pass."""
    for path in parts:
        with path.open(encoding="utf-8") as file:
            for text in file:
                line = json.loads(text)
                tally["rows"] += 1
                tally.update(said(line))
                yield line


def said(line: Line) -> Iterator[str]:
    """What the answers in a line say: yes, no, or the reason why neither."""
    if "p_yes" in line and "verdict" in line:
        yield line["reason"] or ("yes" if line["verdict"] else "no")
        return
    if line.get("reason"):
        yield line["reason"]
    for inner in line.values():
        for entry in inner if isinstance(inner, list) else [inner]:
            if isinstance(entry, Mapping):
                yield from said(entry)


def to_line(line: Line) -> str:
    return json.dumps(line, ensure_ascii=False) + "\n"


def _write_whole(path: Path, text: str) -> None:
    with _whole(path) as draft:
        draft.write_text(text, encoding="utf-8")


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A draft to write, which takes its place in one move: the file is there whole or not at all.

    Raises OSError that names the file, which a full disk does not.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
