"""The model card of a judge, written in this one place: for the folder of a run and for a hub.

It is made of `judge.json` and `training.json` alone, so that publishing writes it again for where the judge will be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from models.checkpoint import PACKAGED
from models.spec import JudgeSpec
from recipes.judgments import get_judgment
from train.loading import loading_code
from train.reliability import PICTURE

METRICS = {"accuracy": ("accuracy", "accuracy"), "macro_f1": ("f1", "macro-F1"), "auc": ("roc_auc", "AUC")}
Results = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """Where the judge is that a card tells of.

    Attributes:
        name: a folder, or a repository on the hub.
        revision: the branch or commit there; None is its main branch.
        license: as the hub names licences; None where it is not known.
        merged: the adapter was merged into the backbone.
        results: of evaluations of this judge, as results.json has them.
        pictured: calibration.png lies beside the card.
    """

    name: str = "adapter"
    revision: str | None = None
    license: str | None = None
    merged: bool = False
    results: Sequence[Results] = ()
    pictured: bool = True


def card(spec: JudgeSpec, facts: Mapping[str, Any], place: Place | None = None) -> str:
    """The card as markdown with the hub's YAML head.

    Args:
        facts: of training.json.
        place: the folder ``adapter`` beside the run, where none is given.
    """
    place = place or Place()
    sections = [
        f"# {spec.judgment} judge on {spec.base.id}",
        _what(spec, facts, place),
        "## Results",
        _results(spec, facts, place),
        "## Load it",
        _loading(spec, facts, place),
        "## Intended use and limits",
        _limits(spec, facts),
        "## Training",
        _training(spec, facts),
    ]
    return f"---\n{metadata(spec, facts, place).to_yaml()}\n---\n\n" + "\n\n".join(sections) + "\n"


def metadata(spec: JudgeSpec, facts: Mapping[str, Any], place: Place) -> ModelCardData:
    """What the hub reads: library, task, tags, base, licence, and the results as a model index."""
    whole = _whole(facts, place)
    kind = "merged" if place.merged else facts["method"]
    name = place.name if "/" in place.name else f"{spec.judgment}-{spec.base.id.rsplit('/', 1)[-1]}"
    return ModelCardData(
        model_name=name.rsplit("/", 1)[-1],
        library_name="transformers" if whole else "peft",
        pipeline_tag="text-classification",
        tags=["ecomjudge", "e-commerce", spec.judgment, kind, f"{spec.head}-head"],
        base_model=spec.base.id if "/" in spec.base.id else None,
        base_model_relation=None if "/" not in spec.base.id else "finetune" if whole else "adapter",
        license=place.license or _license_of(spec.base.id),
        metrics=[kind for kind, _ in METRICS.values()],
        eval_results=[
            one for where, results in _rows(facts, place).items() for one in _indexed(spec, where, facts, results)
        ],
    )


def _indexed(spec: JudgeSpec, where: str, facts: Mapping[str, Any], results: Results) -> list[EvalResult]:
    """The results on one set of records as entries of the hub's model index."""
    data = results.get("data") or facts["data"][where]
    return [
        EvalResult(
            task_type="text-classification",
            task_name=spec.judgment,
            dataset_type=data["reference"],
            dataset_name=data["reference"],
            dataset_split=where if where in facts["data"] else None,
            dataset_args={"records": results["n"], "sha256": data["fingerprint"]},
            metric_type=kind,
            metric_name=shown,
            metric_value=round(results["metrics"][key]["value"], 4),
        )
        for key, (kind, shown) in METRICS.items()
        if results["metrics"][key]["value"] is not None
    ]


def _rows(facts: Mapping[str, Any], place: Place) -> dict[str, Results]:
    """Results by the records that they are of; files of one name are numbered."""
    given: dict[str, Results] = {}
    for one in place.results:
        name, number = one["data"]["reference"], 1
        while (told := name if number == 1 else f"{name} ({number})") in given:
            number += 1
        given[told] = one
    return {**facts["results"], **given}


def _whole(facts: Mapping[str, Any], place: Place) -> bool:
    return place.merged or facts["method"] == "full"


def _license_of(base: str) -> str | None:
    """The licence of a packaged model, as the hub writes it."""
    return "apache-2.0" if base in PACKAGED and "Apache-2.0" in PACKAGED[base].license else None


