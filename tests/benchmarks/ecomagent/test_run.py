"""Evaluations from configuration to files: kills, trials, judges added later, and what is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from errands import LAMP_LINE, as_meta
from tiny import tiny_checkpoint
from tiny_shop import shop

from benchmarks.ecomagent import players, run, shopping
from benchmarks.ecomagent.config import EcomAgentConfig
from benchmarks.ecomagent.episodes import Episode
from benchmarks.ecomagent.evaluations import published
from benchmarks.ecomagent.players import FoundPlayer
from benchmarks.ecomagent.playing import PlayerGone
from benchmarks.ecomagent.replay import main as replaying
from benchmarks.ecomagent.replay import replay
from benchmarks.ecomagent.replies import Reply, ToolCall
from benchmarks.ecomagent.run import evaluate
from benchmarks.ecomagent.sample.build import write_files
from benchmarks.ecomagent.samples import open_catalogue
from benchmarks.ecomagent.tasks import read_tasks
from benchmarks.ecomagent.tools import TOOLS, Toolbox

ROOT = Path(__file__).resolve().parents[3]
REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "ecomagentbench_sample.jsonl"


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop of a lamp and ten others, and five tasks of two intents."""
    folder = tmp_path_factory.mktemp("run")
    target = LAMP_LINE["target_product"]
    others = [as_meta(target, parent_asin=f"B0OTHER{k:03}", title=f"Lamp {k}", price=50.0) for k in range(10)]
    shop(folder, [as_meta(target), *others], [])
    lines = [
        {**LAMP_LINE, "id": f"t{k}", "intent_category": ("product_search", "coupon_budget")[k % 2]} for k in range(5)
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def config(where: Path, tmp_path: Path) -> EcomAgentConfig:
    return EcomAgentConfig(
        tasks=str(where / "tasks.jsonl"),
        catalogue=str(where / "shop.db"),
        agent="oracle",
        lanes=2,
        resamples=50,
        threads=1,
        out=str(tmp_path / "out"),
    )


def lines(folder: str | None, name: str = "predictions") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(str(folder)) / f"{name}.jsonl").read_text().splitlines()]


def test_an_evaluation_from_tasks_to_files(config: EcomAgentConfig, capsys: pytest.CaptureFixture[str]) -> None:
    results = evaluate(config)
    assert results["overall_accuracy"] == 1.0 and results["total_samples"] == 5
    assert results["subject"] == {"name": "oracle", "agent": "oracle", "version": "2", "seed": 0}
    assert results["data"]["tasks"] == "tasks.jsonl"
    assert results["cost"]["seconds"]["total"] >= 0
    predictions = lines(config.out)
    assert [record["id"] for record in predictions] == ["t0", "t1", "t2", "t3", "t4"]
    evaluated = lines(config.out, "predictions_evaluation_results")
    assert [record["correct"] for record in evaluated] == [True] * 5
    keys = {"rubric_results", "all_satisfied", "exact_product_match", "satisfaction_rate", "target_product_id"}
    keys |= {"prediction_finished", "runtime_error", "failed_rubric_ids", "failed_rubric_reasons", "judge_model"}
    assert keys <= evaluated[0].keys()
    assert sorted(path.name for path in Path(str(config.out)).iterdir()) == [
        "evaluation.json",
        "predictions.jsonl",
        "predictions_evaluation_results.jsonl",
        "predictions_evaluation_summary.md",
        "report.html",
        "results.json",
        "turns.jsonl",
    ]
    assert str(config.out) not in (Path(str(config.out)) / "results.json").read_text()
    assert "accuracy: coupon_budget" in capsys.readouterr().out
    summary = (Path(str(config.out)) / "predictions_evaluation_summary.md").read_text()
    assert "| Claude Opus 4.6 | 57.1 | 76.6 | 84.6 | 33.9 |" in summary
    assert len(published()) == 7


