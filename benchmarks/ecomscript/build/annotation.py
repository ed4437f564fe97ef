"""The last stage: sheets for people, their votes read back, and the three judgment sets split by goal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.ecomscript.build.config import AnnotationConfig
from benchmarks.ecomscript.build.sample import DRAWN, as_product
from benchmarks.ecomscript.build.sheets import read_votes, write_sheets
from benchmarks.ecomscript.build.stages import Stage, short_digest
from benchmarks.ecomscript.build.tables import Rows
from benchmarks.ecomscript.build.votes import agreement, majority
from benchmarks.results import to_line, write_text
from models.runtime import this_process
from recipes.base import Record
from recipes.judgments import get_judgment
from recipes.splits import split_by_group

SETS, INTENTS = "sets", "intents.jsonl"
SPLITS = ("train", "validation", "test")
HELD_OUT = SPLITS[1:]
BATCH = 1000

Voted = dict[str, tuple[list[Record], dict[str, Any]]]  # judgment -> its labelled records, what is to be said of them


def annotate(
    stage: Stage, sample: Path, sheets: Path, products: Callable[[], Rows], config: AnnotationConfig, seed: int
) -> bool:
    """Write the sheets, or make the judgment sets of the filled ones: ``sets/<judgment>/<split>.jsonl``, and
    ``sets/intents.jsonl`` with the intents that a judge of them may learn from.

    Returns whether the sets are made; while a sheet has no votes, the stage waits for people.

    Args:
        stage: the stage as all but the votes fixes it.
        sample: the folder of the sample's stage.
        sheets: where the sheets lie. Those that people have changed are never touched.
        products: the table of intents.

    Raises ValueError where the sets are there, but were made of other votes.
    """
    items = {name: read_items(sample / f"{name}.parquet", name) for name in DRAWN}
    votes = {name: read_votes(sheets, name, [record.id for record in own]) for name, own in items.items()}
    waiting = [name for name, found in votes.items() if found is None]
    if stage.finished:
        return not _of_votes(stage, votes).begin()
    if waiting:
        _wait_for_people(stage, sheets, items, waiting, config)
        return False
    voted = {name: _labelled(items[name], votes[name] or {}, config) for name in items}
    split_of = split_goals(voted, config, seed)  # before the stage begins, which more votes could not go on with
    stage = _of_votes(stage, votes)
    if stage.begin() and this_process().is_main_process:
        counts = write_sets(stage.path / SETS, {name: records for name, (records, _) in voted.items()}, split_of)
        known = write_intents(stage.path / SETS / INTENTS, products(), shown_products(stage.path / SETS))
        _finish(stage, voted, counts, known)
    stage.wait()
    return True


def _of_votes(stage: Stage, votes: Mapping[str, Mapping[str, Any] | None]) -> Stage:
    """The stage as the votes fix it too. A finished one whose sheets have gone is that of the votes it was made of."""
    if any(votes.values()):
        told = {name: _in_brief(found) for name, found in votes.items()}
    else:
        told = stage.manifest["identity"].get("votes")
    return Stage(stage.path, {**stage.identity, "votes": told}, stage.say)


def _in_brief(votes: Mapping[str, Sequence[int | None]] | None) -> str:
    """Votes by their number, and a digest that tells them from all others."""
    given = sum(vote is not None for own in (votes or {}).values() for vote in own)
    return f"{given} votes ({short_digest(to_line(votes or {})).hex()})"


def _wait_for_people(
    stage: Stage, sheets: Path, items: Mapping[str, Sequence[Record]], waiting: Sequence[str], config: AnnotationConfig
) -> None:
    """Write the sheets that have no votes, and say that they are wanted."""
    state = this_process()
    state.wait_for_everyone()  # all have read before one writes
    if state.is_main_process:
        sheets.mkdir(exist_ok=True)
        for name in waiting:
            write_sheets(sheets, get_judgment(name), items[name], config.votes)
    stage.say.print(
        f"{sheets}: fill in the votes of {', '.join(waiting)} (.csv or .jsonl), then give the same command again"
    )


def _finish(stage: Stage, voted: Voted, counts: Mapping[str, Mapping[str, Any]], intents: int) -> None:
    """End the stage and say what came of the votes."""
    told = {name: {**about, "splits": counts[name]} for name, (_, about) in voted.items()}
    files = [f"{SETS}/{name}/{split}.jsonl" for name, splits in counts.items() for split in splits]
    left = {
        "no majority (a tie)": sum(about["ties"] for about in told.values()),
        "too few votes": sum(about["too_few_votes"] for about in told.values()),
    }
    about = {
        "read": sum(about["items"] for about in told.values()),
        "kept": sum(about["labelled"] for about in told.values()),
        "rejected": {},
        "left_out": {reason: count for reason, count in left.items() if count},
    }
    stage.finish({**about, "sets": told, "intents": intents}, [*files, f"{SETS}/{INTENTS}"], {})
    for name, (_, said) in voted.items():
        stage.say.print(f"{name}: {in_words(said)}")
    stage.say.print(f"the judgment sets: {stage.path / SETS}")


def in_words(voting: Mapping[str, Any]) -> str:
    """What came of the votes on a judgment's items, from `_labelled`."""
    kappa = voting["fleiss"]["kappa"]
    agreed = "no Fleiss' kappa (too little to tell)" if kappa is None else f"Fleiss' kappa {kappa:.3f}"
    return (
        f"{voting['labelled']} of {voting['items']} items labelled ({voting['ties']} ties, {voting['too_few_votes']} "
        f"with too few votes, {voting['missing_votes']} votes missing), {agreed}"
    )


