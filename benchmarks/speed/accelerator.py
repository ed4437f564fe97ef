"""The speed questions on a GPU: a random model of Llama-3.1-8B's shape, LoRA and QLoRA steps, scoring with and without
shared work. Nothing is downloaded; the weights mean nothing, their shapes do."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from errno import EISDIR
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from rich.console import Console
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

from benchmarks.progress import doing
from benchmarks.results import naming, to_json, write_text
from models.backbone import LoadSettings, Quantization, resolve_dtype
from models.checkpoint import resolve
from models.encoding import Encoded
from models.judge import Judge, new_judge
from models.limits import Limits
from models.lora import LoraSettings
from models.precision import compute_dtype, flops_per_token, peak_memory, rate
from models.runtime import versions
from models.scoring import Scoring

# Llama-3.1-8B's configuration, from its published config.json; tiny is for machines without a GPU.
SHAPES: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "rope_theta": 500000.0,
    },
    "tiny": {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 512,
        "max_position_embeddings": 4096,
    },
}


@dataclass(frozen=True)
class AcceleratorConfig:
    """What is checked.

    Attributes:
        shape: of the random model.
        prefix: tokens that all prompts begin with (an instruction and five solved examples have about 900).
        own: tokens of each prompt behind them.
        records: prompts scored.
        batch: records an update.
        updates: timed updates, after one that is not.
        quantizations: of the backbone, each trained and scored in turn.
        folder: where the random model is and stays, for the next check of the same shape (17 GB for the large one);
            remove it when you need it no more.
        out: where the figures go, as JSON.
    """

    shape: Literal["llama-3.1-8b", "tiny"] = "llama-3.1-8b"
    prefix: Annotated[int, Limits(0)] = 900
    own: Annotated[int, Limits(1)] = 120
    records: Annotated[int, Limits(1)] = 128
    batch: Annotated[int, Limits(1)] = 8
    updates: Annotated[int, Limits(1)] = 4
    quantizations: tuple[Quantization, ...] = ("none", "nf4")
    folder: str = "results/gpu-check/model"
    out: str = "results/gpu-check/gpu.json"


def check(config: AcceleratorConfig) -> dict[str, Any]:
    """Measure, print and write the figures. Raises ValueError or OSError for settings and places that do not allow it,
    before anything is measured."""
    if not config.quantizations:
        raise ValueError("--quantizations is empty; give one or more of none, nf4 and int8")
    out = writable(Path(config.out))
    say = Console(stderr=True, highlight=False, soft_wrap=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    found: dict[str, Any] = {"device": name, "versions": versions(), "config": vars(config)}
    folder = random_checkpoint(config.shape, Path(config.folder), device)
    for quantization in config.quantizations:
        with doing(say, f"{config.shape}, {quantization}: training and scoring on {name}"):
            found[quantization] = measure(folder, quantization, config, device)
        say.print(f"{quantization}: {found[quantization]}")
        write_text(out, to_json(found))
    return found


def writable(path: Path) -> Path:
    """The file's folder is made. Raises OSError where no file can be written there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(EISDIR, "Is a folder; give a file", str(path))
    with naming(path), tempfile.TemporaryFile(dir=path.parent):
        return path


def random_checkpoint(shape: str, folder: Path, device: torch.device) -> Path:
    """A checkpoint of random weights with a tokenizer of words: the one that is there where it has this shape, else a
    new one in its place. Raises ValueError for a folder that holds something else."""
    sizes = SHAPES[shape]
    note = folder / "random.json"  # of what this function wrote, whole, and of no one's own model
    if note.is_file() and note.read_text(encoding="utf-8") == to_json(sizes):
        return folder
    if not note.is_file() and folder.exists() and any(folder.iterdir()):
        raise ValueError(f"--folder {folder} holds what no check of this version made; empty it or give another one")
    draft = folder.with_name(f"{folder.name}.draft")
    for old in (folder, draft):
        if old.exists():
            shutil.rmtree(old)
    _write_random(sizes, draft, device)
    write_text(draft / note.name, to_json(sizes))
    return draft.rename(folder)


