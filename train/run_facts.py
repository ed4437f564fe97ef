"""What a run was, as its report tells it: judgment, backbone, data, speed, versions, command, and the configuration."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from models.spec import JudgeSpec
from recipes.reading import counted
from reporting.markup import Content, count, joined, percent, tag
from reporting.page import Column, Section, digest, facts, listed, paragraph, table

Entries = Sequence[Mapping[str, Any]]
# Where the run lives and who watches it: nothing of it belongs to the result, and much of it names this machine.
LEFT_OUT = ("facts", "run", "tracking", "hub", "push_to_hub", "dry_run")


def facts_section(
    judgment: str,
    settings: Mapping[str, Any],
    entries: Entries,
    spec: JudgeSpec | None = None,
    trained: Mapping[str, Any] | None = None,
) -> Section:
    """What fixes the result, and what it took.

    Args:
        settings: what config.yaml holds.
        spec, trained: judge.json and training.json, once the run has ended.
    """
    known, backbone = settings["facts"], settings["facts"].get("backbone") or {}
    checkpoint = spec.base.id if spec else _named(settings["checkpoint"])
    revision = backbone.get("revision")
    pairs: list[tuple[str, Content]] = [
        ("Judgment", f"{judgment}, template {spec.template_version}" if spec else judgment),
        ("Base", f"{checkpoint} at {revision}" if revision else checkpoint),
        ("Base's weights", digest(backbone.get("fingerprint"))),
        ("Method", _method(settings)),
        *_data(settings, trained),
        ("Batch", f"{settings['optim']['batch_size']} records an update, seed {settings['seed']}"),
        *_chosen(spec),
        *_effort(entries),
        ("Versions", listed(known["versions"])),
        ("Command", tag("pre", trained["command"]) if trained else None),
    ]
    lead = "What fixes the result. Fingerprints are of the records and files themselves, whatever their names."
    return Section("facts", "The run", facts(pairs), lead, wide=True)


def configuration_section(settings: Mapping[str, Any]) -> Section:
    """Every key of the resolved configuration that may touch the result; files are called by their own names."""
    rows = [[tag("code", key), tag("code", value)] for key, value in _leaves(settings) if value != "null"]
    made = table("Keys and values", [Column("Key"), Column("Value")], rows, quiet=True)
    absent = ", ".join(key for key, value in _leaves(settings) if value == "null")
    body = tag("details", tag("summary", f"{len(rows)} keys"), made, paragraph("Not set: ", absent) if absent else None)
    return Section("configuration", "Configuration", body, "config.yaml has it in full.")


def _method(settings: Mapping[str, Any]) -> str:
    model, lora = settings["model"], settings["lora"]
    how = f"LoRA of rank {lora['rank']}" if settings["method"] == "lora" else "every weight"
    over = f" over {model['quantization']}" if model["quantization"] != "none" else ""
    return f"{how}{over}, {model['head']} head, {model['dtype']}"


def _data(settings: Mapping[str, Any], trained: Mapping[str, Any] | None) -> list[tuple[str, Content]]:
    """A line for each split: where it is from, its records, what was cut, and its fingerprint."""
    pairs: list[tuple[str, Content]] = []
    for name, fingerprint in settings["facts"]["data"].items():
        references = settings["intents"]["data"] if name == "intents" else [settings["data"].get(name)]
        told = [_named(one) if one else "held out of the training records" for one in references]
        if trained and (one := trained["data"].get(name)):
            told.append(f"{counted(one['records'], 'record')}, {count(one['yes'])} yes")
            told.append(counted(one["groups"], "group"))
            told += [f"{count(one[key])} {key.replace('_', ' ')}" for key in ("shortened", "left_out") if one[key]]
        pairs.append((name.capitalize(), joined([", ".join(told), " ", digest(fingerprint)])))
    return pairs


def _chosen(spec: JudgeSpec | None) -> list[tuple[str, Content]]:
    if spec is None:
        return []
    return [("Threshold", f"{spec.threshold:.4f}"), ("Temperature", f"{spec.temperature:.4f}")]


def _effort(entries: Entries) -> list[tuple[str, Content]]:
    """Updates, the middle speed between logged lines (of the main process), and the most memory that was held."""

    def middle(key: str) -> float | None:
        found = [entry[key] for entry in entries if key in entry]
        return statistics.median(found) if found else None

    seconds = [entry["train_runtime"] for entry in entries if "train_runtime" in entry]
    memory = [entry["peak_memory_gib"] for entry in entries if "peak_memory_gib" in entry]
    rates = {"records/s": middle("records_per_second"), "tokens/s": middle("tokens_per_second")}
    shares = {"padding": middle("padding_share"), "not computed, being shared": middle("shared_share")}
    return [
        ("Updates", count(max((entry.get("step", 0) for entry in entries), default=0))),
        ("Took", f"{seconds[-1]:,.0f} s since it was last started" if seconds else None),
        ("Speed", ", ".join(f"{rate:,.0f} {unit}" for unit, rate in rates.items() if rate is not None)),
        ("Tokens", ", ".join(f"{percent(share)} {what}" for what, share in shares.items() if share is not None)),
        ("mfu", percent(found) if (found := middle("mfu")) is not None else None),
        ("Most memory", f"{max(memory):.2f} GiB" if memory else None),
    ]


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Dotted key and value of all that is told."""
    found: list[tuple[str, str]] = []
    for key, value in tree.items():
        if prefix + key in LEFT_OUT:
            continue
        if isinstance(value, Mapping):
            found += _leaves(value, f"{prefix}{key}.")
        else:
            found.append((prefix + key, _told(value)))
    return found


def _told(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_told, value))}]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return _named(value) if isinstance(value, str) else str(value)


def _named(reference: str) -> str:
    """A reference as others may read it: a file or folder by its own name, wherever it lies."""
    return Path(reference).name if os.path.isabs(reference) or os.path.exists(reference) else reference
