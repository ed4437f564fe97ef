"""What `auto` stands for follows from measurement, once a machine; utilisation counts what linear layers do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from models import precision
from models.precision import Products, compute_dtype, fastest, flops_per_token, products, rate, speed_up_float32

MEASURED = Products(float32=100.0, onednn=105.0, bfloat16=400.0, onednn_error=1.2)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ECOMJUDGE_CACHE", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    fastest.cache_clear()
    yield tmp_path
    fastest.cache_clear()
    torch.backends.mkldnn.matmul.fp32_precision = "none"


@pytest.mark.parametrize(
    ("rates", "bfloat16", "onednn"),
    [
        ((100, 100, 400, 1.0), True, False),
        ((100, 180, 400, 1.0), True, True),
        ((100, 180, 200, 1.0), False, True),  # 1.11 times oneDNN's float32: not worth the rounding
        ((100, 180, 400, 300.0), True, False),  # it rounds: no float32
        ((100, 90, 60, 1.0), False, False),
    ],
)
def test_choices_by_hand(rates: tuple[float, float, float, float], bfloat16: bool, onednn: bool) -> None:
    found = Products(*rates)
    assert (found.takes_bfloat16, found.takes_onednn) == (bfloat16, onednn)


def test_a_machine_is_measured_once_and_remembered(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "_measure", lambda: MEASURED)
    assert products() == MEASURED
    monkeypatch.setattr(precision, "_measure", lambda: pytest.fail("measured again"))
    assert products() == MEASURED
    assert fastest() == torch.bfloat16
    [key] = json.loads((cache / "products.json").read_text())
    assert torch.__version__ in key


@pytest.mark.parametrize("spoilt", ["", "{", "[]", '{"cpu": {"float32": 1}}'])
def test_a_spoilt_memory_is_measured_anew(cache: Path, spoilt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "products.json").write_text(spoilt)
    monkeypatch.setattr(precision, "_measure", lambda: MEASURED)
    assert products() == MEASURED


@pytest.mark.parametrize("number", ['"fast"', "null", "true", "0", "-100.0", "NaN", "Infinity"])
def test_a_number_that_was_never_measured_is_measured_anew_and_the_others_are_kept(
    cache: Path, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "_measure", lambda: MEASURED)
    products()
    path = cache / "products.json"
    [(key, _)] = json.loads(path.read_text()).items()
    good = '{"float32": 1, "onednn": 2, "bfloat16": 7, "onednn_error": 1.0}'
    path.write_text(f'{{"another": {good}, {json.dumps(key)}: {good.replace("7", number)}}}')
    assert products() == MEASURED
    assert json.loads(path.read_text())["another"] == json.loads(good)


def test_a_cache_that_cannot_be_written_costs_a_measurement_and_no_error(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECOMJUDGE_CACHE", str(cache / "file" / "below"))
    (cache / "file").write_text("")
    monkeypatch.setattr(precision, "_measure", lambda: MEASURED)
    assert products() == MEASURED


class Seen(nn.Module):
    """A model that notes which library its parts would multiply with."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.linear.register_forward_hook(lambda *_: self.seen.append(_library()), prepend=True)
        self.seen: list[str] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        self.seen.append(_library())
        return y


def _library() -> str:
    return str(torch.backends.mkldnn.matmul.fp32_precision)


@pytest.mark.usefixtures("cache")
def test_linear_layers_alone_go_through_onednn_and_only_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    faster = Products(float32=100.0, onednn=180.0, bfloat16=400.0, onednn_error=1.2)
    torch.backends.mkldnn.matmul.fp32_precision = "none"
    for measured, expected in ((MEASURED, ["none", "none"]), (faster, ["bf16", "none"])):
        monkeypatch.setattr(precision, "products", lambda measured=measured: measured)
        model = Seen()
        speed_up_float32(model)
        model(torch.ones(1, 2))
        assert model.seen == expected
    speed_up_float32(failing := nn.Linear(2, 2))
    with pytest.raises(RuntimeError):
        failing(torch.ones(1, 3))
    assert _library() == "none"
    torch.backends.mkldnn.matmul.fp32_precision = "ieee"
    speed_up_float32(model := Seen())
    model(torch.ones(1, 2))
    assert model.seen == ["bf16", "ieee"]


def test_measuring_leaves_torch_as_it_was_and_gives_rates_above_nothing() -> None:
    before = torch.backends.mkldnn.matmul.fp32_precision
    found = precision._measure()
    assert min(found.float32, found.onednn, found.bfloat16, found.onednn_error) > 0
    assert torch.backends.mkldnn.matmul.fp32_precision == before
    assert rate(torch.float32) > 0


def test_operations_are_counted_by_hand() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2, bias=False))
    assert flops_per_token(model) == 2 * (15 + 10)
    # Both weights learn; the first layer's input needs no gradient.
    assert flops_per_token(model, learning=True) == 2 * (15 * 2 + 10 * 3)
    model[0].requires_grad_(False)
    assert flops_per_token(model, learning=True) == 2 * (15 + 10 * 2)
    model[0].bias.requires_grad_()
    assert flops_per_token(model, learning=True) == 2 * (15 + 10 * 3)


def test_the_compute_dtype_is_that_of_the_largest_layer() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(50, 20).bfloat16())
    assert compute_dtype(model) == torch.bfloat16
    assert compute_dtype(nn.Embedding(3, 5).half()) == torch.float16
