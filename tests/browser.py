"""A headless Chromium for tests of pages; they are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def opened(path: Path, width: int = 1280, scheme: str = "light") -> Iterator[Any]:
    """A page as a reader sees it who opens the file; fails if it says anything on the console or asks for anything."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium on this machine")
    said: list[str] = []
    with api.sync_playwright() as play:
        # As root, Chromium starts only without its sandbox; it opens nothing but the page that the test wrote.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        running = play.chromium.launch(executable_path=browser, args=flags)
        page = running.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if request.url != path.as_uri() else None)
        page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(path.as_uri())
        yield page
        running.close()
    assert not said, f"the page said: {said}"
