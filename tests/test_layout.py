"""The house keeps its shape: who imports whom, names that hide nothing, pins and README complete."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from recipes.judgments import JUDGMENTS

ROOT = Path(__file__).resolve().parents[1]
# Python puts a started script's folder first on its path, so that a file there hides a package of the same name.
STARTED_FROM = ("train", "scripts")
# Nothing of ours depends on the package `evaluate`, and this name is what people look for.
ALLOWED = {"scripts/evaluate.py"}


def test_the_rooms_import_each_other_only_as_the_contracts_say() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_room_is_under_contract_and_described() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert rooms == set(settings["importlinter"]["root_packages"]) == set(settings["mypy"]["files"])
    described = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {room for room in rooms if f"| `{room}/` |" not in described} == set()


def test_no_script_hides_a_package() -> None:
    importable = set(sys.stdlib_module_names) | set(importlib.metadata.packages_distributions())
    importable -= {path.parent.name for path in ROOT.glob("*/__init__.py")}
    files = [path.relative_to(ROOT) for room in STARTED_FROM for path in (ROOT / room).glob("*.py")]
    assert len(files) > 10
    assert {str(path) for path in files if path.stem in importable} <= ALLOWED


def test_the_one_exception_hides_nothing_that_we_depend_on() -> None:
    assert "evaluate" not in dependencies("ecomjudge", {"dev"})


def test_the_readme_names_every_script() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    scripts = {f"scripts/{path.name}" for path in (ROOT / "scripts").glob("*.py")} - {"scripts/__init__.py"}
    scripts |= {f"train/{judgment}.py" for judgment in JUDGMENTS}
    assert {script for script in scripts if script not in readme} == set()


def test_every_dependency_is_pinned_once() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [re.fullmatch(r"([\w.-]+)==[\w.!]+", line) for line in lines if not line.startswith("#")]
    assert all(pins)  # exact, and of no particular build of torch
    names = [canonicalize_name(pin[1]) for pin in pins if pin]
    assert len(names) == len(set(names))
    # What a CUDA build of torch asks for is pinned by torch itself, and absent from the environment the pins come from.
    missing = dependencies("ecomjudge", {"dev"}) - set(names)
    assert {name for name in missing if not re.match(r"nvidia-|cuda-|triton", name)} == set()


def dependencies(project: str, extras: set[str], seen: set[tuple[str, str]] | None = None) -> set[str]:
    """Names of all distributions that an installed one needs here, directly or not."""
    seen = set() if seen is None else seen
    for text in importlib.metadata.requires(project) or []:
        need = Requirement(text)
        if need.marker is not None and not any(need.marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            continue
        key = (canonicalize_name(need.name), ",".join(sorted(need.extras)))
        if key not in seen:
            seen.add(key)
            dependencies(need.name, need.extras, seen)
    return {name for name, _ in seen}


@pytest.mark.parametrize("target", ["demo", "test", "lint", "bench", "help"])
def test_make_knows_its_targets_and_says_what_they_do(target: str) -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.search(rf"^ +make {target} +\S", done.stdout, re.MULTILINE)


def test_no_folder_of_tests_is_passed_over(request: pytest.FixtureRequest) -> None:
    passed_over = request.config.getini("norecursedirs")
    for path in (ROOT / "tests").rglob("test_*.py"):
        for part in path.relative_to(ROOT).parts:
            assert not any(fnmatch(part, pattern) for pattern in passed_over), path
