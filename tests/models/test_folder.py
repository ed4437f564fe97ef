"""A folder is written whole or not at all, and takes the place of its own kind only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from models.folder import written_whole


def write(folder: Path, text: str) -> None:
    with written_whole(folder, "mark") as draft:
        (draft / "sub").mkdir()
        (draft / "sub" / "text").write_text(text)
        (draft / "mark").touch(mode=0o600)


def test_a_new_folder_an_empty_one_and_one_of_its_kind_are_written(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new/deep", "empty", "empty"):
        write(tmp_path / name, f"text of {name}")
        assert (tmp_path / name / "sub" / "text").read_text() == f"text of {name}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "new"]


def test_files_get_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    write(tmp_path / "made", "text")
    (tmp_path / "usual").touch()
    assert (tmp_path / "made" / "mark").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_after_an_error_in_the_block_all_is_as_it_was(tmp_path: Path) -> None:
    write(tmp_path / "made", "old")
    with pytest.raises(OSError, match="full"), written_whole(tmp_path / "made", "mark") as draft:
        (draft / "mark").touch()
        raise OSError("disk full")
    assert (tmp_path / "made" / "sub" / "text").read_text() == "old"
    assert os.listdir(tmp_path) == ["made"]


def test_after_an_error_in_the_last_move_all_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "made", "old")
    rename = Path.rename

    def fail_for_drafts(self: Path, target: Path) -> Path:
        if self.name.endswith(".draft"):
            raise OSError("no more names")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_drafts)
    with pytest.raises(OSError, match="no more names"):
        write(tmp_path / "made", "new")
    assert (tmp_path / "made" / "sub" / "text").read_text() == "old"
    assert os.listdir(tmp_path) == ["made"]


def test_what_a_killed_writer_left_is_neither_kept_nor_in_the_way(tmp_path: Path) -> None:
    (tmp_path / ".made.draft").mkdir()
    (tmp_path / ".made.draft" / "half").touch()
    write(tmp_path / "made", "text")
    assert os.listdir(tmp_path) == ["made"]
    assert not (tmp_path / "made" / "half").exists()


def test_a_file_and_a_folder_of_other_things_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis").touch()
    for name, said in (("file", "is a file; give the folder to write"), ("full", r"holds other things \(no mark")):
        with pytest.raises(ValueError, match=said):
            write(tmp_path / name, "text")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "thesis"]
