"""``--push_to_hub``: checked before training, done after it, and never at the cost of the run."""

from __future__ import annotations

from huggingface_hub import HfApi
from rich.console import Console

from train.config import TrainConfig
from train.publishing.hub import check_target
from train.publishing.publish import Wish, prepare, send
from train.runs import RunFolder


def check_before(config: TrainConfig, folder: RunFolder, judgment: str) -> None:
    """Raises ValueError where the hub would not take the judge, before hours are spent on it."""
    if config.push_to_hub:
        wish = wish_of(config, folder, judgment)
        check_target(HfApi(), wish.repo, wish.private, wish.revision)


def publish_after(config: TrainConfig, folder: RunFolder, judgment: str, say: Console) -> None:
    """Publish the judge of a run that has ended, if that was asked for.

    Raises ValueError where that fails, whatever the reason: the run is whole, and the sentence says how to try again.
    """
    if not config.push_to_hub:
        return
    wish = wish_of(config, folder, judgment)
    try:
        parcel = prepare(folder.adapter, wish)
        commit = send(parcel)
    except Exception as error:  # of any kind: nothing that a hub does may look like a failed training
        raise ValueError(
            f"{folder.adapter} is whole, but was not published: {error}\n"
            f"to try again: python scripts/publish.py {folder.adapter} {wish.repo}{_flags(wish)}"
        ) from error
    say.print(f"published {parcel.target.repo} at commit {commit}")


def wish_of(config: TrainConfig, folder: RunFolder, judgment: str) -> Wish:
    """Where a run's judge goes; without a name of its own it is called after judgment and run."""
    hub = config.hub
    return Wish(hub.repo or f"{judgment}-{folder.path.name}", hub.private, hub.revision, hub.license)


def _flags(wish: Wish) -> str:
    """The rest of the command that publishes as was wished."""
    flags = [f" --{key} {value}" for key, value in (("revision", wish.revision), ("license", wish.license)) if value]
    return "".join([" --private" if wish.private else "", *flags])
