"""A judge from the folder of its training to a hub: what is sent, once, and what keeps it from being sent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hub_server import HubServer, Repo
from trained import Trained

from models.manifest import folder_digest
from recipes.script_verify import SCRIPT_VERIFY
from train.config import HubConfig, TrainConfig
from train.publishing.publish import Wish, prepare, read_results, send
from train.run import train
from train.runs import RunFolder

WISH = Wish("judge", private=True, revision="v1")


def test_everything_is_there_after_one_commit_and_nothing_happens_the_second_time(
    trained: Trained, hub: HubServer
) -> None:
    parcel = prepare(trained.folder, WISH)
    assert parcel.problems == [] and hub.uploads == [] and "me/judge" not in hub.repos
    commit = send(parcel)
    repo = hub.repos["me/judge"]
    assert repo.private and repo.branches["v1"] == commit
    local = {path.name: path.read_bytes() for path in trained.folder.iterdir()}
    sent = dict(repo.commits[commit])
    assert sent.pop(".gitattributes") and sent.pop("README.md") == parcel.card.encode()
    assert sent == {name: content for name, content in local.items() if name != "README.md"}
    assert [one.split("/")[0] for one in hub.uploads] == ["lfs", "lfs", "commit"]
    assert send(prepare(trained.folder, WISH)) == commit and len(hub.uploads) == 3


def test_the_card_is_of_where_the_judge_will_be(trained: Trained, hub: HubServer) -> None:
    card = prepare(trained.folder, replace(WISH, repo="org/judge")).card
    head = yaml.safe_load(card.split("---\n")[1])
    assert (head["base_model"], head["model-index"][0]["name"]) == ("org/tiny-llama", "judge")
    assert "PeftModel.from_pretrained(base, 'org/judge', revision='v1')" in card
    assert f"'org/tiny-llama', revision='{trained.judge.spec.base.revision}'" in card


def test_the_licence_is_the_backbone_s_unless_another_is_given(trained: Trained, hub: HubServer) -> None:
    def licence(wish: Wish) -> Any:
        return yaml.safe_load(prepare(trained.folder, wish).card.split("---\n")[1]).get("license")

    assert licence(WISH) is None
    base = hub.repos["org/tiny-llama"]
    base.commit("main", {**base.commits[base.branches["main"]], "README.md": b"---\nlicense: llama3.1\n---\n"})
    assert licence(WISH) == "llama3.1"
    assert licence(replace(WISH, license="mit")) == "mit"


def test_what_must_not_be_published_is_not_sent(trained: Trained, hub: HubServer) -> None:
    (trained.folder / "notes.md").write_text("from\n/home/jane/corpus\n")
    (trained.folder / "training_args.bin").write_bytes(b"x")
    (trained.folder / ".cache").mkdir()
    (trained.folder / ".cache" / "x.bin").write_bytes(b"x")  # hidden: never sent, so never looked at
    parcel = prepare(trained.folder, WISH)
    assert [problem.split(";")[0] for problem in parcel.problems] == [
        "notes.md:2: the absolute path '/home/jane/corpus'",
        "training_args.bin: weights as .bin",
    ]
    with pytest.raises(ValueError, match=r"not published:\n  notes\.md:2"):
        send(parcel)
    assert hub.uploads == [] and "me/judge" not in hub.repos
    (trained.folder / "training_args.bin").unlink()
    assert prepare(trained.folder, replace(WISH, allowed=["/home/jane/corpus"])).problems == []


def test_a_path_in_place_of_the_backbone_s_name_is_no_name(trained: Trained, hub: HubServer) -> None:
    spec = trained.folder / "judge.json"
    spec.write_text(spec.read_text().replace('"org/tiny-llama"', '"/data/models/tiny"'))
    problems = prepare(trained.folder, WISH).problems
    assert any(problem.startswith("judge.json:") and "'/data/models/tiny'" in problem for problem in problems)


def test_a_name_in_the_repository_s_own_name_is_no_secret(
    trained: Trained, hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "jane")
    hub.who = {"name": "jane", "orgs": [], "auth": {"accessToken": {"role": "write"}}}
    assert prepare(trained.folder, Wish("judge")).problems == []
    (trained.folder / "notes.md").write_text("by jane\n")
    assert prepare(trained.folder, Wish("judge")).problems[0].startswith("notes.md:1: the name of your account")


def test_problems_with_the_hub_are_told_with_the_others(trained: Trained, hub: HubServer) -> None:
    hub.repos["me/judge"] = Repo()
    hub.repos["me/judge"].commit("main", {"config.json": b"{}"})
    (problem,) = prepare(trained.folder, Wish("judge")).problems
    assert problem.startswith("me/judge holds a whole model")
    hub.who = None
    (problem,) = prepare(trained.folder, Wish("judge")).problems
    assert problem.startswith("the hub does not take the token")


def test_results_of_an_evaluation_of_this_judge_go_into_the_card(
    trained: Trained, hub: HubServer, tmp_path: Path
) -> None:
    metric = {"value": 0.75, "low": 0.7, "high": 0.8}
    half = {"value": 0.5, "low": 0.5, "high": 0.5}
    names = ("accuracy", "macro_f1", "auc")
    results = {
        "subject": {"judge": folder_digest(trained.folder)},
        "data": {"reference": "sample:test", "fingerprint": "f" * 64},
        **{"n": 456, "yes": 228, "calibration": {"ece": 0.0731}, "metrics": dict.fromkeys(names, metric)},
        "baselines": {"majority": {"class": 1, "metrics": dict.fromkeys(names, half)}},
    }
    (tmp_path / "evaluation").mkdir()
    path = tmp_path / "evaluation" / "results.json"
    path.write_text(json.dumps(results))
    card = prepare(trained.folder, WISH, [read_results(path.parent, trained.folder)]).card
    row = "| sample:test: 456, 228 yes | **this one** | " + "0.750 [0.700, 0.800] | " * 3 + "0.073 |"
    assert row in card and "|  | always yes | 0.500 [0.500, 0.500] |" in card
    index = yaml.safe_load(card.split("---\n")[1])["model-index"][0]["results"]
    assert {"type": "accuracy", "value": 0.75, "name": "accuracy"} in index[1]["metrics"]
    (trained.folder / "judge.json").write_text("{}")
    with pytest.raises(ValueError, match="is of another judge than"):
        read_results(path.parent, trained.folder)
    for spoilt in (json.dumps(results)[:40], "[]", "{}"):
        path.write_text(spoilt)
        with pytest.raises(ValueError, match=r"results\.json was cut or spoilt; give the evaluation's command again"):
            read_results(path.parent, trained.folder)
    with pytest.raises(FileNotFoundError, match="no results"):
        read_results(tmp_path, trained.folder)


def test_training_publishes_at_its_end_and_a_hub_that_fails_costs_no_run(
    tiny_config: TrainConfig, hub: HubServer
) -> None:
    config = replace(tiny_config, push_to_hub=True, hub=HubConfig(repo="judge", private=True))
    folder = RunFolder(config, "script_verify")
    hub.broken = "commit"
    with pytest.raises(ValueError) as caught:
        train(SCRIPT_VERIFY, config)
    said = str(caught.value)
    assert said.startswith(f"{folder.adapter} is whole, but was not published: the hub refuses (500)")
    assert said.endswith(f"to try again: python scripts/publish.py {folder.adapter} judge --private")
    assert folder.finished and '"final"' in folder.metrics.read_text()
    hub.broken = ""
    assert train(SCRIPT_VERIFY, config) is not None  # the same command again: nothing is trained, the rest is done
    sent = hub.repos["me/judge"].at("main")
    assert sent is not None and sent[1]["judge.json"] == (folder.adapter / "judge.json").read_bytes()


def test_a_hub_that_will_not_have_it_is_known_before_training(tiny_config: TrainConfig, hub: HubServer) -> None:
    hub.who = None
    with pytest.raises(ValueError, match="the hub does not take the token"):
        train(SCRIPT_VERIFY, replace(tiny_config, push_to_hub=True))
    assert not RunFolder(tiny_config, "script_verify").path.exists()
