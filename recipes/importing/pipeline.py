"""From a real file to train, validation and test: read, make consistent, split, complete each split, write."""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipes.base import Record
from recipes.importing import coscript, esci, intentionqa, piqa
from recipes.importing.files import Options, Skipped, group_name
from recipes.splits import Apart, split_apart, split_by_group
from recipes.step_product import StepProductRecord

Complete = Callable[[Sequence[Any], random.Random, Options], list[Any]]


@dataclass(frozen=True)
class Source:
    """``read`` yields records; ``products_apart``: products too must not cross; ``complete`` makes a split whole."""

    judgment: str
    note: str
    read: Callable[[Path, Options, Skipped], Iterator[Record]]
    products_apart: bool = False
    complete: Complete | None = None


SOURCES = {
    "piqa": Source("script_verify", "labels: human judgments of PIQA", piqa.read),
    "intentionqa": Source(
        "step_product",
        "labels: right and wrong options of IntentionQA",
        intentionqa.read,
        True,
        intentionqa.choose_wrong,
    ),
    "esci": Source("step_product", "labels: human grades of ESCI", esci.read, True),
    "coscript": Source(
        "script_verify",
        "labels: CONSTRUCTED; published scripts are taken as right, wrong ones are made from them",
        coscript.read,
        complete=coscript.with_negatives,
    ),
}


@dataclass(frozen=True)
class Imported:
    """What was written: the paths, records and yes-labels of each split, and what was left out and why."""

    source: Source
    files: dict[str, Path]
    counts: dict[str, int]
    positives: dict[str, int]
    left_out: dict[str, int]

    def text(self) -> str:
        lines = [f"{self.source.judgment} ({self.source.note})"]
        for split, path in self.files.items():
            share = 100 * self.positives[split] / self.counts[split]
            lines.append(f"{split:<12}{self.counts[split]:>8} records, {share:.1f} % yes   {path}")
        lines += [f"left out: {count} {reason}" for reason, count in self.left_out.items()]
        return "\n".join(lines)


def import_data(
    source: str,
    file: Path,
    out: Path,
    options: Options,
    shares: Mapping[str, float],
    seed: int = 0,
    overwrite: bool = False,
) -> Imported:
    """Write ``out/<split>.jsonl`` for every share; all of them, or none if anything is wrong.

    Raises ValueError where the file is not what the source says, a split would be empty or of one class, or a file
    exists already and ``overwrite`` is not set, or the folder cannot be written.
    """
    if options.negatives < 1:
        raise ValueError(f"negatives: {options.negatives}; give 1 or more, a judge needs wrong products too")
    kind = SOURCES[source]
    files = {split: out / f"{split}.jsonl" for split in shares}
    there = [str(path) for path in files.values() if path.exists()]
    if there and not overwrite:
        raise ValueError(f"{', '.join(there)}: exists; choose another folder or overwrite it with --overwrite")
    if folders := [str(path) for path in files.values() if path.is_dir()]:
        raise ValueError(f"{', '.join(folders)}: a folder, which no file replaces; choose another folder")
    skipped: Skipped = Counter()
    records = _consistent(list(kind.read(file, options, skipped)), skipped)
    if not records:
        raise ValueError(f"{file}: no record could be made; {dict(skipped) or 'the file is empty'}")
    apart = _split(records, kind, shares, seed)
    splits = {}
    for split, members in apart.splits.items():
        rng = random.Random(f"{seed}:{split}")
        splits[split] = kind.complete(members, rng, options) if kind.complete else members
    _both_classes(splits)
    for split, lost in apart.dropped.items():
        if lost:
            share = f"({sum(record.label == 1 for record in lost)} labelled 1)"
            skipped[f"records of {split} {share}: their product stands in another split"] = len(lost)
    try:
        _write(files, splits)
    except OSError as error:
        raise ValueError(f"{out}: cannot be written ({error.strerror}); nothing was changed there") from error
    counts = {split: len(members) for split, members in splits.items()}
    positives = {split: sum(record.label == 1 for record in members) for split, members in splits.items()}
    return Imported(kind, files, counts, positives, dict(skipped))


def _split(records: Sequence[Any], source: Source, shares: Mapping[str, float], seed: int) -> Apart[Any]:
    if source.products_apart:
        return split_apart(records, shares, seed, _goal_and_product)
    return Apart(split_by_group(records, shares, seed), {})


def _goal_and_product(record: StepProductRecord) -> tuple[str, str]:
    return f"goal {record.group_key}", f"product {group_name(record.product.title)}"


def _consistent(records: Sequence[Any], skipped: Skipped) -> list[Any]:
    """The records without repetitions, and without a "no" where the same item also has a "yes"."""
    labels: dict[bytes, set[int]] = {}
    for record in records:
        labels.setdefault(_content(record), set()).add(record.label)
    kept, seen = [], set()
    for record in records:
        content = _content(record)
        if record.label == 0 and 1 in labels[content]:
            skipped["records labelled 0 that are labelled 1 elsewhere"] += 1
        elif content in seen:
            skipped["repeated records"] += 1
        else:
            seen.add(content)
            kept.append(record)
    return kept


def _content(record: Record) -> bytes:
    text = record.model_dump_json(exclude={"id", "label", "group", "meta"}).lower()
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _both_classes(splits: Mapping[str, Sequence[Record]]) -> None:
    for split, members in splits.items():
        labels = {record.label for record in members}
        if labels != {0, 1}:
            told = ", ".join(sorted(map(str, labels)))
            raise ValueError(
                f"split {split!r} would have no label but {told}; give it a larger share, or choose what counts as yes"
            )


def _write(files: Mapping[str, Path], splits: Mapping[str, Sequence[Record]]) -> None:
    """Every file is written beside its place first, so that a failure leaves what was there."""
    written: dict[Path, Path] = {}
    try:
        for split, path in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            half = path.with_name(f".{path.name}.{os.getpid()}.part")
            written[half] = path
            with open(half, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(record.model_dump_json(exclude_defaults=True) + "\n" for record in splits[split])
        for half, path in written.items():
            os.replace(half, path)
    finally:
        for half in written:
            half.unlink(missing_ok=True)
