"""The shape of a category's file: families of products, what they may be like, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Texts = Annotated[tuple[Text, ...], Field(min_length=1)]
Bundles = Annotated[tuple[dict[str, Text], ...], Field(min_length=2)]

HERE = Path(__file__).parent
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Family(_Strict):
    """Products of one kind.

    ``names``: one a product; "Brand|Name" fixes the brand. ``titles``: templates with ``{brand}``, ``{name}`` and
    attributes (``{Skin Type}``; ``{skin type}`` for the value in lower case). ``sets`` and each list of ``pairs``:
    attributes that go together, of which a product has one bundle. ``details``: attributes that vary freely. Features,
    descriptions and opinions may begin with a condition: "Gel|Balm >> text" is said of products that have one of these
    values.
    """

    family: Text
    entity: Text
    price: tuple[float, float]
    brands: Texts | None = None
    names: Texts
    titles: Texts
    sets: Bundles
    pairs: tuple[Bundles, ...] = ()
    details: dict[str, Texts]
    features: Texts
    description: Texts
    good: Texts
    bad: Texts


class Said(_Strict):
    good: Texts
    bad: Texts


class Category(_Strict):
    """``good`` and ``bad`` are said of all its products."""

    category: Text
    brands: Texts
    good: Texts
    bad: Texts
    families: tuple[Family, ...]


class Moods(_Strict):
    good: Texts
    mixed: Texts
    bad: Texts


class Opinions(_Strict):
    """What reviews say of anything; ``values``: of products whose attribute has a value."""

    titles: Moods
    openers: Texts
    general: Said
    closers: Moods
    values: dict[str, dict[str, Said]]

    def of(self, attributes: Mapping[str, str]) -> Said:
        """What can be said of these attributes, and of anything."""
        said = [
            self.values[field][value]
            for field, text in attributes.items()
            for value in text.split(", ")
            if value in self.values.get(field, {})
        ]
        good = [line for one in (*said, self.general) for line in one.good]
        return Said(good=tuple(good), bad=tuple(line for one in (*said, self.general) for line in one.bad))


def load_categories() -> tuple[Category, ...]:
    """The categories, in the order of their files' names."""
    return tuple(Category.model_validate(_read(path)) for path in sorted((HERE / "families").glob("*.yaml")))


def load_opinions() -> Opinions:
    told = _read(HERE / "opinions.yaml")
    assert isinstance(told, dict)
    return Opinions.model_validate(told | {"values": _read(HERE / "values.yaml")})


def source_files() -> list[Path]:
    """Everything that the shop is made of, its code included, in a fixed order."""
    return sorted([*(HERE / "families").glob("*.yaml"), *HERE.glob("*.yaml"), *HERE.glob("*.py")])


def _read(path: Path) -> object:
    return yaml.load(path.read_text(encoding="utf-8"), LOADER)


def fitting(lines: Texts, values: frozenset[str]) -> list[str]:
    """The lines whose condition these values meet, or that have none, without their conditions."""
    found = []
    for line in lines:
        condition, mark, text = line.partition(" >> ")
        if not mark:
            found.append(line)
        elif values & set(condition.split("|")):
            found.append(text)
    return found
