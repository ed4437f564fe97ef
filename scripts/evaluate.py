"""Examine a checkpoint on a benchmark: `accelerate launch scripts/evaluate.py ecomscript --judgment J --data FILE ...`.

Also works under plain python. `evaluate.py BENCHMARK --help` lists the keys of a benchmark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from models.runtime import one_of_many
from train.arguments import parse


def ecomscript(arguments: Sequence[str]) -> None:
    """The three tasks of EcomScriptBench: script_verify, step_product, holistic_verify."""
    from benchmarks.ecomscript.config import EcomScriptConfig
    from benchmarks.ecomscript.run import evaluate

    config = parse(EcomScriptConfig, arguments, doc=str(ecomscript.__doc__))
    with one_of_many():
        evaluate(config)


def ecomqa(arguments: Sequence[str]) -> None:
    """ChineseEcomQA: ten sub-concepts, answered by a checkpoint or a served model, graded by rules and judges."""
    from benchmarks.ecomqa.config import EcomQAConfig
    from benchmarks.ecomqa.run import evaluate

    config = parse(EcomQAConfig, arguments, doc=str(ecomqa.__doc__))
    with one_of_many():
        evaluate(config)


def ecomagent(arguments: Sequence[str]) -> None:
    """EComAgentBench: a checkpoint or a served model shops with ten tools; every failure is laid to a requirement."""
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
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in BENCHMARKS:
        sys.argv[0] = f"evaluate.py {name}"
        BENCHMARKS[name](sys.argv[2:])
    elif name in ("-h", "--help"):
        print(__doc__)
        for benchmark, command in BENCHMARKS.items():
            print(f"  {benchmark:12} {command.__doc__}")
    else:
        near = get_close_matches(name, BENCHMARKS, n=1, cutoff=0)[0]
        message = f"benchmark {name!r} is not known; did you mean {near!r}? Known: {', '.join(BENCHMARKS)}"
        print(message, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
