"""One stage of a construction: a folder that any number of processes fill, part by part, and that can be left any time.

The rows that a stage reads are cut into parts of a fixed size. A process claims a part, makes it, and writes it under
its name in one move: a part is there whole or not at all, so that a killed stage does not make it again, and the parts
in the order of their numbers are the same table whoever made them. When all are there, the main process puts them
together and ends ``manifest.json``, which until then says only what the stage is made from.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from benchmarks.ecomscript.build.tables import Row, Rows, TableWriter, write_table
from benchmarks.progress import progress
from benchmarks.results import differences, to_json, write_text
from models.manifest import sha256
from models.runtime import this_process, versions

MANIFEST, REJECTS, PARTS = "manifest.json", "rejects.parquet", "parts"
LOOK = 0.2  # seconds between two looks at what other processes have done
REJECT_SCHEMA = pa.schema([("id", pa.string()), ("reason", pa.string()), ("reply", pa.string())])
# What a part has beside the stage's own columns: a row that was rejected has its id and these.
_REJECTED = [pa.field("_rejected", pa.string()), pa.field("_why", pa.string()), pa.field("_reply", pa.string())]
_NOTES = b"ecomjudge"


@dataclass(frozen=True)
class Reject:
    """A row that a stage could make nothing of. ``reply`` is what there is to see: a model's text, a broken line."""

    id: str
    reason: str
    reply: str = ""


@dataclass
class Made:
    """What became of some rows.

    Attributes:
        rejects: rows that nothing could be made of; they are kept to be looked at.
        left_out: others that were not wanted, by reason; they are only counted.
        counts: whatever else is worth a number.
        tokens: read and written by a model for it.
    """

    rows: list[Row] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    tokens: int = 0


