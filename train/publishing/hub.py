"""The hub's side: may this token write there, what is there already, and one commit with everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    LocalTokenNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import validate_repo_id

ADAPTER_FILE, WHOLE_FILE = "adapter_config.json", "config.json"


@dataclass(frozen=True)
class Target:
    """A repository that may be written to.

    Attributes:
        repo: org/name.
        revision: the branch; None is main.
        private: whether it is or will be private.
        exists: whether it is there already.
        files: names of the files on that branch, or on the one that it will begin with.
        head: the branch's commit, None where the branch is to be made.
    """

    repo: str
    revision: str | None
    private: bool = False
    exists: bool = False
    files: frozenset[str] = frozenset()
    head: str | None = None


def check_target(api: HfApi, repo: str, private: bool, revision: str | None) -> Target:
    """The repository, once it is sure that this token may write there. Changes nothing.

    Raises ValueError in words: no token, a token without the right, a name that the hub does not take, a repository
    that is public where a private one was asked for, or a hub that cannot be reached.
    """
    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        raise ValueError(f"{repo!r} is no name for a repository: {error}") from None
    with _in_words(api):
        who = api.whoami()
        full = repo if "/" in repo else f"{who['name']}/{repo}"
        _check_rights(who, full)
        try:
            info = api.model_info(full)
        except RepositoryNotFoundError:
            return Target(full, revision, private)
        if private and not info.private:
            raise ValueError(f"{full} is there and public; make it private on the hub, or leave out --private")
        head: str | None = None
        with suppress(RevisionNotFoundError):
            info = api.model_info(full, revision=revision)
            head = info.sha
        files = frozenset(one.rfilename for one in info.siblings or [])
        return Target(full, revision, bool(info.private), True, files, head)


def _check_rights(who: Mapping[str, Any], repo: str) -> None:
    """Raises ValueError where the hub says that the token may not write; what it does not say, the upload will."""
    owner = repo.split("/")[0]
    organisations = {one["name"]: one.get("roleInOrg") for one in who.get("orgs", [])}
    if owner != who["name"] and owner not in organisations:
        raise ValueError(f"the token is of {who['name']}, who is no member of {owner}; give a name of your own")
    if organisations.get(owner) == "read":
        raise ValueError(f"{who['name']} may only read in {owner}; ask there for the right to write")
    token = (who.get("auth") or {}).get("accessToken") or {}
    if token.get("role") == "read":
        raise ValueError("the token may only read; make one with the right to write, and `hf auth login` with it")
    if token.get("role") == "fineGrained" and not _may_write(token.get("fineGrained") or {}, owner, repo):
        raise ValueError(f"the token has no repo.write for {owner} nor for {repo}; give it that on the hub")


def _may_write(rights: Mapping[str, Any], owner: str, repo: str) -> bool:
    return any(
        "repo.write" in scope.get("permissions", []) and scope.get("entity", {}).get("name") in (owner, repo)
        for scope in rights.get("scoped", [])
    )


def mixture(target: Target, files: Mapping[str, Any]) -> list[str]:
    """What is wrong where an adapter would come to lie beside a whole model: loaders would join the two."""
    if ADAPTER_FILE in target.files and ADAPTER_FILE not in files:
        there, here = "an adapter", "a whole model"
    elif ADAPTER_FILE in files and WHOLE_FILE in target.files:
        there, here = "a whole model", "an adapter"
    else:
        return []
    return [f"{target.repo} holds {there}, and this is {here}; give another name, or another --revision"]


def upload(api: HfApi, target: Target, files: Mapping[str, Path | bytes], message: str) -> str:
    """Make the repository and the branch where they are missing, and commit the files in one piece; the commit's id.

    Files that are there already as they are here are not sent again, and where all of them are, no commit is made.

    Raises ValueError in words.
    """
    operations = [CommitOperationAdd(path_in_repo=name, path_or_fileobj=file) for name, file in files.items()]
    with _in_words(api):
        if not target.exists:
            api.create_repo(target.repo, private=target.private)
        if target.revision not in (None, "main"):
            api.create_branch(target.repo, branch=str(target.revision), exist_ok=True)
        done = api.create_commit(target.repo, operations, commit_message=message, revision=target.revision)
    return str(done.oid)


@contextmanager
def _in_words(api: HfApi) -> Iterator[None]:
    """What the hub refuses, or that it cannot be reached, as a ValueError."""
    try:
        yield
    except LocalTokenNotFoundError:
        raise ValueError("no token: `hf auth login`, or set HF_TOKEN to a token with the right to write") from None
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else None
        if status == 401:
            raise ValueError("the hub does not take the token; `hf auth login` with a valid one") from error
        raise ValueError(f"the hub refuses ({status}): {error.server_message or error}") from error
    except Exception as error:
        # huggingface_hub 1 speaks through httpx, 2 through httpx2; both have this name for what went wrong on the way.
        if any(kind.__name__ == "TransportError" for kind in type(error).__mro__):
            raise ValueError(f"{api.endpoint} cannot be reached ({error}); try again later") from error
        raise
