"""What is said in words under the table of a terminal and of report.md: constant answers, and the analyses made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.ecomqa.thinking import SHORT
from reporting.markup import number

Results = Mapping[str, Any]


def mean_name(results: Results) -> str:
    """The row of the mean; how many sub-concepts it is over, where it is not all of them."""
    return "unweighted mean" if results["complete"] else f"unweighted mean of {len(results['sub_concepts'])}"


def in_words(results: Results) -> Iterator[str]:
    """A sentence about the constant answers, and one about each analysis that the results have."""
    yield _constants(results["sub_concepts"])
    if found := results.get("confidence"):
        yield _calibration(found["calibration"])
    if found := results.get("rag"):
        yield _retrieval(found["gain"])
    if found := results.get("thinking"):
        yield _thinking(found)
    if found := results.get("comparison"):
        yield _comparison(results["subject"]["name"], found)


def answers(baseline: Results) -> str:
    """The constants of a sub-concept, each once, that of most questions first."""
    constants = sorted(baseline["constants"], key=lambda constant: -constant["n"])
    return " / ".join(dict.fromkeys(constant["answer"] for constant in constants))


def _constants(sub_concepts: Results) -> str:
    named = "; ".join(f"{task} {answers(own['baseline'])}" for task, own in sub_concepts.items())
    return f"Constant answers, the best for each kind of question: {named}."


def _calibration(calibration: Results) -> str:
    errors = ", ".join(
        f"{'together' if task == 'all' else task} {number(own['ece'], 1)}" for task, own in calibration.items()
    )
    together = calibration["all"]
    return (
        f"Expected calibration error, in points: {errors}. {together['n']} of {together['n'] + together['unread']} "
        f"answers state a confidence, {number(together['confidence'], 1)} on average; "
        f"{number(together['accuracy'], 1)} % of them are right."
    )


def _retrieval(gains: Results) -> str:
    named = ", ".join(
        f"{'mean' if task == 'average' else task} {number(gain['plain'], 1)} to {number(gain['rag'], 1)} "
        f"({gain['absolute']:+.1f})"
        for task, gain in gains.items()
    )
    return f"Accuracy without and with passages: {named}."


def _thinking(found: Results) -> str:
    if "message" in found:
        return f"{found['message']}."
    shares = ", ".join(f"{name} {number(found['shares'][behaviour], 1)} %" for behaviour, name in SHORT.items())
    return f"Thinking behaviour: {shares}, of {found['decided']} sorted traces."


def _comparison(name: str, found: Results) -> str:
    ends = found["difference"]
    return (
        f"{name} less {found['with']}: {ends['value']:+.1f} [{ends['low']:.1f}, {ends['high']:.1f}] points over "
        f"{found['n']} questions, p {number(found['p'])} (McNemar)."
    )
