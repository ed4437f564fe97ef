"""Reading a configuration: YAML first, then flags; unknown keys fail with the nearest known one."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from models.limits import Limits
from train.helping import about_and_examples, first_line

T = TypeVar("T")


class _AsWritten(DefaultHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Descriptions and examples with the lines that they were written in."""


BOOLEANS = {"true": "true", "false": "false", "1": "true", "0": "false", "yes": "true", "no": "false"}


def parse(
    tree: type[T], arguments: Sequence[str] | None = None, default_config: Path | None = None, doc: str = ""
) -> T:
    """An instance of the dataclass ``tree`` from ``--config FILE.yaml`` and flags, or exit 2 with a sentence.

    Flags take either form (``--optim.learning_rate 1e-4``, ``--optim.learning_rate=1e-4``); booleans also stand
    alone or as ``--no_x``; ``null`` is the absent value, and so is ``none`` where it is no choice of its own; a list
    is given whole (``--x '[a, b]'``) or an entry at a time (``--x a --x b``), and ``--x+ c`` adds to it.

    Args:
        default_config: the YAML file that is read when no ``--config`` is given.
        doc: what --help says above the keys and, behind a line "examples:", below them.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if default_config is not None and not any(word == "--config" or word.startswith("--config=") for word in given):
        given = ["--config", str(default_config), *given]
    about, examples = about_and_examples(doc)
    parser = ArgumentParser(
        description=about,
        epilog=examples,
        formatter_class=_AsWritten,
        exit_on_error=False,
        allow_abbrev=False,
    )
    parser.add_argument("--config", action="config", help="a YAML file with any of the keys below; flags win over it")
    parser.add_class_arguments(tree, as_group=False)
    leaves = leaf_types(tree)
    try:
        namespace = parser.parse_args(_normalise(given, leaves))
        values = parser.instantiate(namespace)
        _refuse_beyond_limits(tree, values)
        names = {entry.name for entry in fields(tree)}  # type: ignore[arg-type]
        made = tree(**{name: value for name, value in vars(values).items() if name in names})
    except (argparse.ArgumentError, TypeError, ValueError, OSError) as error:
        parser.exit(2, f"{_explain(str(error), list(leaves))}\n")
    return made


def _refuse_beyond_limits(tree: type, values: Any, prefix: str = "") -> None:
    """Raises ValueError for the first number that models.limits beside its field's type do not allow."""
    for name, kind in get_type_hints(tree, include_extras=True).items():
        value = getattr(values, name)
        if is_dataclass(kind):
            _refuse_beyond_limits(kind, value, f"{prefix}{name}.")  # type: ignore[arg-type]
        for part in (kind, *get_args(kind)):
            for limits in getattr(part, "__metadata__", ()):
                if isinstance(limits, Limits) and value is not None and not limits.allow(value):
                    raise ValueError(f"{prefix}{name}: {value} given; give {limits}")


def leaf_types(tree: type, prefix: str = "") -> dict[str, Any]:
    """Dotted name -> type of every field that is not itself a dataclass."""
    leaves: dict[str, Any] = {}
    for name, kind in get_type_hints(tree).items():
        if is_dataclass(kind):
            leaves.update(leaf_types(kind, f"{prefix}{name}."))  # type: ignore[arg-type]
        else:
            leaves[prefix + name] = kind
    return leaves


def choose(commands: Mapping[str, Callable[[Sequence[str]], None]], kind: str, doc: str) -> None:
    """Run the command that the first word of the command line names, with the words behind it.

    Without one, or with --help, ``doc`` and the commands' own docstrings are printed; an unknown word ends with status
    2 and the nearest known one.

    Args:
        kind: what a command's name is the name of, for that sentence.
    """
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in commands:
        sys.argv[0] = f"{Path(sys.argv[0]).name} {name}"
        commands[name](sys.argv[2:])
    elif name in ("-h", "--help"):
        width = max(map(len, commands))
        print(doc)
        for known, command in commands.items():
            print(f"  {known:{width}}  {first_line(command.__doc__)}")
    else:
        near = get_close_matches(name, commands, n=1, cutoff=0)[0]
        print(f"{kind} {name!r} is not known; did you mean {near!r}? Known: {', '.join(commands)}", file=sys.stderr)
        sys.exit(2)


def _normalise(arguments: Sequence[str], leaves: dict[str, Any]) -> list[str]:
    """Flags in the one form that the parser takes."""
    words: list[str] = []
    lists: dict[str, list[str]] = {}
    added: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, sign, value = word.removeprefix("--").partition("=")
        negated = re.sub(r"^((?:\w+\.)*)no[_-]", r"\1", name)
        if not word.startswith("--"):
            words.append(word)
        elif leaves.get(negated) is bool and name not in leaves and not sign:
            words.append(f"--{negated}=false")
        elif name.endswith("+") and _is_list(leaves.get(name[:-1])):
            if not sign and rest:
                value = rest.pop(0)
            added.append(f"--{name}={value}")
        elif name in leaves:
            if not sign and leaves[name] is bool:
                value = rest.pop(0) if rest and rest[0].lower() in BOOLEANS else "true"
            elif not sign and rest:
                value = rest.pop(0)
            elif not sign:
                words.append(word)
                continue
            if leaves[name] is bool:
                value = BOOLEANS.get(value.lower(), value)
            elif value.lower() in ("none", "null"):
                value = "none" if value.lower() == "none" and _is_choice("none", leaves[name]) else "null"
            if _is_list(leaves[name]) and value != "null" and not value.startswith("["):
                lists.setdefault(name, []).append(value)
                continue
            words.append(f"--{name}={value}")
        else:
            words.append(word)
    return words + [f"--{name}={json.dumps(entries)}" for name, entries in lists.items()] + added


def _is_choice(word: str, kind: Any) -> bool:
    """Whether a type names the word among its choices."""
    return any(part == word or _is_choice(word, part) for part in get_args(kind))


def _is_list(kind: Any) -> bool:
    return get_origin(kind) in (list, tuple) or any(map(_is_list, get_args(kind)))


def _explain(message: str, known: list[str]) -> str:
    """The parser's complaint in our words, with the nearest known key where one was unknown."""
    unknown: list[str] = []
    if match := re.search(r"Group '([^']*)' does not accept (?:option|nested key) '([^']*)'", message):
        unknown = [f"{match[1]}.{match[2]}" if match[1] else match[2]]
    elif match := re.search(r"unrecognized arguments: (.*)", message, re.IGNORECASE):
        unknown = [word.removeprefix("--").partition("=")[0] for word in match[1].split() if word.startswith("--")]
    elif match := re.search(r"[Kk]ey ['\"]([\w.]+)['\"] is not expected|does not accept option '([\w.]+)'", message):
        unknown = [match[1] or match[2]]
    lines = []
    for key in unknown:
        near = get_close_matches(key, known, n=1, cutoff=0.6) or get_close_matches(
            key.rsplit(".", 1)[-1], [name.rsplit(".", 1)[-1] for name in known], n=1, cutoff=0.6
        )
        full = [name for name in known if near and (name == near[0] or name.rsplit(".", 1)[-1] == near[0])]
        hint = f"; did you mean {full[0]}?" if full else "; --help lists the keys"
        lines.append(f"configuration: {key}: unknown key{hint}")
    return "\n".join(lines) or f"configuration: {message}"
