"""Reading configurations: forms of flags, YAML numbers, and what is said of mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.ecomagent.build.config import EcomAgentBuildConfig
from benchmarks.ecomscript.build.config import EcomScriptBuildConfig
from benchmarks.ecomscript.config import EcomScriptConfig
from train.arguments import choose, leaf_types, parse
from train.config import TrainConfig


def read(*arguments: str) -> TrainConfig:
    return parse(TrainConfig, list(arguments))


def test_yaml_comes_first_and_flags_win(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "checkpoint: somewhere\noptim:\n  learning_rate: 1e-5\n  batch_size: 16\nlora:\n  targets: [q_proj]\n"
    )
    config = read("--config", str(path), "--optim.batch_size=64")
    assert (config.checkpoint, config.optim.learning_rate, config.optim.batch_size) == ("somewhere", 1e-5, 64)
    assert config.lora.targets == ("q_proj",)
    assert config.lora.rank == 32


def test_the_default_file_is_read_unless_another_is_given(tmp_path: Path) -> None:
    default, other = tmp_path / "default.yaml", tmp_path / "other.yaml"
    default.write_text("seed: 7\n")
    other.write_text("threads: 3\n")
    assert parse(TrainConfig, [], default).seed == 7
    assert parse(TrainConfig, ["--config", str(other)], default).seed == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--lora.dora=True"], True),
        (["--lora.dora=true"], True),
        (["--lora.dora=1"], True),
        (["--lora.dora"], True),
        (["--lora.dora", "yes"], True),
        (["--lora.dora=False"], False),
        (["--lora.dora", "0"], False),
        (["--lora.no_dora"], False),
        (["--lora.dora", "--lora.no-dora"], False),
    ],
)
def test_booleans_in_every_form(words: list[str], expected: bool) -> None:
    assert read(*words).lora.dora is expected


@pytest.mark.parametrize("word", ["none", "None", "null"])
def test_the_absent_value(word: str) -> None:
    assert read(f"--data.validation={word}").data.validation is None
    assert read("--data.validation", word).data.validation is None


@pytest.mark.parametrize("tree", [EcomScriptBuildConfig, EcomAgentBuildConfig, EcomScriptConfig])
def test_none_stays_a_word_where_it_is_a_choice(tree: type) -> None:
    need = {
        EcomScriptBuildConfig: ["--metadata=[a]", "--reviews=[b]", "--generator=c"],
        EcomScriptConfig: ["--judgment=step_product"],
    }.get(tree, [])
    for flags in (["--quantization", "none"], ["--quantization=None"]):
        assert parse(tree, [*need, *flags]).quantization == "none"
    assert read("--intents.mode", "none").intents.mode == "none"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--optim.learning_rat=1"],
            "configuration: optim.learning_rat: unknown key; did you mean optim.learning_rate?",
        ),
        (["--learning_rate", "1"], "configuration: learning_rate: unknown key; did you mean optim.learning_rate?"),
        (["--optim.learning_rate=fast"], "optim.learning_rate"),
        (["--model.head=verbaliser"], "verbalizer"),
        (["--config=nowhere.yaml"], "does not exist"),
    ],
)
def test_mistakes_end_with_status_2_and_a_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        read(*words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_an_unknown_key_in_yaml_names_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("optim:\n  batchsize: 4\n")
    with pytest.raises(SystemExit):
        read("--config", str(path))
    assert "optim.batchsize: unknown key; did you mean optim.batch_size?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--lora.targets", "q_proj", "--seed=3", "--lora.targets=v_proj"],
        ["--lora.targets", "[q_proj, v_proj]", "--seed", "3"],
        ['--lora.targets=["q_proj","v_proj"]', "--seed", "3"],
    ],
)
def test_a_list_is_given_whole_or_an_entry_at_a_time(words: list[str]) -> None:
    config = read(*words)
    assert (config.lora.targets, config.seed) == (("q_proj", "v_proj"), 3)


@dataclass(frozen=True)
class Files:
    files: list[str] = field(default_factory=list)


@pytest.mark.parametrize(
    "words",
    [
        ["--files", "a", "--files+", "b"],
        ["--files+=b", "--files=[a]"],
        ["--files", "[a]", "--files+=[b]"],
        ["--config", "{files: [a]}", "--files+", "b"],
    ],
)
def test_a_plus_adds_to_a_list(words: list[str], tmp_path: Path) -> None:
    if "--config" in words:
        (tmp_path / "a.yaml").write_text("files: [a]\n")
        words = ["--config", str(tmp_path / "a.yaml"), *words[2:]]
    assert parse(Files, words).files == ["a", "b"]


def test_the_first_word_chooses_a_command_and_an_unknown_one_names_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[list[str]] = []

    def boil(words: Sequence[str]) -> None:
        """Heat water."""
        given.append(list(words))

    commands = {"boil": boil, "freeze": boil}
    monkeypatch.setattr("sys.argv", ["/some/where/kitchen.py", "boil", "--long", "3"])
    choose(commands, "method", "What a kitchen does.")
    assert given == [["--long", "3"]]
    for words in (["kitchen.py"], ["kitchen.py", "--help"]):
        monkeypatch.setattr("sys.argv", words)
        choose(commands, "method", "What a kitchen does.")
        assert capsys.readouterr().out.splitlines() == [
            "What a kitchen does.",
            "  boil    Heat water.",
            "  freeze  Heat water.",
        ]
    monkeypatch.setattr("sys.argv", ["kitchen.py", "boyl"])
    with pytest.raises(SystemExit, match="2"):
        choose(commands, "method", "What a kitchen does.")
    assert capsys.readouterr().err == "method 'boyl' is not known; did you mean 'boil'? Known: boil, freeze\n"


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--optim.batch_size=0", "optim.batch_size: 0 given; give 1 or more"),
        ("--optim.learning_rate=-1e-4", "optim.learning_rate: -0.0001 given; give above 0"),
        ("--optim.learning_rate=.nan", "optim.learning_rate: nan given; give above 0"),
        ("--optim.epochs=1e400", "optim.epochs: inf given; give above 0"),
        ("--optim.max_steps=-1", "optim.max_steps: -1 given; give 1 or more"),
        ("--lora.dropout=1", "lora.dropout: 1.0 given; give 0 or more and below 1"),
        ("--seed=-1", "seed: -1 given; give 0 or more and at most 4294967295"),
        ("--threads=100000", "threads: 100000 given; give 1 or more and at most 1024"),
    ],
)
def test_a_number_that_means_nothing_is_refused(flag: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read(flag)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"configuration: {said}\n"


def test_every_number_has_limits() -> None:
    for tree in (TrainConfig, EcomScriptConfig):
        free = {name for name, kind in leaf_types(tree).items() if {int, float} & {kind, *get_args(kind)}}
        for name in free:
            with pytest.raises(SystemExit):
                parse(tree, ["--judgment=script_verify"] * (tree is EcomScriptConfig) + [f"--{name}=-1"])


def test_what_is_better_down_is_taken_so() -> None:
    assert [read(f"--evaluation.metric={name}").evaluation.upwards for name in ("macro_f1", "loss", "ece")] == [
        True,
        False,
        False,
    ]
    assert read("--evaluation.metric=loss", "--evaluation.direction=up").evaluation.upwards
