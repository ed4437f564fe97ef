"""The prompts of a construction: Jinja files, any of which a folder of one's own may replace."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined, TemplateError

SHIPPED = Path(str(files("benchmarks.ecomqa.build") / "prompts"))


class Prompts:
    """Renders prompts by name. Every prompt knows ``language`` and ``until``.

    Args:
        own: a folder whose files stand in for the shipped ones of the same name.

    Raises FileNotFoundError for a folder that has none of them.
    """

    def __init__(self, language: str, until: str, own: str | None = None) -> None:
        folders = [Path(own), SHIPPED] if own else [SHIPPED]
        known = {path.name for path in SHIPPED.glob("*.jinja")}
        if own and not known & {path.name for path in Path(own).glob("*.jinja")}:
            raise FileNotFoundError(f"{own}: none of the prompts {', '.join(sorted(known))}")
        loader = ChoiceLoader([FileSystemLoader(folder) for folder in folders])
        self._jinja = Environment(loader=loader, undefined=StrictUndefined, autoescape=False)  # prompts are no HTML
        self._jinja.globals.update(language=language, until=until)
        self.digest = self._digest(sorted(known))

    def render(self, name: str, **values: Any) -> str:
        """The prompt called ``name``. Raises ValueError, naming the file, for a faulty template."""
        try:
            return self._jinja.get_template(f"{name}.jinja").render(values).strip()
        except TemplateError as error:
            where = getattr(error, "filename", None) or f"{name}.jinja"
            raise ValueError(f"{where}: {type(error).__name__}: {error}; mend the template") from error

    def _digest(self, names: list[str]) -> str:
        """sha256 (hex) over the templates in use, language and day."""
        said = [str(self._jinja.globals[key]) for key in ("language", "until")]
        digest = hashlib.sha256("\x00".join(said).encode())
        for name in names:
            assert self._jinja.loader is not None
            digest.update(self._jinja.loader.get_source(self._jinja, name)[0].encode())
        return digest.hexdigest()
