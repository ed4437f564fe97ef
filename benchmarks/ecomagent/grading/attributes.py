"""Attributes and excluded attributes: what a product's details say, word by word."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.ecomagent.catalogue import Product
from benchmarks.ecomagent.fields import canonical, named
from benchmarks.ecomagent.grading.verdict import Verdict
from benchmarks.ecomagent.wording import NEGATORS, UNITS, find, forms, is_denied, says, words

# Words that two different values may share.
_FILLERS = NEGATORS | {"a", "an", "and", "or", "of", "the", "with", "for", "in", "on", "to", "type", "style", "other"}
_SAME_ROOT = 5  # letters that "mounted" and "mounting" begin with


def attribute_match(product: Product, name: str, expected: str) -> Verdict:
    """Whether the product's attribute is or contains the expected value.

    The detail of that name (or an alias of it) decides. Where the product has none, a feature line counts if it names
    both the attribute and the value; this is an estimate, marked as lexical.
    """
    found = list(named(product.details, name))
    for key, value in found:
        if says(value, expected):
            return Verdict(True, f"{key} is {value!r}", f"details.{key}")
    if found:
        key, value = found[0]
        denied = " (where it is denied)" if any(find(value, expected)) else ""
        return Verdict(False, f"{key} is {value!r}{denied}, not {expected!r}", f"details.{key}")
    for number, line in enumerate(product.features, 1):
        if says(line, expected) and any(find(line, canonical(name))):
            reason = f"no detail {name!r}, but a feature line names it with {expected!r}"
            return Verdict(True, reason, f"features[{number}]", "lexical")
    return Verdict(False, f"no detail {name!r}, and no feature line names it with {expected!r}", None, "lexical")


def negative_attribute(product: Product, name: str, excluded: Iterable[str]) -> Verdict:
    """Whether the product's attribute clearly differs from every excluded value; sharing a telling word fails.

    A product of which the attribute is not known does not satisfy it, as nothing shows that it differs.
    """
    values = [value for value in excluded if value.strip()]
    if not values:
        return Verdict(True, "nothing is excluded, so that every product satisfies it")
    listed = ", ".join(map(repr, values))
    found = list(named(product.details, name))
    if not found:
        return Verdict(False, f"no detail {name!r} shows that the product differs from {listed}")
    for key, value in found:
        for bad in values:
            if shared := _shared(value, bad, name):
                reason = f"{key} is {value!r}, too near to the excluded {bad!r}: both have {shared}"
                return Verdict(False, reason, f"details.{key}")
    key, value = found[0]
    return Verdict(True, f"{key} is {value!r}, none of {listed}", f"details.{key}")


def _shared(value: str, bad: str, name: str) -> str | None:
    """What an attribute's value has of an excluded one; None where they clearly differ.

    Filling words, numbers with their units, and words of the attribute's own name ("finish" in a Finish Type) do not
    make two values near; where the excluded value is nothing else, it counts as a whole.
    """
    if says(value, bad):
        return repr(bad)
    telling = {form for form in forms(bad) if not _is_weak(form, name)}
    there = words(value)
    both = {word.form for at, word in enumerate(there) if word.form in telling and not is_denied(there, at, at + 1)}
    return ", ".join(map(repr, sorted(both))) or None


def _is_weak(form: str, name: str) -> bool:
    if form in _FILLERS or form in UNITS or form[0].isdigit():
        return True
    return any(form == own or (len(own) >= _SAME_ROOT and form[:_SAME_ROOT] == own[:_SAME_ROOT]) for own in forms(name))
