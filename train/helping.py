"""--help of every command: what it does in the lines it was written in, its flags with their defaults, examples."""

from __future__ import annotations

import argparse
from inspect import cleandoc

EXAMPLES = "examples:\n"


def described(doc: str) -> argparse.ArgumentParser:
    """A parser whose help is a module's docstring: the part behind a line "examples:" stands below the flags."""
    about, examples = about_and_examples(doc)
    return argparse.ArgumentParser(description=about, epilog=examples, formatter_class=AsWritten, allow_abbrev=False)


def about_and_examples(doc: str) -> tuple[str, str | None]:
    about, heading, examples = cleandoc(doc).partition(EXAMPLES)
    return about.rstrip(), heading + examples.rstrip() if heading else None


def first_line(doc: str | None) -> str:
    return (doc or "").partition("\n")[0]


class AsWritten(argparse.RawDescriptionHelpFormatter):
    """Descriptions in their own lines; behind each flag its default, where it has one that its help does not tell."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        told = action.help or ""
        absent = action.default in (None, False, argparse.SUPPRESS) or action.default == []
        return told if absent or "default" in told else f"{told} (default: %(default)s)"
