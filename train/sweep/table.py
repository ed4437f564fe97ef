"""What a person sees of a sweep while it runs: a live table on a terminal, a line a trial anywhere else."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.live import Live
from rich.table import Table

from train.sweep.study import ERROR, RUN, VALUES, best, ended, trials
from train.sweep.sweep_file import SweepFile, swept

MOST_ROWS = 20
STATES = {
    TrialState.RUNNING: "training",
    TrialState.COMPLETE: "done",
    TrialState.PRUNED: "stopped early",
    TrialState.FAIL: "failed",
}


class Watcher:
    """Shows a sweep's trials; as a context, from its first to its last."""

    def __init__(self, console: Console, sweep: SweepFile, study: Study, wanted: int) -> None:
        self.console, self.sweep, self.study, self.wanted = console, sweep, study, wanted
        self.curve: list[float] = []
        self.live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def tell(self, sentence: str) -> None:
        self.console.print(sentence)

    def watch(self, curve: list[float]) -> None:
        """The running trial has measured so much by now."""
        self.curve = curve
        self._refresh()

    def ended(self, trial: FrozenTrial) -> None:
        """A trial has come to its end."""
        self.curve = []
        if self.live is None:
            run, state, *rest = self._row(trial)
            told = [f"{name} {cell}" for name, cell in zip(self._names()[2:], rest, strict=True) if cell]
            self.console.print("  ".join([f"{len(ended(self.study))}/{self.wanted}", run, state, *told]))
        self._refresh()

    def _refresh(self) -> None:
        if self.live is not None:
            self.live.update(self.table(MOST_ROWS), refresh=True)

    def table(self, most: int | None = None) -> Table:
        """The trials, the best one marked; of more than ``most`` the last ones and the best."""
        rows, first = trials(self.study), best(self.study)
        title = f"{self.sweep.path.name}: {len(ended(self.study))} of {self.wanted} trials"
        shown = Table(title=title, caption=self._caption(first))
        for number, name in enumerate(self._names()):
            shown.add_column(name, justify="left" if number < 2 else "right")
        leading = first.number if first is not None else None
        for one in rows if most is None else [row for row in rows[:-most] if row.number == leading] + rows[-most:]:
            shown.add_row(*self._row(one), style="bold" if one.number == leading else None)
        return shown

    def _names(self) -> list[str]:
        """What the columns of a row are called: without the parts of a dotted name that lead to its last."""
        names = ["trial", "state", *swept(self.sweep.parameters), self.sweep.metric, "evaluations", "seconds"]
        return [name.rsplit(".", 1)[-1] for name in names]

    def _caption(self, first: FrozenTrial | None) -> str:
        if first is None:
            return f"{'highest' if self.sweep.maximize else 'lowest'} {self.sweep.metric} wins"
        return f"best so far: {first.user_attrs[RUN]} with {self.sweep.metric} {first.value:.4f}"

    def _row(self, trial: FrozenTrial) -> list[str]:
        running = trial.state == TrialState.RUNNING
        curve = self.curve if running else list(trial.intermediate_values.values())
        value = trial.value if trial.state == TrialState.COMPLETE else curve[-1] if curve else None
        values = trial.user_attrs.get(VALUES, {})  # what only waits may have none yet
        return [
            trial.user_attrs[RUN],
            STATES.get(trial.state, "waiting") + (f": {trial.user_attrs[ERROR]}" if ERROR in trial.user_attrs else ""),
            *(_short(values.get(name, "")) for name in swept(self.sweep.parameters)),
            "" if value is None else f"{value:.4f}",
            str(len(curve)),
            f"{trial.duration.total_seconds():.0f}" if trial.duration else "",
        ]

    def __enter__(self) -> Watcher:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.update(self.table(), refresh=True)
            self.live.stop()


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
