"""Prompts as Jinja files that a person can read, and any of which a folder of one's own may replace."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, TemplateError
from jinja2.meta import find_referenced_templates

from models.generation import Chat, Message, Role

TURN = re.compile(r"^<<(system|user|assistant)>>$", re.MULTILINE)


class Prompts:
    """Renders the prompts of a folder by name.

    Args:
        shipped: the folder of prompts, ``<name>.jinja``.
        own: a folder whose files stand in for the shipped ones of the same name.
        known: what every prompt knows.

    Attributes:
        digest: sha256 (hex) over all templates in use and what they know.

    Raises FileNotFoundError for a folder of one's own that has none of the prompts.
    """

    def __init__(self, shipped: Path, own: str | None = None, **known: str) -> None:
        folders = [Path(own), shipped] if own else [shipped]
        names = {path.name for path in shipped.glob("*.jinja")}
        if own and not names & {path.name for path in Path(own).glob("*.jinja")}:
            raise FileNotFoundError(f"{own}: none of the prompts {', '.join(sorted(names))}")
        self._loader = ChoiceLoader([FileSystemLoader(folder) for folder in folders])
        self._jinja = Environment(loader=self._loader, undefined=StrictUndefined, autoescape=False)  # no HTML
        self._jinja.globals.update(known)
        self._known = list(known.values())
        self.digest = self._digest(sorted(names))

    def render(self, name: str, **values: Any) -> str:
        """The prompt called ``name``. Raises ValueError, naming the file, for a faulty template."""
        try:
            return self._jinja.get_template(f"{name}.jinja").render(values).strip()
        except TemplateError as error:
            raise _faulty(name, error) from error

    def digest_of(self, name: str) -> str:
        """sha256 (hex) over one prompt, what it includes, and what it knows."""
        found: list[str] = []
        waiting = [f"{name}.jinja"]
        try:
            while waiting:
                file = waiting.pop()
                if file not in found:
                    found.append(file)
                    parsed = self._jinja.parse(self._source(file), file)
                    waiting += [one for one in find_referenced_templates(parsed) if one is not None]
        except TemplateError as error:
            raise _faulty(name, error) from error
        return self._digest(sorted(found))

    def _digest(self, files: Iterable[str]) -> str:
        digest = hashlib.sha256("\x00".join(self._known).encode())
        for file in files:
            digest.update(self._source(file).encode())
        return digest.hexdigest()

    def _source(self, file: str) -> str:
        return self._loader.get_source(self._jinja, file)[0]


def as_chat(text: str) -> Chat:
    """A rendered prompt as a chat: a line ``<<system>>``, ``<<user>>`` or ``<<assistant>>`` begins a turn. Solved
    examples as turns are what small models follow best.

    A text without such lines is one turn of the user.
    """
    parts = TURN.split(text)
    if len(parts) == 1:
        return Chat((Message("user", text.strip()),))
    turns = zip(parts[1::2], parts[2::2], strict=True)
    return Chat(tuple(Message(cast(Role, role), said.strip()) for role, said in turns))


def _faulty(name: str, error: TemplateError) -> ValueError:
    where = getattr(error, "filename", None) or f"{name}.jinja"
    return ValueError(f"{where}: {type(error).__name__}: {error}; mend the template")
