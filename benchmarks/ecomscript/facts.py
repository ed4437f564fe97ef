"""What was examined, as a report tells it: judge, base, data, settings, versions, and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recipes.reading import counted
from reporting.markup import Content, count, joined
from reporting.page import Section, digest, facts, listed


def facts_section(results: Mapping[str, Any]) -> Section:
    """The facts in results.json that fix the result, and its cost."""
    subject, shots, tokens = results["subject"], results["shots"], results["tokens"]
    pairs: list[tuple[str, Content]] = [
        ("Judgment", f"{results['judgment']}, template {results['template']}"),
        ("Method", subject["method"] + (f", {subject['head']} head" if subject.get("head") else "")),
        *_origin(subject),
        ("Data", joined([results["data"]["reference"], " ", digest(results["data"]["fingerprint"])])),
        ("Records", f"{count(results['n'])}, {count(results['yes'])} yes, in {counted(results['groups'], 'group')}"),
        ("Too long", f"{count(results['refused']['count'])} left out, {count(results['shortened'])} shortened"),
        *_decision(results),
        ("Solved examples", f"{shots['asked']} in each prompt" if shots["asked"] else "none"),
        ("Tokens", f"{count(tokens['total'])}; {tokens['mean']:,.0f} a record, at most {count(tokens['max'])}"),
        ("Judged last", _effort(results["cost"])),
        ("Settings", listed(results["settings"])),
        ("Versions", listed(results["versions"])),
    ]
    lead = "What fixes the result. Fingerprints are of the records and files themselves, whatever their names."
    return Section("facts", "What was examined", facts(pairs), lead)


def _decision(results: Mapping[str, Any]) -> list[tuple[str, Content]]:
    """How a verdict came about: from a probability, or from what was written."""
    if results["threshold"]:
        told, temperature = results["threshold"], results["temperature"]
        return [("Threshold", f"{told['value']:.4f} ({told['from']})"), ("Temperature", f"{temperature:.4f}")]
    asking, answers = results["asking"], results["answers"]
    written = f"{count(answers['written'])} tokens; {count(answers['cut'])} answers cut at {asking['max_tokens']}"
    return [
        ("Written", written),
        ("Sampling", f"{counted(asking['samples'], 'sample')} at temperature {asking['temperature']:g}"),
        *(("Asked behind the record" if k == 0 else "Then", prompt) for k, prompt in enumerate(asking["prompts"])),
    ]


def _origin(subject: Mapping[str, Any]) -> list[tuple[str, Content]]:
    """Where the examined one comes from: the base and how it was trained, or the checkpoint as it is."""
    trained = subject.get("trained_on") or {}
    base = trained.get("id") or subject.get("checkpoint")
    revision = trained.get("revision") or subject.get("revision")
    how = [trained[key] for key in ("dtype", "quantization") if trained.get(key, "none") != "none"]
    return [
        ("Base", f"{base} at {revision}" if revision else base),
        ("Trained in", " over ".join(how)),
        ("Judge's files", digest(subject.get("judge"))),
        ("Base's files", digest(subject.get("base"))),
        ("Weights", digest(subject.get("weights"))),
    ]


def _effort(cost: Mapping[str, Any]) -> str:
    """What the last run did that judged anything; one that had been stopped has judged the others."""
    where = f"{cost['device']}, processes: {cost['processes']}, threads of each: {cost['threads']}"
    said = f"{counted(cost['records'], 'record')} in {cost['seconds']:,.1f} s on {where}"
    told = {
        "records_per_second": "{:,.1f} records/s",
        "tokens_per_second": "{:,.0f} tokens/s",
        "computed_share": "{:.0%} of the tokens computed",
        "mfu": "{:.0%} of the machine's matrix product",
        "peak_memory_gib": "{:.1f} GiB at most",
    }
    return ", ".join([said, *(text.format(cost[name]) for name, text in told.items() if name in cost)])
