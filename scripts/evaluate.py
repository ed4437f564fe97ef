"""Examine a checkpoint on a benchmark: `accelerate launch scripts/evaluate.py ecomscript --judgment J --data FILE ...`.

Also works under plain python. `evaluate.py BENCHMARK --help` lists the keys of a benchmark and their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from models.runtime import one_of_many
from train.arguments import choose, parse


def ecomscript(arguments: Sequence[str]) -> None:
    """The three tasks of EcomScriptBench: script_verify, step_product, holistic_verify.

    examples:
      python scripts/evaluate.py ecomscript --judgment step_product --adapter runs/step_product/NAME/adapter
      python scripts/evaluate.py ecomscript --judgment script_verify --checkpoint smollm2-135m --shots 5
    """
    from benchmarks.ecomscript.config import EcomScriptConfig
    from benchmarks.ecomscript.run import evaluate

    config = parse(EcomScriptConfig, arguments, doc=str(ecomscript.__doc__))
    with one_of_many():
        evaluate(config)


def ecomqa(arguments: Sequence[str]) -> None:
    """ChineseEcomQA: ten sub-concepts, answered by a checkpoint or a served model, graded by rules and judges.

    examples:
      python scripts/evaluate.py ecomqa --checkpoint smollm2-135m
    """
    from benchmarks.ecomqa.config import EcomQAConfig
    from benchmarks.ecomqa.run import evaluate

    config = parse(EcomQAConfig, arguments, doc=str(ecomqa.__doc__))
    with one_of_many():
        evaluate(config)


def ecomagent(arguments: Sequence[str]) -> None:
    """EComAgentBench: a checkpoint or a served model shops with ten tools; every failure is laid to a requirement.

    examples:
      python scripts/evaluate.py ecomagent --checkpoint smollm2-135m
    """
    from benchmarks.ecomagent.config import EcomAgentConfig
    from benchmarks.ecomagent.run import evaluate

    config = parse(EcomAgentConfig, arguments, doc=str(ecomagent.__doc__))
    with one_of_many():
        evaluate(config)


BENCHMARKS: dict[str, Callable[[Sequence[str]], None]] = {
    "ecomscript": ecomscript,
    "ecomqa": ecomqa,
    "ecomagent": ecomagent,
}


def main() -> None:
    choose(BENCHMARKS, "benchmark", str(__doc__))


if __name__ == "__main__":
    main()
