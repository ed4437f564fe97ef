"""The folder of an evaluation: what was examined, every answer as it comes, and the numbers made of the answers.

``evaluation.json`` says which evaluation this is: a folder holds one and no other. While it runs, each process appends
its answers, a batch at a time, to a file of its own under ``<name>.parts/``. At the end they become ``<name>.jsonl``,
one line a record in the order of the data, and ``results.json`` tells their digests: a finished evaluation of which a
file was lost or spoilt is gone on with like one that was killed. A killed evaluation keeps every whole batch; a batch
that was cut is judged again, so that the file ends the same, however often it was killed and however many processes
there were.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from models.manifest import sha256

IDENTITY, RESULTS, REPORT = "evaluation.json", "results.json", "report.html"
SETS = ("predictions", "validation")
AGAIN = "give the evaluation's command again"  # it mends what was cut or spoilt


class EvaluationFolder:
    """The folder of one evaluation, known by its ``identity``: everything that fixes the predictions.

    Args:
        sets: names of the sets of answers that it may hold, as patterns.
        kind: what the folder is said to be of.
    """

    def __init__(
        self, path: Path, identity: Mapping[str, Any], sets: Sequence[str] = SETS, kind: str = "evaluation"
    ) -> None:
        self.path, self.sets, self.kind = path, sets, kind
        self.identity: dict[str, Any] = json.loads(to_json(identity))

    def refuse_other(self, overwrite: bool = False) -> None:
        """Raises ValueError, naming the first difference, where the folder holds another evaluation. Writes nothing.

        What is no evaluation at all is refused even where one may be overwritten.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; give the folder to write as --out")
        path = self.path / IDENTITY
        if path.is_file():
            if overwrite:
                return
            found = as_object(path.read_text(encoding="utf-8", errors="replace"))
            if found is None:
                raise ValueError(f"{path} cannot be read; give --overwrite to start anew, or another --out")
            unlike = list(differences(found, self.identity))
            if unlike:
                more = f" (and {len(unlike) - 1} more differences)" if len(unlike) > 1 else ""
                raise ValueError(
                    f"{self.path} holds another {self.kind}: {unlike[0]}{more}; give another --out, "
                    "or --overwrite to start anew"
                )
        elif self._nameless():
            if not overwrite:
                raise ValueError(
                    f"{self.path} holds an {self.kind} that has lost its {IDENTITY}, which said what was asked; put "
                    "that back, give --overwrite to start anew, or another --out"
                )
        elif self.path.is_dir() and any(not path.name.startswith(".") for path in self.path.iterdir()):
            raise ValueError(f"{self.path} holds other files and no {IDENTITY}; give another --out")

    def _nameless(self) -> bool:
        """Whether the folder holds an evaluation's results beside all of the answers that they were made of."""
        return self.results() is not None

    def open(self) -> None:
        """Make the folder and say in it which evaluation it holds; the main process alone does this."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self.path / IDENTITY, to_json(self.identity))

    def clear(self) -> None:
        """Remove an earlier evaluation's files, and nothing else that may lie in the folder."""
        for pattern in self.sets:
            for parts in self.path.glob(f"{pattern}.parts"):
                shutil.rmtree(parts, ignore_errors=True)
        for pattern in (*(f"{name}.jsonl" for name in self.sets), REPORT, RESULTS, IDENTITY):
            for path in self.path.glob(pattern):
                path.unlink()

    def write_results(self, results: Mapping[str, Any]) -> None:
        """Write the results, with the sha256 of every set of answers that they are made of."""
        paths = sorted(path for name in self.sets for path in self.path.glob(f"{name}.jsonl"))
        write_text(self.path / RESULTS, to_json({**results, "files": {path.name: sha256(path) for path in paths}}))

    def results(self) -> dict[str, Any] | None:
        """The results, if the evaluation has ended and its files are still what they were then."""
        try:
            found = json.loads((self.path / RESULTS).read_text(encoding="utf-8"))
            files = found.pop("files")
            whole = bool(files) and all(sha256(self.path / name) == digest for name, digest in files.items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return found if whole else None


def read_results(folder: Path) -> dict[str, Any]:
    """The results of a finished evaluation, for others to read.

    Raises FileNotFoundError where there are none, ValueError where they were cut or spoilt.
    """
    path = folder / RESULTS
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: no {RESULTS}; give the folder of a finished evaluation")
    found = as_object(path.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise ValueError(f"{path} was cut or spoilt; {AGAIN}")
    return found


def differences(found: Any, wanted: Any, name: str = "") -> Iterator[str]:
    """Where two trees of facts differ, a sentence each: what is found there, and what is wanted here."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in dict.fromkeys([*found, *wanted]):
            yield from differences(found.get(key), wanted.get(key), f"{name}.{key}" if name else key)
    elif found != wanted:
        yield f"{name} is {found!r} there and {wanted!r} here"


class Predictions:
    """The answers to one set of records: in ``<name>.parts/`` while they are made, then in ``<name>.jsonl``."""

    def __init__(self, folder: Path, name: str = "predictions") -> None:
        self.path = folder / f"{name}.jsonl"
        self.parts = folder / f"{name}.parts"

    def recover(
        self, batches: Sequence[Sequence[str]], usable: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> None:
        """Keep the answers of whole batches (of record ids), from whatever run, and forget the rest.

        The main process alone does this, before any process appends.

        Args:
            usable: whether an answer may be kept.
        """
        found = _answers(self._files(), usable)
        kept = [found[record] for batch in batches if all(record in found for record in batch) for record in batch]
        self.parts.mkdir(parents=True, exist_ok=True)
        write_text(self._done, "".join(kept))
        for path in self._files():
            if path != self._done:
                path.unlink()

    def recovered(self) -> set[str]:
        """Ids of the records whose answers `recover` has kept; what processes append meanwhile changes nothing here."""
        return set(_answers([self._done]))

    def append(self, process: int, lines: Sequence[Mapping[str, Any]]) -> None:
        """Add the answers of one batch to this process's part; they are on their way to the disk when this returns."""
        path = self.parts / f"process-{process}.jsonl"
        with naming(path), path.open("a", encoding="utf-8") as file:
            file.write("".join(to_line(line) for line in lines))

    def merge(self, records: Sequence[str]) -> None:
        """Write the answers in the order of ``records`` (ids) and remove the parts; the main process alone, at the end.

        Raises RuntimeError unless there is exactly one answer for each record.
        """
        found = _answers(self._files())
        if len(set(records)) != len(records) or found.keys() != set(records):
            missing, odd = len(set(records) - found.keys()), len(found.keys() - set(records))
            raise RuntimeError(
                f"{self.path}: {missing} of {len(records)} records have no prediction, {odd} were not asked"
            )
        write_text(self.path, "".join(found[record] for record in records))
        shutil.rmtree(self.parts)

    def whole(self) -> list[dict[str, Any]]:
        """Every answer that is whole, wherever it lies; in no order."""
        return [json.loads(line) for line in _answers(self._files()).values()]

    def read(self) -> list[dict[str, Any]]:
        """All answers, in the order of the data. Raises ValueError naming a line that was cut or spoilt."""
        answers = []
        for number, line in enumerate(_lines(self.path), 1):
            entry = as_object(line)
            if entry is None:
                raise ValueError(f"{self.path}:{number}: the line was cut or spoilt; {AGAIN}")
            answers.append(entry)
        return answers

    @property
    def _done(self) -> Path:
        return self.parts / "done.jsonl"

    def _files(self) -> list[Path]:
        """Every file that may hold answers."""
        return [*sorted(self.parts.glob("*.jsonl")), *([self.path] if self.path.is_file() else [])]


def _answers(files: Sequence[Path], usable: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, str]:
    """Id -> line of every answer that is whole and usable. Raises ValueError if one record has two different ones."""
    found: dict[str, str] = {}
    for path in files:
        for line in _lines(path):
            entry = _answer(line)
            if entry is None or not usable(entry):
                continue
            if found.setdefault(entry["id"], line) != line:
                raise ValueError(f"{path}: record {entry['id']!r} has two different predictions; give --overwrite")
    return found


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        yield from file


def _answer(line: str) -> dict[str, Any] | None:
    """The answer that a line holds; None for a line that was cut while it was written, or answers no record."""
    entry = as_object(line) if line.endswith("\n") else None
    return entry if entry is not None and isinstance(entry.get("id"), str) else None


def as_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text holds; None where it holds none, or was cut."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def to_line(entry: Mapping[str, Any]) -> str:
    return json.dumps(_finite(entry), ensure_ascii=False) + "\n"


def to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, indent=2) + "\n"


def _finite(value: Any) -> Any:
    """JSON knows no NaN and no infinity: both become null."""
    if isinstance(value, Mapping):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_text(path: Path, text: str) -> None:
    """Replace a file in one move: a reader sees the old text or the new, never a part."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with naming(path):
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """The system's errors in the block name the file: of a full disk it says only that it is full."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def publishable(reference: str) -> str:
    """A data reference as results name it: a file by its own name, never by where it lies."""
    return Path(reference).name if os.path.exists(reference) else reference
