"""`scripts/build.py ecomagent-catalogue`: what it builds, what it tells, and how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny_shop import PRODUCTS, REVIEWS, write_lines

from benchmarks.ecomagent.catalogue import Catalogue
from scripts.build import ecomagent_catalogue

ROOT = Path(__file__).resolve().parents[2]
Output = pytest.CaptureFixture[str]


def run(*arguments: object) -> None:
    ecomagent_catalogue([str(argument) for argument in arguments])


def test_files_become_a_catalogue_and_what_was_left_out_is_told(tmp_path: Path, capsys: Output) -> None:
    products = write_lines(tmp_path / "meta_shop.jsonl", [*PRODUCTS, "broken"])
    reviews = write_lines(tmp_path / "shop.jsonl", REVIEWS)
    run("--products", products, "--reviews", reviews, "--out", tmp_path / "shop.db")
    told = capsys.readouterr().out
    assert "products set aside           1" in told and "table set_aside" in told
    assert len(Catalogue(tmp_path / "shop.db")) == 7


def test_what_is_there_is_not_overwritten_unasked(tmp_path: Path, capsys: Output) -> None:
    products = write_lines(tmp_path / "meta_shop.jsonl", PRODUCTS)
    run("--products", products, "--out", tmp_path / "shop.db")
    with pytest.raises(SystemExit, match="1"):
        run("--products", products, "--out", tmp_path / "shop.db")
    assert "--overwrite" in capsys.readouterr().err
    run("--products", products, "--out", tmp_path / "shop.db", "--overwrite")


def test_wrong_usage_is_told(tmp_path: Path, capsys: Output) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("--out", tmp_path / "shop.db")
    assert "either --products or --sample" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="1"):
        run("--products", tmp_path / "absent.jsonl", "--out", tmp_path / "shop.db")
    assert "no such file or folder" in capsys.readouterr().err


def test_the_shipped_shop_can_be_written_out(tmp_path: Path) -> None:
    run("--sample", "--out", tmp_path / "shop.db", "--files", tmp_path / "files")
    assert len(list((tmp_path / "files").glob("meta_*.jsonl"))) == 8
    assert len(Catalogue(tmp_path / "shop.db")) == 640


def test_the_script_knows_the_command() -> None:
    command = [sys.executable, "scripts/build.py", "ecomagent-catalogue", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "--reviews_per_product" in done.stdout
