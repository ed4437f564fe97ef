"""Prompts as Jinja files that a person can read, and any of which a folder of one's own may replace."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, TemplateError
from jinja2.meta import find_referenced_templates

from models.generation import Chat, Message, Role

TURN = re.compile(r"^<<(system|user|assistant)>>$", re.MULTILINE)


class PromptFault(ValueError):
    """A prompt's file cannot be used; the sentence names it."""


class Prompts:
    """Renders the prompts of a folder by name.

    Args:
        shipped: the folder of prompts, ``<name>.jinja``.
        own: a folder whose files stand in for the shipped ones of the same name.
        known: what every prompt knows.

    Attributes:
        digest: sha256 (hex) over all templates in use and what they know.

    Raises:
        FileNotFoundError: a folder of one's own has none of the prompts.
        ValueError: a file of it cannot be read, or stands in for no prompt and is included by none.
    """

    def __init__(self, shipped: Path, own: str | None = None, **known: str) -> None:
        folders = [Path(own), shipped] if own else [shipped]
        self._own = Path(own) if own else None
        names = {path.name for path in shipped.glob("*.jinja")}
        if own and not names & {path.name for path in Path(own).glob("*.jinja")}:
            raise FileNotFoundError(f"{own}: none of the prompts {', '.join(sorted(names))}")
        self._loader = ChoiceLoader([FileSystemLoader(folder) for folder in folders])
        self._jinja = Environment(loader=self._loader, undefined=StrictUndefined, autoescape=False)  # no HTML
        self._jinja.globals.update(known)
        self._known = list(known.values())
        self.digest = self._digest(sorted(names))
        if own:
            self._refuse_idle(Path(own), names)

    def render(self, name: str, **values: Any) -> str:
        """The prompt called ``name``. Raises ValueError, naming the file, for a faulty template."""
        try:
            return self._jinja.get_template(f"{name}.jinja").render(values).strip()
        except (TemplateError, TypeError, ArithmeticError, LookupError, AttributeError, ValueError) as error:
            raise error if isinstance(error, PromptFault) else _faulty(name, error) from error

    def digest_of(self, name: str) -> str:
        """sha256 (hex) over one prompt, what it includes, and what it knows."""
        return self._digest(sorted(self._reached(name)))

    def _reached(self, name: str) -> list[str]:
        """A prompt's file and those that it includes."""
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
        return found

    def _refuse_idle(self, own: Path, names: set[str]) -> None:
        used = {file for name in names for file in self._reached(name.removesuffix(".jinja"))}
        for file in sorted(path.name for path in own.glob("*.jinja")):
            if file not in used:
                near = get_close_matches(file, names, n=1, cutoff=0)[0]
                raise ValueError(
                    f"{own / file}: no prompt has this name, did you mean {near}? Rename it or take it out"
                )

    def _digest(self, files: Iterable[str]) -> str:
        digest = hashlib.sha256("\x00".join(self._known).encode())
        for file in files:
            digest.update(self._source(file).encode())
        return digest.hexdigest()

    def _source(self, file: str) -> str:
        try:
            return self._loader.get_source(self._jinja, file)[0]
        except UnicodeDecodeError as error:
            where = self._own / file if self._own else Path(file)
            raise PromptFault(f"{where}: not UTF-8 at byte {error.start}; save it as UTF-8") from error


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


def _faulty(name: str, error: Exception) -> PromptFault:
    where = getattr(error, "filename", None) or f"{name}.jinja"
    return PromptFault(f"{where}: {type(error).__name__}: {error}; mend the template")
