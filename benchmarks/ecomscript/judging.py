"""The run loop: every record gets its prediction exactly once, over any number of processes and restarts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.ecomscript.scorer import Plan, Scorer
from benchmarks.progress import progress
from benchmarks.results import Predictions
from models.runtime import this_process
from models.scoring import probabilities
from recipes.base import Judgment, Record
from recipes.fitting import CountTokens, Fitted, fit


@dataclass(frozen=True)
class Examined:
    """Prediction lines in the order of the data; what did not fit; what this run itself judged, and in how long.

    Attributes:
        judged, tokens: records, and tokens of their prompts, over all processes.
        own, computed: tokens of the prompts that this process judged, and what it computed for them: fewer where
            prompts share, more where they are padded; None where that is not known.
    """

    lines: list[dict[str, Any]]
    fitted: Fitted[Any]
    judged: int
    seconds: float
    tokens: int
    own: int
    computed: int | None

    @property
    def labels(self) -> list[int]:
        return [line["label"] for line in self.lines]

    @property
    def probabilities(self) -> list[float]:
        return [line["p_yes"] for line in self.lines]


@dataclass(frozen=True)
class Examiner:
    """Lets ``scorer`` judge sets of records and keeps the answers in ``folder``."""

    judgment: Judgment[Any]
    scorer: Scorer
    folder: Path
    token_budget: int | None
    drop_too_long: bool
    say: Console

    def examine(self, name: str, records: Sequence[Any], threshold: float) -> Examined:
        """Predictions for a set of records, going on where an earlier run was stopped.

        Batches follow from the records alone. Those without an answer are dealt out to the processes; each writes a
        batch as soon as it is judged, and the main process puts all together.
        """
        state = this_process()
        fitted = self.fit(name, records)
        plan = self.scorer.plan(fitted.records, fitted.lengths, self.token_budget, threshold)
        ids = [record.id for record in fitted.records]
        predictions = Predictions(self.folder, name)
        if state.is_main_process:
            predictions.recover([[ids[row] for row in batch] for batch in plan.batches])
        state.wait_for_everyone()
        done = predictions.recovered()
        pending = [batch for batch in plan.batches if ids[batch[0]] not in done]
        if done and pending:
            self.say.print(f"going on: {len(done)} of {len(ids)} {name} are there")
        own = pending[state.process_index :: state.num_processes]
        started, judged = time.perf_counter(), 0
        with progress(self.say, name, sum(map(len, own))) as update:
            for batch in own:
                predictions.append(state.process_index, self._lines(fitted, plan, batch, threshold))
                judged += len(batch)
                update(judged)
        state.wait_for_everyone()
        seconds = time.perf_counter() - started
        if state.is_main_process:
            predictions.merge(ids)
        state.wait_for_everyone()
        tokens, of_own = (sum(fitted.lengths[row] for batch in some for row in batch) for some in (pending, own))
        judged_in_all = sum(map(len, pending))
        return Examined(predictions.read(), fitted, judged_in_all, seconds, tokens, of_own, plan.computed)

    def fit(self, name: str, records: Sequence[Any]) -> Fitted[Any]:
        """The records as they fit; see `fitting`."""
        scorer = self.scorer
        return fitting(
            name, self.judgment, records, scorer.lengths, scorer.max_length, scorer.shots, self.drop_too_long
        )

    def _lines(self, fitted: Fitted[Any], plan: Plan, batch: Sequence[int], threshold: float) -> list[dict[str, Any]]:
        """Judge one batch: its lines. A margin is kept to six decimals; p_yes and verdict follow from that."""
        margins = plan.margins(batch)
        if not np.isfinite(margins).all():
            names = ", ".join(fitted.records[row].id for row in batch[:5])
            raise RuntimeError(f"the model's numbers are not finite for {names}; try --dtype float32")
        kept = np.round(margins, 6) + 0.0  # no negative zero
        lines = []
        for row, margin, p_yes in zip(batch, kept, probabilities(kept, self.scorer.temperature), strict=True):
            record = fitted.records[row]
            lines.append(
                {
                    "id": record.id,
                    "group": record.group_key,
                    "label": record.label,
                    "p_yes": float(p_yes),
                    "margin": float(margin),
                    "verdict": int(p_yes >= threshold),
                    "tokens": fitted.lengths[row],
                    "shots": self.scorer.shots,
                    "shortened": record.id in fitted.shortened,
                    "rescored": row in plan.rescored,
                    **kind_of(record),
                }
            )
        return lines


def fitting(
    name: str,
    judgment: Judgment[Any],
    records: Sequence[Any],
    lengths: CountTokens,
    max_length: int,
    shots: int,
    drop_too_long: bool,
) -> Fitted[Any]:
    """The records as they fit ``max_length`` tokens.

    Raises ValueError naming those that cannot, unless they may be dropped, or where none is left.
    """
    fitted = fit(judgment, records, lengths, max_length)
    if fitted.refused and not drop_too_long:
        worst = sorted(fitted.refused.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{record} ({tokens} tokens)" for record, tokens in worst[:5])
        fewer = f"give fewer shots (there are {shots}), " if shots else ""
        raise ValueError(
            f"{name}: {len(worst)} records do not fit {max_length} tokens even without their product text: "
            f"{listed}{' ...' if len(worst) > 5 else ''}; {fewer}raise --max_length if the model takes "
            "more, or set --drop_too_long"
        )
    if not fitted.records:
        raise ValueError(f"{name}: no record is left after fitting {max_length} tokens")
    return fitted


def kind_of(record: Record) -> dict[str, str]:
    """The kind of a record that says so (``meta.kind``), for a line that is to be compared by kind."""
    kind = (record.meta or {}).get("kind")
    return {"kind": kind} if isinstance(kind, str) else {}