def _what(spec: JudgeSpec, facts: Mapping[str, Any], place: Place) -> str:
    judgment, base = get_judgment(spec.judgment, spec.template_version), spec.base
    at = f" at revision `{base.revision}`" if base.revision else ""
    precision = base.dtype + (f" over {base.quantization}" if base.quantization != "none" else "")
    kind = "every weight trained" if facts["method"] == "full" else "a LoRA adapter"
    if place.merged:
        kind += ", merged into its base"
    return (
        f"{judgment.instruction}\n\n{judgment.question}\n\n"
        f"Base: `{base.id}`{at}; {kind}, trained in {precision}. Head: {spec.head}. "
        f"Text: template `{spec.template_version}`, at most {spec.max_length} tokens."
    )


def _results(spec: JudgeSpec, facts: Mapping[str, Any], place: Place) -> str:
    lines = ["| records | judge | accuracy | macro-F1 | AUC | ECE |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for where, results in _rows(facts, place).items():
        lines.append(_line(f"{where}: {results['n']}, {results['yes']} yes", "**this one**", results))
        majority = results["baselines"]["majority"]
        lines.append(_line("", f"always {'yes' if majority['class'] else 'no'}", majority))
    picture = f"\n\n![Share of yes against the probability of yes]({PICTURE})" if place.pictured else ""
    return (
        "\n".join(lines) + "\n\nIn brackets, 95 % bootstrap intervals over groups of records; of other seeds than this "
        f"one ({facts['seed']}) they say nothing. ECE is the expected calibration error.\n\n"
        f"Threshold {spec.threshold:.4f} and temperature {spec.temperature:.4f} were chosen on the validation records, "
        f"as was the checkpoint: that row is optimistic.{picture}"
    )


def _line(where: str, who: str, results: Results) -> str:
    cells = [_cell(results["metrics"][key]) for key in METRICS]
    ece = results.get("calibration")
    return f"| {where} | {who} | {' | '.join(cells)} | {format(ece['ece'], '.3f') if ece else '-'} |"


def _cell(interval: Mapping[str, Any]) -> str:
    if interval["value"] is None:
        return "-"
    ends = "" if interval["low"] is None else f" [{interval['low']:.3f}, {interval['high']:.3f}]"
    return f"{interval['value']:.3f}{ends}"


def _loading(spec: JudgeSpec, facts: Mapping[str, Any], place: Place) -> str:
    whole = _whole(facts, place)
    code = loading_code(spec, facts, place.name, place.revision, whole)
    formula = (
        f"`p_yes = sigmoid((logit_yes - logit_no) / {spec.temperature:.4f})`; the verdict is yes at "
        f"`p_yes >= {spec.threshold:.4f}`. `judge.json` holds these values."
    )
    if whole or "/" in spec.base.id:
        return f"```python\n{code}```\n\n{formula}"
    printed = f", the one that `python scripts/fetch_checkpoint.py {spec.base.id}` prints"
    where = printed if spec.base.id in PACKAGED else ""
    return (
        f"```python\n{code}```\n\n{formula}\n\nThe base `{spec.base.id}` is not on a hub: give the folder that holds "
        f"it{where}."
    )


def _limits(spec: JudgeSpec, facts: Mapping[str, Any]) -> str:
    train = facts["data"]["train"]
    lines = [
        "- For ranking and filtering what people, search engines or language models propose to shoppers, and for "
        "comparing such proposals; a person or a later check should stand between its verdict and a purchase.",
        "- It reads text and nothing else: whether a product exists, is in stock, is safe or costs what its text says, "
        "it cannot know. It is no judge of people.",
        f"- It was taught on {train['records']} records of {train['groups']} groups ({train['reference']}). On other "
        "languages, shops and kinds of goals its probabilities are not calibrated: measure it there, and choose a "
        "threshold there, before relying on it.",
        f"- Texts of more than {spec.max_length} tokens are not what it was taught; shorten product text first.",
    ]
    if train["reference"].startswith("sample:"):
        lines.append(
            "- The sample's records were constructed and not annotated: measures on it compare judges with each other, "
            "and say little of real shops."
        )
    return "\n".join(lines)


def _training(spec: JudgeSpec, facts: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f"| {name} | {one['reference']} | {one['records']} | {one['yes']} | {one['groups']} | `{one['fingerprint']}` |"
        for name, one in facts["data"].items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(spec.versions.items()))
    return (
        f"```\n{facts['command']}\n```\n\n"
        "| split | data | records | yes | groups | sha256 of the records |\n"
        f"| --- | --- | ---: | ---: | ---: | --- |\n{rows}\n\nMade with {versions}."
    )
