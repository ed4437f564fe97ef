"""How fast this machine multiplies matrices: what the precision `auto` stands for, and what utilisation is against."""

from __future__ import annotations

import json
import math
import platform
import resource
import time
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from models.packaged import cache_folder

# Which library multiplies float32 on a CPU: "bf16" is oneDNN, "ieee" the default.
_SWITCH: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
# A product of the size of a small decoder's layers at a batch of tokens: a CPU takes about ten milliseconds for it.
ROWS, INNER, COLUMNS = 512, 1024, 1024
ROUNDS = 20  # the best of them, also where other work takes most of the machine
# Rounding is worth it only for a clear gain.
GAIN_FROM_BFLOAT16 = 1.3
GAIN_FROM_ONEDNN = 1.1
# Another order of summation changes the error by a small factor; rounding to bfloat16 by hundreds.
SAME_ACCURACY = 10


@dataclass(frozen=True)
class Products:
    """Measured on one kind of CPU: GFLOP/s of float32 products by torch's default library and by oneDNN, and of
    bfloat16 ones; and the error of oneDNN's float32 product over that of the default's, both against float64."""

    float32: float
    onednn: float
    bfloat16: float
    onednn_error: float

    @property
    def takes_bfloat16(self) -> bool:
        return self.bfloat16 > GAIN_FROM_BFLOAT16 * max(self.float32, self.onednn)

    @property
    def takes_onednn(self) -> bool:
        """Whether oneDNN multiplies float32 faster and as exactly: on CPUs with AMX it may round to bfloat16."""
        return self.onednn > GAIN_FROM_ONEDNN * self.float32 and self.onednn_error < SAME_ACCURACY


def rate(dtype: torch.dtype, device: torch.device | str = "cpu") -> float:
    """GFLOP/s of a matrix product in ``dtype`` now: the best of a few rounds."""
    left, right = _factors(dtype, device)
    return _gflops(min(_seconds(left, right) for _ in range(ROUNDS)))


def _factors(dtype: torch.dtype, device: torch.device | str = "cpu") -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(ROWS, INNER, device=device).to(dtype), torch.randn(COLUMNS, INNER, device=device).to(dtype)


def _gflops(seconds: float) -> float:
    return 2e-9 * ROWS * INNER * COLUMNS / seconds


def _seconds(left: torch.Tensor, right: torch.Tensor) -> float:
    """How long one product takes."""
    start = time.perf_counter()
    nn.functional.linear(left, right)
    if left.is_cuda:
        torch.cuda.synchronize(left.device)
    return time.perf_counter() - start


def products() -> Products:
    """What was measured on this kind of CPU, once: a measurement anew at each start could choose otherwise, and a run
    that goes on after a kill would not be the same."""
    path = cache_folder() / "products.json"
    key = f"{cpu_name()}, torch {torch.__version__}"
    known = _read(path)
    if key not in known:
        known[key] = asdict(_measure())
        _write(path, known)
    return Products(**known[key])


def _measure() -> Products:
    """The three ways in turn, the best of each: whatever else the machine does meets all of them alike."""
    ways = {"float32": (torch.float32, "ieee"), "onednn": (torch.float32, "bf16"), "bfloat16": (torch.bfloat16, "ieee")}
    factors = {way: _factors(dtype) for way, (dtype, _) in ways.items()}
    left, right = factors["float32"]
    exact = nn.functional.linear(left[:8].double(), right.double())
    best, errors = dict.fromkeys(ways, float("inf")), {}
    before = _SWITCH.fp32_precision
    try:
        for _ in range(ROUNDS):
            for way, (_, choice) in ways.items():
                _SWITCH.fp32_precision = choice
                best[way] = min(best[way], _seconds(*factors[way]))
                errors[way] = float((nn.functional.linear(left, right)[:8] - exact).abs().max())
    finally:
        _SWITCH.fp32_precision = before
    rates = {way: _gflops(seconds) for way, seconds in best.items()}
    return Products(**rates, onednn_error=errors["onednn"] / errors["float32"])


@cache
def fastest() -> torch.dtype:
    """The dtype of `auto`: bfloat16 where it is clearly faster, else float32."""
    if torch.cuda.is_available():
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    return torch.bfloat16 if products().takes_bfloat16 else torch.float32


def speed_up_float32(model: nn.Module) -> None:
    """Let the linear layers of a float32 model go through oneDNN where that is faster at the same accuracy.

    The switch is torch's own and holds for everything; it is on inside these layers alone, because attention is slower
    with it (docs/experiments.md), and another model in the process may be meant to be exact.
    """
    if torch.cuda.is_available() or not products().takes_onednn:
        return
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(partial(_switch, "bf16"))
            module.register_forward_hook(partial(_switch, _SWITCH.fp32_precision), always_call=True)


def _switch(choice: str, *_: Any) -> None:
    _SWITCH.fp32_precision = choice


def flops_per_token(model: nn.Module, learning: bool = False) -> int:
    """Floating-point operations of the linear layers for one token, a multiplication and an addition each.

    The projection to a vocabulary, of which a judge computes two rows, and attention's products are left out.

    Args:
        learning: count the backward pass too: the gradient of each layer's input from the first trained weight on, and
            that of each trained weight.
    """
    output = getattr(model, "get_output_embeddings", lambda: None)()
    total, reached = 0, False
    for module in model.modules():
        if isinstance(module, nn.Linear) and module is not output:
            passes = 1 + (learning and reached) + (learning and module.weight.requires_grad)
            total += 2 * module.in_features * module.out_features * passes
        reached = reached or any(parameter.requires_grad for parameter in module.parameters(recurse=False))
    return total


def compute_dtype(model: nn.Module) -> torch.dtype:
    """The dtype of the products that take most of a model's time: for quantized weights, what they are expanded to."""
    output = getattr(model, "get_output_embeddings", lambda: None)()
    layers = [module for module in model.modules() if isinstance(module, nn.Linear) and module is not output]
    largest = max(layers, key=lambda layer: layer.in_features * layer.out_features, default=None)
    if largest is not None and largest.weight.is_floating_point():
        return largest.weight.dtype
    return next(parameter.dtype for parameter in model.parameters() if parameter.is_floating_point())


def peak_memory() -> float:
    """GiB that this process has held at most: on its GPU where it has one, else in main memory."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def cpu_name() -> str:
    """The CPU's model as Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _read(path: Path) -> dict[str, dict[str, float]]:
    """What is known of each kind of CPU; what no measurement can have written is as good as not there."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {key: value for key, value in found.items() if _is_measured(value)}
    except (OSError, ValueError, AttributeError):
        return {}


def _is_measured(value: Any) -> bool:
    """Whether a JSON value has the numbers of `Products`, each above 0 and finite."""
    return (
        isinstance(value, dict)
        and value.keys() == {field.name for field in fields(Products)}
        and all(type(number) in (int, float) and 0 < number < math.inf for number in value.values())
    )


def _write(path: Path, known: dict[str, dict[str, float]]) -> None:
    """Keep the measurement; where the cache cannot be written, the next process measures again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{time.time_ns()}.draft")
        draft.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError:
        return