def read_items(path: Path, judgment: str) -> list[Record]:
    """The records that were drawn for a judgment."""
    rows = Rows(path)
    record = get_judgment(judgment).record
    return [record.model_validate_json(row["record"]) for row in rows.read(0, len(rows))]


def _labelled(
    records: Sequence[Record], votes: Mapping[str, Sequence[int | None]], config: AnnotationConfig
) -> tuple[list[Record], dict[str, Any]]:
    """The records that have a majority, with their labels and votes; and what is to be said of the voting."""
    found = majority(votes, config.fewest_votes)
    made = [
        record.model_copy(update={"label": label, "meta": {**(record.meta or {}), "votes": list(votes[record.id])}})
        for record in records
        if (label := found.labels.get(record.id)) is not None
    ]
    about = {
        "items": len(records),
        "labelled": len(made),
        "ties": len(found.ties),
        "too_few_votes": len(found.too_few),
        "missing_votes": found.missing,
        "fleiss": asdict(agreement(votes)),
    }
    return made, about


def split_goals(voted: Voted, config: AnnotationConfig, seed: int) -> dict[str, str]:
    """The split of each goal, by its records' key; it is the same in all three sets.

    Raises ValueError where too few goals have a label, with what came of the votes.
    """
    together = [record for records, _ in voted.values() for record in records]
    try:
        parted = split_by_group(together, {split: getattr(config, split) for split in SPLITS}, seed)
    except ValueError as error:
        told = "; ".join(f"{name}: {in_words(about)}" for name, (_, about) in voted.items())
        raise ValueError(
            f"the labelled items cannot be split: {error}. {told}. An item is labelled if it has "
            f"{config.fewest_votes} votes and a majority: fill in more votes, or lower --annotation.fewest_votes"
        ) from error
    return {record.group_key: split for split, records in parted.items() for record in records}


def write_sets(
    folder: Path, labelled: Mapping[str, Sequence[Record]], split_of: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Write each judgment's splits. Counts by judgment and split."""
    counts: dict[str, dict[str, Any]] = {}
    for name, records in labelled.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        counts[name] = {}
        for split in SPLITS:
            own = [record for record in records if split_of[record.group_key] == split]
            text = "".join(to_line(record.model_dump(exclude_defaults=True)) for record in own)
            write_text(folder / name / f"{split}.jsonl", text)
            counts[name][split] = {"records": len(own), "yes": sum(record.label or 0 for record in own)}
    return counts


def shown_products(folder: Path) -> set[str]:
    """Titles of all products that a validation or test record of the sets in a folder shows."""
    titles: set[str] = set()
    for path in (folder / name / f"{split}.jsonl" for name in DRAWN for split in HELD_OUT):
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            record = json.loads(line)
            steps = [step for step in record.get("script", ()) if isinstance(step, dict)]
            products = [product for step in steps for product in step.get("products", ())]
            titles.update(product["title"] for product in [*products, *filter(None, [record.get("product")])])
    return titles


def write_intents(path: Path, products: Rows, held_out: Set[str]) -> int:
    """Write the intents of all products but those that are held out, a line each, in the format ``intents``; how many.

    A judge that has learned the intents of a product would know it when it is examined on it.
    """
    draft, written = path.with_name(f".{path.name}.draft"), 0
    with draft.open("w", encoding="utf-8") as file:
        for start in range(0, len(products), BATCH):
            for row in products.read(start, start + BATCH):
                if row["title"] not in held_out:
                    product = as_product(row).model_dump(exclude_defaults=True)
                    for number, intent in enumerate(row["intents"], 1):
                        file.write(to_line({"id": f"{row['id']}#{number}", "product": product, "intent": intent}))
                    written += len(row["intents"])
    draft.replace(path)
    return written