def _write_random(sizes: dict[str, Any], folder: Path, device: torch.device) -> None:
    words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "Answer:": 4, "Yes": 5, "No": 6}
    words |= {f"w{number}": number for number in range(len(words), sizes["vocab_size"])}
    core = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, **special)
    torch.manual_seed(0)
    with device:
        model = AutoModelForCausalLM.from_config(
            LlamaConfig(**sizes, pad_token_id=0, bos_token_id=1, eos_token_id=2), dtype=resolve_dtype("auto")
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def measure(
    folder: Path, quantization: Quantization, config: AcceleratorConfig, device: torch.device
) -> dict[str, Any]:
    """LoRA updates and scoring with one kind of backbone."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(0)
    settings = LoadSettings(head="verbalizer", quantization=quantization)
    judge = new_judge(
        resolve(str(folder)),
        "check",
        "check",
        ("No", "Yes"),
        settings,
        LoraSettings(dropout=0.0),
        gradient_checkpointing=device.type == "cuda",
    )
    if quantization == "none":
        judge.model.to(device)
    prompts = random_prompts(config, SHAPES[config.shape]["vocab_size"])
    peak = rate(compute_dtype(judge.model), device) * 1e9
    return {
        "training": _training(judge, prompts, config, peak),
        "scoring": _scoring(judge, prompts, peak),
        "peak_memory_gib": round(peak_memory(), 2),
    }


def random_prompts(config: AcceleratorConfig, vocabulary: int) -> list[Encoded]:
    """Prompts that begin alike, and go on at random."""
    chance = np.random.default_rng(0)
    head = chance.integers(7, vocabulary, config.prefix).tolist()
    lengths = chance.integers(max(1, config.own // 2), config.own * 3 // 2 + 1, config.records)
    return [{"input_ids": head + chance.integers(7, vocabulary, length).tolist()} for length in lengths]


def _training(judge: Judge, prompts: list[Encoded], config: AcceleratorConfig, peak: float) -> dict[str, Any]:
    """Updates of AdamW on packed batches; ``mfu`` counts the tokens that are computed, recomputation left out."""
    judge.model.train()
    if judge.device.type == "cuda":
        judge.model.gradient_checkpointing_enable({"use_reentrant": False})
    optimizer = torch.optim.AdamW([p for p in judge.model.parameters() if p.requires_grad], lr=1e-4, fused=True)
    times, computed, learned, losses = [], 0, 0, []
    for number in range(config.updates + 1):
        start = number * config.batch % len(prompts)
        rows = prompts[start : start + config.batch]  # fewer at the end of the prompts
        batch = judge.collate(rows)
        labels = torch.arange(len(rows), device=judge.device) % 2

        def update(batch: Any = batch, labels: torch.Tensor = labels) -> None:
            loss = torch.nn.functional.cross_entropy(judge.logits(batch), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))

        times.append(_timed(update, judge.device))
        if number:
            computed += batch.tokens  # type: ignore[union-attr]
            learned += len(rows)
    seconds = sum(times[1:])
    flops = flops_per_token(judge.model, learning=True)
    return {
        "records": learned,
        "records_per_second": round(learned / seconds, 2),
        "tokens_per_second": round(computed / seconds, 1),
        "mfu": round(flops * computed / seconds / peak, 3),
        "losses": losses,
    }


def _scoring(judge: Judge, prompts: list[Encoded], peak: float) -> dict[str, Any]:
    """All prompts, with the common beginning computed once and with every prompt read whole."""
    found: dict[str, Any] = {}
    margins: dict[str, np.ndarray] = {}
    flops = flops_per_token(judge.model)
    for way, sets in {"shared": [prompts], "apart": [[prompt] for prompt in prompts]}.items():
        scorings = [Scoring(judge, some, token_budget=16384) for some in sets]
        scorings[0].margins(scorings[0].batches[0])  # kernels are chosen at the first pass
        scorings[0] = Scoring(judge, sets[0], token_budget=16384)
        made = np.full(len(prompts), np.nan)

        def run(scorings: list[Scoring] = scorings, made: np.ndarray = made) -> None:
            for offset, scoring in enumerate(scorings):
                for rows in scoring.batches:
                    made[[row + (offset if len(scorings) > 1 else 0) for row in rows]] = scoring.margins(rows)

        seconds = _timed(run, judge.device)
        computed = sum(scoring.computed for scoring in scorings)
        margins[way] = made
        found[way] = {
            "records_per_second": round(len(prompts) / seconds, 2),
            "computed_tokens": computed,
            "mfu": round(flops * computed / seconds / peak, 3),
        }
    found["largest_difference"] = float(np.abs(margins["shared"] - margins["apart"]).max())
    return found


def _timed(work: Callable[[], None], device: torch.device) -> float:
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start
