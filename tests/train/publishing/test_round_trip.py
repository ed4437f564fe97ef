"""Published with our command, loaded from the hub with peft and transformers alone: the same logits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hub_server import TOKEN, HubServer
from trained import Trained

from recipes.script_verify import SCRIPT_VERIFY, ScriptRecord
from scripts import publish


def lines_of(hub: HubServer, repo: str, revision: str) -> str:
    """The Python of a published card."""
    found = hub.repos[repo].at(revision)
    assert found is not None
    return found[1]["README.md"].decode().split("```python\n")[1].split("```")[0]


def run(code: str, hub: HubServer, home: Path) -> str:
    """What Python prints that knows nothing of this project but the hub and a token."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHONPATH"))}
    env |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=home, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_adapter_and_merged_model_give_the_logits_of_the_judge(
    trained: Trained, hub: HubServer, tmp_path: Path, tiny_llama: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(trained.folder)
    assert publish.main([folder, "judge", "--private", "--revision", "v1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("me/judge: 8 files, commit ")
    assert publish.main([folder, "judge", "--private", "--revision", "v1"]) == 0
    assert capsys.readouterr().out == said.replace("8 files", "nothing had changed")
    assert publish.main([folder, "org/merged", "--merge", "--checkpoint", str(tiny_llama)]) == 0
    code = "import json\n"
    for repo, revision in (("me/judge", "v1"), ("org/merged", "main")):
        code += lines_of(hub, repo, revision) + "print(json.dumps(logits.tolist()))\n"
    found = [json.loads(line) for line in run(code, hub, tmp_path).splitlines()[-2:]]
    script = ["Choose a date", "Invite the guests", "Hang warm lights in the garden"]
    record = ScriptRecord(id="example", goal="Plan an autumn party", script=script)
    encoded = trained.judge.encoder.encode([SCRIPT_VERIFY.render(record, trained.judge.style)])
    with torch.inference_mode():
        ours = trained.judge.logits(trained.judge.encoder.pad(encoded)).numpy()
    assert np.abs(np.array(found[0]) - ours).max() < 1e-5
    assert np.abs(np.array(found[1]) - ours).max() < 1e-4


def test_a_dry_run_shows_every_file_and_the_card_and_sends_nothing(
    trained: Trained, hub: HubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish.main([str(trained.folder), "judge", "--dry-run", "--private"]) == 0
    said, told = capsys.readouterr()
    for path in trained.folder.iterdir():
        assert path.name in said
    assert "me/judge (private, to be made)" in said and "model-index:" in said
    assert "PeftModel.from_pretrained(base, 'me/judge')" in said
    assert told == "nothing was sent\n" and hub.uploads == [] and "me/judge" not in hub.repos
    (trained.folder / "README.txt").write_text("see /home/jane/x")
    hub.who = None
    assert publish.main([str(trained.folder), "judge", "--dry_run"]) == 1
    told = capsys.readouterr().err
    assert "error: the hub does not take the token" in told
    assert "error: README.txt:1: the absolute path '/home/jane/x'" in told


def test_what_is_refused_ends_with_a_sentence_and_1(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish.main([str(tmp_path / "nowhere"), "judge"]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'nowhere'}: no judge.json")
    (trained.folder / "training.json").unlink()
    assert publish.main([str(trained.folder), "judge"]) == 1
    assert "no training.json" in capsys.readouterr().err
