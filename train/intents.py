"""Purchase intents in a run: read, kept apart from what is judged, then learned as pairs or shown beside products."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from models.checkpoint import resolve
from models.embedding import Embedder
from models.judge import Judge
from recipes.base import Judgment
from recipes.intents.beside import by_product, with_known
from recipes.intents.judgment import INTENTS, IntentRecord
from recipes.intents.leaks import find_leaks, products_of
from recipes.intents.pairs import drawn, make_pairs, shuffled
from recipes.intents.reading import Filters, read_intents
from recipes.reading import read_records
from train.batching import EncodedDataset
from train.config import IntentsConfig, TrainConfig
from train.data import RunData, Split, prepare


def read_knowledge(config: TrainConfig, judgment: Judgment[Any], data: RunData, say: Console) -> list[IntentRecord]:
    """The intents of a run, each with a label; none in mode none.

    Raises ValueError where they cannot be used as asked, or tell of what is judged.
    """
    wanted = config.intents
    if wanted.mode == "none":
        return []
    _check(config, judgment, data)
    known, skipped = read_intents(wanted.data, Filters(wanted.min_plausibility, wanted.min_typicality))
    known = drawn(_apart(config, judgment, data, known, say), wanted.limit, config.seed)
    if wanted.shuffled:
        known = shuffled(known, config.seed)
    left = "".join(f"; left out {count} {reason}" for reason, count in skipped.items())
    right = sum(one.label == 1 for one in known)
    products = len({one.group_key for one in known})
    how = ", each with a product that is not its own" if wanted.shuffled else ""
    say.print(f"intents: {right} right and {len(known) - right} wrong ones of {products} products{how}{left}")
    return known


def _check(config: TrainConfig, judgment: Judgment[Any], data: RunData) -> None:
    """Raises ValueError for a mode that cannot do what it is for."""
    mode = config.intents.mode
    if not config.intents.data:
        raise ValueError(f"intents.mode {mode} needs intents.data: files of purchase intents, or sample:train")
    if mode == "sequential" and config.method == "full":
        raise ValueError("intents.mode sequential carries an adapter over, and method full has none; take mixed")
    if mode == "context" and not any(True for record in data.train for _ in products_of(record)):
        raise ValueError(f"{judgment.name} shows no products to set intents beside; take sequential or mixed")


def _apart(
    config: TrainConfig, judgment: Judgment[Any], data: RunData, known: list[IntentRecord], say: Console
) -> list[IntentRecord]:
    """The intents without those that tell of what is judged, or all of them where that is allowed."""
    if config.intents.overlap == "allow":
        return known
    judged: dict[str, Sequence[Any]] = {config.data.validation or "the validation records": data.validation}
    if data.test:
        judged[str(config.data.test)] = data.test
    for reference in config.intents.apart:
        judged[reference] = read_records(judgment, reference, require_label=False)
    leaks = find_leaks(known, judged)
    if not (sentence := leaks.sentence()):
        return known
    if config.intents.overlap == "refuse":
        raise ValueError(
            f"intents.data: {sentence}. Leave these out with --intents.overlap drop; allow them only where they were "
            "not made from what is judged"
        )
    if not any(one.label == 1 for one in leaks.clean):
        raise ValueError(f"intents.data: nothing is left. {sentence}")
    say.print(f"intents: dropped {len(known) - len(leaks.clean)}. {sentence}")
    return leaks.clean


def beside_products(
    judgment: Judgment[Any], data: RunData, known: Sequence[IntentRecord], config: TrainConfig, say: Console
) -> tuple[Judgment[Any], RunData]:
    """The judgment and its records with purchase intents beside the products, where the run asks for that."""
    if config.intents.mode != "context":
        return judgment, data
    told = by_product(known)
    splits = {
        name: with_known(records, told, config.intents.hidden if name == "train" else 0.0, config.seed)
        for name, records in vars(data).items()
    }
    for name, records in splits.items():
        if records:
            shown = [bool(product.intents) for record in records for product in products_of(record)]
            say.print(f"{name}: {sum(shown)} of {len(shown)} products are shown with their intents")
    return judgment.with_intents(config.intents.shown), RunData(**splits)


def pairs_to_learn(config: TrainConfig, known: Sequence[IntentRecord]) -> list[IntentRecord]:
    """Right and wrong pairs, where the run learns from pairs."""
    wanted = config.intents
    if wanted.mode not in ("sequential", "mixed"):
        return []
    return make_pairs(known, wanted.negatives, wanted.hard, lambda texts: _vectors(wanted, texts), config.seed)


def _vectors(wanted: IntentsConfig, texts: Sequence[str]) -> NDArray[np.float32]:
    return Embedder(resolve(wanted.embedder), dtype="float32").embed(texts)


def mixed_in(split: Split, pairs: Sequence[IntentRecord], judge: Judge, config: TrainConfig, say: Console) -> Split:
    """The training split whose dataset holds pairs as well; its records and what is told of them stay."""
    count = min(len(pairs), round(config.intents.ratio * len(split.fitted.records)))
    chosen = random.Random(f"{config.seed}:mixed").sample(list(pairs), count)
    beside = prepare("intents.data", INTENTS, chosen, judge, config.data.drop_too_long).dataset
    say.print(f"intents: {len(beside)} pairs among {len(split.dataset)} records")
    own = split.dataset
    joined = EncodedDataset([*own.encoded, *beside.encoded], [*own.labels, *beside.labels])
    return replace(split, dataset=joined)