def test_a_finished_evaluation_is_not_played_again(config: EcomAgentConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate(config)
    monkeypatch.setattr(shopping, "play", None)
    assert evaluate(config) == first
    again = evaluate(replace(config, resamples=60))  # another view of the same episodes
    assert again["view"]["resamples"] == 60 and again["overall_accuracy"] == 1.0
    assert again["run"] == first["run"]  # who played, and how long, is still told


def test_what_was_spoilt_beside_the_predictions_costs_no_episode(
    config: EcomAgentConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate(config)
    folder = Path(str(config.out))
    (folder / "turns.jsonl").unlink()
    results = folder / "results.json"
    results.write_text(results.read_text()[:100])
    monkeypatch.setattr(shopping, "play", None)
    again = evaluate(config)
    assert again["overall_accuracy"] == first["overall_accuracy"] and "seconds" not in again["cost"]
    assert [line["seconds"] for line in lines(config.out, "turns")] == [None] * 5
    assert json.loads(results.read_text())["total_samples"] == 5
    (folder / "predictions_evaluation_results.jsonl").unlink()  # graded again, though everything else is finished
    assert evaluate(config)["overall_accuracy"] == 1.0
    assert len(lines(config.out, "predictions_evaluation_results")) == 5


def test_a_finished_evaluation_plays_what_was_lost_of_it(config: EcomAgentConfig) -> None:
    evaluate(config)
    path = Path(str(config.out)) / "predictions.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    again = evaluate(config)
    assert path.read_bytes() == whole and 0 < again["run"]["episodes"] < 5


def test_a_folder_has_one_writer(config: EcomAgentConfig) -> None:
    other = f"""
import sys
from pathlib import Path
from models.folder import sole_writer
with sole_writer(Path({config.out!r})):
    print("in", flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", other]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"in\n"
        with pytest.raises(ValueError, match="another process is writing there"):
            evaluate(config)
        writer.communicate(b"")
    assert evaluate(config)["total_correct"] == 5


def test_records_play_again_without_their_agent(config: EcomAgentConfig) -> None:
    evaluate(config)
    catalogue = open_catalogue(config.catalogue)
    tasks = {task.id: task for task in read_tasks(config.tasks)}
    for record in lines(config.out):
        again = replay(record, tasks[record["id"]], Toolbox(catalogue, tasks[record["id"]]))
        assert again.record("oracle") == record


def test_a_cut_file_cannot_be_played_again_and_is_named(
    config: EcomAgentConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(config)
    folder = Path(str(config.out))
    for name in ("evaluation.json", "predictions.jsonl"):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])
        assert replaying([str(folder), "--tasks", config.tasks, "--catalogue", config.catalogue]) == 1
        assert f"{folder / name}:" in (said := capsys.readouterr().err) and "cut or spoilt" in said
        (folder / name).write_bytes(whole)


def test_a_folder_plays_again_and_what_comes_out_otherwise_is_told(
    config: EcomAgentConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate(config)
    command = [str(config.out), "--tasks", config.tasks, "--catalogue", config.catalogue]
    capsys.readouterr()
    assert replaying(command) == 0 and "5 episodes, 5 came out the same" in capsys.readouterr().out
    path = Path(str(config.out)) / "predictions.jsonl"
    path.write_text(path.read_text().replace("turns_remaining", "turns_left"))  # as another shopper might answer
    assert replaying(command) == 1 and "of the replay is another" in capsys.readouterr().out
    assert replaying([str(config.out) + "-elsewhere"]) == 1 and "give the folder of one" in capsys.readouterr().err


@pytest.mark.skipif(not REAL.is_file(), reason="real tasks are not shipped")
@pytest.mark.parametrize("mode", ["strict", "compat"])
def test_the_oracle_is_right_on_every_real_task(tmp_path: Path, mode: Any) -> None:
    tasks = [json.loads(line) for line in REAL.read_text(encoding="utf-8").splitlines()]
    metadata, _ = write_files(tmp_path / "files")
    others = [line for path in metadata for line in path.read_text(encoding="utf-8").splitlines()][::3][:200]
    own = [as_meta(task["target_product"]) for task in tasks]
    shop(tmp_path / "shop", [*own, *others], [])
    config = EcomAgentConfig(agent="oracle", tasks=str(REAL), catalogue=str(tmp_path / "shop" / "shop.db"), mode=mode)
    results = evaluate(replace(config, out=str(tmp_path / "out")))
    assert results["exact_match_correct"] == results["total_samples"] == 5
    assert results["overall_rubric_satisfaction"] == 1.0  # every requirement of the target is found to be met
    assert results["clarification_efficiency"]["revealed_slots"] == 10


MORTAL = """
import os, signal, sys
from benchmarks.ecomagent import players
from benchmarks.ecomagent.local_agent import LocalAgent
from scripts.evaluate import main

players.TOOLS = dict(list(players.TOOLS.items())[:2])
real, turns = LocalAgent.reply, []

def mortal(agent, asked):
    turns.append(asked)
    if len(turns) == 4:  # two episodes have ended, two are under way
        os.kill(os.getpid(), signal.SIGKILL)
    return real(agent, asked)

LocalAgent.reply = mortal
main()
"""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"), "llama", chat=True)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "max_position_embeddings": 16384}))
    return folder


def test_a_killed_run_of_a_local_model_goes_on_to_the_same_bytes(
    config: EcomAgentConfig, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shopper = replace(config, agent=None, checkpoint=str(checkpoint), max_new_tokens=6, max_steps=3, dtype="float32")
    shopper = replace(shopper, temperature=1.0, seed=5)
    monkeypatch.setattr(players, "TOOLS", dict(list(TOOLS.items())[:2]))  # two descriptions are read faster than ten
    whole = replace(shopper, out=str(tmp_path / "whole"))
    results = evaluate(whole)
    assert results["stop_reasons"] == {"no_call": 5}
    assert results["cost"]["computed_tokens"]["total"] < results["cost"]["input_tokens"]["total"]

    flags = [f"--{name}={value}" for name, value in vars(shopper).items() if value is not None]
    command = [sys.executable, "-c", MORTAL, "ecomagent", *flags]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == -signal.SIGKILL
    out = Path(str(shopper.out))
    assert len(list((out / "playing").iterdir())) == 2  # what was being played can be read
    assert len((out / "predictions.parts" / "process-0.jsonl").read_text().splitlines()) == 2
    assert evaluate(shopper)["run"]["episodes"] == 3
    assert (out / "predictions.jsonl").read_bytes() == (tmp_path / "whole" / "predictions.jsonl").read_bytes()
    assert not (out / "playing").exists()


class Fickle:
    """Recommends the target in some trials, another lamp in others, and breaks down where it is told to."""

    name, facts, batched = "fickle", {"agent": "fickle"}, False
    broken: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    def reply(self, turns: Sequence[tuple[int, Episode]]) -> list[Reply]:
        ((_, episode),) = turns
        if episode.task.id in self.gone:
            raise PlayerGone("the server went")
        if episode.task.id in self.broken:
            raise ConnectionError("no server")
        right = (int(episode.task.id[1:]) + episode.trial) % 2
        arguments = {"product_id": "B0LAMP0001" if right else "B0OTHER001", "reasoning": "."}
        return [Reply("", (ToolCall("c", "recommend_product", json.dumps(arguments)),))]


@pytest.fixture
def fickle(monkeypatch: pytest.MonkeyPatch) -> Fickle:
    player = Fickle()
    found = FoundPlayer(player.name, player.facts, lambda: player)
    monkeypatch.setattr(run, "find_player", lambda config, device: found)
    return player


def test_trials_are_added_to_what_is_there(config: EcomAgentConfig, fickle: Fickle) -> None:
    assert evaluate(config)["trials"]["accuracy_by_trial"] == {"1": 3 / 5}  # t0, t2 and t4
    results = evaluate(replace(config, trials=2))
    assert results["run"]["episodes"] == 5  # the second trial alone was played
    assert results["trials"]["accuracy_by_trial"] == {"1": 3 / 5, "2": 2 / 5}
    assert results["trials"]["pass_hat_k"] == {"1": 0.5, "2": 0.0}
    assert [record["trial"] for record in lines(config.out, "predictions-2")] == [2] * 5
    assert results["total_samples"] == 10 and results["tasks"] == 5


def test_crashed_episodes_count_as_wrong_until_they_are_retried(config: EcomAgentConfig, fickle: Fickle) -> None:
    fickle.broken = frozenset({"t1", "t2"})
    results = evaluate(config)
    assert (results["overall_accuracy"], results["runtime_error_count"]) == (2 / 5, 2)
    assert results["published_denominators"]["overall_accuracy"] == 2 / 3
    assert evaluate(config)["runtime_error_count"] == 2  # finished
    fickle.broken = frozenset({"t2"})
    again = evaluate(replace(config, retry_errors=True))
    assert (again["overall_accuracy"], again["runtime_error_count"], again["run"]["episodes"]) == (2 / 5, 1, 2)
    assert [record["id"] for record in lines(config.out)] == ["t0", "t1", "t2", "t3", "t4"]


def test_what_had_ended_when_the_server_went_is_kept(config: EcomAgentConfig, fickle: Fickle) -> None:
    fickle.gone = frozenset({"t3"})
    with pytest.raises(ValueError, match="the server went"):
        evaluate(replace(config, lanes=1))
    fickle.gone = frozenset()
    assert evaluate(replace(config, lanes=1))["run"]["episodes"] == 2


def test_a_folder_holds_one_evaluation(config: EcomAgentConfig) -> None:
    evaluate(config)
    with pytest.raises(ValueError, match=r"holds another evaluation: max_steps is 100 there and 50 here"):
        evaluate(replace(config, max_steps=50))
    assert evaluate(replace(config, max_steps=50, overwrite=True))["max_steps"] == 50


def test_predictions_of_another_tool_are_graded_and_what_lacks_one_is_wrong(
    config: EcomAgentConfig, tmp_path: Path
) -> None:
    made = [{"id": f"t{k}", "predicted_product_id": "B0LAMP0001" if k else None, "model": "other"} for k in range(3)]
    path = tmp_path / "predictions_other.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in made))
    results = evaluate(replace(config, agent=None, predictions=str(path)))
    assert (results["model"], results["missing_predictions"], results["total_correct"]) == ("other", 2, 2)
    assert results["overall_accuracy"] == 2 / 5
    assert results["published_denominators"]["overall_accuracy"] == 2 / 3
    assert results["stop_reasons"] == {"recommended": 2, "missing": 2, "budget": 1}
    path.write_text(path.read_text() + '{"id": "t1", "predicted_product_id": null}\n{"id": 4}\n')
    told = (
        r":4: id: 't1' is predicted twice.*\n.*:5: id: the number 4 where text.*\n.*:5: predicted_product_id: missing"
    )
    with pytest.raises(ValueError, match=told):
        evaluate(replace(config, agent=None, predictions=str(path)))


@pytest.mark.parametrize("number", ["-3", "NaN", "Infinity", '"many"'])
def test_numbers_that_count_nothing_are_refused(config: EcomAgentConfig, tmp_path: Path, number: str) -> None:
    path = tmp_path / "made.jsonl"
    path.write_text(f'{{"id": "t0", "predicted_product_id": null, "total_tool_calls": {number}}}\n')
    with pytest.raises(ValueError, match=r"made\.jsonl:1: total_tool_calls: Input should be"):
        evaluate(replace(config, agent=None, predictions=str(path)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"predictions": "p.jsonl"}, "predictions are graded as they are; leave agent"),
        ({"agent": None, "predictions": "p.jsonl"}, "no such file; give predictions"),
        ({"agent": None}, "nobody to shop"),
        ({"agent": None, "checkpoint": "vllm:smollm2-135m"}, "leave vllm: out, or start `vllm serve`"),
        ({"checkpoint": "smollm2-135m"}, "agent and checkpoint are both given"),
        ({"catalogue": "sample"}, r"the targets of 5 of 5 tasks are not in sample, first B0LAMP0001 of t0"),
        ({"tasks": "none.jsonl"}, "no such file"),
        ({"tasks": "/"}, "/: a folder; give a file of tasks"),
        ({"tasks": "/dev/null"}, "/dev/null: no ordinary file; give a file of tasks"),
        ({"catalogue": "/"}, "/: a folder, or no ordinary file; give the catalogue's file"),
        ({"agent": None, "predictions": "/"}, "/: a folder; give predictions"),
    ],
)
def test_what_cannot_be_is_refused_in_words(config: EcomAgentConfig, changes: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        evaluate(replace(config, **changes))


def test_trials_of_a_greedy_model_are_refused(config: EcomAgentConfig, checkpoint: Path) -> None:
    with pytest.raises(ValueError, match="trials of a greedy model are all the same"):
        players.find_player(
            replace(config, agent=None, checkpoint=str(checkpoint), trials=2), run.this_process().device
        )


def test_the_limit_keeps_the_first_tasks_of_each_intent(config: EcomAgentConfig) -> None:
    assert evaluate(replace(config, limit=1))["total_samples"] == 2
    assert [record["id"] for record in lines(config.out)] == ["t0", "t1"]
