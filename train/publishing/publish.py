"""Publishing a judge: its files with a card for where it will be, looked through, checked, sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from huggingface_hub import HfApi

from models.checkpoint import is_hub_id
from models.manifest import folder_digest
from models.spec import JudgeSpec
from train.card import Place, Results, card
from train.facts import FACTS_FILE, read_facts
from train.publishing.hub import ADAPTER_FILE, Target, check_target, mixture, upload
from train.publishing.privacy import faults, private_here
from train.reliability import PICTURE
from train.saving import CARD

Files = dict[str, Path | bytes]
SHOWN_PROBLEMS = 20


@dataclass(frozen=True)
class Wish:
    """Where and how a judge is to be published; see train.config.HubConfig.

    ``allowed`` are texts that look private and are not.
    """

    repo: str
    private: bool = False
    revision: str | None = None
    license: str | None = None
    allowed: Sequence[str] = ()


@dataclass(frozen=True)
class Parcel:
    """What would be sent, and where to; with ``problems`` it will not be.

    Attributes:
        target: as the hub says, or as was wished where the hub could not be asked.
        files: name in the repository -> the file, or its content.
    """

    spec: JudgeSpec
    target: Target
    files: Files
    problems: list[str]

    @property
    def card(self) -> str:
        content = self.files[CARD]
        assert isinstance(content, bytes)
        return content.decode("utf-8")


def prepare(folder: Path, wish: Wish, results: Sequence[Results] = (), api: HfApi | None = None) -> Parcel:
    """Everything that would be published, after every check. Changes nothing, here or on the hub.

    Args:
        folder: a judge's, as training or merging wrote it.
        results: of evaluations of this judge (`read_results`), for the card.

    Raises FileNotFoundError or ValueError where there is no judge in the folder, or no training.json beside it.
    """
    api = api or HfApi()
    spec, facts = JudgeSpec.read(folder), read_facts(folder)
    problems = []
    try:
        target = check_target(api, wish.repo, wish.private, wish.revision)
    except ValueError as error:
        problems.append(str(error))
        target = Target(wish.repo, wish.revision, wish.private)
    place = Place(
        name=target.repo,
        revision=wish.revision,
        license=wish.license or (None if problems else license_of(api, spec.base.id)),
        merged=facts["method"] != "full" and not (folder / ADAPTER_FILE).is_file(),
        results=results,
        pictured=(folder / PICTURE).is_file(),
    )
    files: Files = {path.relative_to(folder).as_posix(): path for path in sorted(_all_files(folder))}
    files[CARD] = card(spec, facts, place).encode("utf-8")
    named = [target.repo, *([spec.base.id] if is_hub_id(spec.base.id) else []), *wish.allowed]
    problems += map(str, faults(files, private_here(named)))
    problems += mixture(target, files)
    return Parcel(spec, target, files, problems)


def send(parcel: Parcel, api: HfApi | None = None) -> str:
    """Publish what was prepared; the commit's id. Doing it again changes nothing.

    Raises ValueError in words: a problem was found in preparing it, or the hub refuses it.
    """
    if parcel.problems:
        listed = "\n".join(f"  {problem}" for problem in parcel.problems[:SHOWN_PROBLEMS])
        raise ValueError(f"not published:\n{listed}")
    return upload(api or HfApi(), parcel.target, parcel.files, f"Publish the {parcel.spec.judgment} judge")


def read_results(evaluation: Path, judge: Path) -> Results:
    """The results.json of an evaluation of this very judge.

    Raises FileNotFoundError where there is none, ValueError where it was cut or spoilt, or is of another judge.
    """
    path = evaluation / "results.json" if evaluation.is_dir() else evaluation
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no results; give the folder of an evaluation that has ended")
    try:
        results: Results = json.loads(path.read_text(encoding="utf-8"))
        judged = results["subject"].get("judge")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} was cut or spoilt; give the evaluation's command again") from error
    if judged != folder_digest(judge):
        raise ValueError(f"{path} is of another judge than {judge}; evaluate this one, or leave out --results")
    return results


@contextmanager
def merged(
    folder: Path, checkpoint: str | None, dtype: Literal["float32", "bfloat16"], onto_full_precision: bool
) -> Iterator[Path]:
    """A folder with the judge's adapter merged into its backbone, for as long as the block runs; see models.merge."""
    from models.merge import merge

    read_facts(folder)  # that there are none is better said before minutes of merging
    with TemporaryDirectory() as scratch:
        out = Path(scratch) / "merged"
        merge(folder, out, checkpoint, dtype, onto_full_precision)
        for name in (FACTS_FILE, PICTURE):
            if (folder / name).is_file():
                (out / name).write_bytes((folder / name).read_bytes())
        yield out


def _all_files(folder: Path) -> Iterator[Path]:
    """Every file but hidden ones (.git, .cache, drafts)."""
    for path in folder.rglob("*"):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def license_of(api: HfApi, base: str) -> str | None:
    """The backbone's licence as its own card on the hub has it; what is made from it is bound by that."""
    if "/" not in base:
        return None
    try:
        found = api.model_info(base).card_data
    except Exception:  # no such card, no right to read it, no hub: then the card says nothing of a licence
        return None
    license = found.get("license") if found else None
    return license if isinstance(license, str) else None