class Stage:
    """The folder of one stage.

    Args:
        identity: all that fixes what the stage makes: inputs' fingerprints, settings, prompt, model.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], say: Console) -> None:
        self.path, self.name, self.say = path, path.name, say
        self.identity: dict[str, Any] = json.loads(to_json(identity))
        self.parts = path / PARTS

    @property
    def manifest(self) -> dict[str, Any]:
        """What the stage has said of itself so far; empty before it has begun."""
        return read_manifest(self.path)

    @property
    def finished(self) -> bool:
        return "files" in self.manifest

    def fingerprint(self) -> dict[str, str]:
        """File -> sha256 of what the finished stage has made: what a later stage is made from."""
        return {name: about["sha256"] for name, about in self.manifest["files"].items()}

    def verify(self) -> None:
        """Raises ValueError where a file of the finished stage is not what it made."""
        for name, made in self.fingerprint().items():
            path = self.path / name
            if not path.is_file() or sha256(path) != made:
                raise ValueError(
                    f"{path} is not what the stage made: it was removed, cut or altered since; put it back, or give "
                    f"--redo {self.name} to make it and all that follows anew"
                )

    def check(self) -> dict[str, Any]:
        """The manifest; raises ValueError where the folder holds the stage made from something else."""
        found = self.manifest
        if found and (other := list(differences(found["identity"], self.identity))):
            more = f" (and {len(other) - 1} more differences)" if len(other) > 1 else ""
            raise ValueError(
                f"{self.path} was made from something else: {other[0]}{more}; give --redo {self.name} to make it and "
                "all that follows anew, or another --out"
            )
        return found

    def begin(self) -> bool:
        """Make the folder ready; False where the stage has ended before. Every process calls this.

        Raises ValueError where the folder holds the stage made from something else.
        """
        state = this_process()
        found = self.check()
        state.wait_for_everyone()
        if "files" in found:
            return False
        if state.is_main_process:
            self.parts.mkdir(parents=True, exist_ok=True)
            for claim in self.parts.glob("*.claim"):
                claim.unlink()
            write_text(self.path / MANIFEST, to_json({"stage": self.name, "identity": self.identity}))
        state.wait_for_everyone()
        return True

    def part(self, number: int, ending: str = "parquet") -> Path:
        return self.parts / f"{number:08}.{ending}"

    def count(self, ending: str = "parquet") -> int:
        """Parts that are there."""
        return sum(1 for _ in self.parts.glob(f"[0-9]*.{ending}"))

    def make(self, count: int, work: Callable[[int, Path], None], ending: str = "parquet") -> None:
        """Make the parts ``0 .. count - 1`` that are not there yet, as one of any number of processes.

        Args:
            work: makes the part of a number and leaves it at a path, in one move.

        Returns when all parts are there, whoever has made them.
        """
        with self.progress(count, self.count(ending)) as update:
            for number in range(count):
                if not self.part(number, ending).exists() and self._claim(number):
                    work(number, self.part(number, ending))
                    update(self.count(ending))
            while (done := self.count(ending)) < count:
                update(done)
                time.sleep(LOOK)

    def _claim(self, number: int) -> bool:
        """Whether this process is the first that wants to make a part."""
        try:
            self.part(number, "claim").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def progress(self, total: int | None, before: int = 0) -> AbstractContextManager[Callable[[int], None]]:
        """Shows how far the stage is; what it yields is called with how much is done, ``before`` of it already."""
        return progress(self.say, self.name, total, before)

    def finish(self, counts: Mapping[str, Any], files: Sequence[str], cost: Mapping[str, Any]) -> None:
        """End the manifest; the main process alone."""
        about = {name: {"sha256": sha256(self.path / name)} for name in files}
        manifest = {"stage": self.name, "identity": self.identity, **counts, "files": about}
        write_text(self.path / MANIFEST, to_json({**manifest, "cost": cost, "versions": versions()}))

    def wait(self, keep_parts: bool = False) -> None:
        """Until the main process has ended the stage, however long that takes: a barrier would lose patience.

        Then the parts go, unless they are to be kept: not before, since others may still be looking for them.
        """
        while not self.finished:
            time.sleep(LOOK)
        state = this_process()
        state.wait_for_everyone()
        if state.is_main_process:
            for claim in self.parts.glob("*.claim"):
                claim.unlink()
            if not keep_parts:
                shutil.rmtree(self.parts, ignore_errors=True)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a stage has said of itself so far; empty before it has begun.

    Raises ValueError where the file is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("identity"), dict):
        raise ValueError(f"{path} is damaged; give --redo {folder.name} to make the stage and all that follows anew")
    return found


def run_table(
    stage: Stage,
    source: Rows,
    schema: pa.Schema,
    work: Callable[[list[Row]], Made],
    chunk: int,
    distinct: Callable[[Row], str] | None = None,
) -> None:
    """Make a table of a table: ``<stage>.parquet``, and ``rejects.parquet`` of what nothing could be made of.

    Args:
        work: makes rows of some rows; called with ``chunk`` of them, the same ones however often a run was stopped.
        distinct: a key of a made row; rows that repeat an earlier one's are left out and counted.

    Raises ValueError where no row came of it.
    """
    if stage.begin():
        state = this_process()
        count = -(-len(source) // chunk)
        before, started = stage.count(), time.perf_counter()

        def make(number: int, path: Path) -> None:
            write_part(path, work(source.read(number * chunk, (number + 1) * chunk)), schema)

        stage.make(count, make)
        seconds = time.perf_counter() - started
        if state.is_main_process:
            name = f"{stage.name}.parquet"
            parts = [stage.part(number) for number in range(count)]
            counts = merge(parts, stage.path / name, schema, stage.path / REJECTS, distinct)
            done = min(len(source), (count - before) * chunk)
            cost = {"rows": done, "seconds": round(seconds, 2), "processes": state.num_processes}
            stage.finish({"read": len(source), **counts}, [name], cost)
    stage.wait()
    refuse_empty(stage)


def refuse_empty(stage: Stage) -> None:
    """Raises ValueError where a finished stage has kept nothing, so that what follows would have nothing to do."""
    found = stage.manifest
    if not found["kept"]:
        reasons = {**found["rejected"], **found["left_out"]}
        told = "; ".join(f"{count} times: {reason}" for reason, count in list(reasons.items())[:3]) or "nothing came in"
        raise ValueError(
            f"{stage.name}: none of {found['read']} rows could be used ({told}); look into {stage.path / REJECTS}, "
            f"change what is wrong (the model, a prompt, a setting), and give --redo {stage.name}"
        )


def write_part(path: Path, made: Made, schema: pa.Schema, notes: Mapping[str, Any] | None = None) -> None:
    """Write what was made as a part; ``notes`` are kept with it (see `read_notes`)."""
    rejects = [{"_rejected": one.id, "_why": one.reason, "_reply": one.reply} for one in made.rejects]
    said = {"tokens": made.tokens, "left_out": made.left_out, "counts": made.counts, **(notes or {})}
    whole = pa.schema([*schema, *_REJECTED])
    write_table(path, [*made.rows, *rejects], whole, {_NOTES: json.dumps(said).encode()})


def read_notes(path: Path) -> dict[str, Any]:
    """What was noted with a part."""
    notes: dict[str, Any] = json.loads(pq.read_schema(path).metadata[_NOTES])
    return notes


def merge(
    parts: Sequence[Path],
    path: Path,
    schema: pa.Schema,
    rejects_path: Path,
    distinct: Callable[[Row], str] | None = None,
) -> dict[str, Any]:
    """Put parts together: the kept rows to ``path``, the rejects to another. Counts of both, by reason, and tokens."""
    rejected: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    tokens, seen = 0, set[bytes]()
    with TableWriter(path, schema) as kept, TableWriter(rejects_path, REJECT_SCHEMA) as rejects:
        for part in parts:
            table, notes = pq.read_table(part), read_notes(part)
            is_reject = pc.is_valid(table["_rejected"])
            kept.add(_first_ones(table.filter(pc.invert(is_reject)), distinct, seen, left_out))
            found = table.filter(is_reject).select(["_rejected", "_why", "_reply"]).rename_columns(REJECT_SCHEMA.names)
            rejects.add(found)
            rejected.update(map(reason_without_figures, found["reason"].to_pylist()))
            left_out.update(notes["left_out"])
            counts.update(notes["counts"])
            tokens += notes["tokens"]
    return {
        "kept": kept.rows,
        "rejected": dict(rejected.most_common()),
        "left_out": dict(left_out.most_common()),
        "counts": dict(counts),
        "tokens": tokens,
    }


def _first_ones(
    table: pa.Table, distinct: Callable[[Row], str] | None, seen: set[bytes], left_out: Counter[str]
) -> pa.Table:
    """The rows whose key was not seen before."""
    if distinct is None:
        return table
    new: list[bool] = []
    for row in table.to_pylist():
        key = short_digest(distinct(row))
        new.append(key not in seen)
        seen.add(key)
    if not all(new):
        left_out["repeats an earlier one"] += new.count(False)
    return table.filter(pa.array(new, pa.bool_()))


def short_digest(text: str) -> bytes:
    """Eight bytes that stand for a text in a set: with four million texts two of them agree once in a million sets."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


def reason_without_figures(reason: str) -> str:
    """A reason as it is counted: what differs between rows (numbers) is taken out."""
    return re.sub(r"\d+", "N", reason)
