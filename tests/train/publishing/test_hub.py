"""Whether a token may write, and where to: asked before anything is sent, answered in words."""

from __future__ import annotations

from typing import Any

import pytest
from hub_server import HubServer, Repo
from huggingface_hub import HfApi

from train.publishing.hub import Target, check_target, mixture


def check(repo: str, private: bool = False, revision: str | None = None) -> Target:
    return check_target(HfApi(), repo, private, revision)


def token(**access: Any) -> dict[str, Any]:
    return {"name": "me", "orgs": [], "auth": {"accessToken": access}}


def test_a_new_name_is_under_the_token_s_own_account(hub: HubServer) -> None:
    assert check("judge", private=True) == Target("me/judge", None, private=True)
    assert check("org/judge").repo == "org/judge"
    assert hub.repos == {}


def test_what_is_there_is_told(hub: HubServer) -> None:
    hub.repos["me/judge"] = Repo(private=True)
    commit = hub.repos["me/judge"].commit("main", {"README.md": b"", "config.json": b"{}"})
    files = frozenset({"README.md", "config.json"})
    assert check("me/judge") == Target("me/judge", None, True, True, files, commit)
    assert check("me/judge", revision="v1") == Target("me/judge", "v1", True, True, files, None)  # begins with main's


@pytest.mark.parametrize(
    ("repo", "message"),
    [
        ("a/b/c", "is no name for a repository"),
        ("me/ju dge", "is no name for a repository"),
        ("me/judge.git", "is no name for a repository"),
        ("other/judge", "the token is of me, who is no member of other; give a name of your own"),
        ("reading/judge", "me may only read in reading; ask there for the right to write"),
    ],
)
def test_a_name_that_cannot_be_is_refused(hub: HubServer, repo: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(repo)


def test_no_token_and_a_wrong_one(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_" + "x" * 34)
    with pytest.raises(ValueError, match="the hub does not take the token"):
        check("judge")
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nonexistent")
    with pytest.raises(ValueError, match=r"no token: `hf auth login`, or set HF_TOKEN"):
        check("judge")


def test_a_token_without_the_right_to_write(hub: HubServer) -> None:
    hub.who = token(role="read")
    with pytest.raises(ValueError, match="the token may only read"):
        check("judge")
    scope = {"entity": {"type": "user", "name": "me"}, "permissions": ["repo.content.read"]}
    hub.who = token(role="fineGrained", fineGrained={"scoped": [scope]})
    with pytest.raises(ValueError, match=r"the token has no repo\.write for me nor for me/judge"):
        check("judge")
    scope["permissions"] = ["repo.content.read", "repo.write"]
    assert check("judge").repo == "me/judge"
    scope["entity"] = {"type": "model", "name": "me/judge"}
    assert check("judge").repo == "me/judge"


def test_private_is_not_asked_of_what_is_public(hub: HubServer) -> None:
    hub.repos["me/judge"] = Repo()
    hub.repos["me/judge"].commit("main", {})
    with pytest.raises(ValueError, match="me/judge is there and public"):
        check("me/judge", private=True)


def test_a_hub_that_fails_or_is_not_there(hub: HubServer) -> None:
    hub.broken = "whoami"
    with pytest.raises(ValueError, match=r"the hub refuses \(500\): .*bad day"):
        check("judge")
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        check_target(HfApi(endpoint="http://127.0.0.1:9"), "judge", False, None)


def test_an_adapter_does_not_come_to_lie_beside_a_whole_model() -> None:
    adapter = {"adapter_config.json": b"", "judge.json": b""}
    whole = {"config.json": b"", "judge.json": b""}

    def wrong(there: dict[str, bytes], here: dict[str, bytes]) -> list[str]:
        return mixture(Target("a/b", None, files=frozenset(there)), here)

    assert "holds a whole model, and this is an adapter" in wrong(whole, adapter)[0]
    assert "holds an adapter, and this is a whole model" in wrong(adapter, whole)[0]
    assert wrong(whole, whole) == wrong(adapter, adapter) == wrong({}, adapter) == []
