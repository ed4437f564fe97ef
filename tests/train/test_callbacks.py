"""Throughput as worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from models.packing import pack
from train import callbacks
from train.callbacks import SteadyMemory, Throughput


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Seconds that a test sets."""
    now = {"seconds": 0.0}
    monkeypatch.setattr(callbacks.time, "perf_counter", lambda: now["seconds"])
    monkeypatch.setattr(callbacks, "rate", lambda dtype, device: 2e-6)  # 2,000 operations a second
    return now


def test_a_line_tells_rates_padding_sharing_and_utilisation(clock: dict[str, float]) -> None:
    watch = Throughput(nn.Linear(3, 5))
    told: Any = (SimpleNamespace(device="cpu"), None, None)
    watch.on_train_begin(*told)
    watch.on_step_begin(*told)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    watch.watch({"attention_mask": mask}, rows=2)
    # The ten tokens of the beginning stand once: of 24 tokens 14 are computed, and 2 that fill up to a multiple of 8.
    watch.watch(pack([[*range(10), 1, 2], [*range(10), 3, 4]]), rows=2)
    clock["seconds"] = 4.0
    line: dict[str, Any] = {"loss": 0.5}
    watch.on_log(*told, logs=line)
    assert line["tokens_per_second"] == (6 + 24) / 4
    assert line["records_per_second"] == 1.0
    assert line["padding_share"] == round((2 + 2) / (8 + 16), 4)
    assert line["shared_share"] == round(1 - (6 + 14) / 30, 4)
    # 2 * 3 * 5 operations a token forwards and as many for the weight's gradient, 24 tokens in 4 s, of 2,000 a second.
    assert line["mfu"] == round(60 * 24 / 4 / 2000, 4)
    assert line["peak_memory_gib"] > 0


def test_lines_without_a_loss_and_without_records_stay_as_they_are(clock: dict[str, float]) -> None:
    watch = Throughput(nn.Linear(3, 5))
    for line in ({"eval_loss": 1.0}, {"loss": 1.0}):
        before = dict(line)
        watch.on_log(SimpleNamespace(device="cpu"), None, None, logs=line)  # type: ignore[arg-type]
        assert line == before


@pytest.mark.parametrize(("device", "expected"), [("cpu", [3, 5]), ("cuda", [])])
def test_freed_memory_is_given_back_when_a_run_on_a_cpu_has_grown_by_a_tenth(
    monkeypatch: pytest.MonkeyPatch, device: str, expected: list[int]
) -> None:
    returned: list[int] = []
    steady = SteadyMemory()
    for update, held in enumerate((100, 90, 110, 111, 100, 150), start=0):
        monkeypatch.setattr(callbacks, "resident_memory", lambda held=held: held)
        monkeypatch.setattr(callbacks, "return_freed_memory", lambda update=update: returned.append(update))
        steady.on_step_end(SimpleNamespace(device=torch.device(device)), None, None)  # type: ignore[arg-type]
    assert returned == expected
