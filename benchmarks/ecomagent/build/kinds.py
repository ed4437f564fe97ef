"""What kind of product a product is, read off its title: the entity that every task names.

A kind is words of the title that the shop's own categories also say, or else the words that end the naming part of
many titles in the same category ("Face Moisturizer" in "Mirelle Quiet Cream Face Moisturizer for Dry Skin, 30 ml").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.ecomagent.build.phrases import small
from benchmarks.ecomagent.catalogue import Product
from benchmarks.ecomagent.grading.lexical import entity_match
from benchmarks.ecomagent.wording import find, forms

LONGEST_KIND = 3  # words
FEWEST_TITLES = 3  # that must end with a kind which no category names
# Kinds that say nothing about what a product is.
_EMPTY = frozenset(forms("set sets pack packs pcs piece pieces kit kits item product accessory accessories other size"))
_WORD = re.compile(r"[^\W_]+(?:['’&.-][^\W_]+)*")
_HEAD_ENDS = re.compile(r"\s+(?:for|with|by|in|from|compatible|to fit)\b|\s[-–—|]\s|[,;:(\[|]", re.IGNORECASE)


@dataclass(frozen=True)
class Kind:
    """A kind of product: as the task names it (``name``) and as the title has it (``span``)."""

    name: str
    span: str


class Kinds:
    """Knows the kinds of a shop from a sample of its titles."""

    def __init__(self, products: Iterable[Product]) -> None:
        self.endings: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for product in products:
            words = _words(_head(product.title))
            for size in range(1, LONGEST_KIND + 1):
                self.endings[product.main_category, tuple(forms(" ".join(words[-size:])))] += 1

    def of(self, product: Product) -> Kind | None:
        """The product's kind; None where its title does not tell. Grading finds it in the title again."""
        for span in (*self._by_category(product), *self._by_ending(product)):
            if set(forms(span)) - _EMPTY and entity_match(product, [span]).satisfied:
                return Kind(small(span), span)
        return None

    def _by_category(self, product: Product) -> Iterable[str]:
        """Words of the title that say what one of its categories says, the most special category first."""
        words = _words(product.title)
        for category in reversed(product.categories):
            for part in re.split(r"\s*[,&/]\s*|\s+and\s+", category):
                size = len(forms(part))
                if not 0 < size <= LONGEST_KIND:
                    continue
                for start in range(len(words) - size + 1):
                    span = " ".join(words[start : start + size])
                    if forms(span) == forms(part) and span in product.title:
                        yield span

    def _by_ending(self, product: Product) -> Iterable[str]:
        """Endings of the naming part that many titles share, the longest first."""
        words = _words(_head(product.title))
        for size in range(min(LONGEST_KIND, len(words) - 1), 0, -1):
            span = " ".join(words[-size:])
            count = self.endings[product.main_category, tuple(forms(span))]
            if count >= FEWEST_TITLES and span in product.title and not any(map(str.isdigit, span)):
                yield span


def _head(title: str) -> str:
    """The part of a title that names the product: before "for", "with" and the like, or a mark."""
    found = _HEAD_ENDS.search(title)
    return title[: found.start()] if found and found.start() else title


def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text)


def same_kind(product: Product, kind: Kind) -> bool:
    """Whether another product's title names it as of that kind."""
    return any(find(product.title, kind.name))
